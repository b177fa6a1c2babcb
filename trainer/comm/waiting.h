// SPDX-License-Identifier: Apache-2.0
// Waiting for messages: inside MPI, which is fastest and keeps a core busy, or asleep.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace paceline::train {

// Makes this thread sleep in wait_for() from now on, because another thread computes on the same core. Each wait then
// ends up to 0.2 ms late.
void sleep_in_waits();
bool sleeps_in_waits();

// The pause between two looks at memory that another rank writes. The first pauses are short; later ones yield the core
// to other threads. A thread that called sleep_in_waits() sleeps.
class Pause {
 public:
  void wait();
  void reset() { waits_ = 0; }

 private:
  int waits_ = 0;
};

// Returns when the request, or all of the requests, are complete.
void wait_for(MPI_Request& request);
void wait_for(std::vector<MPI_Request>& requests);

// Returns when done() is true; sleeps 20 to 200 µs between its calls.
template <typename Done>
void sleep_until(Done done) {
  for (std::chrono::microseconds pause(20); !done(); pause = std::min(2 * pause, std::chrono::microseconds(200))) {
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace paceline::train
