// SPDX-License-Identifier: Apache-2.0
#include "analysis/causes/transfer_profile.h"

#include <algorithm>

namespace paceline::analysis {
namespace transfer_profile_parts {

// A member that may have held up the collective.
struct Suspect {
  const ThreadStates* states;
  std::int64_t inside_ns, end_ns;  // it sleeps elsewhere before inside_ns, and has left at end_ns
};

struct Shares {
  double no_cpu = 0, blocked = 0, unknown = 0;
};

Shares shares_of(std::span<const Suspect> suspects, std::int64_t from, std::int64_t until) {
  const auto length = static_cast<double>(until - from);
  double none_waits = 1, none_sleeps = 1, all_known = 1;
  for (const Suspect& suspect : suspects) {
    if (suspect.end_ns <= from) continue;
    const CpuTimes of = cpu_times(*suspect.states, from, until);
    none_waits *= 1 - of.waiting_ns / length;
    if (from < suspect.inside_ns) none_sleeps *= 1 - of.blocked_ns / length;
    all_known = std::min(all_known, of.known_ns / length);
  }
  return {1 - none_waits, none_waits * (1 - none_sleeps), none_waits * none_sleeps * (1 - all_known)};
}

}  // namespace transfer_profile_parts

TransferProfile::TransferProfile(const Collective& collective, bool is_mpi, std::span<const RankActivity> activities) {
  using namespace transfer_profile_parts;
  const std::int64_t begin_ns = collective.last_start_ns;
  std::int64_t last_ns = begin_ns;
  for (const MemberCall& call : collective.calls) last_ns = std::max(last_ns, call.end_ns);
  times_ = {begin_ns, last_ns};
  std::vector<Suspect> suspects;
  double throttled = 0, waited = 0;
  const auto add_time = [&](std::int64_t time_ns) {
    if (time_ns > begin_ns && time_ns < last_ns) times_.push_back(time_ns);
  };
  for (const MemberCall& call : collective.calls) {
    if (call.end_ns <= begin_ns) continue;
    const RankActivity& activity = activities[call.rank];
    const ThreadStates& states = activity.states();
    const std::int64_t inside_ns = is_mpi ? call.blocked_from_ns : begin_ns;
    const CpuTimes of = cpu_times(states, begin_ns, call.end_ns);
    const bool known = of.known_ns >= static_cast<double>(call.end_ns - begin_ns);
    const bool sleeps = inside_ns > begin_ns && of.blocked_ns > 0;
    if (of.waiting_ns <= 0 && known && !sleeps) continue;
    suspects.push_back({&states, inside_ns, call.end_ns});
    add_time(inside_ns);
    add_time(call.end_ns);
    const auto first = std::ranges::upper_bound(states.time_ns, begin_ns);
    const auto last = std::ranges::lower_bound(states.time_ns, call.end_ns);
    if (first < last) times_.insert(times_.end(), first, last);
    waited += of.waiting_ns;
    if (of.waiting_ns > 0) throttled += of.waiting_ns * activity.throttled_share(begin_ns, call.end_ns);
  }
  std::ranges::sort(times_);
  times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
  sums_.resize(times_.size());
  const double throttled_share = waited > 0 ? throttled / waited : 0;
  for (std::size_t i = 1; i < times_.size(); ++i) {
    const auto length = static_cast<double>(times_[i] - times_[i - 1]);
    const Shares shares = shares_of(suspects, times_[i - 1], times_[i]);
    LossParts parts;
    parts[LossCause::no_cpu] = shares.no_cpu * (1 - throttled_share);
    parts[LossCause::throttled] = shares.no_cpu * throttled_share;
    parts[LossCause::blocked] = shares.blocked;
    parts[LossCause::unknown] = shares.unknown;
    parts[LossCause::moving_bytes] = 1 - parts.sum();
    sums_[i] = sums_[i - 1];
    sums_[i].add(parts, length);
  }
}

LossParts TransferProfile::until(std::int64_t time_ns) const {
  const auto after = std::ranges::upper_bound(times_, time_ns);
  if (after == times_.begin()) return {};
  const auto i = static_cast<std::size_t>(after - times_.begin());
  if (i == times_.size()) return sums_.back();
  const double share = static_cast<double>(time_ns - times_[i - 1]) / static_cast<double>(times_[i] - times_[i - 1]);
  LossParts sum = sums_[i - 1];
  return sum.add(sums_[i - 1], -share).add(sums_[i], share);
}

LossParts TransferProfile::parts(std::int64_t begin_ns, std::int64_t end_ns) const {
  if (begin_ns >= end_ns) return {};
  LossParts parts = until(end_ns);
  parts.add(until(begin_ns), -1);
  for (double& ns : parts.ns) ns = std::max(ns, 0.0);  // rounding
  // The end of a call may be seen after the member left the collective, and before the last arrival for some devices.
  parts[LossCause::unknown] += std::max(0.0, static_cast<double>(end_ns - begin_ns) - parts.sum());
  return parts;
}

}  // namespace paceline::analysis
