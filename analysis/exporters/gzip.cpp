// SPDX-License-Identifier: Apache-2.0
#include "analysis/exporters/gzip.h"

#include <zlib.h>

#include <cerrno>
#include <memory>

namespace paceline::analysis {
namespace gzip_parts {

// The fastest level: a trace becomes a twentieth to a tenth of its size, and the better levels take five times as long
// for another fifth.
constexpr int level = 1;
constexpr int gzip_format = 15 + 16;

struct Stream {
  std::FILE* out = nullptr;
  z_stream state{};
  unsigned char buffer[1 << 16];
};

bool pass(Stream& stream, int flush) {
  int status = Z_OK;
  do {
    stream.state.next_out = stream.buffer;
    stream.state.avail_out = sizeof(stream.buffer);
    status = deflate(&stream.state, flush);
    const std::size_t made = sizeof(stream.buffer) - stream.state.avail_out;
    if (std::fwrite(stream.buffer, 1, made, stream.out) != made) return false;
  } while (stream.state.avail_out == 0);
  return status != Z_STREAM_ERROR;
}

ssize_t write(void* cookie, const char* bytes, std::size_t size) {
  auto& stream = *static_cast<Stream*>(cookie);
  stream.state.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes));
  stream.state.avail_in = static_cast<unsigned>(size);
  return pass(stream, Z_NO_FLUSH) ? static_cast<ssize_t>(size) : 0;
}

int close(void* cookie) {
  const std::unique_ptr<Stream> stream(static_cast<Stream*>(cookie));
  const bool written = pass(*stream, Z_FINISH) && std::fflush(stream->out) == 0;
  const int error = errno;
  deflateEnd(&stream->state);
  errno = error;
  return written ? 0 : EOF;
}

}  // namespace gzip_parts

std::FILE* gzip_onto(std::FILE* out) {
  auto stream = std::make_unique<gzip_parts::Stream>();
  stream->out = out;
  if (deflateInit2(&stream->state, gzip_parts::level, Z_DEFLATED, gzip_parts::gzip_format, 9, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return nullptr;
  }
  const cookie_io_functions_t functions{
      .read = nullptr, .write = gzip_parts::write, .seek = nullptr, .close = gzip_parts::close};
  std::FILE* file = fopencookie(stream.get(), "w", functions);
  if (file != nullptr) stream.release();
  return file;
}

}  // namespace paceline::analysis
