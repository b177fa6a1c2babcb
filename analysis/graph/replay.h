// SPDX-License-Identifier: Apache-2.0
// Replays a program: each track goes through its items, waits for its causes, and transfers take the time of a model
// that was fitted on other iterations.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "analysis/graph/changed_work.h"
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

// The time of a collective after its last arrival, or of a message, whose time without a change is `ns`.
using CollectiveTime = std::function<double(const ReplayCollective&, double ns, const FittedCosts&)>;
using MessageTime = std::function<double(const ReplayEdge&, double ns, const FittedCosts&)>;

// What a replay changes of a program without changing the order of its items.
struct ReplayVariant {
  CollectiveTime collective_time = {};  // empty: no change
  MessageTime message_time = {};        // likewise
  WorkFactors work = {};
  std::vector<double> extra_ns = {};  // of each collective: added to its last arrival; empty: nothing
  double gradient_bytes = 1;  // factor of the bytes of gradients that a change put in place of the recorded ones
  std::size_t draw = 0;       // index into ReplayProgram::draws
};

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
Replayed replay(const ReplayProgram& program, const CrossFit& costs, const ReplayVariant& variant = {});

// The same for each variant. The order in which tracks go on depends on the program alone, so up to `replay_lanes`
// variants are replayed at once, in little more time than one.
inline constexpr std::size_t replay_lanes = 8;
std::vector<Replayed> replay(const ReplayProgram& program, const CrossFit& costs,
                             std::span<const ReplayVariant> variants);

}  // namespace paceline::analysis
