// SPDX-License-Identifier: Apache-2.0
#include "trainer/core/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

#include "trainer/core/error.h"

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

// The target of a symbolic link; else the file itself. Renaming over a link would replace the link, not its target.
std::filesystem::path linked(const std::filesystem::path& file) {
  std::error_code code;
  const std::filesystem::path target = std::filesystem::canonical(file, code);
  return code || !std::filesystem::is_symlink(file, code) ? file : target;
}

// Makes a hard link, so that `file` exists all the time; a copy if the file system has no hard links.
bool keep_version(const std::filesystem::path& file, const std::string& name) {
  if (unlink(name.c_str()) != 0 && errno != ENOENT) return false;
  if (link(file.c_str(), name.c_str()) == 0 || errno == ENOENT) return true;
  std::error_code code;
  std::filesystem::copy_file(file, name, code);
  if (code) errno = code.value();
  return !code;
}

bool keep_versions(const std::filesystem::path& file, unsigned keep) {
  const auto version = [&](unsigned number) { return fmt::format("{}.{}", file.string(), number); };
  for (unsigned number = keep; number-- > 2;) {
    if (std::rename(version(number - 1).c_str(), version(number).c_str()) != 0 && errno != ENOENT) return false;
  }
  return keep < 2 || keep_version(file, version(1));
}

// Without this, the new name may not survive a crash of the machine.
void sync_directory_of(const std::filesystem::path& file) {
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);  // an error is ignored: some file systems refuse it, and the file itself is on the disk
  close(descriptor);
}

}  // namespace

std::string read_file(const std::filesystem::path& file) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(file.c_str(), "rbe"), &std::fclose);
  if (!in) throw Error(file.string(), "cannot be opened", std::strerror(errno));
  std::string content;
  constexpr std::size_t piece = std::size_t{1} << 20;
  for (std::size_t got = piece; got == piece;) {
    const std::size_t before = content.size();
    content.resize(before + piece);
    got = std::fread(content.data() + before, 1, piece, in.get());
    content.resize(before + got);
  }
  if (std::ferror(in.get())) throw Error(file.string(), "cannot be read", std::strerror(errno));
  return content;
}

void check_writable(const std::filesystem::path& file) {
  std::error_code code;
  const std::filesystem::path target = linked(file);
  const auto refuse = [&](const char* why) { throw Error(file.string(), "cannot be written", why); };
  if (std::filesystem::exists(target, code) && !std::filesystem::is_regular_file(target, code)) {
    refuse(std::filesystem::is_directory(target, code) ? "it is a directory" : "it is not a regular file");
  }
  // A trial, because the permissions alone do not show a read-only or special file system or a quota.
  const std::string beside = fmt::format("{}.{}.trial", target.string(), getpid());
  const int descriptor = open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) refuse(std::strerror(errno));
  close(descriptor);
  unlink(beside.c_str());
}

void write_file_atomically(const std::filesystem::path& file, std::string_view content, Sync sync, unsigned keep) {
  const std::filesystem::path target = linked(file);
  const std::string beside = fmt::format("{}.{}.partial", target.string(), getpid());
  const int descriptor = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool good = descriptor >= 0 && write_all(descriptor, content);
  if (good && sync == Sync::yes) good = fsync(descriptor) == 0;
  int reason = errno;
  if (descriptor >= 0 && close(descriptor) != 0 && good) {
    good = false;
    reason = errno;
  }
  if (good && !keep_versions(target, keep)) {
    good = false;
    reason = errno;
  }
  if (good && std::rename(beside.c_str(), target.c_str()) != 0) {
    good = false;
    reason = errno;
  }
  if (!good) {
    if (descriptor >= 0) unlink(beside.c_str());
    throw Error(file.string(), "cannot be written", std::strerror(reason));
  }
  if (sync == Sync::yes) sync_directory_of(target);
}

}  // namespace paceline::train
