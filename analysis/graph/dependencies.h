// SPDX-License-Identifier: Apache-2.0
// A trace as a dependency graph: where each thread and stream of each rank had to wait for another one.
//
// A node is a stretch of local work of one track between two synchronisation points, not a slice, so the graph of a
// million slices is small. The points of a track stand in the order of the program (or of the stream). Edges between
// tracks are:
//   - collectives: all arrivals → the completion on every member;
//   - messages: the send → the end of the receive (and of the probes before it), and the receive → the end of a send
//   that blocked;
//   - launches: the CUDA call → the work on the stream; the end of work on another stream → the work that waited for
//   it;
//   - device waits: the end of work on a stream → the end of the call that waited for the device;
//   - hand-overs: the mark of a main thread that announces work → the work of a helper thread; a helper thread without
//     announced work that begins after a pause was woken by the main thread;
//   - helper waits: the end of a helper's work → the main thread, which is in a range of the same phase.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/communication/messages.h"
#include "analysis/run/index/run_index.h"

namespace paceline::analysis {

using GraphTrack = std::uint32_t;  // index into DependencyGraph::tracks
inline constexpr std::uint32_t no_collective = ~std::uint32_t{0};

enum class DependencyKind : std::uint8_t { collective, message, send, launch, stream, device_wait, hand_over, helper };

// Whether it is the transfer of a message; of the others, the bytes are those of announced work.
constexpr bool carries_bytes(DependencyKind kind) {
  return kind == DependencyKind::message || kind == DependencyKind::send;
}

// A track could have gone on at from_ns. It went on at until_ns, when the cause had come.
struct Dependency {
  std::int64_t from_ns = 0, until_ns = 0;
  std::int64_t cause_ns = 0;  // at most until_ns
  GraphTrack cause = 0;       // the track on which the cause lies
  DependencyKind kind = DependencyKind::collective;
  std::uint32_t collective = no_collective;  // index into DependencyGraph::collectives
  std::uint64_t bytes = 0;                   // of a message, or of announced work

  // The track waited for the cause; otherwise the cause had come before the track did.
  bool binding() const { return cause_ns > from_ns; }
};

struct CollectiveArrival {
  GraphTrack track = 0;
  std::int64_t arrival_ns = 0;  // the start of the call; of one that does not block, when it was posted
  std::int64_t blocked_from_ns = 0, until_ns = 0;
};

// A collective of at least two members. The first one that arrives waits for the last one.
struct GraphCollective {
  std::string operation;  // "MPI_Allreduce"; of a range its name ("allreduce", "bucket 3")
  std::uint64_t bytes = 0;
  std::uint32_t members = 0;                     // of the communicator
  std::vector<CollectiveArrival> arrivals = {};  // by rank
  std::int64_t last_arrival_ns = 0, end_ns = 0;
  bool from_range = false;  // as CollectiveCall::of_range
};

struct TrackDependencies {
  std::uint32_t rank = 0, track = 0;  // index into Trace::ranks, and into Rank::tracks
  bool main = false;
  std::int64_t start_ns = 0, end_ns = 0;
  std::vector<Dependency> waits;  // by until_ns
};

struct DependencyGraph {
  std::vector<TrackDependencies> tracks;     // rank after rank, those with slices
  std::vector<GraphCollective> collectives;  // by last arrival
  std::vector<GraphTrack> main;              // of each rank; no_track where it has none
};
inline constexpr GraphTrack no_track = ~GraphTrack{0};

// `messages`: those of the trace, where they are matched already; otherwise the graph matches them. Cost: linear in the
// slices, n log n in the synchronisation points; the ranks in parallel.
DependencyGraph dependency_graph(const RunIndex& index, const Messages* messages = nullptr);

// The dependencies between the tracks of one rank: those of its streams, and those of its helper threads. Unsorted.
// Cost: n log n in the slices of streams and helper threads, linear in the others.
struct OwnDependencies {
  std::uint32_t track = 0;  // index into Rank::tracks, as the cause of `wait`
  Dependency wait;
};
std::vector<OwnDependencies> stream_dependencies(const Trace& trace, const Rank& rank);
// `calls`: the collectives of the rank, whose ends may be known from the thread that waited for them.
std::vector<OwnDependencies> helper_dependencies(const PhaseTable& table, const Rank& rank,
                                                 const CollectiveCalls& calls);

}  // namespace paceline::analysis
