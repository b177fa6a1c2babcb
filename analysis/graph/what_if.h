// SPDX-License-Identifier: Apache-2.0
// Predictions: the step time of a recorded run if something about it were different.
//
// A prediction replays the run twice, as it was and with the changes, with the same fitted costs and the same draws
// from the observed transfer times. The predicted step is the measured mean step × the ratio of the two means; medians
// stand beside them. The 95 % interval covers the variation between iterations (analysis/scaling/long_run.h) and what
// the model was off by in closed loops on real runs. A kind of change without such runs has none (docs/metrics.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/graph/changed_work.h"
#include "analysis/graph/core_sharing.h"
#include "analysis/graph/critical_path.h"
#include "analysis/graph/gradient_schedule.h"
#include "analysis/graph/prediction.h"
#include "analysis/graph/replay.h"

namespace paceline::analysis {

// What the run's description gives about how it trains.
struct TrainingSetup {
  double bytes_per_value = 4;  // that gradients are sent in
  // Of the gradients, where their type is not known: it then follows from their bytes.
  std::optional<double> values = {};
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::halving_doubling;
  std::optional<double> bucket_bytes = {};
  RankCpus cpus = {};
  // The trainer's updater where it is none of those that average whole gradients by allreduce: "sharded", "top_k", …
  std::string other_updater = {};
};

// Work in ranges and kernels of this name that is `factor` times as fast.
struct FasterWork {
  std::string name;  // a pattern; `*` stands for any text
  double factor = 1;
  bool operator==(const FasterWork&) const = default;
};

// The changes of one prediction; they combine.
struct Changes {
  std::optional<double> bytes_per_value = {};  // of gradients on the network: 2 for fp16 and bf16
  std::optional<GradientSchedule> schedule = {};
  std::optional<double> bucket_bytes = {};
  std::optional<AllreduceAlgorithm> algorithm = {};
  double latency = 1, byte_time = 1;  // the network's α and β, as factors
  bool free_communication = false;    // transfers take no time
  double batch = 1;                   // factor of the images per rank and iteration
  std::optional<int> ranks = {};
  bool balanced = false;                   // all ranks have the mean work of the ranks
  std::vector<std::size_t> relieved = {};  // indices of ranks that become no slower than the others
  double loader = 1;                       // the loader's speed as a factor; 0: preprocessing takes no time
  std::vector<FasterWork> faster = {};

  bool any() const;
  bool operator==(const Changes&) const = default;
};

// A host and the indices of its ranks.
struct HostRanks {
  std::string host;
  std::vector<std::size_t> ranks;
};

// The run as a replayable program with its fitted costs. The trace is not needed afterwards.
class Predictor {
 public:
  // `faster` lists the names that predictions may use.
  Predictor(const RunIndex& index, const DependencyGraph& graph, const TrainingSetup& setup,
            const std::vector<FasterWork>& faster = {});

  bool usable() const { return program_.iterations.size() > 0 && base_.complete; }
  double step_s() const { return measured_s_; }  // the mean after warm-up
  double replayed_s() const;
  // The figures of the unchanged run, without predictions.
  WhatIf unchanged() const;
  std::size_t iterations() const { return steady().size(); }
  const ReplayProgram& program() const { return program_; }
  const std::vector<HostRanks>& hosts() const { return hosts_; }  // in the order of their first ranks
  std::optional<GradientSchedule> schedule() const { return schedule_; }
  const std::vector<FasterWork>& faster() const { return faster_; }
  const CoreSharing& sharing() const { return sharing_; }
  const RankWork& work() const { return work_; }

  // Why the changes cannot be predicted, as a sentence without a full stop; "" where they can.
  std::string obstacle(const Changes& changes) const;
  Prediction predict(const Changes& changes) const { return predict_all({changes}).front(); }
  // One for each of the changes, several of which are replayed at once; on several cores.
  std::vector<Prediction> predict_all(const std::vector<Changes>& changes) const;

 private:
  // A changed program: the recorded one with other times, or one of its own where the order of its items changes.
  struct Variation {
    std::optional<ReplayProgram> program = {};
    ReplayVariant variant = {};
    std::vector<double> relief_ns = {};  // as relieve_ranks() returns it
  };
  std::vector<std::size_t> steady() const;  // indices of the iterations after warm-up
  void replay_unchanged();
  bool reschedules(const Changes& changes) const;
  bool bytes_move_nothing(const Changes& changes) const;
  bool in_one_program(const Changes& a, const Changes& b) const;
  double bytes_factor(const Changes& changes) const;
  void rebuild();
  const Replayed& base_of(const Changes& changes) const;
  // Its gradients are put together anew where reschedules() says so, or always.
  Variation varied(const Changes& changes, bool rebuilt = false) const;
  Prediction prediction(const Changes& changes, const std::vector<double>& relief_ns, const Replayed& after) const;
  CollectiveTime time_of(const Changes& changes, double bytes_factor) const;
  static MessageTime message_time_of(const Changes& changes);
  TransferCost transfer_cost(const Changes& changes) const;
  bool shares_cores(const Changes& changes) const;
  bool stops_sharing(const Changes& changes) const;
  BesideWork recorded_beside() const;

  ReplayProgram program_;
  RankWork work_;  // of the program
  WorkSums work_sums_;
  std::vector<HostRanks> hosts_;
  TrainingSetup setup_;
  std::vector<FasterWork> faster_;
  std::optional<GradientSchedule> schedule_;
  Readiness ready_;
  CrossFit costs_;
  Replayed base_;
  std::optional<Replayed> rebuilt_;  // the unchanged run, its averaging of gradients put together by the model
  // Of the replays with each draw of the transfers.
  std::vector<double> replayed_ns_;  // the steady iterations
  double replayed_waiting_share_ = 0;
  CoreSharing sharing_;
  double measured_s_ = 0, median_s_ = 0;
};

// The kinds of layers and kernels with most of the critical path, at most two with at least 5 % each, as patterns and
// twice as fast. "layer1.0.conv2" belongs to the kind "*conv*".
std::vector<FasterWork> largest_kinds(const PhaseTable& table, const CriticalPath& path);

// All changes that apply to the run, the least time per image first, and the bounds. Faster work is that of the
// predictor.
WhatIf all_predictions(const Predictor& predictor);

}  // namespace paceline::analysis
