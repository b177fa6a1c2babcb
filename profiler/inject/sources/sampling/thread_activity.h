// SPDX-License-Identifier: Apache-2.0
// Whether a thread is blocked, and in what.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "profiler/inject/sources/stacks/native_stack.h"
#include "profiler/inject/sources/stacks/program_memory.h"
#include "profiler/inject/sources/stacks/stack_table.h"
#include "profiler/inject/system/sysfs.h"

namespace paceline::inject {

struct ThreadActivity {
  // The system call in which the thread is blocked, in brackets, and the file that it concerns. No function: the thread
  // runs or waits for a CPU, or the system does not say.
  StackFrame call;
  bool runs = false;          // or waits for a CPU
  Address futex = 0;          // on which the thread is blocked
  NativeRegisters registers;  // of a thread that is blocked, without the frame pointer; else 0
};

// Watches one thread of this process.
class ThreadWatch {
 public:
  void open(pid_t thread);
  void close();
  // Cost: 1 to 2 µs; for a blocked thread 2 µs more.
  ThreadActivity now(ProgramMemory& memory);
  // How often the thread came onto a CPU; 0 where the kernel does not count. Cost: 1 µs.
  std::uint64_t turns();

 private:
  KeptFile file_, sums_;
};

// In a forked child.
void forget_files_of_calls();

}  // namespace paceline::inject
