// SPDX-License-Identifier: Apache-2.0
// Compares runs on different numbers of ranks: speed-ups at equal work, laws through the runs of one series, weak
// scaling, runs of equal rank counts side by side, and a time model of runs of different lengths. Runs come from traces
// or from a table of runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/scaling/laws.h"
#include "analysis/statistics/spread.h"

namespace paceline::analysis {

using Columns = std::map<std::string, std::string>;

struct ScalingRun {
  std::string label;  // its source: "runs.csv:2", or the name of a directory
  int ranks = 1;
  double epochs = 0;                 // 0: not known
  double images = 0;                 // over the whole job, all epochs and ranks; 0: not known
  double seconds = 0;                // wall time of the whole job
  std::optional<double> seconds_sd;  // its standard deviation, if the table gives it
  std::optional<double> accuracy;    // 0 to 1
  std::optional<double> seconds_to_accuracy;
  Columns config;                         // all other columns; some of them define the series
  std::vector<double> iteration_seconds;  // for intervals; empty where only the total is known
  std::size_t warmup = 0;                 // the first iterations, which differ from the others
};

struct ScalingOptions {
  std::vector<std::string> series;  // columns that define a series beside the usual ones
  std::optional<double> noise;      // the relative standard deviation of one run's time: 0.01
};

// The columns that always define a series. All others are labels.
extern const std::vector<std::string> series_columns;
// Whether the column changes the work itself. Runs that differ in such a column are not compared.
bool is_work_column(const std::string& column);

struct Difference {
  std::string column, from, to;
};

// The claim that an interval supports. `unknown`: there is no interval. The level is corrected for the number of
// comparisons of one kind in the report (Bonferroni): the chance that any of them is wrongly called faster or slower is
// 5 %.
enum class Verdict { unknown, undecided, slower, faster };

// The runs of equal ranks, epochs, images and series. Repeats are averaged.
struct ScalingPoint {
  std::vector<std::size_t> runs;  // indices into the input
  int ranks = 1;
  double epochs = 0, images = 0, seconds = 0;
  double throughput = 0;  // images/s over the whole job
  std::optional<double> accuracy, seconds_to_accuracy;
  Columns config;  // the columns in which all its runs agree
  Columns series;
  std::size_t work = 0;  // points of equal work have the same number
  Spread spread;         // of the time of one image, in logarithms

  std::optional<std::size_t> baseline;  // the 1-rank point of equal work that it is compared with
  std::vector<Difference> differences;  // between the baseline's series and this one's
  std::vector<Difference> other_work;   // differences in the work that rule out a baseline
  std::optional<double> speedup, efficiency, karp_flatt;
  std::optional<Interval> speedup_ci95, efficiency_ci95, karp_flatt_ci95;
  Verdict verdict = Verdict::unknown;  // against the baseline
  bool above_ranks = false;            // S > N beyond chance, at the level of the verdict

  // Weak scaling: the 1-rank point with as many images per rank, if there is no baseline of equal work.
  std::optional<std::size_t> weak_baseline;
  std::optional<double> weak_efficiency, scaled_speedup;  // T(1)/T(N); N × that
  std::optional<Interval> weak_efficiency_ci95, scaled_speedup_ci95;
};

enum class Law : std::uint8_t { amdahl, usl, fixed_epochs, gustafson, logarithmic };

// Which law describes the points of a series best: the one that predicts left-out rank counts with the smallest error
// (leave-one-out cross-validation; M. Stone, J. Royal Statistical Society B 36, 1974). Every rank count above 1 is left
// out once; the law is fitted to the others.
struct LawChoice {
  struct Error {
    Law law = Law::amdahl;
    double error = 0;  // root mean square of the logarithm of predicted ÷ measured time
  };
  struct Prediction {
    int ranks = 1;
    double speedup = 1;            // of weak scaling the scaled one
    std::optional<Interval> ci95;  // for the case that the law holds
    // What costs would leave of it that are too small to show in these runs: the lower end for laws with more
    // parameters, if that is below ci95.
    std::optional<double> at_least = {};
  };
  std::vector<Law> refused;   // whose residuals are larger than the noise explains; they are not compared
  std::vector<Error> errors;  // of the laws that can be left without a point; those with fewer parameters first
  bool refuses(Law law) const;
  std::optional<Law> chosen;                 // nothing: too few rank counts, or no law is left
  std::vector<Prediction> predictions = {};  // by the chosen law, at 2 and 4 times the most ranks that were measured
};

// The fewest rank counts, 1 included, with which the laws are compared.
inline constexpr std::size_t fewest_for_choice = 4;

// Amdahl's law through the points of one series and one amount of work.
struct AmdahlFit {
  std::vector<std::size_t> points;  // including the 1-rank point
  double serial_fraction = 0;
  std::optional<Interval> ci95;
  std::optional<Interval> limit_ci95;  // of 1/s; nothing if s may be 0
  std::optional<Usl> usl;              // from 3 rank counts on
  std::optional<Interval> sigma_ci95, kappa_ci95, peak_ci95;
  bool usl_weak = true;  // fewer than 6 rank counts
  // The point that the curve misses most, and the share missed of the measured speed-up.
  std::size_t worst_point = 0;
  double worst_miss = 0;
  bool misfit = false;                 // the known noise does not explain the residuals, so Amdahl's law is refused
  std::optional<std::size_t> foreign;  // the only point without which the times follow some law
  LawChoice choice;                    // among Amdahl's law, logarithmic costs, the USL, and fixed + epochs × epoch
};

// Points of equal work that look like a series but must not be joined: their series columns differ.
struct RefusedFit {
  std::vector<std::size_t> points;
  std::vector<std::string> columns;     // that differ
  bool karp_flatt_falls = false;        // beyond the known noise, or beyond a noise of 2 % if the noise is not known
  std::optional<std::size_t> stranger;  // the first point at which it falls
  // The curve that would have been fitted.
  double serial_fraction = 0;             // through S(1) = 1
  double serial_fraction_free_start = 0;  // with T(1) fitted as well
  std::size_t worst_point = 0;
  double curve_speedup = 0;  // at worst_point, where points[worst_point].speedup was measured
};

// Gustafson's law through the points of one series with equal images per rank.
struct GustafsonFit {
  std::vector<std::size_t> points;
  double serial_fraction = 0;  // of the time on N ranks
  std::optional<Interval> ci95;
  bool misfit = false;
  LawChoice choice;  // among Gustafson's law, logarithmic costs and the USL of the scaled speed-up
};

// Two points of equal ranks and equal work whose series differ.
struct Comparison {
  std::size_t reference = 0, other = 0;
  std::vector<Difference> differences;
  double ratio = 1;  // throughput(other)/throughput(reference): above 1, the other is faster
  std::optional<Interval> ci95;
  Verdict verdict = Verdict::unknown;
};

// T(N, epochs) = fixed(N) + epochs × epoch(N), by least squares through runs of different lengths.
struct TimeModel {
  double fixed_s = 0;  // before and beside training: the same for any number of epochs; at least 0
  double per_epoch_s = 0;
  double seconds(double epochs) const { return fixed_s + epochs * per_epoch_s; }
};

struct TimeModelRow {
  int ranks = 1;
  Columns series;
  std::vector<std::size_t> points;  // by epochs
  TimeModel model;
  std::optional<Interval> fixed_ci95, per_epoch_ci95;
  bool fixed_cut = false;               // the unbounded fit gave fixed seconds below 0: the noise exceeds them
  std::optional<double> speedup_limit;  // epoch(1)/epoch(N): the limit of S for long runs
  std::optional<Interval> speedup_limit_ci95;
  std::optional<std::size_t> one;       // the 1-rank row that it is compared with
  std::vector<Difference> differences;  // between that row's series and this one's
};

struct Scaling {
  std::vector<ScalingPoint> points;
  std::vector<std::size_t> point_of_run;  // for each run of the input
  std::vector<AmdahlFit> fits;            // best first: most rank counts, then most work
  std::vector<RefusedFit> refused;
  std::vector<GustafsonFit> weak;
  std::vector<Comparison> comparisons;
  std::vector<TimeModelRow> time_model;
  std::vector<int> no_time_model;              // rank counts at which longer runs did not take longer
  std::vector<std::string> averaged_labels;    // labels that differ between runs that were averaged
  std::optional<double> speedup_limit;         // of the largest N: by the time model, else by the law of the best fit
  std::optional<Interval> speedup_limit_ci95;  // nothing where noise is unknown
  bool limit_from_time_model = false, limit_from_usl = false;
  int rank_counts = 0;  // different ones among the points
};

// The chance, over all laws of one report, that a law or a row is refused although the noise alone explains it.
inline constexpr double refusal_error_rate = 0.01;

// Work is equal if epochs and images each differ by at most 1 % (a dropped last batch). Cost: n log n in the number of
// runs. Never fails: figures that cannot be computed are absent.
Scaling scaling_of(const std::vector<ScalingRun>& runs, const ScalingOptions& options = {});

}  // namespace paceline::analysis
