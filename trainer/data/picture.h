// SPDX-License-Identifier: Apache-2.0
// A picture file of any kind that is read here: JPEG, PNG or WebP.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace paceline::train {

// The damage of a picture; the message does not name the file.
struct PictureError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Pictures with more pixels are refused.
inline constexpr std::int64_t most_pixels = std::int64_t{1} << 27;

// Throws PictureError for a picture that is empty or has more than `most_pixels`.
void check_pixels(std::int64_t width, std::int64_t height);

// Gives a window of a picture row by row, reduced by scale(), as red, green and blue bytes. Every function throws
// PictureError.
class PictureReader {
 public:
  virtual ~PictureReader() = default;

  virtual int width() const = 0;  // pixels, scaled
  virtual int height() const = 0;
  virtual double scale() const = 0;  // 1 at first

  // Sets the scale to at least eighths / 8 (1 to 8 eighths), as small as the kind of picture allows. Call it before
  // start().
  virtual void set_eighths(int eighths) = 0;

  // Begins a window of whole rows from `top` that contains the columns left … right. It may be wider: row() writes
  // row_pixels() pixels, beginning with column first_column().
  virtual void start(int left, int right, int top) = 0;
  virtual int first_column() const = 0;
  virtual int row_pixels() const = 0;

  virtual void row(std::uint8_t* out) = 0;  // writes the next row, 3 bytes for each pixel

  // Checks the rest of the picture, so that the window does not decide whether a file is good.
  virtual void finish() = 0;
};

}  // namespace paceline::train
