// A data-parallel training run as the trainer and the recorder would write it, made without either: the same names,
// domains, categories and arguments, with durations drawn from a fixed seed.
#pragma once

#include "viewer/session/run.h"

namespace paceline::viewer {

struct SimulatedRun {
  int ranks = 2, iterations = 20, epochs = 1;
  bool layers = true;  // a range for each layer in forward and backward
};

analysis::Trace simulate(const SimulatedRun& what);

}  // namespace paceline::viewer
