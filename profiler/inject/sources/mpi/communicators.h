// The communicators of the program: a number for events, an identity that is equal on all members, and the count of
// collectives, which is equal on all members because MPI has them call collectives in the same order.
//
// The identity needs no communication. It is a hash of the parent's identity, the function that made it, and the
// members' ranks in MPI_COMM_WORLD; a counter tells apart those that are alike in all of these. Every member has taken
// part in making each of those, in the same order, so the counters agree. An inter-communicator's two sides know
// different parents: its hash has the members of both sides instead. Members of another MPI_COMM_WORLD (MPI_Comm_spawn,
// MPI_Comm_connect) have no rank in this one: the two worlds' identities of what they share differ.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "profiler/format/mpi_functions.h"
#include "profiler/inject/sources/mpi/library.h"

namespace paceline::inject {

struct Communicator {
  Handle handle;
  std::uint32_t id;
  std::uint32_t size;   // of this process's group
  std::uint32_t peers;  // whom it exchanges with: `size`, or the remote group of an inter-communicator
  std::uint32_t rank;
  std::uint32_t neighbors;  // whom neighbourhood collectives send to
  bool inter;
  std::uint64_t identity;
  std::atomic<std::uint32_t> sequence;
  char name[64];                       // as the program named it; may be empty
  std::atomic<std::uint32_t> objects;  // windows and files made on it
};

// Called once, after MPI_Init: notes MPI_COMM_WORLD and MPI_COMM_SELF.
void note_predefined_communicators();

// Notes a new communicator; nothing if it is MPI_COMM_NULL. `tag` distinguishes groups that are made side by side.
void note_communicator(Handle parent, Handle made, format::MpiId by, int tag);

// Of a duplicate that is there only later: its identity when it is begun, which happens in the same order on all
// members, and its handle when it is there.
std::uint64_t identity_of_duplicate(Handle parent, format::MpiId by);
void note_duplicate(Handle made, std::uint64_t identity);

// The program gave it a name.
void name_communicator(Handle handle, std::string_view name);

// Before a communicator is freed: its handle may be given to another.
void forget_communicator(Handle handle);

// Of the next window or file that the members make together.
std::uint64_t identity_of_object(Communicator& communicator);

// Of a valid communicator. Lock-free where it is known; one made by a function that is not recorded is noted now.
// nullptr where no more fit (4,000 at a time).
Communicator* find_communicator(Handle handle);

// What to call the communicator of this number in a message. Slow: looks at all.
void communicator_name(std::uint32_t id, char* out, std::size_t size);

}  // namespace paceline::inject
