// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/whole_picture.h"

#include <png.h>
#include <webp/decode.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <string_view>
#include <vector>

namespace paceline::train {
namespace {

struct Pixels {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
};

// Reduces by whole numbers of pixels, whose mean it takes, so that thin lines do not vanish between the taps of a
// linear interpolation.
class WholePicture : public PictureReader {
 public:
  explicit WholePicture(Pixels pixels) : pixels_(std::move(pixels)) {}

  int width() const override { return (pixels_.width + block_ - 1) / block_; }
  int height() const override { return (pixels_.height + block_ - 1) / block_; }
  double scale() const override { return 1.0 / block_; }
  void set_eighths(int eighths) override { block_ = 8 / eighths; }

  void start(int left, int right, int top) override {
    left_ = left;
    columns_ = right - left + 1;
    next_ = top;
  }
  int first_column() const override { return left_; }
  int row_pixels() const override { return columns_; }
  void row(std::uint8_t* out) override;
  void finish() override {}

 private:
  Pixels pixels_;
  int block_ = 1, left_ = 0, columns_ = 0, next_ = 0;
};

void WholePicture::row(std::uint8_t* out) {
  const int top = next_++ * block_, bottom = std::min(top + block_, pixels_.height);
  const auto stride = 3 * static_cast<std::size_t>(pixels_.width);
  if (block_ == 1) {
    std::memcpy(out, pixels_.rgb.data() + static_cast<std::size_t>(top) * stride + 3 * static_cast<std::size_t>(left_),
                3 * static_cast<std::size_t>(columns_));
    return;
  }
  for (int column = 0; column < columns_; ++column) {
    const int begin = (left_ + column) * block_, end = std::min(begin + block_, pixels_.width);
    const unsigned count = static_cast<unsigned>((end - begin) * (bottom - top));
    std::array<unsigned, 3> sum{};
    for (int y = top; y < bottom; ++y) {
      const std::uint8_t* from = pixels_.rgb.data() + static_cast<std::size_t>(y) * stride;
      for (int x = begin; x < end; ++x) {
        for (std::size_t c = 0; c < 3; ++c) sum[c] += from[3 * static_cast<std::size_t>(x) + c];
      }
    }
    for (std::size_t c = 0; c < 3; ++c) *out++ = static_cast<std::uint8_t>((sum[c] + count / 2) / count);
  }
}

// --- libpng. Its errors jump back to where setjmp was called, so everything that needs a destructor lies in PngReader.

struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::uint8_t> left;
  std::array<char, 200> message{};
  std::jmp_buf back{};
  Pixels pixels;
  std::vector<png_bytep> rows;

  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void on_png_error(png_structp png, png_const_charp text) {
  auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
  std::snprintf(reader->message.data(), reader->message.size(), "%s", text);
  std::longjmp(reader->back, 1);
}

void on_png_warning(png_structp, png_const_charp) {}  // about texts and colour profiles, which are not used

void read_png_bytes(png_structp png, png_bytep out, std::size_t bytes) {
  auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
  if (bytes > reader->left.size()) png_error(png, "the file ends early");
  std::memcpy(out, reader->left.data(), bytes);
  reader->left = reader->left.subspan(bytes);
}

// Eight bits of red, green and blue, whatever the file holds.
void ask_for_rgb(png_structp png) {
  png_set_expand(png);
  png_set_scale_16(png);
  png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
}

void read_header(PngReader& reader) {
  png_set_read_fn(reader.png, &reader, read_png_bytes);
  png_set_user_limits(reader.png, 0x7fffffff, 0x7fffffff);  // check_pixels() has the limit
  png_read_info(reader.png, reader.info);
  ask_for_rgb(reader.png);
  png_set_interlace_handling(reader.png);
  png_read_update_info(reader.png, reader.info);
}

void read_rows(PngReader& reader) {
  png_read_image(reader.png, reader.rows.data());
  png_read_end(reader.png, nullptr);
}

template <typename Call>
void guarded(PngReader& reader, Call call) {
  if (setjmp(reader.back) != 0) throw PictureError(reader.message.data());
  call(reader);
}

Pixels decode_png(std::span<const std::uint8_t> bytes) {
  PngReader reader;
  reader.left = bytes;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_png_error, on_png_warning);
  if (reader.png != nullptr) reader.info = png_create_info_struct(reader.png);
  if (reader.info == nullptr) throw PictureError("no memory to decode it");
  guarded(reader, read_header);
  const std::size_t width = png_get_image_width(reader.png, reader.info),
                    height = png_get_image_height(reader.png, reader.info);
  check_pixels(static_cast<std::int64_t>(width), static_cast<std::int64_t>(height));
  if (png_get_rowbytes(reader.png, reader.info) != 3 * width) throw PictureError("an unknown kind of colours");
  reader.pixels = {static_cast<int>(width), static_cast<int>(height), std::vector<std::uint8_t>(3 * width * height)};
  for (std::size_t y = 0; y < height; ++y) reader.rows.push_back(reader.pixels.rgb.data() + y * 3 * width);
  guarded(reader, read_rows);
  return std::move(reader.pixels);
}

Pixels decode_webp(std::span<const std::uint8_t> bytes) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(bytes.data(), bytes.size(), &features) != VP8_STATUS_OK) {
    throw PictureError("not a whole WebP header");
  }
  if (features.has_animation != 0) throw PictureError("an animation");
  check_pixels(features.width, features.height);
  const int stride = 3 * features.width;
  Pixels pixels{
      features.width, features.height,
      std::vector<std::uint8_t>(static_cast<std::size_t>(stride) * static_cast<std::size_t>(features.height))};
  if (WebPDecodeRGBInto(bytes.data(), bytes.size(), pixels.rgb.data(), pixels.rgb.size(), stride) == nullptr) {
    throw PictureError("damaged or truncated WebP data");
  }
  return pixels;
}

bool has(std::span<const std::uint8_t> bytes, std::size_t at, std::string_view text) {
  return bytes.size() >= at + text.size() && std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

}  // namespace

bool is_png(std::span<const std::uint8_t> bytes) { return has(bytes, 0, "\x89PNG\r\n\x1a\n"); }
bool is_webp(std::span<const std::uint8_t> bytes) { return has(bytes, 0, "RIFF") && has(bytes, 8, "WEBP"); }

std::unique_ptr<PictureReader> open_png(std::span<const std::uint8_t> bytes) {
  return std::make_unique<WholePicture>(decode_png(bytes));
}
std::unique_ptr<PictureReader> open_webp(std::span<const std::uint8_t> bytes) {
  return std::make_unique<WholePicture>(decode_webp(bytes));
}

}  // namespace paceline::train
