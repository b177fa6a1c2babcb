// Sends parts of the gradient while this thread goes on: in a second thread, or in a stream of a GPU.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/core/ranges.h"
#include "trainer/updaters/background.h"

namespace paceline::train {

// Host memory: the second thread makes the calls of MPI, so there must be none of others between send() and wait().
//
// A GPU: the communicator has put the work behind the model's stream. The second thread does what is left of it, or
// only watches the stream, so that ranges have the times at which things happened, and failures are noticed while this
// thread waits for the GPU. A third one marks what is ready while the second is busy with what came before.
class Sender {
 public:
  explicit Sender(const Communicator& communicator)
      : collectives_(*communicator.collectives), reduction_(*communicator.reduction) {}

  // Begins the mean of these parts. In the profile: the mark `bucket ready`, the range `wait` for the other ranks (in
  // host memory and through MPI; NCCL waits on the GPU) and the range `name`, each with the bytes on the wire. `name`
  // must outlive the sender.
  void send(std::span<float> gradient, std::vector<Slice> parts, const RangeName& name);

  // Returns when the means are in their place, or when the model's stream will see them there (Communicator::join).
  // Throws what went wrong with any of them so far.
  void wait();

  // Returns when nothing is under way, whatever the communicator.
  void settle();

 private:
  Collectives& collectives_;
  GradientReduction& reduction_;
  const RangeName ready_{"bucket ready"};
  std::optional<Background> arrivals_;  // for GPUs
  Background background_{"communication"};
};

}  // namespace paceline::train
