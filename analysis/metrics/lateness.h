// Whether a rank comes later to its collectives than chance explains.
//
// The lateness of a rank in an iteration is one value: the time at which it arrived at the last collective of all ranks
// that some rank awaited (blocked_time.h), without the time in which it was blocked itself since the iteration's start,
// minus the median of this over the ranks. So a delay counts once, however many collectives are in flight, and who is
// late because it waited for another rank is not late itself. Two statistics of it are looked at:
//
// - its mean over the iterations, which shows a rank that is very late in a few of them;
// - for three ranks and more, the mean place of the rank in the order of arrivals (M. Friedman, "The use of ranks to
// avoid
//   the assumption of normality", J. American Statistical Association 32, 1937), which shows a rank that is a little
//   late in most of them. It is the more powerful one where noise is skewed, as that of step times usually is.
//
// In a balanced run the ranks can change places, so the largest statistic over the ranks is compared with the largest
// ones after permutations of the ranks (P. Good, "Permutation, Parametric and Bootstrap Tests of Hypotheses", 3rd
// edition, 2005; maximum statistic: P. H. Westfall and S. S. Young, "Resampling-Based Multiple Testing", 1993, section
// 2). The values about each rank's mean are permuted, and each statistic is divided by the spread within the ranks, so
// that a slow rank does not make itself look like chance. Neighbouring iterations are alike, so ranks change places for
// whole blocks of iterations that are longer than the autocorrelation time (autocorrelation.h). Neighbouring blocks are
// still a little alike, so a statistic is divided by the standard error that this leaves out (variance_beyond_blocks)
// before it is compared. The permutations end early where they show that the lateness is not beyond chance (J. Besag
// and P. Clifford, "Sequential Monte Carlo p-values", Biometrika 78, 1991). The smaller of the two chances counts twice
// (Bonferroni).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/metrics/collectives.h"
#include "analysis/metrics/iterations.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// The autocorrelation time is an estimate, and the ranks beside a slow one must stay unnamed as well: a level of 1.5 %
// keeps false names below 5 % of all runs also where iterations are strongly alike (tests/bench/stragglers.cpp
// simulates it).
inline constexpr double lateness_level = 0.015;
inline constexpr double least_lateness_cost = 0.01;  // of a step
inline constexpr double least_lateness_times = 20;   // autocorrelation times that a run must have to be judged

// One value for each iteration (row) and rank (column).
struct LatenessTable {
  std::size_t ranks = 0;
  std::vector<std::int64_t> numbers;   // of the iterations, rising
  std::vector<double> late_ns;         // arrival minus the median arrival
  std::vector<double> behind_ns;       // minus the median arrival of the other ranks
  std::vector<double> others_wait_ns;  // the wait of another rank in all collectives of all ranks, mean over the others
  std::vector<double> step_ns;         // one for each iteration: mean over ranks
  double collectives = 0;              // whose arrivals were added up in an iteration, on average

  std::size_t iterations() const { return ranks == 0 ? 0 : late_ns.size() / ranks; }
};

// One iteration while its collectives are added up. The vectors have one value for each rank.
struct LatenessRow {
  std::vector<double> late_ns, behind_ns, others_wait_ns;  // as in LatenessTable; empty before the first collective
  double step_ns = 0;
  std::size_t collectives = 0;
};

// Adds one collective: when each rank arrived (since any common time), and how long it waited. Cost: linear in the
// ranks.
void add_collective(LatenessRow& row, std::span<const double> arrivals_ns, std::span<const double> waits_ns);

// What a rank did in an iteration until the last collective of all ranks that was awaited in it.
struct RankArrival {
  std::int64_t iteration_start_ns = 0, arrival_ns = 0;
  std::int64_t waited_ns = 0;            // in the iteration's collectives of all ranks
  std::span<const BlockedTime> blocked;  // disjoint, by time
};

// Adds the one collective that an iteration's lateness rests on. Cost: linear in the ranks and in their intervals.
void add_last_awaited(LatenessRow& row, std::span<const RankArrival> ranks);

// Appends an iteration to the table.
void add_iteration(LatenessTable& table, std::int64_t number, const LatenessRow& row);

// Over the collectives that all ranks took part in, in iterations that all ranks finished; where none was awaited, the
// last one counts. The warm-up is left out: the
// first tenth of the iterations, at least one. `iterations` holds the iterations of each rank.
LatenessTable lateness_of(const Collectives& collectives, std::span<const std::span<const Iteration>> iterations);

struct LateRank {
  std::uint32_t rank = 0;    // index into the ranks
  double behind_ns = 0;      // mean over iterations, behind the median of the other ranks
  double share_of_step = 0;  // its cost: the wait of the others, at most the time that it is behind
  double p = 1;              // the share of balanced runs in which chance makes some rank that late
};

struct LatenessTest {
  std::size_t iterations = 0;
  double autocorrelation_time = 1;  // in iterations
  std::size_t block = 1;            // iterations
  bool judged = false;              // false: too short a run, or fewer than two ranks
  std::vector<LateRank> late;       // beyond chance, above 1 % of the step and above the clocks' error; the worst first
};

// `clock_error_ns` bounds the error of the clocks against each other. Cost: up to 999 permutations of up to 100 blocks,
// and about 100 where no rank is late. Draws the same permutations each time.
LatenessTest test_lateness(const LatenessTable& table, double clock_error_ns);

}  // namespace paceline::analysis
