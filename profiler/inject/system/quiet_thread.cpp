// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/system/quiet_thread.h"

namespace paceline::inject {

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

int start_quiet_thread(pthread_t& thread, void* (*run)(void*), std::size_t stack_bytes, ThreadEnd end, void* argument) {
  const SignalsBlocked blocked;  // a new thread inherits the mask
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (end == ThreadEnd::detached) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  const int error = pthread_create(&thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace paceline::inject
