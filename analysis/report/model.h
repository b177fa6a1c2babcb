// What a report says, as plain data. build.h fills it; JSON, text, Markdown, HTML and CSV are renderings of it.
// Times are nanoseconds where they come from traces; every figure is defined in docs/metrics.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "analysis/metrics/gpu.h"
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
  std::optional<Interval> serial_share_ci95;  // bootstrap over iterations
  std::vector<BreakdownRow> rows;             // those above 0, the longest first
};

struct RankReport {
  int rank = 0;
  std::string host;
  std::int64_t wall_ns = 0;       // process start to last event, without what was not recorded = the sum of the phases
  std::int64_t span_ns = 0;       // with it
  std::vector<std::string> gaps;  // why parts were not recorded
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
};

struct RunReport {
  std::string path, name, format;
  int ranks = 0;                   // of the job; per_rank has fewer where files are missing
  std::vector<std::string> hosts;  // different ones
  std::int64_t span_ns = 0;        // from the first process start to the last event of any rank
  std::int64_t wall_ns = 0;        // the longest rank's
  nlohmann::json config = nlohmann::json::object();
  std::optional<double> number(const char* key) const;  // a number of config
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
  std::vector<std::string> damage;  // one line a damaged rank
  std::vector<std::string> hangs;   // one sentence a collective that ranks wait in
  std::string sudden_ends;          // one sentence; "" where all ranks ended by themselves
  double clock_error_ns = 0;        // the worst rank's
  std::vector<Finding> machine_findings;
};

// Why a speed-up is not N. With W the wall time of docs/metrics.md's breakdown, W(N) − W(1)/N is exactly the sum of the
// three: the seconds that a perfect division of all work would have saved, by what kept them.
struct LostTime {
  std::size_t one = 0, many = 0;  // indexes into Report::runs
  int ranks = 1;
  double ideal_s = 0, actual_s = 0;
  double serial_s = 0;    // serial work that does not shrink
  double overhead_s = 0;  // communication, waiting included
  double waiting_s = 0;   // of that, waiting for the last rank
  double slowdown_s = 0;  // parallel work that took longer per image than on one rank; below 0: shorter
};

struct Report {
  std::vector<RunReport> runs;                                 // one a trace, in the order given
  std::vector<ScalingRun> scaling_runs;                        // traces first, then the tables' rows
  std::vector<std::optional<std::size_t>> run_of_scaling_run;  // index into runs; nothing for a table's row
  Scaling scaling;
  std::vector<LostTime> lost_time;  // one for each run of N ranks that has a run of one rank beside it
  std::string headline;             // the one sentence to remember
  std::vector<Finding> findings;    // the most telling first
};

}  // namespace paceline::analysis
