// SPDX-License-Identifier: Apache-2.0
// The analysis of one run: every figure that the report, `paceline info` and the viewer show, computed once.
//
// Times are nanoseconds. docs/metrics.md defines every figure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/causes/run_causes.h"
#include "analysis/communication/collective_costs.h"
#include "analysis/communication/collectives.h"
#include "analysis/communication/hangs.h"
#include "analysis/communication/lateness.h"
#include "analysis/communication/lateness_causes.h"
#include "analysis/communication/link_times.h"
#include "analysis/communication/messages.h"
#include "analysis/graph/critical_path.h"
#include "analysis/graph/prediction.h"
#include "analysis/run/breakdown.h"
#include "analysis/run/efficiencies.h"
#include "analysis/run/lone_interludes.h"
#include "analysis/run/machine.h"
#include "analysis/run/rank_summary.h"
#include "analysis/run/run_config.h"
#include "analysis/statistics/step_changes.h"

namespace paceline::analysis {

class Predictor;
struct TrainingSetup;

// The iterations that every rank finished. The duration of one is the mean over the ranks.
struct RunIterations {
  std::size_t count = 0;       // with the warm-up
  std::int64_t median_ns = 0;  // of all of them
  std::int64_t p95_ns = 0;     // 95th percentile, of all of them
  std::size_t warmup = 0;      // left out of the steady figures: the first tenth, at least one
  // For comparison: the length of the warm-up by MSER-5 (warm_up.h); nothing where it finds no end of one.
  std::optional<std::size_t> warmup_by_mser5;
  std::int64_t steady_median_ns = 0;          // without the warm-up
  std::optional<double> steady_images_per_s;  // over the whole job, without the warm-up
  std::optional<Interval> steady_ci95;        // of steady_images_per_s, 95 %
  // Floating-point operations in the steady iterations, over all ranks, where the run's description gives them; and
  // their share of what the devices can do at most, where that is known.
  std::optional<double> flops_per_s;
  std::optional<double> flops_share_of_peak;  // 0 to 1
  std::vector<std::int64_t> numbers;          // of each
  std::vector<double> seconds;                // the duration of each
  std::vector<TimeInterval> spans;            // of each, from the first rank's begin to the last rank's end
  // `seconds` without the warm-up.
  std::span<const double> steady() const { return std::span(seconds).subspan(warmup); }
  // Those that took at least 1.5 times the steady median, in their order, without the warm-up: indices into `numbers`.
  std::vector<std::size_t> slow() const;
  // Whether the duration changed during the steady iterations, and the phase that changed most in the same direction
  // (mean over ranks; of a drift, between the halves).
  StepChangeTest change;
  // The time of a phase in an iteration, mean over ranks and iterations.
  struct ChangedPhase {
    Phase phase = Phase::other;  // the phase that changed
    double before_ns = 0;        // before the change
    double after_ns = 0;         // after it
  };
  std::optional<ChangedPhase> changed_phase;  // nothing where the duration did not change
};

// The timed collectives that a rank took part in, and the one in which it made the others wait longest.
struct RankArrivals {
  std::uint64_t collectives = 0;      // timed ones
  std::optional<TimeInterval> worst;  // from the first rank's call to the end of the transfer
};

// Why and when a late rank (LatenessTest::late) is late.
struct LatenessCause {
  std::optional<PhaseExcess> phase;  // nothing if no phase explains it
  LatenessPattern pattern;           // in which iterations it is late
};

// The clock of a host that is off by more than its traces state, and by more than half of what looks like lateness.
struct WrongClock {
  std::size_t host = 0;  // index into RunAnalysis::hosts
  double ahead_ns = 0;   // of the other hosts, by the ends of collectives that all ranks leave together
};

// The layers of one rank in an iteration, mean over the ranks.
struct RunLayers {
  std::vector<LayerWork> work;       // by kind and direction, the longest first; for all images of a rank
  std::optional<double> peak_flops;  // operations of a rank in a second, at most
  std::optional<double> peak_bytes;  // bytes that it moves in a second, at most
};

// What was lost of a run while it was recorded, over all ranks.
struct RunLosses {
  std::uint64_t events = 0;       // of all threads
  std::vector<int> ranks;         // those whose main thread lost events, or whose file does not record which thread did
  std::vector<int> helper_ranks;  // those of which only other threads did
  std::int64_t main_ns = 0;       // of main threads, over all ranks: it belongs to no phase
  bool located = true;            // false: a file does not record when
  bool damaged = false;           // a file has damaged blocks
  std::vector<std::string> causes;       // as in LostInterval
  std::vector<std::int64_t> iterations;  // affected on any rank, and left out

  // Whether any rank lost events.
  bool any() const { return !ranks.empty() || !helper_ranks.empty(); }
};

// Whether any of them has waits and a transfer.
inline bool any_timed(const std::vector<CollectiveRow>& rows) {
  return std::ranges::any_of(rows, [](const CollectiveRow& row) { return row.timed > 0; });
}

// What a rank describes of its part of an iteration.
struct RankBatch {
  std::size_t index = 0;  // into per_rank
  double batch = 0;       // of one forward
  double images = 0;      // of all forwards before a step
};

// All figures of one run. A figure is absent where the trace lacks what it needs.
struct RunAnalysis {
  std::string path;    // as the user gave it
  std::string name;    // the last part of the path
  std::string format;  // of the files: "pace", "kineto", …

  // Another tool's trace, to which advice about `paceline record` does not apply.
  bool foreign() const { return !format.empty() && format != "pace"; }
  std::optional<std::int64_t> recorded_utc_ns;  // when the first process began, where the files have it
  int ranks = 0;                                // of the job; per_rank has fewer where files are missing
  std::vector<std::string> hosts;               // different ones
  std::int64_t span_ns = 0;                     // from the run's zero to the last event of any rank
  std::int64_t wall_ns = 0;                     // the longest of the ranks
  RunConfig config;                             // the run's description
  std::vector<RankBatch> unequal_batches;       // in the order of per_rank; empty if all describe the same
  std::optional<double> images;                 // over the whole job
  std::optional<double> images_per_s() const;   // over the whole job
  std::optional<double> accuracy;               // the last one, 0 to 1
  std::optional<double> best_accuracy;          // the highest one
  std::optional<double> seconds_to_accuracy;    // since the run's zero
  double target_accuracy = 0.9;                 // that of seconds_to_accuracy
  std::vector<AccuracyPoint> accuracy_curve;    // in the order of time
  RunIterations iterations;                     // the training steps
  bool communication_observed = true;           // false: nothing of what the ranks exchanged is in the trace
  std::optional<Efficiencies> efficiencies;     // nothing where communication was not observed
  std::optional<Breakdown> breakdown;  // of a step, into parts that shrink with more ranks and parts that do not
  bool global_batch_kept = false;      // whether keep_global_batch() was called
  // Ranks of all runs share one batch, so the optimizer does not shrink: computes the breakdown again.
  void keep_global_batch();
  std::optional<double> communication_share_of_step;  // 0 to 1, with waiting
  std::vector<RankSummary> per_rank;                  // in the order of the ranks
  RunLayers layers;                                   // where the program states what they cost
  std::vector<RangeStatistics> ranges;                // of all ranks together, the largest total first
  std::vector<RankWaits> waits;                       // as per_rank
  std::vector<RankArrivals> arrivals;                 // as per_rank
  std::vector<LoneInterludes> lone_interludes;        // evaluations and checkpoints for which other ranks wait
  std::vector<CollectiveRow> collectives;             // a row for each operation, size and number of members
  std::uint64_t unmatched_calls = 0;                  // of collectives, to which other ranks have none
  std::optional<MessageMatrix> messages;              // nothing where there are none, or too many to match
  std::uint64_t unmatched_messages = 0;               // sends and receives that were too many
  LatenessTable lateness_table;                       // how late each rank came to each collective
  LatenessTest lateness;                              // which ranks are late, beyond chance
  std::vector<LatenessCause> lateness_causes;         // as lateness.late
  LatenessTest host_lateness;                         // of `hosts`, by index; not judged where hosts cannot be compared
  LatenessTest irregularity;                          // ranks that are irregular, not slow
  std::vector<WrongClock> wrong_clocks;  // hosts whose clock seems off: their ranks leave collectives later
  std::vector<LinkUse> link_uses;        // what large collectives and messages achieved
  std::vector<LinkTimes> link_times;     // of messages
  std::optional<SmallCollectives> small_collectives;      // nothing unless there are many
  std::uint64_t dropped = 0;                              // lost events of all ranks
  std::map<std::string, std::uint64_t> dropped_by_cause;  // the same by their cause
  RunLosses losses;                                       // where and when they were lost
  std::vector<std::string> damage;                        // one line for each damaged rank
  // Figures that would rest on lost events are refused: the breakdown, the serial share and everything about scaling.
  bool refused() const { return !losses.ranks.empty(); }
  bool ended = true;    // all ranks ended by themselves
  bool failed = false;  // one of them with a status other than 0
  // Speed-ups compare whole jobs.
  bool can_be_compared() const { return ended && !failed && !refused(); }
  std::vector<Hang> hangs;                    // collectives and messages in which ranks wait for ever
  std::string hang_stacks;                    // where the ranks of a job that hangs are (communication/hang_stacks.h)
  double clock_error_ns = 0;                  // the largest of the ranks
  std::optional<CriticalPath> critical_path;  // nothing where it was analysed from summaries, or events were lost
  std::optional<WhatIf> what_if;              // likewise
  std::optional<RunCauses> causes;            // likewise, and where nothing shows what threads did
  std::vector<CrowdedCpus> crowded_cpus;      // ranks whose CPU affinity masks overlap
  // Share of their time that main threads were ready to run but had no CPU: mean over the ranks where it was counted.
  std::optional<double> waiting_for_cpu;
};

// Merges the summaries of all ranks of a run, in any order. `path` is the name that the user gave. Never fails: figures
// that need what the trace lacks are absent. Cost: n log n in the collective calls, and linear in the iterations.
RunAnalysis analyse_run(std::vector<RankSummary> ranks, const std::string& path);

// The same from the events of all ranks.
RunAnalysis analyse_ranks(const RunIndex& index, const std::string& path);

// With the figures that need the events of all ranks together: the critical path, predictions and messages.
RunAnalysis analyse_run(const RunIndex& index, const std::string& path);

// Above this number of sends and receives, messages are not matched: each takes about 250 bytes.
inline constexpr std::uint64_t most_matched_messages = 10'000'000;

// How the run trains, from its description. What this does not give is taken as the most usual.
TrainingSetup training_setup(const RunAnalysis& run);

// The limits of predictions that matter for this run, whole sentences.
std::vector<std::string> prediction_limits(const RunAnalysis& run, const Predictor& predictor);

}  // namespace paceline::analysis
