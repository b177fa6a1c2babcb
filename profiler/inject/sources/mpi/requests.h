// SPDX-License-Identifier: Apache-2.0
// Requests: which call started an operation, and which call completed it.
//
// The request of a call that starts an operation gets a number, which `mpi_posted` records. The wait or test that
// completes it records the number with `mpi_completed`. In between, a table of fixed size remembers the handle.
#pragma once

#include "profiler/inject/sources/mpi/arguments.h"

namespace paceline::inject {

inline constexpr int most_request_keys = 512;

// The handles before the call, which sets those of complete requests to MPI_REQUEST_NULL.
struct RequestKeys {
  Handle* keys;
  int capacity;
};

// Fills in the arguments of the initialisation of a persistent request, for the MPI_Start that starts it.
void describe_start(Handle request, Began& begun);

// Called before and after the real call; the second only if the call succeeded.
void requests_before(const Arguments& call, const Began& begun, RequestKeys keys);
void requests_after(const Arguments& call, const Began& begun, RequestKeys keys);

// For messages only: looks at a table of 8,192 places. The oldest collective that no call has completed yet, as its
// mpi_begin_coll. Returns false if there is none.
bool find_posted_collective(Slot& head, Slot& extension);

}  // namespace paceline::inject
