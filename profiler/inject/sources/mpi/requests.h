// Requests: which call started an operation, and which one saw it complete.
//
// A posting call's request gets a number, told by `mpi_posted`; the wait or test that completes it tells the number by
// `mpi_completed`. Between the two the handle is remembered in a table of fixed size.
#pragma once

#include "profiler/inject/sources/mpi/call.h"

namespace paceline::inject {

inline constexpr int most_request_keys = 512;

// Handles as they were before the call, which sets those of complete requests to MPI_REQUEST_NULL.
struct RequestKeys {
  Handle* keys;
  int capacity;
};

// The Start of a persistent operation says what the initialisation of its request said.
void describe_start(Handle request, Began& told);

// Around the real call, the second only if it succeeded.
void requests_before(const Arguments& call, const Began& told, RequestKeys keys);
void requests_after(const Arguments& call, const Began& told, RequestKeys keys);

}  // namespace paceline::inject
