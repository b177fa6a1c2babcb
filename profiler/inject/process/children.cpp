// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/process/children.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/format/layout.h"
#include "profiler/inject/system/descriptor.h"
#include "profiler/inject/system/lineage.h"
#include "profiler/inject/system/settings.h"
#include "profiler/launch/environment.h"
#include "profiler/launch/launcher.h"

namespace paceline::inject {
namespace {

using format::FileHeader;

pid_t parent = 0;

// The header of the trace file at `path`, if it is one that `pid` itself records into. Never called for a file of this
// process, whose lock would end with the descriptor.
bool records_into(const char* path, pid_t pid, FileHeader& header) {
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file.is_open() && read(file.number(), &header, sizeof header) == static_cast<ssize_t>(sizeof header) &&
         memcmp(header.magic, format::file_magic, sizeof header.magic) == 0 &&
         header.pid == static_cast<std::uint32_t>(pid);
}

// Looks through the files that a process has mapped for one in `directory` that it records into.
bool is_recorded(const ProcessName& process, const char* directory, FileHeader& header) {
  static char buffer[64 * 1024];
  snprintf(buffer, sizeof buffer, "/proc/%d/maps", static_cast<int>(process.shown));
  const Descriptor maps(open(buffer, O_RDONLY | O_CLOEXEC));
  if (!maps.is_open()) return false;
  const std::size_t directory_length = strlen(directory);
  bool found = false;
  std::size_t have = 0;
  for (ssize_t got; !found && (got = read(maps.number(), buffer + have, sizeof buffer - 1 - have)) > 0;) {
    have += static_cast<std::size_t>(got);
    buffer[have] = '\0';
    char* line = buffer;
    for (char* end; !found && (end = strchr(line, '\n')) != nullptr; line = end + 1) {
      *end = '\0';
      const char* path = strchr(line, '/');
      found = path != nullptr && strncmp(path, directory, directory_length) == 0 && path[directory_length] == '/' &&
              records_into(path, process.pid, header);
    }
    have -= static_cast<std::size_t>(line - buffer);
    memmove(buffer, line, have);
    if (have == sizeof buffer - 1) break;  // no path is that long
  }
  return found;
}

// True if both processes run the same executable file.
bool runs_the_program_of(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/exe", static_cast<int>(pid));
  struct stat theirs {
  }, ours{};
  return stat(path, &theirs) == 0 && stat("/proc/self/exe", &ours) == 0 && theirs.st_dev == ours.st_dev &&
         theirs.st_ino == ours.st_ino;
}

// A job may have dozens of workers.
void take_less_memory() {
  const std::size_t least = 4 * format::chunk_bytes;
  const std::size_t quarter = settings.live_bytes / 4 / format::chunk_bytes * format::chunk_bytes;
  settings.live_bytes = quarter > least ? quarter : least;
}

}  // namespace

bool find_out_whether_recorded() {
  const Lineage& lineage = complete_lineage();
  const bool worker = is_forked_worker();
  if (worker && settings.children == Children::none) return false;
  char directory[4096];
  // The system's own path, because /proc/PID/maps does not show links.
  const bool made =
      realpath(text_or(record::env_stage, text_or(record::env_output, record::default_output)), directory) != nullptr;
  FileHeader header{};
  // No process records into a directory that does not exist yet.
  for (int step = 0; made && step < lineage.ancestor_count; ++step) {
    const ProcessName& ancestor = lineage.ancestors[step];
    if (ancestor.shown == 0 || !is_recorded(ancestor, directory, header)) continue;
    const record::LaunchedRank own = record::launched_rank();
    if (own.rank >= 0 && own.rank != header.rank) return true;
    become_child_of(ancestor.pid);
    if (settings.children != Children::workers) return settings.children == Children::all;
    return worker || runs_the_program_of(ancestor.shown);
  }
  if (worker) take_less_memory();  // its parent may open its file later
  return true;
}

pid_t recorded_parent() { return parent; }

bool speaks_for_the_job() { return parent == 0 && record::launched_rank().rank <= 0; }

void become_child_of(pid_t recorded) {
  if (parent == 0) take_less_memory();
  parent = recorded;
}

}  // namespace paceline::inject
