// SPDX-License-Identifier: Apache-2.0
// How the commands write standard output and files.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>

#include "analysis/cli/commands.h"
#include "profiler/format/error.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

Error not_written(const std::string& path, int error) {
  return Error(fmt::format("{}: cannot be written: {}; check the directory, its permissions and its space", path,
                           std::strerror(error)));
}

// A failure of a lower layer, which may not name the file.
Error naming(const std::string& path, const std::exception& failure) {
  const std::string what = failure.what();
  return Error(what.starts_with(path) ? what : fmt::format("{}: {}", path, what));
}

// Fills the open file and closes it; returns whether everything was written. `write` may throw.
bool fill(std::FILE* file, const std::function<void(std::FILE*)>& write) {
  try {
    write(file);
  } catch (...) {
    std::fclose(file);
    throw;
  }
  const bool failed = std::ferror(file) != 0;
  return std::fclose(file) == 0 && !failed;
}

// A symbolic link stays: the file that it points to is written.
fs::path end_of_links(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  return error ? path : target;
}

// The temporary file lies beside the target and has its permissions. It is renamed to the target when it is complete.
std::FILE* make_temporary(const fs::path& target, const struct stat* before, std::string& name) {
  name = fmt::format("{}.{}.part", target.string(), getpid());
  const int descriptor = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return nullptr;
  // Fails on file systems without permissions, which is no fault.
  if (before != nullptr) [[maybe_unused]]
    const int kept = fchmod(descriptor, before->st_mode & 07777);
  return fdopen(descriptor, "wb");
}

}  // namespace

void flush_output() {
  std::cout.flush();
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0 && std::cout) return;
  throw Error(fmt::format("standard output cannot be written: {}; the output is not complete",
                          errno != 0 ? std::strerror(errno) : "an earlier write failed"));
}

void write_output(const std::string& path, const std::function<void(std::FILE*)>& write) {
  const fs::path target = end_of_links(path);
  struct stat before {};
  const bool exists = stat(target.c_str(), &before) == 0;
  if (exists && access(target.c_str(), W_OK) != 0) throw not_written(path, errno);
  std::string temporary;
  std::FILE* file = nullptr;
  if (!exists || S_ISREG(before.st_mode)) {
    file = make_temporary(target, exists ? &before : nullptr, temporary);
    if (file == nullptr && !exists) throw not_written(path, errno);
  }
  if (file == nullptr) {  // a device, or a file in a directory that is not writable
    std::FILE* there = std::fopen(target.c_str(), "wb");
    try {
      if (there == nullptr || !fill(there, write)) throw not_written(path, errno);
    } catch (const std::exception& failure) {
      throw naming(path, failure);
    }
    return;
  }
  int error = 0;
  try {
    if (!fill(file, write) || std::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  } catch (const std::exception& failure) {
    std::remove(temporary.c_str());
    throw naming(path, failure);
  }
  if (error == 0) return;
  std::remove(temporary.c_str());
  throw not_written(path, error);
}

void print_or_write(std::string_view text, const std::string& path) {
  if (path.empty()) {
    std::cout << text;
  } else {
    write_output(path, [&](std::FILE* file) { std::fwrite(text.data(), 1, text.size(), file); });
  }
}

void make_output(const std::string& path, const std::function<void(const fs::path&)>& make) {
  const fs::path target = end_of_links(path);
  std::error_code ignored;
  const fs::file_status before = fs::status(target, ignored);
  if (fs::exists(before) && !fs::is_regular_file(before)) {
    throw Error(fmt::format("{}: exists and is not a regular file: give a new name", path));
  }
  if (fs::exists(before) && access(target.c_str(), W_OK) != 0) throw not_written(path, errno);
  if (!fs::is_directory(fs::absolute(target).parent_path(), ignored)) throw not_written(path, ENOENT);
  const fs::path temporary = fmt::format("{}.{}.part", target.string(), getpid());
  if (fs::exists(temporary, ignored)) throw Error(fmt::format("{}: is in the way: remove it", temporary.string()));
  try {
    make(temporary);
    if (fs::exists(before) && fs::is_directory(temporary)) {
      throw Error(fmt::format("{}: exists, and the export is a directory: give a new name", path));
    }
    if (std::rename(temporary.c_str(), target.c_str()) != 0) throw not_written(path, errno);
  } catch (const std::exception& failure) {
    fs::remove_all(temporary, ignored);
    throw naming(path, failure);
  }
}

}  // namespace paceline::cli
