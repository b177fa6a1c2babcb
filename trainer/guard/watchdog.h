// SPDX-License-Identifier: Apache-2.0
// A thread that ends a job which can no longer end itself, because a rank is missing in a collective call, or because a
// loader is stuck in a read when the job is asked to stop.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trainer/comm/rank_states.h"
#include "trainer/guard/activity.h"

namespace paceline::train {

class Watchdog {
 public:
  // Prints the line and ends the job; does not return. Called from the watchdog's thread.
  using End = std::function<void(const std::string&)>;

  // A collective call. limit_s: how long a collective call may wait for a rank. The activity must outlive the watchdog.
  Watchdog(Collectives& collectives, const Activity& activity, double limit_s, End end);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void run();
  RankState own_state();
  void look_for_stuck_loader();
  void look_for_missing_rank();

  const int rank_;
  const Activity& activity_;
  const std::chrono::duration<double> limit_;
  const End end_;
  RankStates states_;

  SteadyClock::time_point image_came_ =
      SteadyClock::now();  // when the last image was ready, or when next() began to wait
  std::uint64_t images_ = 0;
  std::optional<SteadyClock::time_point> interrupted_, asked_;
  std::atomic<bool> stop_{false};
  std::thread thread_;  // last: starts when all other members exist
};

// The message for a collective call that has waited for `seconds`: which ranks are missing and what they are doing.
// states: by rank; empty for ranks that do not answer. hosts: by rank.
std::string missing_ranks(const char* collective, double seconds, int rank,
                          const std::vector<std::optional<RankState>>& states, const std::vector<std::string>& hosts);

}  // namespace paceline::train
