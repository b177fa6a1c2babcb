// What a report says, as plain data. build.h fills it; JSON, text, Markdown, HTML and CSV are renderings of it.
// Times are nanoseconds where they come from traces; every figure is defined in docs/metrics.md.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "analysis/metrics/gpu.h"
#include "analysis/metrics/lateness.h"
#include "analysis/metrics/losses.h"
#include "analysis/metrics/overlap.h"
#include "analysis/metrics/phases.h"
#include "analysis/scaling/scaling.h"

namespace paceline::analysis {

enum class Severity { info, warning, problem };

constexpr const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::info:
      return "info";
    case Severity::warning:
      return "warning";
    case Severity::problem:
      return "problem";
  }
  return "";
}

struct Finding {
  Severity severity = Severity::info;
  std::string text;                     // whole sentences, figures with units
  std::optional<std::size_t> run = {};  // which one of several it is about
};

// Does the time shrink when ranks are added?
enum class CountsAs { parallel, serial, overhead };

constexpr const char* counts_as_name(CountsAs kind) {
  switch (kind) {
    case CountsAs::parallel:
      return "parallel";
    case CountsAs::serial:
      return "serial";
    case CountsAs::overhead:
      return "overhead";
  }
  return "";
}

struct BreakdownRow {
  Phase phase = Phase::other;
  bool inside_iterations = false;
  CountsAs counts_as = CountsAs::parallel;
  std::int64_t ns = 0;  // mean over ranks
};

struct Breakdown {
  std::int64_t wall_ns = 0;  // mean over ranks = parallel + serial + overhead, exactly
  std::int64_t parallel_ns = 0, serial_ns = 0, overhead_ns = 0;
  double serial_share = 0;                    // serial ÷ wall
  std::optional<Interval> serial_share_ci95;  // from the steady iterations; nothing where they are too few
  std::vector<BreakdownRow> rows;             // those above 0, the longest first
};

struct RankReport {
  int rank = 0;
  std::string host;
  std::int64_t wall_ns = 0;       // process start to last event, without what was not recorded = the sum of the phases
  std::int64_t span_ns = 0;       // with it
  std::vector<std::string> gaps;  // why parts were not recorded, losses left out
  RankLosses losses;
  std::array<std::int64_t, phase_count> phase_ns{};
  std::optional<Overlap> overlap;
  std::optional<GpuUsage> gpu;
  std::uint64_t last_count = 0;               // matched collectives that waited for this rank
  std::int64_t caused_ns = 0, waited_ns = 0;  // waiting that it caused, and did
};

struct CollectiveReport {
  std::string operation;
  std::uint64_t bytes = 0, count = 0;
  std::uint32_t members = 0;
  std::uint64_t timed = 0;       // those whose waits and transfers are known
  std::int64_t wait_ns = 0;      // over all ranks and timed collectives
  std::int64_t transfer_ns = 0;  // over all timed collectives
  double busbw_bytes_per_s = 0;  // 0: carries nothing
};

// Whether any of them has waits and a transfer.
inline bool any_timed(const std::vector<CollectiveReport>& collectives) {
  for (const CollectiveReport& row : collectives) {
    if (row.timed > 0) return true;
  }
  return false;
}

struct AccuracyPoint {
  std::int64_t time_ns = 0;  // since the run's zero
  double accuracy = 0;
};

struct IterationReport {
  std::size_t count = 0;                   // finished on every rank
  std::int64_t median_ns = 0, p95_ns = 0;  // of the mean over ranks, all iterations
  std::size_t warmup = 0;                  // left out of the steady figures: the first tenth, at least one
  std::int64_t steady_median_ns = 0;
  std::optional<double> steady_images_per_s;
  std::optional<Interval> steady_ci95;
  std::vector<double> seconds;  // one value an iteration: the mean over ranks
  std::span<const double> steady() const { return std::span(seconds).subspan(warmup); }
};

// What could not be recorded of a run, over all ranks.
struct LossReport {
  std::uint64_t events = 0;
  std::vector<int> ranks;         // whose main thread lost events, or that do not say which thread or when
  std::vector<int> helper_ranks;  // of which only other threads did
  std::int64_t main_ns = 0;       // of main threads, over all ranks: it belongs to no phase
  bool located = true;            // false: a file does not say when
  bool damaged = false;
  std::vector<std::string> causes;       // as in LostInterval
  std::vector<std::int64_t> iterations;  // touched on any rank, and left out

  bool any() const { return !ranks.empty() || !helper_ranks.empty(); }
};

struct RunReport {
  std::string path, name, format;
  int ranks = 0;                   // of the job; per_rank has fewer where files are missing
  std::vector<std::string> hosts;  // different ones
  std::int64_t span_ns = 0;        // from the first process start to the last event of any rank
  std::int64_t wall_ns = 0;        // the longest rank's
  nlohmann::json config = nlohmann::json::object();
  std::optional<double> number(const char* key) const;                 // a number of config
  std::optional<double> images;                                        // over the whole job
  std::optional<double> accuracy, best_accuracy, seconds_to_accuracy;  // the last one; since the run's zero
  double target_accuracy = 0.9;
  std::vector<AccuracyPoint> accuracy_curve;
  IterationReport iterations;
  bool communication_observed = true;
  bool global_batch_kept = false;  // ranks share one batch: the optimizer does not shrink
  std::optional<Breakdown> breakdown;
  std::optional<double> communication_share_of_step;
  std::vector<RankReport> per_rank;
  std::vector<CollectiveReport> collectives;
  std::uint64_t unmatched_calls = 0;
  std::uint64_t dropped = 0;
  std::map<std::string, std::uint64_t> dropped_by_cause;
  LossReport losses;
  // Figures that would rest on lost events are refused: the breakdown, the serial share and everything about scaling.
  bool refused() const { return !losses.ranks.empty(); }
  bool ended = true;  // all ranks came to their end
  // Speed-ups compare whole jobs.
  bool can_be_compared() const { return ended && !refused(); }
  LatenessTest lateness;
  std::vector<std::string> damage;  // one line a damaged rank
  std::vector<std::string> hangs;   // one sentence a collective that ranks wait in
  std::string sudden_ends;          // one sentence; "" where all ranks ended by themselves
  double clock_error_ns = 0;        // the worst rank's
  std::vector<Finding> machine_findings;
  // Share of their time that main threads could have run but got no CPU: mean over the ranks where it was counted.
  std::optional<double> waiting_for_cpu;
};

// Why a speed-up is not N. With W the wall time of docs/metrics.md's breakdown, W(N) − W(1)/N is exactly the sum of the
// three: the seconds that a perfect division of all work would have saved, by what kept them. With repeats each is the
// mean over all of them.
struct LostTime {
  std::vector<std::size_t> one, many;  // indexes into Report::runs: all repeats that have a breakdown
  int ranks = 1;
  double ideal_s = 0, actual_s = 0;
  double ideal_low_s = 0, ideal_high_s = 0;  // the least and the most over the repeats
  double actual_low_s = 0, actual_high_s = 0;
  double serial_s = 0;    // serial work that does not shrink
  double overhead_s = 0;  // communication, waiting included
  double waiting_s = 0;   // of that, waiting for the last rank
  double slowdown_s = 0;  // parallel work that took longer per image than on one rank; below 0: shorter
};

// The serial share that the breakdowns of equal runs measured: the mean over all repeats, and their spread.
struct MeasuredShare {
  double share = 0, low = 0, high = 0;
  std::size_t runs = 0;
  std::optional<Interval> ci95;  // of a single run: from its iterations
};

struct Report {
  std::vector<RunReport> runs;                                 // one a trace, in the order given
  std::vector<ScalingRun> scaling_runs;                        // traces first, then the tables' rows
  std::vector<std::optional<std::size_t>> run_of_scaling_run;  // index into runs; nothing for a table's row
  Scaling scaling;
  std::vector<LostTime> lost_time;  // one for each point of N ranks that has one of one rank beside it
  std::string headline;             // the one sentence to remember
  std::vector<Finding> findings;    // the most telling first
};

}  // namespace paceline::analysis
