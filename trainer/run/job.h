// SPDX-License-Identifier: Apache-2.0
// Everything that a training run works with. start_up() builds it; train() uses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/checkpoint_times.h"
#include "trainer/comm/communicator.h"
#include "trainer/data/bad_images.h"
#include "trainer/data/loader.h"
#include "trainer/data/run_plan.h"
#include "trainer/guard/activity.h"
#include "trainer/guard/watched_communicator.h"
#include "trainer/optim/batch_schedule.h"
#include "trainer/optim/schedule.h"
#include "trainer/reporting/journal.h"
#include "trainer/reporting/layer_ranges.h"
#include "trainer/run/faults.h"
#include "trainer/run/gpu_part.h"
#include "trainer/run/run_data.h"
#include "trainer/run/staged_run.h"
#include "trainer/run/train_options.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {

// What the program gives to a run.
struct Surroundings {
  const Communicator& communicator;             // must outlive the run
  std::chrono::steady_clock::time_point start;  // of the program
  // Prints a line and ends the job. Called from any thread when this rank alone finds that it cannot go on.
  std::function<void(const std::string&)> abandon;
  const GpuPart* gpu = nullptr;  // null: the CPU computes
  const Grid* grid = nullptr;    // of a pipeline; null: every rank computes the whole network
};

struct Job {
  Job(const TrainOptions& run_options, Surroundings around);
  ~Job();  // calls `abandon` if a thread of the loader is stuck in a read
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const TrainOptions options;
  const Surroundings surroundings;
  Activity activity;
  Communicator communicator;  // records its calls in `activity`. Its reduction averages over `replicas`
  Collectives& ranks;         // of the communicator: all ranks
  const std::unique_ptr<Collectives> same_stage;  // the ranks with this rank's stage; null without a pipeline
  Collectives& replicas;  // the ranks that train the same layers on different images: same_stage, or all ranks

  int threads = 1;
  RunData data;
  BatchSchedule batches;
  RunPlan plan;
  EpochPlan first_epoch;
  std::uint64_t first_iteration = 0;  // above 0 in a resumed run
  std::uint64_t iterations = 0;       // of the whole run, those before first_iteration included
  std::unique_ptr<StagedRun> staged;  // of a pipeline; null otherwise
  std::unique_ptr<Model> model;       // of this rank's stage in a pipeline
  double train_flops_per_image = 0;   // of the whole network
  LayerRanges layer_ranges;
  std::unique_ptr<Optimizer> optimizer;  // of this rank's shard with --updater sharded, of its stage in a pipeline
  std::unique_ptr<Optimizer>
      whole_state;  // in both cases, rank 0: what the checkpoint held, until all ranks have their parts
  Schedule schedule;
  std::unique_ptr<Journal> journal;
  Faults faults;
  RunState resumed;  // from the checkpoint
  std::vector<std::string> notes, resume_notes;
  std::optional<CheckpointTimes> checkpoint_times;
  std::unique_ptr<BadImages> bad_train, bad_test;  // null unless bad images may be skipped
  std::unique_ptr<Updater> updater;
  std::unique_ptr<Loader> loader;

  double global_batch() const;  // images of an update over all ranks, when the run begins
  // The training images that the plan counts on. A run that only evaluates uses none, so it may have fewer than one
  // iteration takes.
  std::size_t planned_images() const;
  RunPlan plan_of(int replica) const;
  const ImageSource& train_images() const;  // labels alone on ranks that need no images
  const ImageSource& test_images() const;
  double rate_at(std::uint64_t iteration) const;
  double seconds_since_start() const;  // of the program
  bool has_checkpoint() const;         // whether the file exists
  // "; FILE is still the checkpoint before" for messages of a run that fails; empty if there is no checkpoint.
  std::string kept_checkpoint() const;
};

}  // namespace paceline::train
