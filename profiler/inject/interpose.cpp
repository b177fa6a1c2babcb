// SPDX-License-Identifier: Apache-2.0
// Functions of the C library that the recorder replaces in the programs that it is preloaded into. Each does the
// recorder's work and then calls the next function of the same name: the C library's, or that of another preloaded
// library.
//
// This file is only in libpaceline-inject.so, not in the tests that link its objects.
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/process/ends.h"
#include "profiler/inject/process/lifecycle.h"
#include "profiler/inject/process/unrecorded.h"
#include "profiler/inject/system/say.h"

#define INTERPOSED extern "C" __attribute__((visibility("default")))

namespace {

using Exit = void(int);
using Execve = int(const char*, char* const*, char* const*);
using Execv = int(const char*, char* const*);
using Fexecve = int(int, char* const*, char* const*);
using Prctl = int(int, ...);
using Execveat = int(int, const char*, char* const*, char* const*, int);

// Looked up when the library is loaded: dlsym may not be called in a signal handler.
struct Next {
  Exit *exit_at_once, *exit_at_once_too;
  Execve *execve, *execvpe;
  Execv *execv, *execvp;
  Fexecve* fexecve;
  Execveat* execveat;
  Prctl* prctl;
} next;

template <class Function>
void look_up(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

__attribute__((constructor)) void look_up_all() {
  look_up(next.exit_at_once, "_exit");
  look_up(next.exit_at_once_too, "_Exit");
  look_up(next.execve, "execve");
  look_up(next.execvpe, "execvpe");
  look_up(next.execv, "execv");
  look_up(next.execvp, "execvp");
  look_up(next.fexecve, "fexecve");
  look_up(next.execveat, "execveat");
  look_up(next.prctl, "prctl");
}

// Another library's constructor may come before ours.
template <class Function>
Function* found(Function*& function, const char* name) {
  if (function == nullptr) look_up(function, name);
  return function;
}

template <class Call>
int replace_program(const char* program, char* const* environment, Call call) {
  paceline::inject::report_if_unrecorded_from_now_on(program, environment);
  const bool paused = paceline::inject::pause_for_exec();
  const int result = call();  // returns only if it fails
  if (!paused) return result;
  const int error = errno;
  paceline::inject::resume_after_failed_exec();
  errno = error;
  return result;
}

template <class Function, class... Arguments>
int replace_by(Function*& function, const char* name, const char* program, char* const* environment,
               Arguments... arguments) {
  if (found(function, name) == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  return replace_program(program, environment, [&] { return function(arguments...); });
}

size_t count_arguments(const char* first, va_list rest) {
  size_t count = 0;
  for (const char* argument = first; argument != nullptr; argument = va_arg(rest, char*)) ++count;
  return count;
}

[[noreturn]] void end(Exit* exit, int status) {
  paceline::inject::report_if_unrecorded();
  paceline::inject::note_exit_status(status);
  paceline::inject::end_at_once();
  if (exit != nullptr) exit(status);
  for (;;) syscall(SYS_exit_group, status);
}

}  // namespace

INTERPOSED void _exit(int status) { end(next.exit_at_once, status); }
INTERPOSED void _Exit(int status) noexcept { end(next.exit_at_once_too, status); }

// A thread may have reads of the processor's counter end the program (PR_SET_TSC). The file's times are the counter's,
// so the recording ends before.
INTERPOSED int prctl(int option, ...) noexcept {
  va_list given;
  va_start(given, option);
  unsigned long arguments[4];
  for (unsigned long& argument : arguments) argument = va_arg(given, unsigned long);
  va_end(given);
  if (option == PR_SET_TSC && arguments[0] == PR_TSC_SIGSEGV && paceline::inject::recording()) {
    paceline::inject::say(
        "the program forbids reads of the time stamp counter (prctl, PR_SET_TSC), which all clocks need: recording "
        "ends "
        "here");
    paceline::inject::close_recorder();
  }
  if (found(next.prctl, "prctl") == nullptr) {
    return static_cast<int>(syscall(SYS_prctl, option, arguments[0], arguments[1], arguments[2], arguments[3]));
  }
  return next.prctl(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}

INTERPOSED int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  return replace_by(next.execve, "execve", path, environment, path, arguments, environment);
}
INTERPOSED int execv(const char* path, char* const* arguments) noexcept {
  return replace_by(next.execv, "execv", path, environ, path, arguments);
}
INTERPOSED int execvp(const char* file, char* const* arguments) noexcept {
  return replace_by(next.execvp, "execvp", file, environ, file, arguments);
}
INTERPOSED int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  return replace_by(next.execvpe, "execvpe", file, environment, file, arguments, environment);
}
INTERPOSED int fexecve(int file, char* const* arguments, char* const* environment) noexcept {
  return replace_by(next.fexecve, "fexecve", nullptr, environment, file, arguments, environment);
}
INTERPOSED int execveat(int directory, const char* path, char* const* arguments, char* const* environment,
                        int flags) noexcept {
  if (found(next.execveat, "execveat") != nullptr) {
    return replace_by(next.execveat, "execveat", path, environment, directory, path, arguments, environment, flags);
  }
  return replace_program(path, environment, [&] {  // a C library before 2.34
    return static_cast<int>(syscall(SYS_execveat, directory, path, arguments, environment, flags));
  });
}

// Copies the list of arguments to the stack, because a child of vfork may call these functions. Afterwards `given` is
// behind the closing null.
#define LIST_ARGUMENTS(first)                                                       \
  va_list given;                                                                    \
  va_start(given, first);                                                           \
  const size_t count = count_arguments(first, given);                               \
  va_end(given);                                                                    \
  auto** list = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*))); \
  list[0] = const_cast<char*>(first);                                               \
  va_start(given, first);                                                           \
  for (size_t at = 1; at <= count; ++at) list[at] = va_arg(given, char*)

INTERPOSED int execl(const char* path, const char* first, ...) noexcept {
  LIST_ARGUMENTS(first);
  va_end(given);
  return replace_by(next.execv, "execv", path, environ, path, static_cast<char* const*>(list));
}
INTERPOSED int execlp(const char* file, const char* first, ...) noexcept {
  LIST_ARGUMENTS(first);
  va_end(given);
  return replace_by(next.execvp, "execvp", file, environ, file, static_cast<char* const*>(list));
}
INTERPOSED int execle(const char* path, const char* first, ...) noexcept {
  LIST_ARGUMENTS(first);
  auto* environment = va_arg(given, char* const*);
  va_end(given);
  return replace_by(next.execve, "execve", path, environment, path, static_cast<char* const*>(list), environment);
}
