// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/waiting.h"

namespace paceline::train {
namespace {

thread_local bool asleep = false;

}  // namespace

void sleep_in_waits() { asleep = true; }

bool sleeps_in_waits() { return asleep; }

void Pause::wait() {
  constexpr int moments = 2000;  // about 50 µs
  ++waits_;
  if (asleep) {
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(20 * waits_, 200)));
  } else if (waits_ > moments) {
    std::this_thread::yield();
  } else {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

void wait_for(MPI_Request& request) {
  if (!asleep) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return;
  }
  sleep_until([&] {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
}

void wait_for(std::vector<MPI_Request>& requests) {
  const auto count = static_cast<int>(requests.size());
  if (!asleep) {
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    return;
  }
  sleep_until([&] {
    int done = 0;
    MPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE);
    return done != 0;
  });
}

}  // namespace paceline::train
