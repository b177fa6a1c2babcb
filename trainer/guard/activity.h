// SPDX-License-Identifier: Apache-2.0
// What this rank is doing. Its own watchdog reads it, and those of other ranks that wait for this one ask for it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "trainer/data/loader.h"

namespace paceline::train {

using SteadyClock = std::chrono::steady_clock;

struct Activity {
  std::atomic<std::uint64_t> iteration{0};
  std::atomic<bool> saving{false};  // whether a checkpoint is being written
  ImageProgress images;

  // Calls that wait for other ranks. All ranks make the same calls in the same order.
  std::atomic<const char*> collective{nullptr};  // the current call; null: none
  std::atomic<std::uint64_t> collectives{0};     // begun so far
  std::atomic<SteadyClock::rep> changed{
      SteadyClock::now().time_since_epoch().count()};  // when the last call began or ended; stored before `collective`

  void begin(const char* name) {
    ++collectives;
    begin_wait(name);
  }
  // A wait for some of the other ranks, which the others need not have as well: it does not count.
  void begin_wait(const char* name) {
    changed = SteadyClock::now().time_since_epoch().count();
    collective = name;
  }
  void end() {
    changed = SteadyClock::now().time_since_epoch().count();
    collective = nullptr;
  }
};

}  // namespace paceline::train
