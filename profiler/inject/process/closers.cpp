// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/process/closers.h"

#include <atomic>

namespace paceline::inject {
namespace {

std::atomic<void (*)()> closers[4];

}  // namespace

int call_at_close(void (*function)()) {
  for (std::atomic<void (*)()>& place : closers) {
    void (*none)() = nullptr;
    if (place.compare_exchange_strong(none, function)) return 1;
  }
  return 0;
}

void call_closers() {
  for (std::atomic<void (*)()>& place : closers) {
    if (void (*const function)() = place.exchange(nullptr)) function();
  }
}

}  // namespace paceline::inject
