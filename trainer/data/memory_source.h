// SPDX-License-Identifier: Apache-2.0
// A data set in memory as the source of a loader.
#pragma once

#include "trainer/data/augment.h"
#include "trainer/data/dataset.h"
#include "trainer/data/image_source.h"

namespace paceline::train {

// Training images are shifted and flipped (augment.h). If image_size differs from the set's own, images are first
// interpolated linearly to that size.
class MemorySource : public ImageSource {
 public:
  // image_size 0: the set's own.
  MemorySource(Dataset data, const Normalization& normalization, std::int64_t image_size = 0)
      : data_(std::move(data)),
        normalization_(normalization),
        image_size_(image_size > 0 ? image_size : data_.image_size) {}

  std::size_t size() const override { return data_.size(); }
  std::int64_t image_size() const override { return image_size_; }
  std::int64_t classes() const override { return data_.classes; }
  std::int32_t label(std::size_t sample) const override { return data_.labels[sample]; }
  void prepare(std::size_t sample, const std::optional<Draw>& draw, std::span<float> out) const override;
  const Normalization* stored() const override { return &normalization_; }
  ImageCut prepare_stored(std::size_t sample, const std::optional<Draw>& draw,
                          std::span<std::uint8_t> out) const override;

 private:
  ImageCut cut_of(std::size_t sample, const std::optional<Draw>& draw) const;

  const Dataset data_;
  const Normalization normalization_;
  const std::int64_t image_size_;
};

}  // namespace paceline::train
