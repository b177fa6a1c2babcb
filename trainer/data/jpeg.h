// JPEG pictures by libjpeg-turbo.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace paceline::train {

// What is wrong with a picture, without its file's name.
struct JpegError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Decodes a window of a picture row by row, at a scale of M/8, as red, green and blue bytes, whatever the picture has:
// grey, YCbCr, CMYK, baseline or progressive. Whatever libjpeg-turbo warns of is an error, not a grey patch. Changed
// bytes that still decode are pixels like any others: JPEG has no checksum. Every function throws JpegError.
class JpegReader {
 public:
  // Reads the header; the bytes must outlive the reader. More than 134 million pixels are refused.
  explicit JpegReader(std::span<const std::uint8_t> bytes);
  ~JpegReader();
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  int width() const;  // pixels, scaled
  int height() const;

  // Before start(): the scale, 1 to 8.
  void set_eighths(int eighths);

  // Begins a window of whole rows from `top`, with the columns left … right at least. libjpeg widens it to whole
  // blocks: row() writes row_pixels() pixels, from column first_column() on.
  void start(int left, int right, int top);
  int first_column() const;
  int row_pixels() const;

  void row(std::uint8_t* out);  // the next one: 3 bytes a pixel

  // Checks what follows of the picture, without making pixels of it: whether a file is good does not depend on the
  // window.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A picture as a JPEG file's bytes, 4:2:0 where it has colours. components: 1 grey, 3 red, green and blue, 4 CMYK as
// Adobe writes it (255: no ink); one byte each, pixel by pixel.
struct JpegPicture {
  int width = 0, height = 0, components = 3;
  std::span<const std::uint8_t> pixels;
};
std::string encode_jpeg(const JpegPicture& picture, int quality = 90, bool progressive = false);

}  // namespace paceline::train
