// SPDX-License-Identifier: Apache-2.0
// Why time was lost, in words: for the verdict, the findings and the tables.
#pragma once

#include <optional>
#include <string>

#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

// The cause without which a step would be shorter by most, where it cost at least 2 % of the wall time. Waiting for a
// CPU and being throttled count together, and the larger of the two gives the name.
struct MainLoss {
  LossCause cause = LossCause::unknown;
  double seconds = 0;  // of a rank, mean over the ranks
  bool is_cpu() const { return cause == LossCause::no_cpu || cause == LossCause::throttled; }
};
std::optional<MainLoss> main_loss(const RunAnalysis& run);

// Whether a CPU is what the run lacked most: other advice would rest on the costs of starved threads.
bool is_starved(const RunAnalysis& run);

// Whether this late rank of a starved run only lacks CPUs as the others do: the scheduler's shares stay unequal for a
// whole run, by chance. Not where something else makes it late, or the other ranks have their CPUs: lack them for less
// than 2 % of the time and than 30 % of what this rank lacks them. Computing longer is something else only where it
// costs at least half of what the missing CPUs cost.
bool is_starved_as_others(const RunAnalysis& run, std::size_t rank);

// "threads that had no CPU cost a rank 3.50 s (12.3 % of the wall time), 95 % of it in iterations 15 to 20; the network
// was not the limit". The run is starved.
std::string starved_text(const RunAnalysis& run);
// Parts of it: the cost; and ", while the program cc1plus used 14.2 s of CPU time", or "".
std::string starved_cost_text(const RunAnalysis& run);
std::string other_program_text(const RunAnalysis& run);
// What to do about it, as a noun phrase: "CPUs that no other program uses".
std::string starved_remedy(const RunAnalysis& run);

// "no CPU", "blocked", …: a heading.
std::string cause_name(LossCause cause);

// ", for 97 % of that it was blocked, in the function load (train.py:41)", of a late rank; "" where it is not known.
std::string lateness_cause_text(const RankCauses& causes);

// ", mostly blocked in the function load (train.py:41)", of a late rank; "" where no cause explains half of it.
std::string main_cause_of_lateness(const RankCauses& causes);

// The slow iterations; nullptr where there are none, or they cost less than 2 % of the wall time.
const LongerCauses* slow_iterations(const RunAnalysis& run);
// "iterations 10, 20 and 30 took 240 ms longer in all, for 97 % of that the ranks were blocked, in the range fsync",
// and of one rank that made them longer "rank 1 was blocked"; with fewer words from length to length: "…, mostly
// blocked in the range fsync on rank 1", "27 iterations took …", without the rank, and without the cause.
enum class SlowText { whole, brief, counted, without_rank, without_cause };
std::string slow_iterations_text(const LongerCauses& slow, SlowText length = SlowText::whole);

}  // namespace paceline::analysis
