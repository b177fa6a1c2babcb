#include "trainer/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "trainer/error.h"

namespace paceline::train {
namespace {

bool write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

void write_file_atomically(const std::filesystem::path& file, std::string_view content) {
  const std::string beside = fmt::format("{}.{}.partial", file.string(), getpid());
  const int descriptor = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool good = descriptor >= 0 && write_all(descriptor, content) && fsync(descriptor) == 0;
  int reason = errno;
  if (descriptor >= 0 && close(descriptor) != 0 && good) {
    good = false;
    reason = errno;
  }
  if (good && std::rename(beside.c_str(), file.c_str()) != 0) {
    good = false;
    reason = errno;
  }
  if (!good) {
    if (descriptor >= 0) unlink(beside.c_str());
    throw Error(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(reason)));
  }
}

}  // namespace paceline::train
