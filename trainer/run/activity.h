// What this rank is doing, for its watchdog and for those of other ranks that wait for it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "trainer/data/loader.h"

namespace paceline::train {

using SteadyClock = std::chrono::steady_clock;

struct Activity {
  std::atomic<std::uint64_t> iteration{0};
  std::atomic<bool> saving{false};  // a checkpoint
  ImageProgress images;

  // Of calls that wait for other ranks; all ranks make the same ones in the same order.
  std::atomic<const char*> collective{nullptr};  // the one under way; null: none
  std::atomic<std::uint64_t> collectives{0};     // begun so far
  std::atomic<SteadyClock::rep> changed{SteadyClock::now().time_since_epoch().count()};  // when the last began or ended

  void begin(const char* name) {
    ++collectives;
    changed = SteadyClock::now().time_since_epoch().count();
    collective = name;
  }
  void end() {
    collective = nullptr;
    changed = SteadyClock::now().time_since_epoch().count();
  }
};

}  // namespace paceline::train
