// SPDX-License-Identifier: Apache-2.0
// The comparison of clocks between machines. The recorders exchange UDP packets with each other. They do not use the
// program's MPI, so the program is not disturbed, and no rank waits for one that is not recorded.
//
// The leader of each clock domain asks its parent in the tree (beacon.h): 100 times or more within a few ms at the end
// of MPI_Init and at MPI_Finalize, and fewer times while MPI_Init runs and every ten seconds in between, from the
// drain's thread. It records the ten shortest round trips. All domains ask at the same time, and the reader adds up the
// offsets along the tree. A true offset lies within half of its round trip (F. Cristian, Probabilistic clock
// synchronization, Distributed Computing 3, 1989).
//
// The program waits for this 2 s at most in total. If no answer comes, the trace records that, and the reader uses the
// machines' UTC.
#pragma once

#include <cstdint>

namespace paceline::inject {

enum class ExchangePhase : std::uint32_t { at_init = 0, at_finalize = 1, between = 2 };

// Called before MPI_Init. Does nothing for a single process, or if the launcher does not give a rank.
void publish_clock();

// Called after MPI_Init. Finds the process that this one must ask, and starts to answer the processes that ask this
// one.
void find_clocks();

// One round of questions; does nothing in a process that has no other to ask. Two threads may call it. Round trips of
// `longest_trip_ns` and longer are not recorded. Returns the number of recorded round trips.
int exchange_clocks(ExchangePhase phase, std::int64_t longest_trip_ns = 1'000'000'000);

}  // namespace paceline::inject
