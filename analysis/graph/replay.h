// SPDX-License-Identifier: Apache-2.0
// Replays a program: each track goes through its items, waits for its causes, and transfers take the time of a model
// that was fitted on other iterations.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/graph/network_model.h"
#include "analysis/graph/replay_program.h"

namespace paceline::analysis {

// What was fitted on one half of the blocks.
struct FittedCosts {
  NetworkModel network;
  // From the cause to the end of the wait, rising, for edges without bytes.
  std::map<DependencyKind, std::vector<double>> latencies_ns;
  // Of each iteration: how much longer the gradient's transfers of its partner took than the usual ones of their sizes.
  std::vector<double> gradient_factor;
};
struct CrossFit {
  FittedCosts of_even, of_odd;
  // What a transfer in this iteration is replayed with: the fit of the other half.
  const FittedCosts& for_iteration(std::int32_t iteration) const {
    return iteration >= 0 && iteration / replay_block % 2 == 0 ? of_odd : of_even;
  }
};
// The fit leaves out the warm-up. A half without any iteration takes the costs of the other one.
CrossFit fit_costs(const ReplayProgram& program);

// The time of a collective in ns after its last arrival. Changes replace it.
using CollectiveTime = std::function<double(const ReplayCollective&, const FittedCosts&)>;
double fitted_time(const ReplayCollective& collective, const FittedCosts& costs);
// The time of a message, whose fitted time is `ns`. Changes replace it.
using MessageTime = std::function<double(const ReplayEdge&, double ns, const FittedCosts&)>;
double fitted_message_time(const ReplayEdge& edge, double ns, const FittedCosts& costs);

// What a main thread does in an iteration, in ns: the work of each phase, waiting in collectives for the last arrival,
// transfers, and waiting for its helper threads and streams.
struct StepParts {
  std::array<double, phase_count> work{};
  double waiting = 0, transfer = 0, helpers = 0;
};

struct Replayed {
  std::vector<double> iteration_ns;  // of each iteration, mean over the ranks
  std::vector<double> wait_ns;       // StepParts::waiting of each iteration
  std::vector<StepParts> parts;      // of each iteration, mean over the ranks
  bool complete = true;              // false: some waits had no cause in the program, and the replay went on without it
};

// Ranks begin their first iteration together. Cost: linear in the items.
Replayed replay(const ReplayProgram& program, const CrossFit& costs, const CollectiveTime& time = fitted_time,
                const MessageTime& message_time = fitted_message_time);

}  // namespace paceline::analysis
