// SPDX-License-Identifier: Apache-2.0
// Whether a rank comes later to its collectives than chance explains, or costs time because it is irregular.
//
// The lateness of a rank in an iteration is one value: the time from its arrival at the last collective of all ranks
// that some rank awaited (blocked_time.h) in the iteration before to its arrival at that of this one, without the time
// in which it was blocked itself, minus the median of this over the ranks. A delay therefore counts once, however many
// collectives are in flight. A rank is not late that comes late because it waited for another one, or because the last
// transfer ended later for it. Only times of one clock are subtracted. block_contrasts.h compares the mean of a rank's
// lateness with those of the other ranks. tests/bench/judge.cpp measures how often the tests err.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "analysis/communication/collectives.h"
#include "analysis/communication/lateness_test.h"
#include "analysis/phases/iterations.h"
#include "analysis/statistics/block_contrasts.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

inline constexpr double least_lateness_cost = 0.01;  // of a step

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

// Appends an iteration to the table.
void add_iteration(LatenessTable& table, std::int64_t number, const LatenessRow& row);

// By the iteration's number: over the collectives that all ranks took part in, in iterations that all ranks finished;
// where none was awaited, the last one counts. `iterations` holds the iterations of each rank. In the first row, which
// has none before it, the arrivals themselves are compared, without the time blocked since the iteration's start.
std::map<std::int64_t, LatenessRow> lateness_rows(const Collectives& collectives,
                                                  std::span<const std::span<const Iteration>> iterations);

// The same without the warm-up: the first tenth of the iterations, at least one.
LatenessTable lateness_of(const Collectives& collectives, std::span<const std::span<const Iteration>> iterations);

// Those beyond chance with all ranks taken into account, and above the error of the clocks against each other, which
// `clock_error_ns` bounds: 0 for lateness_of(), which compares no clocks. Cost: that of block_contrasts().
LatenessTest test_lateness(const LatenessTable& table, double clock_error_ns);

// The ranks that are irregular, not slow: the last arrival of an iteration would be earlier without them by more than
// without another rank, although their mean lateness is within chance. `behind_ns` is that time, last arrival − last
// arrival without the rank, mean over the iterations. `late` is the test of the same table; its ranks are left out. Not
// judged for two ranks, where it is the same question. Cost: that of block_contrasts().
LatenessTest test_irregularity(const LatenessTable& table, const LatenessTest& late);

}  // namespace paceline::analysis
