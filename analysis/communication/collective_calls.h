// SPDX-License-Identifier: Apache-2.0
// The collective calls of a rank, extracted once. Matching, waits, lateness and hangs are computed from them.
//
// A call is a slice of category "collective". Beside these count:
//   - MPI_Start of a persistent collective, named and numbered by its initialisation; the initialisation itself is a
//     call that only takes a number;
//   - NCCL's calls of which only the enqueueing was seen (category "enqueue" in the domain "nccl").
// What is not blocking (MPI_I…, MPI_Start) ends with the wait or test that completed its request, and blocks the rank
// only inside that. If none completed it and the rank's last calls of MPI are tests, the rank polls it to the end. A
// collective of PyTorch (domain "torch") with a request has an end of its own; a wait for its request blocks the rank
// as well.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace/intervals.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

enum class CallType : std::uint8_t {
  plain,
  initialisation,  // of a persistent collective: takes a number, but nobody waits in it
  enqueued,        // of NCCL, and when it ran is not known
};

// Where a rank is blocked in a call.
enum class Blocking : std::uint8_t {
  always,  // the main thread, or a training thread that waits for PyTorch's requests
  helper,  // another thread, so only while neither the main thread nor a device works
  device,  // a device, so only while nothing else runs on it
};

struct CollectiveCall {
  std::uint64_t communicator = 0;  // its identity; 0 = not known
  std::uint64_t sequence = 0;      // its number on the communicator, from 0; for NCCL among the calls of its function
  std::uint64_t bytes = 0;
  std::uint32_t operation = 0;  // index into CollectiveCalls::operations
  std::uint32_t round = 0;      // of a persistent collective: which start it is, from 1
  std::uint32_t members = 0;    // of the communicator; 0 = not known
  CallType type = CallType::plain;
  Blocking blocking = Blocking::always;
  bool counted = false;     // the sequence was not recorded: it is the position among the calls of one operation
  bool of_nccl = false;     // numbered by function
  bool unfinished = false;  // the process ended inside: in the call, in the wait for its request, or while it polled
  bool timed = true;        // start and end are those of the operation, and others can be waited for in it
  bool of_range = false;    // an NVTX range around an algorithm of its own (range_collectives.h)
  std::int64_t start_ns = 0, end_ns = 0;
  std::int64_t blocked_from_ns = 0;    // its start; without blocking, the start of the call that completed it
  std::int64_t polled_from_ns = 0;     // earlier where a helper thread does nothing but test for it until it completes
  std::uint32_t track = 0, slice = 0;  // its place: index into Rank::tracks, and of its slices
};

struct CollectiveCalls {
  int rank = 0, world_size = 1;
  std::int64_t end_ns = 0;              // of the rank
  std::vector<std::string> operations;  // "MPI_Allreduce"; a persistent one has the name of its initialisation
  std::vector<CollectiveCall> calls;    // track by track in the order of their starts
  std::uint64_t unnumbered = 0;         // calls that cannot be matched and are left out: NCCL's without a number,
                                        // and all where Trace::mixed_collectives says so
  std::array<Intervals, 3> covered;     // by Blocking: times in which such calls do not block the rank, merged

  struct Membership {
    std::uint64_t communicator = 0;  // its identity
    std::string text;                // for people: "MPI_COMM_WORLD"
    int own_rank = -1;               // of this rank in it; -1 = not known
  };
  std::vector<Membership> communicators;  // those that the rank is a member of or made calls on
  std::string open_slice;                 // the innermost range of the main thread that was open at the end; or ""
  bool complete = true;                   // recorded without a gap and without losses
  bool complete_at_end = true;            // recorded without losses, and not paused at the end
  bool failed = false;                    // its process ended with a status other than 0
  bool busy = false;                      // it still makes progress outside the calls; known only while a job runs

  // A message that the rank is blocked in at its end.
  struct Pending {
    std::uint64_t communicator = 0;  // its identity; 0 = not known
    std::string operation;           // "MPI_Recv"
    std::int32_t peer = -1;          // in the communicator; -1 = any
    std::int32_t tag = -1;           // -1 = any
    bool sends = false, receives = false;
    std::int64_t since_ns = 0, until_ns = 0;
  };
  std::vector<Pending> pending;
};

// Where a rank is blocked in calls on this track.
Blocking blocking_of(const Track& track);

// Whether a function of MPI sends or receives a message and returns when that is done, by its name.
bool blocks_in_send(std::string_view function);
bool blocks_in_receive(std::string_view function);

// What was not recorded counts as covered; cover() adds what the rank's own work covers. Cost: linear in the slices of
// the rank.
CollectiveCalls collective_calls(const Trace& trace, const Rank& rank);
std::vector<CollectiveCalls> collective_calls(const Trace& trace);

// The rank's own work hides the communication of its helper threads and devices. `working`: the main thread's phases
// that works() is true of; `computing`: the kernels of its devices, merged. Cost: n log n in both.
void cover(CollectiveCalls& calls, Intervals working, const Intervals& computing);

}  // namespace paceline::analysis
