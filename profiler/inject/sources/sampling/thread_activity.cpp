// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/sampling/thread_activity.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include "profiler/inject/buffer/names.h"
#include "profiler/inject/sources/scheduler/thread_sums.h"

namespace paceline::inject {
namespace {

// What the first arguments of a system call are.
enum class Concerns : std::uint8_t { nothing, descriptor, path, path_second };

struct SystemCall {
  long number;
  const char* name;
  Concerns concerns = Concerns::nothing;
};

#define PACELINE_CALL(name, ...) \
  { SYS_##name, #name __VA_OPT__(, ) __VA_ARGS__ }
constexpr SystemCall system_calls[] = {
    PACELINE_CALL(read, Concerns::descriptor),
    PACELINE_CALL(write, Concerns::descriptor),
    PACELINE_CALL(readv, Concerns::descriptor),
    PACELINE_CALL(writev, Concerns::descriptor),
    PACELINE_CALL(pread64, Concerns::descriptor),
    PACELINE_CALL(pwrite64, Concerns::descriptor),
    PACELINE_CALL(preadv, Concerns::descriptor),
    PACELINE_CALL(pwritev, Concerns::descriptor),
    PACELINE_CALL(sendfile, Concerns::descriptor),
    PACELINE_CALL(copy_file_range, Concerns::descriptor),
    PACELINE_CALL(splice, Concerns::descriptor),
    PACELINE_CALL(fsync, Concerns::descriptor),
    PACELINE_CALL(fdatasync, Concerns::descriptor),
    PACELINE_CALL(syncfs, Concerns::descriptor),
    PACELINE_CALL(sync_file_range, Concerns::descriptor),
    PACELINE_CALL(ftruncate, Concerns::descriptor),
    PACELINE_CALL(fallocate, Concerns::descriptor),
    PACELINE_CALL(flock, Concerns::descriptor),
    PACELINE_CALL(fcntl, Concerns::descriptor),
    PACELINE_CALL(ioctl, Concerns::descriptor),
    PACELINE_CALL(getdents64, Concerns::descriptor),
    PACELINE_CALL(lseek, Concerns::descriptor),
    PACELINE_CALL(fstat, Concerns::descriptor),
    PACELINE_CALL(close, Concerns::descriptor),
    PACELINE_CALL(recvfrom, Concerns::descriptor),
    PACELINE_CALL(recvmsg, Concerns::descriptor),
    PACELINE_CALL(recvmmsg, Concerns::descriptor),
    PACELINE_CALL(sendto, Concerns::descriptor),
    PACELINE_CALL(sendmsg, Concerns::descriptor),
    PACELINE_CALL(connect, Concerns::descriptor),
    PACELINE_CALL(accept, Concerns::descriptor),
    PACELINE_CALL(accept4, Concerns::descriptor),
    PACELINE_CALL(openat, Concerns::path_second),
    PACELINE_CALL(newfstatat, Concerns::path_second),
    PACELINE_CALL(statx, Concerns::path_second),
    PACELINE_CALL(unlinkat, Concerns::path_second),
    PACELINE_CALL(renameat2, Concerns::path_second),
    PACELINE_CALL(execve, Concerns::path),
#ifdef SYS_open
    PACELINE_CALL(open, Concerns::path),
    PACELINE_CALL(stat, Concerns::path),
    PACELINE_CALL(unlink, Concerns::path),
    PACELINE_CALL(rename, Concerns::path),
    PACELINE_CALL(poll),
    PACELINE_CALL(select),
    PACELINE_CALL(epoll_wait),
    PACELINE_CALL(pause),
#endif
    PACELINE_CALL(ppoll),
    PACELINE_CALL(pselect6),
    PACELINE_CALL(epoll_pwait),
    PACELINE_CALL(futex),
    PACELINE_CALL(nanosleep),
    PACELINE_CALL(clock_nanosleep),
    PACELINE_CALL(wait4),
    PACELINE_CALL(waitid),
    PACELINE_CALL(rt_sigtimedwait),
    PACELINE_CALL(rt_sigsuspend),
    PACELINE_CALL(sched_yield),
    PACELINE_CALL(semop),
    PACELINE_CALL(semtimedop),
    PACELINE_CALL(msgrcv),
    PACELINE_CALL(msgsnd),
    PACELINE_CALL(mq_timedreceive),
    PACELINE_CALL(mq_timedsend),
    PACELINE_CALL(io_getevents),
    PACELINE_CALL(io_uring_enter),
    PACELINE_CALL(mmap),
    PACELINE_CALL(munmap),
    PACELINE_CALL(mremap),
    PACELINE_CALL(mprotect),
    PACELINE_CALL(madvise),
    PACELINE_CALL(msync),
    PACELINE_CALL(mlock),
    PACELINE_CALL(brk),
    PACELINE_CALL(clone),
    PACELINE_CALL(process_vm_readv),
    PACELINE_CALL(sync),
};
#undef PACELINE_CALL

const SystemCall* find_call(long number) {
  for (const SystemCall& call : system_calls) {
    if (call.number == number) return &call;
  }
  return nullptr;
}

// A program may wait for a different file each time, and names are kept to the end.
constexpr unsigned most_files = 4096;
unsigned files = 0;
std::uint32_t latest_file = 0;

std::uint32_t name_file(std::string_view path) {
  if (files >= most_files) return intern("(more files than can be kept)");
  const std::uint32_t id = intern(path);
  if (id > latest_file) {
    latest_file = id;
    ++files;
  }
  return id;
}

std::uint32_t file_of_descriptor(std::uint64_t number) {
  char link[64], path[1024];
  snprintf(link, sizeof link, "/proc/self/fd/%d", static_cast<int>(number));
  const ssize_t length = readlink(link, path, sizeof path);
  if (length <= 0) return 0;
  const std::string_view target(path, static_cast<std::size_t>(length));
  if (target.starts_with("socket:")) return intern("socket");
  if (target.starts_with("pipe:")) return intern("pipe");
  return name_file(target);
}

std::uint32_t file_at(ProgramMemory& memory, Address path) {
  char text[1024];
  for (std::size_t size = 0; size < sizeof text; ++size) {
    if (!memory.read_near(path + size, text + size, 1)) return 0;
    if (text[size] == '\0') return name_file({text, size});
  }
  return 0;
}

}  // namespace

void ThreadWatch::open(pid_t thread) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", static_cast<int>(thread));
  file_.open(path);
  open_thread_sums(thread, sums_);
}

void ThreadWatch::close() {
  file_.close();
  sums_.close();
}

std::uint64_t ThreadWatch::turns() {
  char text[96];
  if (sums_.read(text, sizeof text) == 0) return 0;
  char* at = text;
  strtoull(at, &at, 10);  // ns on a CPU
  strtoull(at, &at, 10);  // ns without one
  return strtoull(at, nullptr, 10);
}

ThreadActivity ThreadWatch::now(ProgramMemory& memory) {
  char text[256], name[64];
  if (file_.read(text, sizeof text) == 0) return {};
  if (strncmp(text, "running", strlen("running")) == 0) return {.call = {}, .runs = true, .registers = {}};
  char* at = nullptr;
  const long number = strtol(text, &at, 10);
  if (at == text) return {};
  ThreadActivity activity;
  std::uint64_t arguments[6] = {};
  if (number >= 0) {
    for (std::uint64_t& argument : arguments) argument = strtoull(at, &at, 16);
  }
  activity.registers.stack_pointer = strtoull(at, &at, 16);
  activity.registers.instruction = strtoull(at, &at, 16);
  StackFrame& frame = activity.call;
  if (number < 0) {
    frame.function = intern("[page fault]");
    return activity;
  }
  if (number == SYS_perf_event_open) return {};  // the recorder's own, on a thread that it begins to follow
  const SystemCall* call = find_call(number);
  if (call == nullptr) {
    snprintf(name, sizeof name, "[system call %ld]", number);
    frame.function = intern(name);
    return activity;
  }
  snprintf(name, sizeof name, "[%s]", call->name);
  frame.function = intern(name);
  if (number == SYS_futex) activity.futex = arguments[0];
  switch (call->concerns) {
    case Concerns::descriptor:
      frame.file = file_of_descriptor(arguments[0]);
      break;
    case Concerns::path:
      frame.file = file_at(memory, arguments[0]);
      break;
    case Concerns::path_second:
      frame.file = file_at(memory, arguments[1]);
      break;
    case Concerns::nothing:
      break;
  }
  return activity;
}

void forget_files_of_calls() { files = 0; }

}  // namespace paceline::inject
