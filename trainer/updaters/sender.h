// SPDX-License-Identifier: Apache-2.0
// Averages parts of the gradient while this thread goes on: in a second thread, or in a stream of a GPU.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/core/ranges.h"
#include "trainer/updaters/background.h"

namespace paceline::train {

// Host memory: the second thread makes the MPI calls, so no other thread may make any between send() and wait().
//
// A GPU: the reduction has queued its work behind the model's stream. The second thread does the host's part, or only
// watches the stream, so that ranges show the true times and failures are noticed while this thread waits for the GPU.
// A third thread marks the buckets that are ready while the second one is busy with earlier ones.
class Sender {
 public:
  explicit Sender(const Communicator& communicator)
      : collectives_(*communicator.collectives),
        reduction_(*communicator.reduction),
        device_(reduction_.device()),
        queues_(reduction_.queues()) {}

  // Begins the mean of these parts. The profile shows the mark `bucket ready`, the range `wait` for the other ranks
  // (not with NCCL, which waits on the GPU) and the range `name`, each with the bytes on the wire. `name` must outlive
  // the sender.
  void send(std::span<float> gradient, std::vector<Slice> parts, const RangeName& name);

  // Returns when the means have replaced the gradients, or when the model's stream will wait for them
  // (DeviceTransfers::join). Throws the first error of any of them so far.
  void wait();

  // Returns when no transfer is running, with any communicator.
  void settle();

 private:
  Collectives& collectives_;
  GradientReduction& reduction_;
  DeviceTransfers* const device_;  // null: host memory
  const bool queues_;
  const RangeName ready_{"bucket ready"};
  std::optional<Background> arrivals_;  // for GPUs
  Background background_{"communication"};
};

}  // namespace paceline::train
