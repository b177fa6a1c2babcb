// How runs on different numbers of ranks compare: speed-ups at equal work, the laws through them where runs belong to
// one series, and the time model of runs of different lengths. Runs come from traces or from a table of runs.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/scaling/bootstrap.h"
#include "analysis/scaling/laws.h"
#include "analysis/scaling/time_model.h"

namespace paceline::analysis {

struct ScalingRun {
  std::string label;  // where it comes from: "runs.csv:2", a directory's name
  int ranks = 1;
  double epochs = 0;               // 0: not known
  double images = 0;               // over the whole job, all epochs and ranks
  double seconds = 0;              // wall time of the whole job
  std::optional<double> accuracy;  // 0 to 1
  std::optional<double> seconds_to_accuracy;
  std::map<std::string, std::string> config;  // runs of one series agree in all of it
  std::vector<double> iteration_seconds;      // for intervals; empty where only the total is known
};

struct Difference {
  std::string column, from, to;
};

// One set of runs of the same ranks, epochs, images and configuration: repeats are averaged.
struct ScalingPoint {
  std::vector<std::size_t> runs;  // indexes into the input
  int ranks = 1;
  double epochs = 0, images = 0, seconds = 0;
  double throughput = 0;  // images/s over the whole job
  std::optional<double> accuracy, seconds_to_accuracy;
  std::map<std::string, std::string> config;

  std::optional<std::size_t> baseline;  // the point of one rank with equal work that it is compared with
  std::vector<Difference> differences;  // between the baseline's configuration and this one's
  std::optional<double> speedup, efficiency, karp_flatt;
  std::optional<Interval> speedup_ci95, efficiency_ci95, karp_flatt_ci95;
};

// Amdahl's law through the points of one series and one amount of work.
struct AmdahlFit {
  std::vector<std::size_t> points;  // with the one of 1 rank
  double serial_fraction = 0;
  std::optional<Interval> ci95;  // nothing where runs give no spread: one run each, no iterations
  std::optional<Usl> usl;        // from 3 rank counts on
  bool usl_weak = true;          // fewer than 6 rank counts
  // The point that the curve misses most, and the share missed of the measured speed-up.
  std::size_t worst_point = 0;
  double worst_miss = 0;
};

// Points of equal work that look like a series but must not be joined: their configurations differ.
struct RefusedFit {
  std::vector<std::size_t> points;
  std::vector<std::string> columns;     // that differ
  bool karp_flatt_falls = false;        // by more than a tenth from one rank count to a higher one
  std::optional<std::size_t> stranger;  // the first point at which it falls
  // What the one curve would have been.
  double serial_fraction = 0;             // through S(1) = 1
  double serial_fraction_free_start = 0;  // with T(1) fitted as well
  std::size_t worst_point = 0;
  double curve_speedup = 0;  // at worst_point, where points[worst_point].speedup was measured
};

struct TimeModelRow {
  int ranks = 1;
  std::map<std::string, std::string> config;
  std::vector<std::size_t> points;  // by epochs
  TimeModel model;
  std::optional<double> speedup_limit;  // epoch(1)/epoch(N): what S tends to in long runs
  std::vector<Difference> differences;  // between the 1-rank row's configuration and this one's
};

struct Scaling {
  std::vector<ScalingPoint> points;
  std::vector<AmdahlFit> fits;  // best first: most rank counts, then most work
  std::vector<RefusedFit> refused;
  std::vector<TimeModelRow> time_model;
  std::optional<double> speedup_limit;  // of the largest N: by the time model, else 1/s of the best fit
  bool limit_from_time_model = false;
  int rank_counts = 0;  // different ones among the points
};

// Work is equal where epochs and images each differ by at most 1 % (a dropped last batch). Cost: 2,000 resamples of
// each run's iterations. Never fails: what cannot be computed is absent.
Scaling scaling_of(const std::vector<ScalingRun>& runs);

}  // namespace paceline::analysis
