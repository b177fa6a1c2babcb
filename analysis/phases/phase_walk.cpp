// SPDX-License-Identifier: Apache-2.0
#include "analysis/phases/phase_walk.h"

namespace paceline::analysis {
namespace phase_walk_parts {

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
      if (!table.any_iterations()) break;
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

const Slices& main_slices(const Rank& rank) {
  static const Slices none;
  const Track* main = main_track(rank);
  return main != nullptr ? main->slices : none;
}

}  // namespace phase_walk_parts

PhaseWalk::PhaseWalk(const PhaseTable& table, const Rank& rank, const Intervals& exposed)
    : table_(table),
      rank_(rank),
      slices_(&phase_walk_parts::main_slices(rank)),
      startup_end_(phase_walk_parts::end_of_startup(table, rank, *slices_)),
      exposed_(exposed) {}

PhaseWalk::Position::Open PhaseWalk::opened_inside(const Position& at, Position::Open inner) const {
  NestedPhase outer;
  if (!at.open.empty()) outer = {at.open.back().phase, at.open.back().holder};
  const NestedPhase nested = nested_phase(at.open.empty() ? nullptr : &outer, inner.phase);
  return {inner.end_ns, nested.phase, nested.holder};
}

}  // namespace paceline::analysis
