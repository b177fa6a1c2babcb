// Clocks of different machines compared, by the recorders among themselves, over UDP: nothing passes through the
// program's MPI, so that nothing of the program can be disturbed, and nobody waits for a rank that is not recorded.
//
// Each clock domain's leader asks the one above it in the tree (clock_beacon.h), 100 times or more in a few ms, at the
// end of MPI_Init and at MPI_Finalize, and fewer times while MPI_Init runs and every ten seconds between, from the
// drain's thread; it records the ten shortest round trips. All domains ask at once: what one is off from the next is
// added up by the reader. A true offset lies within half of its round trip (F. Cristian, Probabilistic clock
// synchronization, Distributed Computing 3, 1989).
//
// The program waits for this at most 2 s in all; where nobody answers the trace says so and the reader is left with the
// machines' UTC.
#pragma once

#include <cstdint>

namespace paceline::inject {

enum class ExchangePhase : std::uint32_t { at_init = 0, at_finalize = 1, between = 2 };

// Before MPI_Init. Does nothing for a single process, or one whose rank the launcher did not tell.
void publish_clock();

// Finds out whom this process is to ask, and answers whoever is to ask it. After MPI_Init.
void find_clocks();

// While MPI_Init runs, by the drain: does the same as soon as all ranks are there to be found, and asks at once. Later
// stamps tell less of what the clocks showed at the start. It looks twenty times, over 1.5 s, in jobs of 256 ranks at
// most; when to look next (CLOCK_MONOTONIC, ns).
std::int64_t next_look_for_clocks_ns();
void look_for_clocks();

// A round of questions, by those who are to ask; nothing for others. May be called by two threads. Round trips that
// took as long as the longest or longer are not recorded. Returns how many it recorded.
int exchange_clocks(ExchangePhase phase, std::int64_t longest_trip_ns = 1'000'000'000);

// Time between two rounds of phase `between` (PACELINE_CLOCK_INTERVAL); 0 = none.
std::int64_t exchange_interval_ns();

// Takes the address away. Harmless when called twice.
void withdraw_clock();

// In a forked child: the address is the parent's.
void forget_clock();

}  // namespace paceline::inject
