// A whole run: construction is start-up, run() is the rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/cli/options.h"
#include "trainer/comm/communicator.h"
#include "trainer/data/loader.h"
#include "trainer/optim/batch_schedule.h"
#include "trainer/optim/schedule.h"
#include "trainer/ranges.h"
#include "trainer/run/activity.h"
#include "trainer/run/agreement.h"
#include "trainer/run/checkpoint.h"
#include "trainer/run/checkpoint_times.h"
#include "trainer/run/faults.h"
#include "trainer/run/gpu_part.h"
#include "trainer/run/journal.h"
#include "trainer/run/run_data.h"
#include "trainer/run/watched_communicator.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {

class Training {
 public:
  using Clock = std::chrono::steady_clock;

  // Loads the data, builds the model, gives every rank rank 0's weights (or the checkpoint's). All ranks construct
  // together; an error on any of them becomes an AgreedError on all. `start`: the program's start.
  // gpu: what computes; null: the CPU.
  // abandon: prints a line and ends the job, from any thread, where this rank alone finds that it cannot go on.
  using Abandon = std::function<void(const std::string&)>;
  Training(const TrainOptions& options, Communicator& communicator, Clock::time_point start, Abandon abandon,
           const GpuPart* gpu = nullptr);

  ~Training();  // calls `abandon` where a thread of the loader is stuck in a read

  // All iterations, evaluations and checkpoints. Throws AgreedError: loss not finite, interrupted. Any other exception
  // concerns this rank alone, and the others wait for it in vain: the caller must abort the job.
  void run();

 private:
  void check_outputs() const;
  void prepare();   // what may fail on one rank alone: no communication in it
  void plan_all();  // part of prepare
  std::unique_ptr<Optimizer> make_optimizer_on_device() const;
  RunPlan plan_run(int rank) const;
  double rate_at(std::uint64_t iteration) const;
  void check(std::uint64_t data, std::size_t memory);  // all ranks able and alike
  std::size_t memory_wanted() const;                   // bytes, beyond what start-up took
  void restore_statistics();
  void share_state();                                   // rank 0's weights, statistics, optimizer and position to all
  Position position_at(std::uint64_t iteration) const;  // with so many iterations done
  Score evaluate_now(std::uint64_t iteration);          // and keeps the accuracy for the end's report
  RunFacts facts_of_run() const;
  void save(const Position& position);        // after check_state()
  void check_state(std::uint64_t iteration);  // throws AgreedError where a rank's state is not finite
  std::string kept_checkpoint() const;        // for messages
  void report_bad_images();
  void show_progress(std::uint64_t iteration, double loss, double seconds, std::size_t images);
  void finish_epoch(std::uint64_t iteration);
  void stop_early(std::uint64_t iteration);
  void stop_for_nonfinite_loss(std::uint64_t iteration);
  double seconds_since_start() const;

  const TrainOptions options_;
  Activity activity_;
  WatchedCommunicator communicator_;
  const Abandon abandon_;
  const Clock::time_point start_;
  const GpuPart* const gpu_;

  int threads_ = 1;
  RunData data_;
  BatchSchedule batches_;
  RunPlan run_plan_;
  EpochPlan plan_;                            // of the first epoch
  std::uint64_t first_ = 0, iterations_ = 0;  // of the run: the first to do and the number of all
  std::unique_ptr<Model> model_;
  LayerRanges layer_ranges_;
  std::unique_ptr<Optimizer> optimizer_;
  Schedule schedule_;
  std::unique_ptr<Journal> journal_;
  Faults faults_;
  RunState resumed_;  // from the checkpoint
  std::vector<std::string> resume_notes_;
  std::optional<CheckpointTimes> checkpoint_times_;
  std::unique_ptr<BadImages> bad_train_, bad_test_;  // with --on-bad-image skip
  std::unique_ptr<Updater> updater_;
  std::unique_ptr<Loader> loader_;

  Score epoch_score_;  // of the training images since the epoch's start
  Clock::time_point run_start_, epoch_start_;
  double images_per_s_ = 0;                // of late, of all ranks
  std::vector<double> iteration_seconds_;  // of as many images as the first iteration has
  EndReport end_;
};

}  // namespace paceline::train
