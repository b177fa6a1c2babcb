// What a loader takes images and labels from: a set in memory, or files that are read when they are needed.
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

// One image that cannot be read or decoded, by its name and the reason.
struct ImageError : Error {
  using Error::Error;
};

// What is drawn for a training image, and what its random numbers are named by, beside the sample itself.
struct Draw {
  std::uint64_t seed = 1, epoch = 0;
  bool crop = true, mirror = true;  // what is not drawn is as evaluation has it; what is drawn does not depend on it
};

class ImageSource {
 public:
  virtual ~ImageSource() = default;

  virtual std::size_t size() const = 0;
  virtual std::int64_t image_size() const = 0;  // pixels on each side of what prepare() writes
  virtual std::int64_t classes() const = 0;
  virtual std::int32_t label(std::size_t sample) const = 0;

  // Writes an image as the network takes it, normalised, channel planes one after the other: cropped and flipped at
  // random, a function of draw and sample alone, or, without a draw, as evaluation sees it. Several threads may call
  // it at once. Throws ImageError where a file is missing or damaged.
  virtual void prepare(std::size_t sample, const std::optional<Draw>& draw, std::span<float> out) const = 0;

  // For a model that prepares images itself: how bytes become numbers, null where images are none; and an image's
  // bytes, with the cut that is left to make of it what prepare() does. What had to be interpolated is rounded to
  // bytes.
  virtual const Normalization* stored() const { return nullptr; }
  virtual ImageCut prepare_stored(std::size_t, const std::optional<Draw>&, std::span<std::uint8_t>) const { return {}; }

  virtual std::string name_of(std::size_t) const { return {}; }  // an image's file, for messages

  std::size_t values() const { return static_cast<std::size_t>(3 * image_size() * image_size()); }  // of an image
};

}  // namespace paceline::train
