// SPDX-License-Identifier: Apache-2.0
// What the threads of a rank did at each time: whether the rank computed, had no CPU, or was blocked.
//
// A rank follows its main thread. While that is blocked, the rank still has no CPU where another thread of it is ready
// to run and has none: the main thread waits for that thread, as far as the states show (a pool of threads, a thread
// that communicates).
//
// States come from the records of the scheduler (Track::states), else from the counters of the main thread that the
// recorder reads from schedstat. The latter are sums at a few times: over a stretch that contains many readings they
// are right, and between two readings they are spread evenly, so a short stretch gets the mean of its surroundings. All
// sums stay right. Where several threads or ranks without exact states may have lacked a CPU at the same time, they are
// taken for independent. What a blocked main thread waited for comes from the samples of its stack.
#pragma once

#include <cstdint>
#include <span>

#include "analysis/causes/blocked_samples.h"
#include "analysis/causes/loss_parts.h"
#include "analysis/communication/blocked_time.h"
#include "analysis/trace/intervals.h"
#include "analysis/trace/state_cursor.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

class RankActivity {
 public:
  RankActivity() = default;
  // `blocked`: the intervals in which the rank was blocked in collectives. Cost: linear in the states of the rank's
  // threads and in the main thread's slices and samples.
  RankActivity(const Trace& trace, const Rank& rank, std::span<const BlockedTime> blocked = {});

  bool known() const { return states_.size() > 1; }

  // What the main thread's samples saw it wait for; and those of all ranks, which have to outlive this and serve where
  // the rank has few of its own.
  const BlockedSamples& samples() const { return samples_; }
  void add_samples(const BlockedSamples& of_all_ranks) { all_samples_ = &of_all_ranks; }

  // The time from begin_ns to end_ns, which it adds up to: every cause but moving_bytes. O(log n), and linear in the
  // garbage collections in it.
  LossParts parts(std::int64_t begin_ns, std::int64_t end_ns) const;
  // The same without the time in which the rank was blocked in collectives. Linear in the intervals that it meets.
  LossParts parts_outside(std::span<const BlockedTime> blocked, std::int64_t begin_ns, std::int64_t end_ns) const;

  // The states themselves, for sums over several ranks: times at which they may change, and the rank's share.
  const ThreadStates& states() const { return states_; }
  // Share of the time without a CPU around this time that the CPU limit of the control group caused, from 0 to 1.
  double throttled_share(std::int64_t begin_ns, std::int64_t end_ns) const;

 private:
  friend class ActivityWalk;
  LossParts parts(StateCursor& cursor, std::int64_t begin_ns, std::int64_t end_ns) const;  // the cursor is not beyond

  ThreadStates states_;  // of the rank; waiting_ns also counts the other threads
  Intervals collecting_;
  BlockedSamples samples_;
  const BlockedSamples* all_samples_ = nullptr;
  const Samples* throttled_ = nullptr;  // of the control group: µs, added up over the CPUs
};

// parts_outside() of many stretches in the order of time; where two overlap, what they share belongs to the first. Cost
// of them all: linear in what lies between them.
class ActivityWalk {
 public:
  // `activity` and the intervals have to outlive the walk. No stretch begins before from_ns.
  ActivityWalk(const RankActivity& activity, std::span<const BlockedTime> blocked, std::int64_t from_ns);
  LossParts parts_outside(std::int64_t begin_ns, std::int64_t end_ns);

 private:
  const RankActivity& activity_;
  std::span<const BlockedTime> blocked_;  // those that do not end before the last stretch
  StateCursor cursor_;
  std::int64_t done_ns_;  // the end of the last stretch
};

// The main thread's states as they were recorded, else from the counters of schedstat; empty where there are neither.
ThreadStates main_thread_states(const Rank& rank);

}  // namespace paceline::analysis
