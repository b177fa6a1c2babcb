// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/gpu/allreduce.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "trainer/backend/cuda/runtime.h"
#include "trainer/comm/waiting.h"
#include "trainer/core/error.h"

namespace paceline::train::nccl {

namespace {

// query: returns cudaErrorNotReady until the work is done.
template <typename Query>
void watch(Query query, std::span<NcclComm* const> comms, double limit_s) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds between_looks(100);
  const Clock::time_point start = Clock::now();
  Clock::time_point next_look = start + between_looks;
  const bool sleeps = sleeps_in_waits();
  std::chrono::microseconds pause(20);
  while (true) {
    const cudaError_t state = query();
    if (state == cudaSuccess) return;
    try {
      if (state != cudaErrorNotReady) cuda::check(state, "waiting for a stream");
      const Clock::time_point now = Clock::now();
      if (!comms.empty() && now >= next_look) {
        for (NcclComm* comm : comms) comm->look();
        if (now - start > std::chrono::duration<double>(limit_s)) throw Error(timeout("a collective", limit_s, ""));
        next_look = now + between_looks;
      }
    } catch (const Error& error) {
      for (NcclComm* comm : comms) comm->abort(error.what());
      throw;
    }
    if (sleeps) {
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, std::chrono::microseconds(200));
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace

void wait_for_event(cudaEvent_t event, std::span<NcclComm* const> comms, double limit_s) {
  watch([&] { return cudaEventQuery(event); }, comms, limit_s);
}

void wait_for_stream(cudaStream_t stream, std::span<NcclComm* const> comms, double limit_s) {
  watch([&] { return cudaStreamQuery(stream); }, comms, limit_s);
}

void all_or_none(MPI_Comm comm, const std::function<void()>& make) {
  std::string what;
  try {
    make();
  } catch (const Error& error) {
    what = error.what();
  }
  const std::string first = first_failure(comm, what);
  if (!first.empty()) throw Error(first);
}

}  // namespace paceline::train::nccl
