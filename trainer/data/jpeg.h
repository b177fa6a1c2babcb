// SPDX-License-Identifier: Apache-2.0
// JPEG pictures, decoded by libjpeg-turbo.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trainer/data/picture.h"

namespace paceline::train {

// Decodes a window of a picture row by row at a scale of M/8 to red, green and blue bytes. The picture may be grey,
// YCbCr or CMYK, baseline or progressive. A warning of libjpeg-turbo is an error, so that damage does not become a grey
// patch. Changed bytes that still decode are not noticed, because JPEG has no checksum.
class JpegReader : public PictureReader {
 public:
  // Reads the header; the bytes must outlive the reader.
  explicit JpegReader(std::span<const std::uint8_t> bytes);
  ~JpegReader() override;
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  int width() const override;
  int height() const override;
  double scale() const override;
  void set_eighths(int eighths) override;
  void start(int left, int right, int top) override;  // libjpeg widens the window to whole blocks
  int first_column() const override;
  int row_pixels() const override;
  void row(std::uint8_t* out) override;
  void finish() override;  // does not decode the pixels

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
