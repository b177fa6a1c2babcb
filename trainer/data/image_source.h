// SPDX-License-Identifier: Apache-2.0
// The interface from which a loader takes images and labels: a set in memory, or files that are read when they are
// needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "trainer/core/error.h"
#include "trainer/data/dataset.h"
#include "trainer/nn/model.h"

namespace paceline::train {

// An image that cannot be read or decoded; the message has its name and the reason.
struct ImageError : Error {
  using Error::Error;
};

// The random changes to a training image, and the numbers that seed them beside the sample itself.
struct Draw {
  std::uint64_t seed = 1, epoch = 0;
  bool crop = true, mirror = true;  // false: as in evaluation; the other change is the same with and without it
};

class ImageSource {
 public:
  virtual ~ImageSource() = default;

  virtual std::size_t size() const = 0;
  virtual std::int64_t image_size() const = 0;  // pixels on each side of what prepare() writes
  virtual std::int64_t classes() const = 0;
  virtual std::int32_t label(std::size_t sample) const = 0;

  // Writes an image in the form of the network's input: normalised channel planes. With a draw it is cropped and
  // flipped at random, as a function of draw and sample alone; without one it is as in evaluation. Several threads may
  // call it at once. Throws ImageError if a file is missing or damaged.
  virtual void prepare(std::size_t sample, const std::optional<Draw>& draw, std::span<float> out) const = 0;

  // For a model that prepares images itself. stored(): the normalisation; null if the images are not stored as bytes.
  // prepare_stored(): writes an image's bytes and returns the cut that makes the image of prepare() from them.
  // Interpolated values are rounded to bytes.
  virtual const Normalization* stored() const { return nullptr; }
  virtual ImageCut prepare_stored(std::size_t, const std::optional<Draw>&, std::span<std::uint8_t>) const { return {}; }

  virtual std::string name_of(std::size_t) const { return {}; }  // an image's file, for messages

  std::size_t values() const { return static_cast<std::size_t>(3 * image_size() * image_size()); }  // of an image
};

}  // namespace paceline::train
