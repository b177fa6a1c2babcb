// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/output/trim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "profiler/format/layout.h"
#include "profiler/inject/system/descriptor.h"
#include "profiler/inject/system/lineage.h"

namespace paceline::inject {
namespace {

using format::ChunkHeader;
using format::FileHeader;

std::atomic<pid_t> forked{0};  // the process that forked; a child has not, until it does

bool read_at(const Descriptor& file, void* to, std::size_t size, std::uint64_t at) {
  return pread(file.number(), to, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
}

// True if the file's process descends from this one and does not run any more. Its header names its ancestors by their
// process ids and start times, which also shows that both see the same process ids.
bool is_of_a_dead_descendant(const Descriptor& file, const FileHeader& header) {
  if (memcmp(header.magic, format::file_magic, sizeof header.magic) != 0 || header.closed != 0 ||
      header.live_bytes == 0 || header.live_bytes > format::max_live_bytes || header.pid == 0 ||
      header.pid == static_cast<std::uint32_t>(getpid())) {
    return false;
  }
  if (kill(static_cast<pid_t>(header.pid), 0) == 0 || errno != ESRCH) return false;
  const ProcessName& self = complete_lineage().self;
  if (self.start == 0) return false;
  char name[64];
  snprintf(name, sizeof name, "\"%d:%llu\"", static_cast<int>(self.pid), static_cast<unsigned long long>(self.start));
  static char text[64 * 1024];
  if (header.text_bytes > sizeof text || !read_at(file, text, header.text_bytes, sizeof header)) return false;
  const std::string_view whole(text, header.text_bytes);
  char of_this_namespace[48];
  snprintf(of_this_namespace, sizeof of_this_namespace, "\"pid_namespace\":%llu,",
           static_cast<unsigned long long>(self.pid_namespace));
  if (self.pid_namespace != 0 && whole.find(of_this_namespace) == whole.npos) return false;
  const std::size_t at = whole.find("\"ancestors\"");
  return at != whole.npos && whole.find(name, at) != whole.npos;
}

// Makes holes of the whole units that are free. A free chunk holds zeros after its header, and nobody reads its header
// beyond the state, which is 0 too.
void punch_free_units(const Descriptor& file, const FileHeader& header) {
#ifdef FALLOC_FL_PUNCH_HOLE
  for (std::uint64_t at = header.header_bytes; at < header.header_bytes + header.live_bytes;
       at += format::chunk_bytes) {
    ChunkHeader chunk{};
    if (!read_at(file, &chunk, sizeof chunk, at)) return;
    if (chunk.state != static_cast<std::uint32_t>(format::ChunkState::free) || chunk.pages != 0) continue;
    if (fallocate(file.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(at),
                  format::chunk_bytes) != 0) {
      return;
    }
  }
#endif
}

}  // namespace

void note_child() { forked.store(getpid(), std::memory_order_relaxed); }

void trim_files_of_killed_children(const MappedFile& own) {
  if (forked.load(std::memory_order_relaxed) != getpid()) return;
  static char directory[sizeof own.path];
  snprintf(directory, sizeof directory, "%s", own.path);
  char* name = strrchr(directory, '/');
  if (name == nullptr) return;
  *name++ = '\0';
  // Names are equal up to the process id, unless the user's pattern has none. A large job has many other files.
  char pid[16];
  snprintf(pid, sizeof pid, "%d", static_cast<int>(getpid()));
  const char* number = strstr(name, pid);
  const std::size_t common = number != nullptr ? static_cast<std::size_t>(number - name) : 0;
  DIR* files = opendir(directory);
  if (files == nullptr) return;
  while (const dirent* entry = readdir(files)) {
    if (strncmp(entry->d_name, name, common) != 0 || strstr(entry->d_name, ".pace") == nullptr) continue;
    const Descriptor file(openat(dirfd(files), entry->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    FileHeader header{};
    if (file.is_open() && read_at(file, &header, sizeof header, 0) && is_of_a_dead_descendant(file, header)) {
      punch_free_units(file, header);
    }
  }
  closedir(files);
}

}  // namespace paceline::inject
