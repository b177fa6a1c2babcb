// SPDX-License-Identifier: Apache-2.0
// The labels of a source without its images, for ranks whose images come from the stage before them in a pipeline.
#pragma once

#include "trainer/data/image_source.h"

namespace paceline::train {

class LabelsOnly final : public ImageSource {
 public:
  // The source must outlive it.
  explicit LabelsOnly(const ImageSource& source) : source_(source) {}

  std::size_t size() const override { return source_.size(); }
  std::int64_t image_size() const override { return 0; }
  std::int64_t classes() const override { return source_.classes(); }
  std::int32_t label(std::size_t sample) const override { return source_.label(sample); }
  void prepare(std::size_t, const std::optional<Draw>&, std::span<float>) const override {}

 private:
  const ImageSource& source_;
};

}  // namespace paceline::train
