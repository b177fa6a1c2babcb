// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/output/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "profiler/format/header.h"
#include "profiler/format/recorder_lock.h"
#include "profiler/inject/buffer/chunks.h"
#include "profiler/inject/output/file_header.h"
#include "profiler/inject/system/say.h"
#include "profiler/inject/system/settings.h"
#include "profiler/launch/environment.h"
#include "profiler/launch/file_name.h"

namespace paceline::inject {
namespace {

using format::FileHeader;

constexpr int most_numbers = 10'000;
bool make_directories(const char* path) {
  char prefix[4096];
  snprintf(prefix, sizeof prefix, "%s", path);
  for (char* at = prefix + 1; *at != '\0'; ++at) {
    if (*at != '/') continue;
    *at = '\0';
    mkdir(prefix, 0777);
    *at = '/';
  }
  return mkdir(prefix, 0777) == 0 || errno == EEXIST;
}

// The value of a member of a header's JSON text, as it is written there: up to `end`. Empty if there is none.
std::string_view member_of(const FileHeader& header, std::string_view key, std::string_view end) {
  const std::string_view text(reinterpret_cast<const char*>(&header + 1), header.text_bytes);
  const std::size_t at = text.find(key);
  if (at == text.npos) return {};
  const std::size_t until = text.find(end, at + key.size());
  // Not substr(), because it may throw, and code that throws needs a newer C library.
  return {text.data() + at, (until == text.npos ? text.size() : until) - at};
}

std::string_view job_in(const FileHeader& header) { return member_of(header, "\"job\":\"", "\","); }

// True if this process wrote the file before it replaced its program (exec keeps the process id).
bool is_predecessor(const FileHeader& there, const FileHeader& header) {
  constexpr std::string_view key = "\"pid_namespace\":";
  return there.pid == header.pid && member_of(there, key, ",") == member_of(header, key, ",") &&
         llabs(there.process_start_utc_ns - header.process_start_utc_ns) < 1'000'000'000;
}

// True if the file belongs to this process's job. Such a file is not replaced even with --force: a worker may have its
// trainer's rank, and file names may consist of the rank.
bool is_of_this_job(const FileHeader& there, const FileHeader& header) {
  return !job_in(header).empty() && job_in(there) == job_in(header);
}

// True if --force removes the file: it is a trace that an earlier run left. Any other file is left alone.
bool may_be_removed(const char* path, const FileHeader& header) {
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  FileHeader there{};
  struct stat status {};
  if (!file.is_open() || fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode) ||
      pread(file.number(), &there, sizeof there, 0) != static_cast<ssize_t>(sizeof there) ||
      memcmp(there.magic, format::file_magic, sizeof there.magic) != 0 ||
      there.text_bytes >= format::max_header_bytes - sizeof there ||
      static_cast<std::uint64_t>(status.st_size) < sizeof there + there.text_bytes) {
    return false;
  }
  if (format::is_on_local_file_system(file.number()) && format::is_locked_by_recorder(file.number())) return false;
  const std::size_t bytes = sizeof there + there.text_bytes;
  void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (mapped == MAP_FAILED) return false;
  const FileHeader& whole = *static_cast<const FileHeader*>(mapped);
  const bool removable = !is_predecessor(whole, header) && !is_of_this_job(whole, header);
  munmap(mapped, bytes);
  return removable;
}

// Sets the path to NAME.pace, NAME-2.pace, … Returns false and sets errno if it is too long.
bool numbered_path(MappedFile& file, const char* directory, const char* name, int number) {
  const char* dot = strrchr(name, '.');
  const int stem = dot != nullptr ? static_cast<int>(dot - name) : static_cast<int>(strlen(name));
  char suffix[16] = "";
  if (number > 1) snprintf(suffix, sizeof suffix, "-%d", number);
  const int length = snprintf(file.path, sizeof file.path, "%s/%.*s%s%s", directory, stem, name, suffix, name + stem);
  if (length >= 0 && static_cast<std::size_t>(length) < sizeof file.path) return true;
  errno = ENAMETOOLONG;
  return false;
}

// The file is created under a temporary name and gets its own name when its header is written. So a file that is called
// .pace can always be read, even if the process is killed at any moment.
bool make_file(MappedFile& file, const char* directory, std::uint64_t file_id) {
  const int length = snprintf(file.path, sizeof file.path, "%s/.unfinished-%016llx", directory,
                              static_cast<unsigned long long>(file_id));
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof file.path) {
    errno = ENAMETOOLONG;
    return false;
  }
  if (!file.descriptor.keep(open_above_standard_streams(file.path, O_CREAT | O_EXCL))) return false;
  format::lock_as_recorder(file.descriptor.number());
#ifdef FS_NOCOW_FL
  // On a file system that copies on write (btrfs), a full disk would show only when the program writes to the mapping,
  // and would kill it.
  int flags = 0;
  if (ioctl(file.descriptor.number(), FS_IOC_GETFLAGS, &flags) == 0) {
    flags |= FS_NOCOW_FL;
    ioctl(file.descriptor.number(), FS_IOC_SETFLAGS, &flags);
  }
#endif
  return true;
}

// Gives `from` a name that no file has. Returns false and sets EEXIST if a file has it. This is a rename, not a link,
// because /proc/PID/maps shows a mapped file under the name that it was opened with.
bool give_name(const char* from, const char* to) {
  if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST || errno == ENOENT) return false;
  // Not every file system can do this. There the name is claimed first.
  const Descriptor claimed(open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file_mode));
  return claimed.is_open() && rename(from, to) == 0;
}

bool name_file(MappedFile& file, const char* directory, const char* name, const FileHeader& header) {
  const bool force = is_switched_on(record::env_force);
  static char unfinished[sizeof file.path];
  memcpy(unfinished, file.path, sizeof unfinished);
  for (int number = 1; number < most_numbers && numbered_path(file, directory, name, number); ++number) {
    if (force && may_be_removed(file.path, header)) unlink(file.path);
    if (give_name(unfinished, file.path)) return true;
    if (errno != EEXIST) break;
  }
  memcpy(file.path, unfinished, sizeof unfinished);
  return false;
}

bool write_whole(int descriptor, const void* bytes, std::size_t size, std::uint64_t at) {
  const char* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t put = pwrite(descriptor, from, size, static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    from += put;
    at += static_cast<std::uint64_t>(put);
    size -= static_cast<std::size_t>(put);
  }
  return true;
}

bool copy_range(int from, std::uint64_t from_at, int to, std::uint64_t to_at, std::uint64_t size) {
  while (size > 0) {
    off_t in = static_cast<off_t>(from_at), out = static_cast<off_t>(to_at);
    ssize_t copied = copy_file_range(from, &in, to, &out, size, 0);
    if (copied <= 0) {  // not every file system supports it
      static char buffer[64 * 1024];
      copied = pread(from, buffer, size < sizeof buffer ? size : sizeof buffer, static_cast<off_t>(from_at));
      if (copied <= 0 || !write_whole(to, buffer, static_cast<std::size_t>(copied), to_at)) return false;
    }
    from_at += static_cast<std::uint64_t>(copied);
    to_at += static_cast<std::uint64_t>(copied);
    size -= static_cast<std::uint64_t>(copied);
  }
  return true;
}

}  // namespace

bool create_output(MappedFile& file, std::uint32_t units_at_start, const FileStart& start) {
  const char* output = text_or(record::env_output, record::default_output);
  const char* directory = text_or(record::env_stage, output);
  file.staged = directory != output;
  snprintf(file.directory, sizeof file.directory, "%s", output);
  void* scratch = mmap(nullptr, format::max_header_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (scratch == MAP_FAILED) return false;
  file.chunks = units_for(settings.live_bytes);
  file.may_outgrow = false;
  const std::size_t header_bytes = fill_header(file, scratch, start);
  const auto* header = static_cast<const FileHeader*>(scratch);
  const std::size_t mapped_bytes = header_bytes + std::size_t{file.chunks} * format::chunk_bytes;

  char name[512];
  const record::FileNameParts parts{header_host(), header->rank, header->pid};
  const char* pattern = text_or(record::env_pattern, record::default_pattern);
  rlimit limit{};
  const char* failed = nullptr;
  int error = 0;
  if (header_bytes == 0) {
    say("not recording: the description of this process (command, --set) is too long for a trace file");
  } else if (record::expand_file_name(pattern, parts, name, sizeof name) == 0 || strchr(name, '/') != nullptr) {
    say("not recording: \"%s\" (PACELINE_PATTERN) does not give a file name; use %%h, %%r, %%p, %%q{VAR}", pattern);
  } else if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
             limit.rlim_cur < mapped_bytes + (std::size_t{1} << 20)) {
    // Writing beyond this limit would kill the program with SIGXFSZ.
    say("not recording: the limit on file sizes (ulimit -f) is below the %zu bytes that a trace file needs",
        mapped_bytes);
  } else if (!make_directories(file.directory) || !make_directories(directory) ||
             !make_file(file, directory, header->file_id)) {
    say("not recording: cannot write a trace file in %s: %s", directory, strerror(errno));
  } else if (ftruncate(file.descriptor.number(), static_cast<off_t>(mapped_bytes)) != 0) {
    failed = "cannot be extended";
    error = errno;
  } else if ((error = reserve_space(file, 0, header_bytes + std::size_t{units_at_start} * format::chunk_bytes)) != 0) {
    failed = "cannot reserve its space";
  } else if (!write_whole(file.descriptor.number(), scratch, header_bytes, 0)) {
    failed = "cannot write its header";
    error = errno;
  } else if (!name_file(file, directory, name, *header)) {
    failed = "cannot be given its name";
    error = errno;
  } else {
    void* mapped = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor.number(), 0);
    if (mapped != MAP_FAILED) {
      madvise(mapped, mapped_bytes, MADV_RANDOM);  // else the first access reads megabytes of the hole ahead, for 2 ms
      file.header = static_cast<FileHeader*>(mapped);
      file.live = static_cast<std::byte*>(mapped) + header_bytes;
    } else {
      failed = "cannot map it";
      error = errno;
    }
  }
  munmap(scratch, format::max_header_bytes);
  if (failed != nullptr) {
    say("not recording: %s: %s: %s", file.path, failed, strerror(error));
    unlink(file.path);
    file.descriptor.close();
  }
  return file.header != nullptr;
}

namespace {

// True if no directory contains the file any more.
bool was_removed(const MappedFile& file) {
  struct stat now {};
  return file.descriptor.is_ours(now) && now.st_nlink == 0;
}

}  // namespace

bool append_block(MappedFile& file, std::span<const std::byte> block) {
  std::atomic_ref<std::uint64_t> end(file.header->blocks_end);
  const std::uint64_t at = end.load(std::memory_order_relaxed);
  if (settings.max_size > 0 && !file.may_outgrow && at + block.size() > settings.max_size) {
    errno = EFBIG;
    return false;
  }
  if (!is_ours(file)) return false;
  if (was_cut(file)) {
    errno = ESTALE;
    return false;
  }
  if (!write_whole(file.descriptor.number(), block.data(), block.size(), at)) {
    const int error = errno == EFBIG ? ENOSPC : errno;  // a limit of the system, not --max-size
    [[maybe_unused]] const int cut = ftruncate(file.descriptor.number(), static_cast<off_t>(at));
    errno = error;
    return false;
  }
  end.store(at + block.size(), std::memory_order_release);
  return true;
}

namespace {

// Writes a copy that is closed and has no live area.
bool write_compacted(const MappedFile& file, const char* path) {
  const FileHeader& header = *file.header;
  const std::uint64_t blocks_start = header.header_bytes + header.live_bytes;
  const std::uint64_t blocks_bytes = header.blocks_end - blocks_start;
  const int from = file.descriptor.number();
  // Others may know the name. O_EXCL follows no link that they have put there.
  unlink(path);
  const int copy = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (copy < 0) return false;
  struct stat status {};
  // The header comes last, so that an incomplete copy is not taken for a trace.
  bool done = copy_range(from, blocks_start, copy, header.header_bytes, blocks_bytes) &&
              copy_range(from, format::page_bytes, copy, format::page_bytes, header.header_bytes - format::page_bytes);
  if (done) {
    static char first_page[format::page_bytes];
    memcpy(first_page, file.header, sizeof first_page);
    auto* closed = reinterpret_cast<FileHeader*>(first_page);
    closed->live_bytes = 0;
    closed->blocks_end = header.header_bytes + blocks_bytes;
    closed->closed = 1;
    done = write_whole(copy, first_page, sizeof first_page, 0) && fstat(from, &status) == 0 &&
           fchmod(copy, status.st_mode & 0777) == 0;
  }
  done = close(copy) == 0 && done;
  if (!done) unlink(path);
  return done;
}

// Gives the file at `temporary` a name in the output directory that no file has, and removes the staged file. If that
// fails, `paceline record` tries again and reports the problem.
bool move_to_output(MappedFile& file, const char* temporary, const char* name) {
  const MappedFile staged = file;
  const bool force = is_switched_on(record::env_force);
  for (int number = 1; number < most_numbers && numbered_path(file, file.directory, name, number); ++number) {
    const bool replace = force && may_be_removed(file.path, *file.header);
    // A link never replaces a file. Not every file system has links.
    const bool linked = !replace && link(temporary, file.path) == 0;
    const bool exists = !replace && !linked && (errno == EEXIST || access(file.path, F_OK) == 0);
    if (linked) unlink(temporary);
    if (linked || (!exists && rename(temporary, file.path) == 0)) {
      unlink(staged.path);
      return true;
    }
    if (!exists) break;
  }
  unlink(temporary);
  memcpy(file.path, staged.path, sizeof file.path);
  return false;
}

bool compact(MappedFile& file) {
  const char* name = strrchr(file.path, '/') + 1;
  static char temporary[sizeof file.directory + 512];
  if (file.staged) {
    snprintf(temporary, sizeof temporary, "%s/.%s.%016llx.tmp", file.directory, name,
             static_cast<unsigned long long>(file.header->file_id));
    static char own_name[512];
    snprintf(own_name, sizeof own_name, "%s", name);
    if (write_compacted(file, temporary) && move_to_output(file, temporary, own_name)) return true;
  }
  snprintf(temporary, sizeof temporary, "%s.tmp", file.path);
  if (!write_compacted(file, temporary)) return false;
  if (rename(temporary, file.path) == 0) return true;
  unlink(temporary);
  return false;
}

}  // namespace

int renew_output(MappedFile& file) {
  constexpr int seconds_on_a_network = 60;
  if (!is_ours(file)) return format::heartbeat_s;
  futimens(file.descriptor.number(), nullptr);
  format::lock_as_recorder(file.descriptor.number());  // the program may have closed another descriptor of the file
  static char marker[sizeof file.directory + sizeof record::job_marker_name];
  snprintf(marker, sizeof marker, "%s/%s", file.directory, record::job_marker_name);
  utimensat(AT_FDCWD, marker, nullptr, AT_SYMLINK_NOFOLLOW);
  return format::is_on_local_file_system(file.descriptor.number()) ? format::heartbeat_s : seconds_on_a_network;
}

void close_output(MappedFile& file, bool all_written, bool quickly) {
  constexpr std::uint64_t quickly_copied = std::uint64_t{64} << 20;
  if (was_cut(file)) {
    say("%s: another program truncated this file during the recording: recording ended there, and the rest is lost",
        file.path);
    return;
  }
  if (all_written && is_ours(file)) {
    const bool is_long = file.header->blocks_end - file.header->live_bytes > quickly_copied;
    if (!(quickly && is_long) && compact(file)) return;
    punch_live_area(file, 0, file.chunks);
  }
  std::atomic_ref<std::uint32_t>(file.header->closed).store(1, std::memory_order_release);
  if (was_removed(file)) {
    say("%s: the file or its directory was removed during the recording: no events of this process are kept",
        file.path);
  }
}

}  // namespace paceline::inject
