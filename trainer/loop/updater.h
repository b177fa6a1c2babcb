// How gradients become a step.
#pragma once

#include <cstdint>

#include "trainer/comm/communicator.h"
#include "trainer/data/loader.h"
#include "trainer/nn/model.h"
#include "trainer/optim/sgd.h"

namespace paceline::train {

struct StepResult {
  Score score;        // of the global batch, before the step; the same on every rank
  bool stop = false;  // some rank wishes to stop
};

// Every iteration: each rank's gradient of the mean loss over its batch, the mean of these over the ranks, one step of
// the optimizer. As all ranks take the same step from the same weights they stay equal, to the bit.
class SynchronousUpdater {
 public:
  SynchronousUpdater(Model& model, Communicator& communicator, Sgd& optimizer)
      : model_(model), communicator_(communicator), optimizer_(optimizer) {}

  // `stop`: this rank's wish; that of any rank reaches all in the same iteration, so that none waits for another.
  // A loss that is not finite leaves the weights as they are.
  StepResult step(const Batch& batch, double rate, bool stop);

 private:
  Model& model_;
  Communicator& communicator_;
  Sgd& optimizer_;
};

}  // namespace paceline::train
