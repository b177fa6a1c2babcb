// SPDX-License-Identifier: Apache-2.0
// Threads of the recorder. They block signals, because signals are for the program: a program that handles signals in a
// thread of its own (sigwait), or relies on their delivery to the main thread, must not lose one to the recorder. Only
// SIGBUS stays unblocked, because the mapping guard repairs the mapping in the thread that hits it (mapping_guard.h).
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cstddef>

namespace paceline::inject {

// Blocks all signals but SIGBUS for the calling thread, to the end of the scope.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

enum class ThreadEnd { joined, detached };

// Starts run(argument) on a thread that takes no signal. Returns 0, or the error number of pthread_create.
int start_quiet_thread(pthread_t& thread, void* (*run)(void*), std::size_t stack_bytes,
                       ThreadEnd end = ThreadEnd::joined, void* argument = nullptr);

}  // namespace paceline::inject
