// SPDX-License-Identifier: Apache-2.0
// Collectives that hang, because some ranks wait in one that others never entered, or that broke, because the process
// of another rank ended, and messages that hang, because ranks wait for each other in a circle. docs/metrics.md defines
// when a wait counts as a hang and when a rank has entered a collective.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/communication/collective_calls.h"

namespace paceline::analysis {

struct Hang {
  std::string operation;     // "MPI_Allreduce"
  std::string communicator;  // for people
  std::uint64_t number = 0;  // of the collective on its communicator, counted from 1
  std::uint32_t round = 0;   // of a persistent collective: which of its starts, from 1; else 0
  struct Waiting {
    int rank = 0;
    std::int64_t since_ns = 0, until_ns = 0;  // the start of its wait, and its last event
  };
  std::vector<Waiting> waiting;  // by rank
  bool broken = false;  // nobody waits any more: the calls of `waiting` ended, although others never completed theirs
  struct Missing {
    int rank = 0;
    bool entered = false;  // of a broken one: its process ended inside
    std::string inside;    // the innermost range that was open at its end; "": none
    std::string other;     // the collective that it called instead under this number; "": none
    std::string message;   // what it waits in instead, as in `circle`; "": nothing
  };
  std::vector<Missing> missing;  // by rank: never entered it, or never completed it

  // Of messages, and then nothing above is set but `waiting`: "rank 0 waits in MPI_Recv for rank 1, tag 7".
  std::vector<std::string> circle;
};

// The first one of each communicator and each circle of messages, in the order of the first arrivals; empty where
// nothing hangs. Cost: n log n in the calls.
std::vector<Hang> find_hangs(std::span<const CollectiveCalls> ranks);
inline std::vector<Hang> find_hangs(const Trace& trace) { return find_hangs(collective_calls(trace)); }

// One sentence. Of a collective: "Rank 2 never entered MPI_Allreduce #17 on MPI_COMM_WORLD; ranks 0, 1 and 3 have
// waited in it since 1.204 s, for 29.9 s." Of a broken one: "Rank 1 never entered gloo:all_reduce #4 on default group,
// which therefore failed: rank 0 was in it from 1.204 s for 0.428 s." Of messages: "Messages hang: rank 0 waits in
// MPI_Recv for rank 1, tag 7; rank 1 waits in MPI_Recv for rank 0, tag 9; since 1.204 s, for 29.9 s."
std::string hang_text(const Hang& hang);

}  // namespace paceline::analysis
