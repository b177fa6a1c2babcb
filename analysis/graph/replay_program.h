// SPDX-License-Identifier: Apache-2.0
// A run as a program that can be replayed: for each track the local work and the synchronisation points between, in
// order. Recorded waits and start times are no part of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/graph/dependencies.h"

namespace paceline::analysis {

struct ReplayItem {
  enum What : std::uint8_t {
    work,             // `ns` of a phase
    arrive,           // at collective `index`
    complete,         // waits for collective `index`
    cause,            // of edge `index`
    wait,             // for edge `index`
    gradient,         // `index` bytes of the gradient are computed
    begin_iteration,  // `index` into ReplayProgram::iterations
    end_iteration
  };
  What what = work;
  Phase phase = Phase::other;  // around it
  std::uint8_t group = 0;      // from 1: work inside a range or kernel whose name fits this one of the patterns
  std::uint32_t index = 0;
  std::uint32_t member = 0;     // of a completion: the place among the collective's members
  std::int32_t iteration = -1;  // index into ReplayProgram::iterations; -1: outside of all; of a stream, of the launch
  double ns = 0;
};

// A value that copies share until one of them changes it: a prediction changes few tracks of a large program.
template <class Value>
class Shared {
 public:
  Shared() = default;
  explicit Shared(Value value) : value_(std::make_shared<Value>(std::move(value))) {}
  const Value& operator*() const { return *value_; }
  // For a change.
  Value& own() {
    if (value_.use_count() > 1) value_ = std::make_shared<Value>(*value_);
    return *value_;
  }

 private:
  std::shared_ptr<Value> value_ = std::make_shared<Value>();
};

struct ReplayTrack {
  std::uint32_t rank = 0;  // index into Trace::ranks
  bool main = false, stream = false;
  Shared<std::vector<ReplayItem>> items;
};

// From a cause on one track to a wait on another.
struct ReplayEdge {
  DependencyKind kind = DependencyKind::message;
  std::uint32_t from = 0, to = 0;  // the tracks of the cause and of the waiter, as recorded
  std::uint64_t bytes = 0;
  std::int32_t iteration = -1;
  // From the later one of cause and waiter to the end of the wait; below 0: not known. For fitting only.
  double recorded_ns = 0;
  double quantile = 0.5;  // of the observed times, which it takes in a replay without a drawn one
  // False: a message whose cause had come before the waiter did. It then takes the time of its transfer from the later
  // one of the two; other edges cost nothing then.
  bool binding = true;
};

struct ReplayCollective {
  std::string operation;  // "allreduce" for ranges
  std::uint64_t bytes = 0;
  std::uint32_t members = 0;   // of the communicator
  std::uint32_t arrivals = 0;  // in the program
  std::int32_t iteration = -1;
  bool gradient = false;   // carries a part of the gradients
  double recorded_ns = 0;  // from the last arrival to the last end; for fitting only
  // When each member went on, as a part of recorded_ns: one goes on before the other. Null: all go on together.
  std::shared_ptr<const std::vector<double>> shape = {};
  double extra_ns = 0;       // added to the last arrival
  double quantile = 0.5;     // of the observed times of its size, which it takes in a replay without a drawn one
  bool rescheduled = false;  // a change put it in place of the recorded ones
};

// Which recorded transfers a replay takes: those of the iteration's partner.
struct TransferDraw {
  // Of each collective the same one of the partner, whose time it takes: index into ReplayProgram::collectives.
  // no_collective, or none: there is none.
  std::vector<std::uint32_t> collectives;
  // Of each edge recorded_ns of the same edge of the partner; below 0, or none: there is none, or it was not observed.
  std::vector<double> edges_ns;

  std::uint32_t collective(std::uint32_t index) const {
    return index < collectives.size() ? collectives[index] : no_collective;
  }
  double edge_ns(std::uint32_t index) const { return index < edges_ns.size() ? edges_ns[index] : -1; }
};

struct ReplayIteration {
  std::int64_t number = 0;
  double recorded_ns = 0;       // mean over the ranks
  double recorded_wait_ns = 0;  // in collectives for the last rank, mean over the ranks' main threads
};

struct ReplayProgram {
  std::size_t ranks = 0;
  std::vector<int> rank_numbers;  // of each
  std::vector<ReplayTrack> tracks;
  std::vector<ReplayEdge> edges;
  std::vector<ReplayCollective> collectives;
  std::vector<ReplayIteration> iterations;  // those that all ranks finished, by number
  // Predictions take the first one. With one draw, the replayed step would depend on which iterations are paired.
  std::vector<std::shared_ptr<const TransferDraw>> draws;
};
inline constexpr std::size_t draw_count = 4;

// Iterations are fitted and replayed in blocks: even blocks with what was recorded in odd ones, and the other way
// round.
inline constexpr std::int32_t replay_block = 5;  // iterations
// The first tenth of the iterations (at least one), whose transfers are not used where there are others.
std::int32_t warm_up_of(const ReplayProgram& program);
// The iteration of another block whose transfers a replay takes for this one, so that what happened together stays
// together: for draw 0 that of a neighbouring block, for the draws after it those further away. -1 if there is none
// after the warm-up.
std::int32_t partner_of(const ReplayProgram& program, std::int32_t iteration, std::size_t draw = 0);
// Draws for each collective and each edge the recorded time of its counterpart in the iteration's partner: the one of
// the same kind, size and place. Cost: n log n in both.
std::vector<std::shared_ptr<const TransferDraw>> draw_transfers(const ReplayProgram& program);

// Work in ranges and kernels whose names fit one of `patterns` (`*` stands for any text) gets its place as group, the
// first one where several fit. Without common iterations, it holds the whole run. Cost: n log n in the dependencies,
// linear in the slices.
ReplayProgram replay_program(const RunIndex& index, const DependencyGraph& graph,
                             const std::vector<std::string>& patterns = {});

}  // namespace paceline::analysis
