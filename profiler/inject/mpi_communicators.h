// The communicators of the program: a number for events, an identity that is equal on all members, and the count of
// collectives, which is equal on all members because MPI has them call collectives in the same order.
//
// The identity needs no communication. It is a hash of the parent's identity, the function that made it, and the
// members' ranks in MPI_COMM_WORLD; a counter tells apart those that are alike in all of these. Every member has taken
// part in making each of those, in the same order, so the counters agree.
#pragma once

#include <atomic>
#include <cstdint>

#include "profiler/format/mpi_functions.h"
#include "profiler/inject/mpi_library.h"

namespace paceline::inject {

struct Communicator {
  Comm handle;
  std::uint32_t id;
  std::uint32_t size;   // of this process's group
  std::uint32_t peers;  // whom it exchanges with: `size`, or the remote group of an inter-communicator
  std::uint32_t rank;
  std::uint64_t identity;
  std::atomic<std::uint32_t> sequence;
  char name[64];  // as the program named it; may be empty
};

// Called once, after MPI_Init: notes MPI_COMM_WORLD and MPI_COMM_SELF.
void note_predefined_communicators();

// Notes a new communicator; nothing if it is MPI_COMM_NULL. `tag` distinguishes groups that are made side by side.
void note_communicator(Comm parent, Comm made, format::MpiId by, int tag);

// Before a communicator is freed: its handle may be given to another.
void forget_communicator(Comm handle);

// Of a valid communicator. Lock-free where it is known; one made by a function that is not recorded is noted now.
// nullptr where no more fit (4,000 at a time).
Communicator* find_communicator(Comm handle);

// What to call the communicator of this number in a message. Slow: looks at all.
void communicator_name(std::uint32_t id, char* out, std::size_t size);

}  // namespace paceline::inject
