// Waiting for messages: in MPI, which is quickest and keeps a core busy, or asleep.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

namespace paceline::train {

// From now on this thread sleeps in wait_for(): for one that communicates while another computes on the same core. Each
// wait then ends up to 0.2 ms late.
void sleep_in_waits();
bool sleeps_in_waits();

// Between two looks at memory that another rank writes: a moment at first, then other threads have the core, where
// there are more than cores; asleep in a thread that sleeps.
class Pause {
 public:
  void wait();
  void reset() { waits_ = 0; }

 private:
  int waits_ = 0;
};

// Returns when the request, or all of them, are complete.
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
