// Collectives that hang: some ranks wait in one that others never entered. Found by the number that a collective has on
// its communicator, which is the same on all members.
//
// Some rank always waits a little for others: only a wait of more than a second, and longer than any in the run that
// ended, is taken for a hang; and a collective that others took for another one. Of a non-blocking collective the wait
// for its request counts; tests in a loop, and persistent collectives, are not looked at. A rank whose last events are
// missing (recording was paused at its end, events were dropped) is not accused of anything.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

struct WaitingRank {
  std::uint32_t rank = 0;  // index into Trace::ranks, here and below
  std::int64_t since_ns = 0;
};

struct Hang {
  NameId operation = 0;              // "MPI_Allreduce"
  NameId communicator = 0;           // the text that tells it from others
  std::uint64_t number = 0;          // of the collective on its communicator, counted from 1
  std::vector<WaitingRank> waiting;  // by rank
  struct Missing {
    std::uint32_t rank = 0;
    NameId inside = 0;  // the innermost slice that was open at its end; 0: none
    NameId other = 0;   // the collective that it called as this number instead; 0: none
  };
  std::vector<Missing> missing;  // by rank: never entered it
};

// The first one of each communicator, in the order of their first arrival; empty where nothing hangs. Cost: linear in
// the calls of collectives and waits.
std::vector<Hang> find_hangs(const Trace& trace);

// One sentence: "Rank 2 never entered MPI_Allreduce #17 on MPI_COMM_WORLD; ranks 0, 1 and 3 wait in it since 1.204 s,
// for 29.9 s."
std::string hang_text(const Trace& trace, const Hang& hang);

// One sentence on the ranks whose process did not come to its end: "Rank 1 did not end by itself (it was killed,
// crashed, called _exit or still runs): its last event is at 1.204 s." "" where all did.
std::string sudden_ends_text(const Trace& trace);

}  // namespace paceline::analysis
