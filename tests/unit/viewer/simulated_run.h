// SPDX-License-Identifier: Apache-2.0
// A data-parallel training run as the trainer and the recorder would write it, made without either: the same names,
// domains, categories and arguments, with durations drawn from a fixed seed.
#pragma once

#include <functional>

#include "viewer/session/run.h"

namespace paceline::viewer {

struct SimulatedRun {
  int ranks = 2, iterations = 20, epochs = 1;
  bool layers = true;  // a range for each layer in forward and backward
  int hosts = 2;
  int slow_rank = 1;        // whose backward takes 1.08 times as long …
  double slowness = 1.08;   // … or this
  int slow_iteration = -1;  // whose backward takes twice as long on all ranks; -1: none
  int helper_threads = 0;   // of each rank, beside the loader; they work at the same time
  int late_iteration = -1;  // in whose allreduce one rank arrives late; -1: none
  int late_rank = 0;
  double late_ns = 0;
  std::int64_t switch_ns = 0;  // of each thread: how long it runs, waits for a CPU and is blocked in turn; 0: not known
};

analysis::Trace simulate(const SimulatedRun& what);

// Adds a sample of the stack of each main thread every `period_ns`. Its function, at a time of a rank, is called by
// main().
void add_samples(analysis::Trace& trace, std::int64_t period_ns,
                 const std::function<const char*(int rank, std::int64_t time_ns)>& function_at);

}  // namespace paceline::viewer
