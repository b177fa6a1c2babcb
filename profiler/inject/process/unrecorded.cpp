// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/process/unrecorded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/system/say.h"
#include "profiler/inject/system/settings.h"
#include "profiler/launch/environment.h"
#include "profiler/launch/launcher.h"

namespace paceline::inject {
namespace {

pid_t command = 0;  // 0: another process is the command
const char* output = nullptr;
bool reported = false;

// The kernel's entry of a directory (getdents64).
struct Entry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t size;
  std::uint8_t type;
  char name[];
};

// False also if the directory cannot be read.
bool is_without_traces(const char* path) {
  const int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  alignas(Entry) char bytes[4096];
  long size = 0;
  bool found = false;
  while (!found && (size = syscall(SYS_getdents64, directory, bytes, sizeof bytes)) > 0) {
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const Entry*>(bytes + at);
      found = found || std::string_view(entry->name).ends_with(".pace");
      at += entry->size;
    }
  }
  close(directory);
  return !found && size == 0;
}

bool nothing_is_recorded() {
  return command != 0 && !reported && file_state.load(std::memory_order_relaxed) == FileState::unopened &&
         getpid() == command && is_without_traces(output);
}

bool passes_recorder_on(char* const* environment) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name == record::env_nvtx || (name == record::env_preload && entry.find(record::recorder_library) != entry.npos))
      return true;
  }
  return false;
}

}  // namespace

void look_for_command() {
  output = text_or(record::env_output, nullptr);
  const auto pid = static_cast<pid_t>(number_or(record::env_command_pid, 0));
  if (output != nullptr && pid == getpid() && record::launched_rank().rank <= 0) command = pid;
}

void report_if_unrecorded() {
  const int error = errno;
  if (nothing_is_recorded()) {
    reported = true;
    say("no process of the command opened a trace file before it ended: none called NVTX or MPI, or its environment "
        "lacked LD_PRELOAD and NVTX_INJECTION64_PATH (env -i, clearenv)");
  }
  errno = error;
}

void report_if_unrecorded_from_now_on(const char* program, char* const* environment) {
  if (command == 0 || passes_recorder_on(environment)) return;
  const int error = errno;
  if (nothing_is_recorded()) {
    reported = true;
    say("no process of the command opened a trace file before %s, which runs unrecorded: its environment lacks "
        "LD_PRELOAD and NVTX_INJECTION64_PATH (env -i, clearenv)",
        program != nullptr ? program : "another program");
  }
  errno = error;
}

}  // namespace paceline::inject
