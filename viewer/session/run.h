// SPDX-License-Identifier: Apache-2.0
// One loaded run with what the whole page needs; made in worker threads, never changed after.
#pragma once

#include <QString>
#include <QStringList>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/index/value_ranges.h"
#include "analysis/load/load.h"
#include "analysis/load/merge.h"
#include "analysis/phases/phase_timeline.h"
#include "analysis/phases/selection.h"
#include "analysis/run/index/run_index.h"
#include "analysis/statistics/counters.h"
#include "analysis/trace/trace.h"

namespace paceline::viewer {

// What a counter's row shows. Empty if the counter was 0 throughout.
struct CounterGraph {
  analysis::CounterCurve curve;
  analysis::ValueRanges ranges;  // of the curve's values
  double top = 0;                // the scale's end: the greatest value, at least 100 for a percentage

  bool empty() const { return curve.value.empty(); }
  // The greatest and least value between two points in time; nothing outside the samples. O(log n).
  std::optional<analysis::ValueRanges::Range> between(double begin_ns, double end_ns) const;
};

// A period for which the trace is incomplete.
struct Unrecorded {
  std::int64_t start_ns = 0, end_ns = 0;
  QString text;  // "1,234 events lost", "outside --iterations"
};

// The figures of one rank. The indexes for drawing slices belong to the rows, which make them when they are first seen.
struct RankIndex {
  std::optional<analysis::PhaseTimeline> phases;
  std::vector<Unrecorded> unrecorded;                // by start: what the main thread lost, and pauses
  bool incomplete = false;                           // damaged, or events of the main thread were lost
  std::vector<CounterGraph> graphs;                  // one for each track
  std::vector<std::vector<analysis::KindId>> kinds;  // of each track: those that its slices have, in any order
  std::vector<analysis::ThreadStates> few_states;    // of each track: one of states_step entries
};

// Pictures of a long time read few_states instead of all, which lie in memory that is not in the cache.
inline constexpr std::size_t states_step = 32;

using analysis::RunIteration;

struct Run {
  QString path;
  analysis::Trace trace;
  std::optional<analysis::RunIndex> index;
  std::vector<RankIndex> ranks;          // as trace.ranks
  std::vector<RunIteration> iterations;  // by start, those that no rank finished too
  double begin_ns = 0, end_ns = 0;       // first start to last end of any rank
  std::uint64_t slices = 0;              // of all ranks
  double clock_error_ns = 0;             // the largest bound of any rank
  QStringList hosts;                     // without repetition, in the order of the ranks

  // The name for titles: the last part of the path.
  QString title() const;
  // "4 ranks", "1 rank".
  QString ranks_text() const;
};

// "1,234 events lost"; "events lost" where the number is not known; "damaged in the file".
QString loss_text(const analysis::LostInterval& loss);
std::vector<Unrecorded> unrecorded_of(const std::vector<analysis::LostInterval>& losses);

// Of the choices, the clock and the processes count. Throws Error as analysis::load_run does, and where the clocks
// cannot be aligned by this method. The figures of the ranks are computed on all CPUs; they are the last tenth of
// `progress`, which any thread may call, one at a time.
std::shared_ptr<const Run> open_run(const QString& path, const analysis::Progress& progress = {},
                                    const analysis::MergeChoices& choices = {});
// The same for a trace that is in memory.
std::shared_ptr<const Run> index_run(QString path, analysis::Trace trace, const analysis::Progress& progress = {});

// How exactly the clocks of the ranks agree: "at most 1.900 µs", "not known"; empty for one rank or one clock.
QString clock_error_text(const Run& run);

// "1 slice", "2,000 slices".
QString plural_text(std::size_t count, const char* one, const char* many);

// What a user can point at.
struct SliceRef {
  std::size_t rank = 0, track = 0;  // indices, not the rank's number
  std::uint32_t slice = 0;
  bool mark = false;
  bool operator==(const SliceRef&) const = default;
};

inline const analysis::Track& track_of(const Run& run, const SliceRef& ref) {
  return run.trace.ranks[ref.rank].tracks[ref.track];
}
inline const analysis::Slices& slices_of(const Run& run, const SliceRef& ref) {
  const auto& track = track_of(run, ref);
  return ref.mark ? track.marks : track.slices;
}
inline const analysis::Kind& kind_of(const Run& run, const SliceRef& ref) {
  return run.trace.kind_of(slices_of(run, ref), ref.slice);
}

// The name for people: control characters become spaces, the middle of a name of more than `longest` characters is left
// out, and text that runs from right to left is kept apart from the text around it.
QString shown_name(const std::string& name, int longest = 160);

// A function with its place: "load (data.py:41)", "[read] (/data/a.bin)", "malloc (libc.so.6)".
QString frame_text(const analysis::Trace& trace, analysis::FrameId frame);

// What a slice or a mark is, for people. Empty texts if it has none.
// Its name, and an iteration's number.
QString slice_title(const Run& run, const SliceRef& ref);
// What a screen reader reads out: "backward, 32.99 ms, rank 3, main thread".
QString slice_text(const Run& run, const SliceRef& slice);
// The iteration of the report that this slice is; nullptr if it is none.
const analysis::Iteration* iteration_of(const Run& run, const SliceRef& ref);
QString domain_of(const Run& run, const SliceRef& ref);
QString category_of(const Run& run, const SliceRef& ref);
// The text, or the number for people; sizes have their unit.
QString value_text(const Run& run, const analysis::Argument& argument);

}  // namespace paceline::viewer
