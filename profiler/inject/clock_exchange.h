// Clocks of different machines compared, by the recorders among themselves: nothing passes through the program's MPI,
// so that nothing of the program can be disturbed, and nobody waits for a rank that is not recorded.
//
// Processes with the same host name and boot id share a clock. Before MPI_Init each recorder opens a UDP socket and
// leaves its address as the name of an empty file in the output directory (".clock-…"): MPI_Init ends only when all
// ranks have begun it, so after it the directory shows every recorded rank. The lowest rank of all keeps the reference
// clock and answers; the lowest rank of each other clock asks it, 100 times in about 3 ms, and records the ten shortest
// round trips. Each true offset lies within half of its round trip (F. Cristian, Probabilistic clock synchronization,
// Distributed Computing 3, 1989). Where nobody answers it gives up after 2 s and says so in the trace, and the reader
// is left with the machines' UTC.
#pragma once

#include <cstdint>

namespace paceline::inject {

enum class ExchangePhase : std::uint32_t { at_init = 0, at_finalize = 1, between = 2 };

// Before MPI_Init. Does nothing for a single process, or one whose rank the launcher did not tell.
void publish_clock();

// Finds out who keeps the reference and whether this process is to ask. Once, after MPI_Init.
void find_clocks();

// A round of questions, by those who are to ask; nothing for others. May be called by two threads.
void exchange_clocks(ExchangePhase phase);

// Takes the address away. Harmless when called twice.
void withdraw_clock();

// In a forked child: the address is the parent's.
void forget_clock();

}  // namespace paceline::inject
