// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/jpeg.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>  // jpeglib.h needs it
#include <cstdlib>
#include <vector>

#include <jpeglib.h>

namespace paceline::train {

struct JpegFailure {
  jpeg_error_mgr base{};  // first member: libjpeg passes its address back
  std::jmp_buf back{};
  std::array<char, JMSG_LENGTH_MAX> message{};
};

namespace {

[[noreturn]] void on_error(j_common_ptr info) {
  auto* failure = reinterpret_cast<JpegFailure*>(info->err);
  (*info->err->format_message)(info, failure->message.data());
  std::longjmp(failure->back, 1);
}

// After damage libjpeg goes on with grey or garbage and only warns, with a negative level.
void on_message(j_common_ptr info, int level) {
  if (level < 0) on_error(info);
}

jpeg_error_mgr* handlers(JpegFailure& failure) {
  jpeg_error_mgr* manager = jpeg_std_error(&failure.base);
  manager->error_exit = on_error;
  manager->emit_message = on_message;
  return manager;
}

// Runs calls of libjpeg, whose errors jump back here. Nothing in `call` may need to be destroyed.
template <typename Call>
void guarded(JpegFailure& failure, Call call) {
  if (setjmp(failure.back) != 0) throw PictureError(failure.message.data());
  call();
}

// Adobe's files store inverted inks: the light that an ink leaves.
void light_through_ink(const std::uint8_t* cmyk, std::size_t pixels, bool inverted, std::uint8_t* rgb) {
  const auto light = [&](std::uint8_t ink) { return inverted ? ink : 255 - ink; };
  for (std::size_t i = 0; i < pixels; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      rgb[3 * i + c] = static_cast<std::uint8_t>((light(cmyk[4 * i + c]) * light(cmyk[4 * i + 3]) + 127) / 255);
    }
  }
}

}  // namespace

struct JpegReader::State {
  jpeg_decompress_struct info{};
  JpegFailure failure;
  std::vector<std::uint8_t> cmyk;  // a row of a picture in inks
  JDIMENSION first_column = 0;

  ~State() { jpeg_destroy_decompress(&info); }  // safe even if nothing was created
};

JpegReader::JpegReader(std::span<const std::uint8_t> bytes) : state_(std::make_unique<State>()) {
  jpeg_decompress_struct& info = state_->info;
  info.err = handlers(state_->failure);
  guarded(state_->failure, [&] {
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, bytes.data(), bytes.size());
    jpeg_read_header(&info, TRUE);
  });
  check_pixels(info.image_width, info.image_height);
  const bool inks = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  info.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  set_eighths(8);
}

JpegReader::~JpegReader() = default;

int JpegReader::width() const { return static_cast<int>(state_->info.output_width); }
int JpegReader::height() const { return static_cast<int>(state_->info.output_height); }
double JpegReader::scale() const { return state_->info.scale_num / 8.0; }

void JpegReader::set_eighths(int eighths) {
  state_->info.scale_num = static_cast<unsigned>(eighths);
  state_->info.scale_denom = 8;
  guarded(state_->failure, [&] { jpeg_calc_output_dimensions(&state_->info); });
}

void JpegReader::start(int left, int right, int top) {
  jpeg_decompress_struct& info = state_->info;
  // The colours of a pixel are mixed from its neighbours', so the window has one more block on each side.
  constexpr int neighbours = 2;
  JDIMENSION column = static_cast<JDIMENSION>(std::max(0, left - neighbours));
  JDIMENSION columns = static_cast<JDIMENSION>(std::min(width() - 1, right + neighbours)) - column + 1;
  JDIMENSION* const first = &column;
  JDIMENSION* const count = &columns;
  guarded(state_->failure, [&] {
    jpeg_start_decompress(&info);
    jpeg_crop_scanline(&info, first, count);
    if (top > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(top));
  });
  state_->first_column = column;
  if (info.out_color_space == JCS_CMYK) state_->cmyk.resize(4 * std::size_t{info.output_width});
}

int JpegReader::first_column() const { return static_cast<int>(state_->first_column); }
int JpegReader::row_pixels() const { return static_cast<int>(state_->info.output_width); }

void JpegReader::row(std::uint8_t* out) {
  jpeg_decompress_struct& info = state_->info;
  std::vector<std::uint8_t>& cmyk = state_->cmyk;
  guarded(state_->failure, [&] {
    JSAMPROW line = cmyk.empty() ? out : cmyk.data();
    jpeg_read_scanlines(&info, &line, 1);
  });
  if (!cmyk.empty()) light_through_ink(cmyk.data(), cmyk.size() / 4, info.saw_Adobe_marker, out);
}

void JpegReader::finish() {
  jpeg_decompress_struct& info = state_->info;
  const JDIMENSION left = info.output_height - info.output_scanline;
  if (left > 0) {
    // Reads the last row, because libjpeg does not check a picture that is skipped to its end.
    if (left > 1) guarded(state_->failure, [&] { jpeg_skip_scanlines(&info, left - 1); });
    std::vector<std::uint8_t> last(3 * std::size_t{info.output_width});
    row(last.data());
  }
  guarded(state_->failure, [&] { jpeg_finish_decompress(&info); });
}

std::string encode_jpeg(const JpegPicture& picture, int quality, bool progressive) {
  struct Compressor {
    jpeg_compress_struct info{};
    JpegFailure failure;
    unsigned char* bytes = nullptr;
    unsigned long size = 0;
    ~Compressor() {
      jpeg_destroy_compress(&info);
      std::free(bytes);
    }
  } c;
  c.info.err = handlers(c.failure);
  guarded(c.failure, [&] {
    jpeg_create_compress(&c.info);
    jpeg_mem_dest(&c.info, &c.bytes, &c.size);
    c.info.image_width = static_cast<JDIMENSION>(picture.width);
    c.info.image_height = static_cast<JDIMENSION>(picture.height);
    c.info.input_components = picture.components;
    c.info.in_color_space = picture.components == 1 ? JCS_GRAYSCALE : picture.components == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&c.info);
    jpeg_set_quality(&c.info, quality, TRUE);
    if (progressive) jpeg_simple_progression(&c.info);
    jpeg_start_compress(&c.info, TRUE);
    const std::size_t stride = static_cast<std::size_t>(picture.width) * static_cast<std::size_t>(picture.components);
    while (c.info.next_scanline < c.info.image_height) {
      auto* line = const_cast<JSAMPLE*>(picture.pixels.data() + c.info.next_scanline * stride);
      jpeg_write_scanlines(&c.info, &line, 1);
    }
    jpeg_finish_compress(&c.info);
  });
  return {reinterpret_cast<const char*>(c.bytes), c.size};
}

}  // namespace paceline::train
