#include "analysis/metrics/phases.h"

#include <algorithm>
#include <optional>
#include <span>

#include "analysis/metrics/gpu.h"
#include "analysis/metrics/phase_rules.h"

namespace paceline::analysis {
namespace {

constexpr std::string_view names[phase_count] = {"startup",   "preprocess",    "forward",  "backward",
                                                 "optimizer", "communication", "evaluate", "checkpoint",
                                                 "copy",      "launch",        "idle",     "other"};

bool holds_its_compute(Phase phase) {
  return phase == Phase::startup || phase == Phase::evaluate || phase == Phase::checkpoint;
}
// Work that a thread does for a device, in CUDA's calls.
bool is_for_device(Phase phase) { return phase == Phase::copy || phase == Phase::launch || phase == Phase::idle; }
bool is_compute(Phase phase) {
  return phase == Phase::preprocess || phase == Phase::forward || phase == Phase::backward || phase == Phase::optimizer;
}

// Where time without a ruled slice stops being start-up. Events that were lost may have been iterations.
std::int64_t end_of_seen_startup(const PhaseTable& table, const Rank& rank, const Slices& slices) {
  const Trace& trace = table.trace();
  const NameId mpi = trace.names.find("mpi");
  std::optional<std::int64_t> end_of_init;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (table.iteration(slices.kind[i])) return slices.start_ns[i];
    if (mpi != 0 && !end_of_init && trace.kind_of(slices, i).domain == mpi &&
        table.phase(slices.kind[i]) == Phase::startup) {
      end_of_init = slices.end_ns(i);
    }
  }
  if (end_of_init) return *end_of_init;
  return slices.size() > 0 ? slices.start_ns.front() : rank.start_ns;
}

std::int64_t end_of_startup(const PhaseTable& table, const Rank& rank, const Slices& slices) {
  const std::int64_t seen = end_of_seen_startup(table, rank, slices);
  const auto loss = std::ranges::find_if(rank.gaps, &Gap::lost);
  return loss == rank.gaps.end() ? seen : std::min(seen, loss->start_ns);
}

// Cuts a rank's wall time, from left to right, into intervals.
class Cutter {
 public:
  Cutter(const Rank& rank, std::int64_t startup_end, RankPhases& out)
      : cursor_(rank.start_ns), end_(rank.end_ns), startup_end_(startup_end), gap_(rank.gaps), out_(out) {}

  // Gives the time from where the last call ended to `until` to the phase; without one, to start-up or other.
  void cut(std::int64_t until, std::optional<Phase> phase) {
    until = std::min(until, end_);
    if (phase) return give(until, *phase);
    give(std::min(until, startup_end_), Phase::startup);
    give(until, Phase::other);
  }

 private:
  // Time that was not recorded belongs to no phase.
  void give(std::int64_t until, Phase phase) {
    for (; !gap_.empty() && gap_.front().start_ns < until; gap_ = gap_.subspan(1)) {
      give_recorded(gap_.front().start_ns, phase);
      cursor_ = std::max(cursor_, std::min(gap_.front().end_ns, until));
      if (gap_.front().end_ns > until) return;
    }
    give_recorded(until, phase);
  }
  void give_recorded(std::int64_t until, Phase phase) {
    if (until <= cursor_) return;
    out_.total_ns[static_cast<std::size_t>(phase)] += until - cursor_;
    if (!out_.intervals.empty() && out_.intervals.back().phase == phase && out_.intervals.back().end_ns == cursor_) {
      out_.intervals.back().end_ns = until;
    } else {
      out_.intervals.push_back({cursor_, until, phase});
    }
    cursor_ = until;
  }

  std::int64_t cursor_, end_, startup_end_;
  std::span<const Gap> gap_;  // those that do not lie before the cursor
  RankPhases& out_;
};

// A thread that waits for its device waits for communication while nothing but communication runs there.
RankPhases split_idle(const PhaseTable& table, const Rank& rank, const RankPhases& phases) {
  const GpuActivity gpu = gpu_activity(table, rank);
  const Intervals exposed = without(gpu.communication, gpu.compute);
  if (exposed.empty()) return phases;
  RankPhases split;
  const auto give = [&](std::int64_t start, std::int64_t end, Phase phase) {
    if (start >= end) return;
    split.total_ns[static_cast<std::size_t>(phase)] += end - start;
    const bool goes_on = !split.intervals.empty() && split.intervals.back().end_ns == start;
    if (goes_on && split.intervals.back().phase == phase) {
      split.intervals.back().end_ns = end;
    } else {
      split.intervals.push_back({start, end, phase});
    }
  };
  auto next = exposed.begin();
  for (const PhaseInterval& interval : phases.intervals) {
    std::int64_t start = interval.start_ns;
    if (interval.phase == Phase::idle) {
      while (next != exposed.end() && next->end_ns <= start) ++next;
      for (auto part = next; part != exposed.end() && part->start_ns < interval.end_ns; ++part) {
        give(start, std::max(start, part->start_ns), Phase::idle);
        start = std::max(start, part->start_ns);
        give(start, std::min(part->end_ns, interval.end_ns), Phase::communication);
        start = std::min(part->end_ns, interval.end_ns);
      }
    }
    give(start, interval.end_ns, interval.phase);
  }
  return split;
}

}  // namespace

std::string_view phase_name(Phase phase) { return names[static_cast<std::size_t>(phase)]; }

RankPhases phases_of(const PhaseTable& table, const Rank& rank) {
  RankPhases result;
  const Track* main = main_track(rank);
  const Slices no_slices;
  const Slices& slices = main != nullptr ? main->slices : no_slices;
  Cutter cutter(rank, end_of_startup(table, rank, slices), result);

  struct Open {
    std::int64_t end_ns;
    std::optional<Phase> phase;   // its own, else that of the slice around it
    std::optional<Phase> holder;  // the start-up, evaluation or checkpoint that it is, or is part of
  };
  std::vector<Open> open;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::int64_t start = slices.start_ns[i];
    for (; !open.empty() && open.back().end_ns <= start; open.pop_back())
      cutter.cut(open.back().end_ns, open.back().phase);
    Open inner{slices.end_ns(i), table.phase(slices.kind[i]), std::nullopt};
    if (!open.empty()) {
      cutter.cut(start, open.back().phase);
      inner.holder = open.back().holder;
      if (!inner.phase) inner.phase = open.back().phase;
    } else {
      cutter.cut(start, std::nullopt);
    }
    if (inner.phase && inner.holder && (is_compute(*inner.phase) || is_for_device(*inner.phase))) {
      inner.phase = inner.holder;
    }
    if (inner.phase && is_for_device(*inner.phase) && !open.empty() && open.back().phase == Phase::communication) {
      inner.phase = Phase::communication;
    }
    if (inner.phase && holds_its_compute(*inner.phase)) inner.holder = inner.phase;
    open.push_back(inner);
  }
  for (; !open.empty(); open.pop_back()) cutter.cut(open.back().end_ns, open.back().phase);
  cutter.cut(rank.end_ns, std::nullopt);
  return result.total_ns[static_cast<std::size_t>(Phase::idle)] > 0 ? split_idle(table, rank, result) : result;
}

}  // namespace paceline::analysis
