// SPDX-License-Identifier: Apache-2.0
// Pictures that are decoded whole: PNG and WebP.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "trainer/data/picture.h"

namespace paceline::train {

bool is_png(std::span<const std::uint8_t> bytes);
bool is_webp(std::span<const std::uint8_t> bytes);

// Decode the whole picture. A warning about damage is an error. An animated WebP is refused. Throw PictureError.
std::unique_ptr<PictureReader> open_png(std::span<const std::uint8_t> bytes);
std::unique_ptr<PictureReader> open_webp(std::span<const std::uint8_t> bytes);

}  // namespace paceline::train
