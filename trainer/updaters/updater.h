// SPDX-License-Identifier: Apache-2.0
// How gradients become a step of the optimizer. Each updater has its own file (kinds.h). All ranks call the same
// functions in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/optim/optimizer.h"
#include "trainer/updaters/gradient_pass.h"
#include "trainer/updaters/kinds.h"

namespace paceline::train {

struct StepResult {
  Score score;         // of the global batch before the step, the same on every rank;
                       // asynchronous: of this rank's batch
  bool stop = false;   // a rank asked to stop
  bool again = false;  // within updaters: a rank must repeat its backward, so all repeat theirs
  std::optional<std::uint64_t>
      staleness;  // asynchronous: other ranks' updates between this gradient's weights and its own update
};

// The measurements of a parameter server since the last report.
struct StalenessReport {
  struct OfRank {
    std::uint64_t updates = 0, sum = 0, most = 0;  // sum and most: of the updates' staleness
    std::uint64_t first_version = 0;               // of the weights of its first gradient
    std::uint64_t last_version = 0;                // after its last update: sum + updates ≤ last − first
  };
  std::vector<std::uint64_t> histogram;  // element s: the number of updates with staleness s
  std::vector<OfRank> ranks;
};

// The objects that an updater uses. They must outlive it.
struct UpdaterParts {
  Model& model;
  const Communicator& communicator;
  Optimizer& optimizer;
  PassOptions pass{};
  std::optional<double> clip_norm{};  // of the averaged gradient; no clipping if empty
  bool measure_norm = false;          // for gradient_norm(); the same on all ranks
  UpdaterValues values{};             // of the updater's own options

  std::optional<double> value(const UpdaterOption& option) const { return value_of(values, option); }
};

class Updater {
 public:
  explicit Updater(const UpdaterParts& parts)
      : model_(parts.model),
        collectives_(*parts.communicator.collectives),
        reduction_(*parts.communicator.reduction),
        optimizer_(parts.optimizer),
        pass_(parts.model, parts.pass),
        clip_norm_(parts.clip_norm),
        measure_norm_(parts.measure_norm) {
    if (DeviceTransfers* const device = reduction_.device()) device->set_stream(model_.stream());
    optimizer_.follow(model_.stream());
    if (!reduction_.memory().required()) return;
    gradients_ = reduction_.memory().allocate(model_.gradients().size());
    model_.set_gradients({gradients_.get(), model_.gradients().size()});
  }
  virtual ~Updater() = default;
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;

  // Runs one iteration. Every rank starts from the same weights. stop: this rank asks to stop. The request of any rank
  // reaches all of them, in the same iteration unless asynchronous, so that no rank waits for another for ever. A loss
  // that is not finite leaves the weights unchanged; an asynchronous updater throws Error, because the other ranks
  // cannot know.
  virtual StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) = 0;

  // Ends all transfers, so that all ranks have the same weights and rank 0 has the optimizer's state. Call it before
  // collective work such as evaluation and checkpoints. Returns whether any rank asked to stop.
  virtual bool settle(bool stop) { return stop; }

  // Whether ranks take their steps without waiting for each other.
  virtual bool asynchronous() const { return false; }

  // The mean gradient that the next step will apply, or the mean of what compression has left out of gradients so far,
  // which a resumed run needs beside weights and optimizer; empty if
  // there is none. After settle().
  virtual std::span<const float> pending() { return {}; }
  virtual void restore_pending(std::span<const float>) {}

  // What the next compression starts from, equal on all ranks, which a resumed run needs as well; empty if there is
  // none. Written by a resumed run before its first step. After settle().
  virtual std::span<float> warm_start() { return {}; }

  virtual std::optional<StalenessReport> take_staleness() { return std::nullopt; }  // rank 0, after settle()

  // The norm of the gradient that the last step applied, before clipping: of the averaged gradient, with an
  // asynchronous updater of this rank's own. Empty if it was not measured, or on ranks that took no step.
  std::optional<double> gradient_norm() const { return gradient_norm_; }

  // After a step whose loss is not finite: the layer of this rank in which the first such value appeared; empty if this
  // rank's own loss is finite.
  virtual const std::string& nonfinite_layer() const { return pass_.nonfinite_layer(); }

 protected:
  // Sums the ranks' scores and requests. A collective call, made right after the gradients, when no rank has to wait.
  StepResult agree(const Score& local, bool stop, bool again = false);

  // Takes a step of the optimizer for its shard of the weights, whose gradient this is. Scales the gradient in place
  // first, if clip_norm is given and its norm is larger.
  void apply(std::span<float> gradient, double rate);

  bool measures_norm() const { return measure_norm_; }

  // Σ g² over all parameters, if this rank has `gradient`. A collective call where ranks have parts of it.
  virtual double squares_of(std::span<const float> gradient) { return model_.memory().sum_of_squares(gradient); }

  Model& model_;
  Collectives& collectives_;
  GradientReduction& reduction_;
  Optimizer& optimizer_;
  GradientPass pass_;
  std::optional<double> gradient_norm_;

 private:
  const std::optional<double> clip_norm_;
  const bool measure_norm_;
  std::shared_ptr<float> gradients_;  // in memory of the communication library, if it needs that
};

// The `make` of an UpdaterKind.
template <typename T>
std::unique_ptr<Updater> make_of(const UpdaterParts& parts) {
  return std::make_unique<T>(parts);
}

// Throws Error (usage) for an unknown name. A collective call.
std::unique_ptr<Updater> make_updater(const std::string& name, const UpdaterParts& parts);

// The halves of the communicator's mean. Throws Error (usage) if its algorithm has none on this device.
ShardedReduction& halves_of(const Communicator& communicator);

// The error message for a loss that is not finite.
std::string nonfinite_loss(std::uint64_t iteration, double rate, const std::string& layer);

}  // namespace paceline::train
