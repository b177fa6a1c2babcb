// One loaded run with everything that drawing it needs; made in a worker thread, never changed after.
#pragma once

#include <QString>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/index/level_of_detail.h"
#include "analysis/index/value_ranges.h"
#include "analysis/load/load.h"
#include "analysis/metrics/counters.h"
#include "analysis/metrics/phases.h"
#include "analysis/metrics/selection.h"
#include "analysis/trace/trace.h"

namespace paceline::viewer {

// What a counter's row shows. Empty where there is nothing to see: it was 0 throughout.
struct CounterGraph {
  analysis::CounterCurve curve;
  analysis::ValueRanges ranges;  // of the curve's values
  double top = 0;                // the scale's end: the greatest value, and 100 % of a GPU

  bool empty() const { return curve.value.empty(); }
  // The greatest and least value from one point in time to another; nothing outside the samples. O(log n).
  std::optional<analysis::ValueRanges::Range> between(double begin_ns, double end_ns) const;
};

struct RankIndex {
  analysis::RankPhases phases;
  analysis::PhaseTotals totals;  // of phases
  std::vector<analysis::Iteration> iterations;
  std::vector<analysis::LostInterval> losses;          // of the main thread
  std::vector<analysis::LevelOfDetail> slices, marks;  // one a track
  std::vector<CounterGraph> graphs;                    // one a track
  // The first so many tracks are the trace's own; behind them stand the threads' MPI calls once more, in rows of their
  // own, which counts and searches leave out.
  std::size_t own_tracks = 0;
};

struct Run {
  QString path;
  analysis::Trace trace;
  std::vector<RankIndex> ranks;     // as trace.ranks
  double begin_ns = 0, end_ns = 0;  // first start to last end of any rank

  // The name for titles: the last part of the path.
  QString title() const;
  std::uint64_t slices() const;
  // The largest bound of any rank's clock error.
  double clock_error_ns() const;
};

// Throws Error as analysis::load_run does. The phases and the indices of drawing are the last tenth of `progress`.
std::shared_ptr<const Run> open_run(const QString& path, const analysis::Progress& progress = {});
// The same for a trace that is in memory.
std::shared_ptr<const Run> index_run(QString path, analysis::Trace trace, const analysis::Progress& progress = {});

// What a user can point at.
struct SliceRef {
  std::size_t rank = 0, track = 0;  // indices, not the rank's number
  std::uint32_t slice = 0;
  bool mark = false;
  bool operator==(const SliceRef&) const = default;
};

inline const analysis::Slices& slices_of(const Run& run, const SliceRef& ref) {
  const auto& track = run.trace.ranks[ref.rank].tracks[ref.track];
  return ref.mark ? track.marks : track.slices;
}

}  // namespace paceline::viewer
