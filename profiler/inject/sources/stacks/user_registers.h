// SPDX-License-Identifier: Apache-2.0
// Where a thread of this process is while it runs: its registers and the top of its stack, as the kernel copies them at
// the thread's next turn on a CPU (perf_event_open(2), a sample of the thread's own clock). The thread gets no signal.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "profiler/inject/sources/stacks/native_stack.h"
#include "profiler/inject/sources/stacks/program_memory.h"

namespace paceline::inject {

// One thread's. 36 KiB of the memory that the system locks for such rings, and a descriptor, which stays open beside
// the program.
class UserRegisters {
 public:
  // Returns 0 or the error number: the system may refuse it (perf_event_paranoid, containers, no x86-64), or the
  // memory for rings may be used up.
  int open(pid_t thread);
  bool is_open() const { return page_ != nullptr; }
  void close();

  // Asks for one copy, which the kernel takes when the thread has run outside of the kernel for another 10 µs. Cost:
  // some µs, and as much for the thread.
  void ask();
  // What was asked for, if it has come; valid until the next call of ask(). Cost: copying the stack.
  bool take(NativeRegisters& registers);

 private:
  bool descriptor_is_ours() const;

  perf_event_mmap_page* page_ = nullptr;
  int descriptor_ = -1;
  std::uint64_t number_ = 0;  // of the kernel's event
  bool asked_ = false;
};

}  // namespace paceline::inject
