// A run as a program that can be replayed: for each track the local work and the synchronisation points between, in
// order. Recorded waits and start times are no part of it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/graph/dependencies.h"
#include "analysis/metrics/iterations.h"
#include "analysis/metrics/phases.h"

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
  Phase phase = Phase::other;
  std::uint8_t group = 0;  // from 1: work inside a range or kernel whose name fits this one of the patterns
  std::uint32_t index = 0;
  std::uint32_t member = 0;     // of a completion: the place among the collective's members
  std::int32_t iteration = -1;  // index into ReplayProgram::iterations; -1: outside of all; of a stream, of the launch
  double ns = 0;
};

struct ReplayTrack {
  std::uint32_t rank = 0;  // index into Trace::ranks
  bool main = false, stream = false;
  std::vector<ReplayItem> items;
};

// From a cause on one track to a wait on another.
struct ReplayEdge {
  DependencyKind kind = DependencyKind::message;
  std::uint64_t bytes = 0;
  std::int32_t iteration = -1;
  double recorded_ns = 0;  // from the later one of cause and waiter to the end of the wait; for fitting only
  double quantile = 0.5;   // of the observed times, which it takes in a replay
};

struct ReplayCollective {
  std::string operation;  // "allreduce" for ranges
  std::uint64_t bytes = 0;
  std::uint32_t members = 0;   // of the communicator
  std::uint32_t arrivals = 0;  // in the program
  std::int32_t iteration = -1;
  bool gradient = false;   // carries a part of the gradients
  double recorded_ns = 0;  // from the last arrival to the last end; for fitting only
  // When each member went on, as a part of recorded_ns: one goes on before the other. Empty: all go on together.
  std::vector<double> shape = {};
  double bytes_factor = 1;  // the bytes that it moves ÷ `bytes`, after a change
  double extra_ns = 0;      // added to the last arrival
  double quantile = 0.5;    // of the observed times of its size, which it takes in a replay without `drawn`
  // The same collective of the iteration's partner, whose time it takes in a replay: index into
  // ReplayProgram::collectives.
  std::uint32_t drawn = no_collective;
  double drawn_ns = 0;       // recorded_ns of that
  bool rescheduled = false;  // a change put it in place of the recorded ones
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
};

// Iterations are fitted and replayed in blocks: even blocks with what was recorded in odd ones, and the other way
// round.
inline constexpr std::int32_t replay_block = 5;  // iterations
// The first tenth of the iterations (at least one), whose transfers are not used where there are others.
std::int32_t warm_up_of(const ReplayProgram& program);
// The iteration of a neighbouring block whose transfers a replay takes for this one, so that what happened together
// stays together. -1 if there is none after the warm-up.
std::int32_t partner_of(const ReplayProgram& program, std::int32_t iteration);

// Work in ranges and kernels whose names fit one of `patterns` (`*` stands for any text) gets its place as group, the
// first one where several fit. Empty without common iterations. Cost: n log n in the dependencies, linear in the
// slices.
ReplayProgram replay_program(const PhaseTable& table, const DependencyGraph& graph,
                             const std::vector<std::string>& patterns = {});

}  // namespace paceline::analysis
