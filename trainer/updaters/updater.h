// How gradients become a step. One file per way; all ranks call the same functions in the same order.
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

namespace paceline::train {

struct StepResult {
  Score score;         // of the global batch, before the step, the same on every rank;
                       // asynchronous: of this rank's batch
  bool stop = false;   // some rank wishes to stop
  bool again = false;  // within updaters: some rank has to repeat its backward, so all do
  std::optional<std::uint64_t>
      staleness;  // asynchronous: updates by others between this gradient's weights and its own
};

// What a parameter server measured since it was last asked.
struct StalenessReport {
  struct OfRank {
    std::uint64_t updates = 0, sum = 0, most = 0;  // of staleness, over the updates
    std::uint64_t first_version = 0;               // of the weights that its first gradient was computed with
    std::uint64_t last_version = 0;                // after its last update: sum + updates ≤ last − first
  };
  std::vector<std::uint64_t> histogram;  // [s]: updates of staleness s
  std::vector<OfRank> ranks;
};

// What an updater works with. The referred objects must outlive it.
struct UpdaterParts {
  Model& model;
  const Communicator& communicator;
  Optimizer& optimizer;
  PassOptions pass{};
  std::size_t first_bucket_bytes = std::size_t{1} << 20, bucket_bytes = std::size_t{25} << 20;
  std::optional<std::uint64_t> most_ahead{};  // parameter server: iterations, of the slowest rank
};

class Updater {
 public:
  explicit Updater(const UpdaterParts& parts)
      : model_(parts.model),
        collectives_(*parts.communicator.collectives),
        reduction_(*parts.communicator.reduction),
        optimizer_(parts.optimizer),
        pass_(parts.model, parts.pass) {
    reduction_.set_stream(model_.stream());
    optimizer_.follow(model_.stream());
    if (!reduction_.wants_gradients()) return;
    gradients_ = reduction_.gradient_memory(model_.gradients().size());
    model_.set_gradients({gradients_.get(), model_.gradients().size()});
  }
  virtual ~Updater() = default;
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;

  // One iteration. Every rank starts from the same weights. `stop`: this rank's wish; that of any rank reaches all, in
  // the same iteration unless asynchronous, so that none waits for another. A loss that is not finite leaves the
  // weights as they are; asynchronous: throws Error, for the other ranks cannot know.
  virtual StepResult step(const Batch& batch, std::uint64_t iteration, double rate, bool stop) = 0;

  // Before whatever else ranks do together (evaluation, checkpoints): afterwards nothing is under way and all ranks
  // have the same weights, rank 0 the optimizer's state. Returns whether any rank wishes to stop.
  virtual bool settle(bool stop) { return stop; }

  // Whether ranks take their steps without waiting for each other.
  virtual bool asynchronous() const { return false; }

  // What a resumed run needs beside weights and optimizer, after settle(): the mean gradient that the next step
  // applies; empty where there is none.
  virtual std::span<const float> pending() { return {}; }
  virtual void restore_pending(std::span<const float>) {}

  virtual std::optional<StalenessReport> take_staleness() { return std::nullopt; }  // rank 0, after settle()

  // After a step whose loss is not finite: this rank's layer where that came up; empty where its own loss is finite.
  const std::string& nonfinite_layer() const { return pass_.nonfinite_layer(); }

 protected:
  // Sums the ranks' scores and wishes. A collective call; the next after the gradients, when nobody has to wait.
  StepResult agree(const Score& local, bool stop, bool again = false);

  void apply(std::span<const float> gradient, double rate);

  Model& model_;
  Collectives& collectives_;
  GradientReduction& reduction_;
  Optimizer& optimizer_;
  GradientPass pass_;

 private:
  std::shared_ptr<float> gradients_;  // where the communicator wants them
};

// One line for a loss that is not finite.
std::string nonfinite_loss(std::uint64_t iteration, double rate, const std::string& layer);

struct UpdaterName {
  std::string name, summary;
};
std::vector<UpdaterName> updater_summaries();

// Whether an updater communicates in a second thread, for which MPI must be initialised (MPI_THREAD_SERIALIZED).
bool updater_needs_thread(const std::string& name);

// Whether it averages gradients by an allreduce, so that the communicator matters.
bool updater_allreduces(const std::string& name);

// Throws Error (usage) where the updater does not go with so many ranks, the communicator or the type.
void check_updater(const std::string& name, int ranks, const std::string& communicator, const std::string& dtype);

// Throws Error (usage) for an unknown name. A collective call.
std::unique_ptr<Updater> make_updater(const std::string& name, const UpdaterParts& parts);

// Each in the file of its name.
std::unique_ptr<Updater> make_allreduce_updater(const UpdaterParts& parts);  // updater.cpp; also for a single rank
std::unique_ptr<Updater> make_main_rank_updater(const UpdaterParts& parts);
std::unique_ptr<Updater> make_overlap_updater(const UpdaterParts& parts);
std::unique_ptr<Updater> make_double_buffering_updater(const UpdaterParts& parts);
std::unique_ptr<Updater> make_parameter_server_updater(const UpdaterParts& parts);

}  // namespace paceline::train
