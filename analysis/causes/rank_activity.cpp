// SPDX-License-Identifier: Apache-2.0
#include "analysis/causes/rank_activity.h"

#include <algorithm>
#include <cmath>

#include "analysis/statistics/counters.h"

namespace paceline::analysis {
namespace rank_activity_parts {

// Throttling is counted when it ends, which is up to one period of the CPU limit (usually 100 ms) later.
constexpr std::int64_t throttling_surroundings_ns = 500'000'000;

// The states of a thread other than the main one, read in the order of time.
class Helper {
 public:
  explicit Helper(const ThreadStates& states) : states_(&states) {}
  // The first entry after this time, or `otherwise`.
  std::int64_t next_after(std::int64_t time_ns, std::int64_t otherwise) {
    while (at_ < states_->size() && states_->time_ns[at_] <= time_ns) ++at_;
    return at_ < states_->size() ? std::min(otherwise, states_->time_ns[at_]) : otherwise;
  }
  // Share of the time without a CPU, between entries.
  double waiting_share(std::int64_t begin_ns, std::int64_t end_ns) const {
    return cpu_times(*states_, begin_ns, end_ns).waiting_ns / static_cast<double>(end_ns - begin_ns);
  }

 private:
  const ThreadStates* states_;
  std::size_t at_ = 0;
};

std::int64_t rounded(double ns) { return static_cast<std::int64_t>(std::llround(ns)); }

// Adds entries at the times at which the other threads' states change while the main thread is blocked. What they
// waited there belongs to the rank.
ThreadStates of_rank(const ThreadStates& main, std::vector<Helper> helpers) {
  if (helpers.empty()) return main;
  ThreadStates out;
  out.exact = main.exact;
  double running = 0, waiting = 0;
  const auto add = [&](std::int64_t time_ns) {
    out.time_ns.push_back(time_ns);
    out.running_ns.push_back(rounded(running));
    out.waiting_ns.push_back(rounded(waiting));
  };
  for (std::size_t i = 0; i < main.size(); ++i) {
    add(main.time_ns[i]);
    if (i + 1 == main.size()) break;
    const auto length = static_cast<double>(main.time_ns[i + 1] - main.time_ns[i]);
    const auto ran = static_cast<double>(main.running_ns[i + 1] - main.running_ns[i]);
    const auto waited = static_cast<double>(main.waiting_ns[i + 1] - main.waiting_ns[i]);
    const double blocked_share = length > 0 ? std::max(0.0, 1 - (ran + waited) / length) : 0;
    running += ran;
    waiting += waited;
    if (blocked_share == 0) continue;
    for (std::int64_t from = main.time_ns[i]; from < main.time_ns[i + 1];) {
      std::int64_t until = main.time_ns[i + 1];
      for (Helper& helper : helpers) until = helper.next_after(from, until);
      double none_waits = 1;
      for (const Helper& helper : helpers) none_waits *= 1 - helper.waiting_share(from, until);
      waiting += blocked_share * (1 - none_waits) * static_cast<double>(until - from);
      if (until < main.time_ns[i + 1]) {
        // The main thread's own shares are spread over the stretch.
        const double share = static_cast<double>(until - main.time_ns[i]) / length;
        const double kept_running = running, kept_waiting = waiting;
        running -= ran * (1 - share), waiting -= waited * (1 - share);
        add(until);
        running = kept_running, waiting = kept_waiting;
      }
      from = until;
    }
  }
  return out;
}

Intervals collections_of(const Trace& trace, const Track& main) {
  const NameId category = trace.names.find("gc");
  Intervals intervals;
  if (category == 0) return intervals;
  for (std::size_t i = 0; i < main.slices.size(); ++i) {
    if (trace.kind_of(main.slices, i).category != category) continue;
    intervals.push_back({main.slices.start_ns[i], main.slices.end_ns(i)});
  }
  return merged(std::move(intervals));
}

// The value at this time, between samples in proportion.
double value_at(const Samples& samples, std::int64_t time_ns) {
  const auto after = std::ranges::upper_bound(samples.time_ns, time_ns);
  if (after == samples.time_ns.begin()) return samples.value.front();
  if (after == samples.time_ns.end()) return samples.value.back();
  const auto i = static_cast<std::size_t>(after - samples.time_ns.begin());
  const double share = static_cast<double>(time_ns - samples.time_ns[i - 1]) /
                       static_cast<double>(samples.time_ns[i] - samples.time_ns[i - 1]);
  return samples.value[i - 1] + share * (samples.value[i] - samples.value[i - 1]);
}

}  // namespace rank_activity_parts

ThreadStates main_thread_states(const Rank& rank) {
  const Track* main = main_track(rank);
  if (main != nullptr && !main->states.empty()) return main->states;
  const Samples* running = find_counter(rank, "CPU time", "main thread");
  const Samples* waiting = find_counter(rank, "waiting for a CPU", "main thread");
  ThreadStates states;
  if (running == nullptr || waiting == nullptr || running->size() < 2) return states;
  for (std::size_t i = 0; i < running->size(); ++i) {
    const std::int64_t time_ns = running->time_ns[i];
    const double waited_us = rank_activity_parts::value_at(*waiting, time_ns) - waiting->value.front();
    auto ran = static_cast<std::int64_t>(1e3 * (running->value[i] - running->value.front()));
    auto waited = static_cast<std::int64_t>(1e3 * waited_us);
    if (!states.empty()) {
      // The two sums and the clock are read one after the other.
      const std::int64_t length = time_ns - states.time_ns.back();
      if (length <= 0) continue;
      ran = std::clamp(ran, states.running_ns.back(), states.running_ns.back() + length);
      const std::int64_t left = length - (ran - states.running_ns.back());
      waited = std::clamp(waited, states.waiting_ns.back(), states.waiting_ns.back() + left);
    }
    states.time_ns.push_back(time_ns);
    states.running_ns.push_back(ran);
    states.waiting_ns.push_back(waited);
  }
  return states;
}

RankActivity::RankActivity(const Trace& trace, const Rank& rank, std::span<const BlockedTime> blocked) {
  using namespace rank_activity_parts;
  const Track* main = main_track(rank);
  if (main == nullptr) return;
  std::vector<Helper> helpers;
  for (const Track& track : rank.tracks) {
    if (track.kind == TrackKind::thread && &track != main && !track.states.empty()) helpers.emplace_back(track.states);
  }
  states_ = of_rank(main_thread_states(rank), std::move(helpers));
  collecting_ = collections_of(trace, *main);
  samples_ = BlockedSamples(trace.stacks, trace.names, main->stacks, blocked);
  throttled_ = find_counter(rank, "CPU limit, throttled time", "cgroup");
  if (throttled_ != nullptr && throttled_->size() < 2) throttled_ = nullptr;
}

double RankActivity::throttled_share(std::int64_t begin_ns, std::int64_t end_ns) const {
  using namespace rank_activity_parts;
  if (throttled_ == nullptr) return 0;
  begin_ns -= throttling_surroundings_ns, end_ns += throttling_surroundings_ns;
  const double waited_ns = cpu_times(states_, begin_ns, end_ns).waiting_ns;
  if (waited_ns <= 0) return 0;
  return std::clamp(1e3 * (value_at(*throttled_, end_ns) - value_at(*throttled_, begin_ns)) / waited_ns, 0.0, 1.0);
}

LossParts RankActivity::parts(std::int64_t begin_ns, std::int64_t end_ns) const {
  StateCursor cursor(states_, begin_ns);
  return parts(cursor, begin_ns, end_ns);
}

LossParts RankActivity::parts(StateCursor& cursor, std::int64_t begin_ns, std::int64_t end_ns) const {
  LossParts parts;
  if (begin_ns >= end_ns) return parts;
  std::int64_t from_ns = begin_ns;
  const auto add = [&](std::int64_t from, std::int64_t until, bool collects) {
    if (from >= until) return;
    cursor.until(from);
    const CpuTimes times = cursor.until(until);
    parts[collects ? LossCause::collecting : LossCause::computing] += times.running_ns;
    parts[LossCause::no_cpu] += times.waiting_ns;
    if (times.blocked_ns > 0) {
      const BlockedSamples::Shares waited_for = samples_.shares(from, until, all_samples_);
      parts[LossCause::page_faults] += waited_for.page_faults * times.blocked_ns;
      parts[LossCause::input_output] += waited_for.input_output * times.blocked_ns;
      parts[LossCause::blocked] += (1 - waited_for.page_faults - waited_for.input_output) * times.blocked_ns;
    }
    parts[collects ? LossCause::collecting : LossCause::unknown] +=
        std::max(0.0, static_cast<double>(until - from) - times.known_ns);
  };
  auto collection = std::ranges::upper_bound(collecting_, begin_ns, {}, &TimeInterval::end_ns);
  for (; collection != collecting_.end() && collection->start_ns < end_ns; ++collection) {
    const std::int64_t from = std::max(begin_ns, collection->start_ns), until = std::min(end_ns, collection->end_ns);
    add(from_ns, from, false);
    add(from, until, true);
    from_ns = until;
  }
  add(from_ns, end_ns, false);
  if (throttled_ != nullptr && parts[LossCause::no_cpu] > 0) {
    const double throttled = parts[LossCause::no_cpu] * throttled_share(begin_ns, end_ns);
    parts[LossCause::throttled] = throttled;
    parts[LossCause::no_cpu] -= throttled;
  }
  return parts;
}

LossParts RankActivity::parts_outside(std::span<const BlockedTime> blocked, std::int64_t begin_ns,
                                      std::int64_t end_ns) const {
  const auto first = std::ranges::upper_bound(blocked, begin_ns, {}, &BlockedTime::end_ns);
  return ActivityWalk(*this, {first, blocked.end()}, begin_ns).parts_outside(begin_ns, end_ns);
}

ActivityWalk::ActivityWalk(const RankActivity& activity, std::span<const BlockedTime> blocked, std::int64_t from_ns)
    : activity_(activity), blocked_(blocked), cursor_(activity.states_, from_ns), done_ns_(from_ns) {}

LossParts ActivityWalk::parts_outside(std::int64_t begin_ns, std::int64_t end_ns) {
  begin_ns = std::max(begin_ns, done_ns_);
  done_ns_ = std::max(end_ns, done_ns_);
  while (!blocked_.empty() && blocked_.front().end_ns <= begin_ns) blocked_ = blocked_.subspan(1);
  LossParts sum;
  for (const BlockedTime& interval : blocked_) {
    if (interval.start_ns >= end_ns) break;
    sum.add(activity_.parts(cursor_, begin_ns, std::min(interval.start_ns, end_ns)));
    begin_ns = std::max(begin_ns, interval.end_ns);
  }
  return sum.add(activity_.parts(cursor_, begin_ns, end_ns));
}

}  // namespace paceline::analysis
