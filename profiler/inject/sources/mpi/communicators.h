// SPDX-License-Identifier: Apache-2.0
// The communicators of the program. Each has a number for events, an identity that is equal on all members, and a count
// of collectives, which is equal on all members because MPI requires them to call collectives in the same order.
//
// The identity needs no communication. It is a hash of the parent's identity, the function that created the
// communicator, and the members' ranks in MPI_COMM_WORLD. A counter distinguishes communicators that are equal in all
// of these. Every member has taken part in creating each of them, in the same order, so the counters agree. The two
// sides of an inter-communicator have different parents, so its hash contains the members of both sides instead.
// Members of another MPI_COMM_WORLD (MPI_Comm_spawn, MPI_Comm_connect) have no rank in this one, so the identities of a
// communicator that two worlds share differ.
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
  std::uint32_t size;   // number of ranks in this process's group
  std::uint32_t peers;  // number of ranks that it exchanges data with: `size`, or that of the remote group
  std::uint32_t rank;
  std::uint32_t neighbors;  // number of ranks that neighbourhood collectives send to
  bool inter;
  std::uint64_t identity;
  std::atomic<std::uint32_t> sequence;
  char name[64];                       // the name that the program gave it; may be empty
  std::atomic<std::uint32_t> objects;  // number of windows and files created on it
};

// Called once, after MPI_Init. Adds MPI_COMM_WORLD and MPI_COMM_SELF.
void note_predefined_communicators();

// Adds a new communicator; ignores MPI_COMM_NULL. `tag` distinguishes groups that are created side by side.
void note_communicator(Handle parent, Handle made, format::MpiId by, int tag);

// For a duplicate that exists only later. Its identity is taken when its creation begins, which happens in the same
// order on all members; its handle is added when it exists.
std::uint64_t identity_of_duplicate(Handle parent, format::MpiId by);
void note_duplicate(Handle made, std::uint64_t identity);

// Called when the program gives it a name.
void name_communicator(Handle handle, std::string_view name);

// Called before a communicator is freed, because MPI may reuse its handle.
void forget_communicator(Handle handle);

// The identity of the next window or file that the members create together.
std::uint64_t identity_of_object(Communicator& communicator);

// The entry of a valid communicator. Lock-free if it is known. A communicator from a function that is not recorded is
// added now. Returns nullptr if there is no room (4096 at a time).
Communicator* find_communicator(Handle handle);

// Writes the name of the communicator with this number, if it has one. Slow: looks at all communicators.
void write_communicator_name(std::uint32_t id, char* out, std::size_t size);

}  // namespace paceline::inject
