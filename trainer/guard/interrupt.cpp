// SPDX-License-Identifier: Apache-2.0
#include "trainer/guard/interrupt.h"

#include <csignal>

namespace paceline::train {
namespace {

volatile std::sig_atomic_t received = 0;

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int number) { received = number; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

int interrupt_received() { return received; }

}  // namespace paceline::train
