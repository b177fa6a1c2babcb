// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace paceline::format {
namespace {

// Reads the beginning of a file of /proc with a zero byte behind it.
bool read_text(const char* path, char* text, std::size_t capacity) noexcept {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t got = read(file, text, capacity - 1);
  close(file);
  text[got > 0 ? got : 0] = '\0';
  return got > 0;
}

bool read_status(const char* path, ProcessStatus& status) noexcept {
  char text[1024];
  if (!read_text(path, text, sizeof text)) return false;
  const char* field = strrchr(text, ')');  // the program's name, in brackets, may contain any character
  if (field == nullptr || strlen(field) < 4) return false;
  status.pid = static_cast<int>(strtol(text, nullptr, 10));
  if (const char* name = strchr(text, '('); name != nullptr && name < field) {
    snprintf(status.name, sizeof status.name, "%.*s", static_cast<int>(field - name - 1), name + 1);
  }
  status.has_ended = field[2] == 'Z' || field[2] == 'X';
  status.parent = static_cast<int>(strtol(field + 4, nullptr, 10));  // ") S PARENT"
  for (int number = 2; number < 22 && field != nullptr; ++number) field = strchr(field + 1, ' ');
  if (field == nullptr) return false;
  status.start = strtoull(field, nullptr, 10);
  return true;
}

}  // namespace

bool read_process(int pid, ProcessStatus& status) noexcept {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  return read_status(path, status);
}

bool read_own_process(ProcessStatus& status) noexcept { return read_status("/proc/self/stat", status); }

std::uint64_t pid_namespace() noexcept {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

int pid_inside(const char* process, int& depth) noexcept {
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/%s/status", process);
  if (!read_text(path, text, sizeof text)) return 0;
  // The ids from the namespace of /proc to that of the process, separated by tabs.
  const char* list = strstr(text, "\nNSpid:");
  if (list == nullptr) return 0;
  list += strlen("\nNSpid:");
  int pid = 0;
  depth = -1;
  for (char* end = nullptr; *list == '\t'; list = end) {
    pid = static_cast<int>(strtol(list, &end, 10));
    if (end == list) break;
    ++depth;
  }
  return pid;
}

bool proc_shows_own_pids() noexcept {
  int depth = 0;
  if (pid_inside("self", depth) > 0) return depth == 0;
  ProcessStatus self;  // NSpid is missing before Linux 4.1
  return read_own_process(self) && self.pid == getpid();
}

}  // namespace paceline::format
