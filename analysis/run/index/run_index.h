// SPDX-License-Identifier: Apache-2.0
// What everything that is computed of a run rests on: its iterations, its phases, its collectives, the time in which
// its ranks were blocked, and the communication that computation did not hide. Each part is computed once, when it is
// first asked for, and is the same for the report, the graph, queries, exporters and the viewer.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "analysis/communication/collectives.h"
#include "analysis/communication/exchange_times.h"
#include "analysis/device/gpu.h"
#include "analysis/device/overlap.h"
#include "analysis/phases/interludes.h"
#include "analysis/phases/iterations.h"
#include "analysis/phases/phase_rules.h"
#include "analysis/phases/phase_walk.h"

namespace paceline::analysis {

// Where the time of one rank went.
struct RankTimes {
  std::array<std::int64_t, phase_count> phase_ns{};
  std::vector<Iteration> iterations = {};  // with their phases
  std::vector<Interlude> interludes = {};
  std::optional<Overlap> overlap = {};
  std::optional<GpuUsage> gpu = {};
  std::vector<ExchangeTime> exchanges = {};
};

// Threads may share an index. Ranks are indices into Trace::ranks.
class RunIndex {
 public:
  // Not explicit: where only one figure is wanted, a trace does in place of its index. The trace must outlive it.
  RunIndex(const Trace& trace);

  const Trace& trace() const { return table_.trace(); }
  const PhaseTable& phases() const { return table_; }

  // By start, without phases. An iteration is not `finished` where its number is wrong because the rank lost events
  // before it, and other ranks have the right one. Cost, once: linear in the main thread's slices.
  const std::vector<Iteration>& iterations(std::size_t rank) const;
  // The iterations that any rank has, by number. Cost: that of the iterations of all ranks, each time.
  std::vector<RunIteration> run_iterations() const;

  // Communication on the rank's streams while they computed nothing. Cost, once: n log n in the slices of its streams.
  const Intervals& exposed(std::size_t rank) const;
  // Calls visit(const PhaseInterval&) for each interval of the rank's time. Cost: once linear in the main thread's
  // slices, afterwards in the intervals; in the slices each time where the intervals are too many to keep.
  template <class Visit>
  void each_phase_interval(std::size_t rank, Visit&& visit) const {
    if (const std::vector<PhaseInterval>* kept = kept_phases(rank)) {
      for (const PhaseInterval& interval : *kept) visit(interval);
    } else {
      analysis::each_phase_interval(table_, trace().ranks[rank], exposed(rank), visit);
    }
  }

  // Cost, once: linear in the slices of the rank, n log n in those of its streams and in its communication.
  const RankTimes& times(std::size_t rank) const;

  // The collective calls of every rank, with what its own work covers, and the collectives that they make together.
  // Cost, once: that of times() of all ranks, and n log n in the calls.
  const std::vector<CollectiveCalls>& calls() const;
  const Collectives& collectives() const;
  // Gives the calls away. Afterwards, neither calls() nor collectives() may be used.
  std::vector<CollectiveCalls> take_calls();

 private:
  struct Part {
    std::once_flag searched, overlapped, walked, timed;
    std::vector<Iteration> iterations;
    Intervals exposed;
    std::vector<PhaseInterval> phases;
    bool phases_kept = false;
    RankTimes times;
  };
  void measure(std::size_t rank) const;
  // nullptr where there are too many.
  const std::vector<PhaseInterval>* kept_phases(std::size_t rank) const;

  PhaseTable table_;
  mutable std::vector<Part> parts_;
  mutable std::vector<CollectiveCalls> calls_;
  mutable Collectives collectives_;
  mutable std::once_flag called_, matched_;
};

}  // namespace paceline::analysis
