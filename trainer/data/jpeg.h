// JPEG pictures, decoded by libjpeg-turbo.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace paceline::train {

// The damage of a picture; the message does not name the file.
struct JpegError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Decodes a window of a picture row by row at a scale of M/8 to red, green and blue bytes. The picture may be grey,
// YCbCr or CMYK, baseline or progressive. A warning of libjpeg-turbo is an error, so that damage does not become a grey
// patch. Changed bytes that still decode are not noticed, because JPEG has no checksum. Every function throws
// JpegError.
class JpegReader {
 public:
  // Reads the header; the bytes must outlive the reader. More than 134 million pixels are refused.
  explicit JpegReader(std::span<const std::uint8_t> bytes);
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  int width() const;  // pixels, scaled
  int height() const;

  // Sets the scale, 1 to 8. Call it before start().
  void set_eighths(int eighths);

  // Begins a window of whole rows from `top` that contains the columns left … right. libjpeg widens it to whole blocks:
  // row() writes row_pixels() pixels, beginning with column first_column().
  void start(int left, int right, int top);
  int first_column() const;
  int row_pixels() const;

  void row(std::uint8_t* out);  // writes the next row, 3 bytes for each pixel

  // Checks the rest of the picture without decoding its pixels, so that the window does not decide whether a file is
  // good.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Encodes a picture as JPEG, 4:2:0 if it has colours. components: 1 for grey, 3 for red, green and blue, 4 for CMYK as
// Adobe writes it (255: no ink); one byte each, pixel by pixel.
struct JpegPicture {
  int width = 0, height = 0, components = 3;
  std::span<const std::uint8_t> pixels;
};
std::string encode_jpeg(const JpegPicture& picture, int quality = 90, bool progressive = false);

}  // namespace paceline::train
