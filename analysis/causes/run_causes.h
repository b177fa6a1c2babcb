// SPDX-License-Identifier: Apache-2.0
// Why a run lost time, rank by rank and in its slow iterations.
//
// Lost are: the time in which ranks were blocked in collectives (waiting and transfer), the time in which their own
// work had no CPU, and what slow iterations took longer than the usual ones. Each second of a loss has one cause or is
// unknown, and the parts add up to the loss. These are descriptions of measured time: whether a rank is late beyond
// chance, or the steps changed, is for the tests of the report to say.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/causes/loss_parts.h"
#include "analysis/run/index/run_index.h"

namespace paceline::analysis {

struct RankCauses {
  LossParts waiting;   // for the last rank in collectives: adds up to RankWaits::waited_ns
  LossParts transfer;  // in collectives: adds up to RankWaits::blocked_ns less that
  LossParts caused;    // of what others waited for this rank: adds up to RankWaits::caused_ns
  LossParts own;       // no_cpu and throttled: in its iterations, outside of collectives
  // What it did longer than the other ranks in the iterations, where others waited for it.
  std::optional<CausePlace> place = {};
  std::optional<CauseFunction> function = {};

  LossParts lost() const { return LossParts(waiting).add(transfer).add(own); }
};

// Where the time of an iteration went, mean over the ranks.
struct IterationCauses {
  std::int64_t number = 0;
  double duration_ns = 0;
  LossParts parts;                 // adds up to the duration, unless a collective lies in two iterations
  double computing_longer_ns = 0;  // of computing: waiting for a rank that computed longer
};

// Numbers of iterations that all ranks finished, rising.
struct IterationSets {
  std::vector<std::int64_t> longer, usual;
};

// What one set of iterations took longer than another one, all together.
struct LongerCauses {
  std::vector<std::int64_t> numbers;  // of the longer iterations
  double excess_ns = 0;               // over the mean of the usual ones, mean over the ranks
  LossParts parts;                    // adds up to excess_ns
  std::optional<int> rank = {};  // for which the others waited most of the excess; place and function are its own then
  std::optional<CausePlace> place = {};
  std::optional<CauseFunction> function = {};
};

// The program that used most CPU time while threads of the ranks waited for a CPU, as the rank saw it that saw the
// others use most.
struct OtherProgram {
  std::string name;
  double cpu_s = 0, all_s = 0;  // its CPU time, and that of all other programs
};

struct RunCauses {
  std::vector<RankCauses> ranks;                 // as in the trace
  std::vector<IterationCauses> iterations = {};  // those that all ranks finished
  bool exact = false;                            // every switch of all main threads was recorded
  std::optional<LongerCauses> slow = {};         // the slow iterations, against the usual ones
  std::optional<LongerCauses> changed = {};  // where the steps became slower: those after it, against those before it

  std::optional<OtherProgram> other_program;  // where the ranks recorded it
  double used_cpus = 0;                       // share of their CPUs that the ranks kept busy (used_share())

  // Of a rank, mean over the ranks.
  LossParts mean() const;
};

// Nothing where no rank's threads were observed. `numbers` are those of the iterations that all ranks finished, rising.
// Ranges are looked at where a main thread has at most two million of them. Place and function are looked for in the
// ranks `named` and in the four for which the others waited longest. Cost: that of each_collective_loss(), linear in
// the iterations, switches and ranges, and the samples times those ranks.
std::optional<RunCauses> causes_of(const RunIndex& index, std::span<const std::int64_t> numbers,
                                   const IterationSets& slow, const IterationSets& changed,
                                   std::vector<std::size_t> named);

}  // namespace paceline::analysis
