// SPDX-License-Identifier: Apache-2.0
// A training job made by hand, with answers that can be worked out on paper. Times in ms:
//
//   start-up 1000; then iterations of: preprocess 5, forward 30, backward 50, allreduce, optimizer 10, and 5 that no
//   range names; then evaluate (on all ranks), checkpoint 50.
//   1 rank:  8 iterations of 100, evaluate 150:                     wall 2000
//   2 ranks: 4 iterations of 120, evaluate 75:                      wall 1605
//            rank 1's backward takes 60, so rank 0 waits 10 in an allreduce of 20; the transfer takes 10.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "analysis/trace/builder.h"

namespace paceline::analysis {

struct Job {
  int ranks = 1;
  double accuracy = 0.95;
  nlohmann::json config = {{"program", "hand"}, {"model", "resnet18"},     {"batch_per_rank", 32},
                           {"epochs", 1},       {"evaluate", "all ranks"}, {"seed", 1}};
  bool say_config = true;
  std::vector<int> batches = {}, accumulate = {};  // by rank, if they differ
};

inline Trace make_trace(Job job) {
  constexpr std::int64_t ms = 1'000'000;
  const std::string domain = "paceline.trainer";
  TraceBuilder run;
  for (int r = 0; r < job.ranks; ++r) {
    RankBuilder& rank = run.add_rank(r, job.ranks);
    rank.info().host = "alice";
    rank.info().format = "pace";
    TrackBuilder& main = rank.add_main_thread();
    std::int64_t now = 0;
    const auto phase = [&](const char* name, std::int64_t duration) {
      main.add_slice(now, now + duration * ms, name, domain, name);
      now += duration * ms;
    };
    phase("startup", 1000);
    if (job.say_config) {
      job.config["ranks"] = job.ranks;
      job.config["global_batch"] = 32 * job.ranks;
      job.config["images_per_iteration"] = 32 * job.ranks;
      if (!job.batches.empty()) {
        const auto index = static_cast<std::size_t>(r);
        const int batch = job.batches[index], times = job.accumulate.empty() ? 1 : job.accumulate[index];
        job.config["batch_per_rank"] = batch;
        job.config["accumulate"] = times;
        job.config["global_batch"] = job.config["images_per_iteration"] = batch * times * job.ranks;
      }
      job.config["communicator"] = job.ranks == 1 ? "none" : "ring";
      main.add_mark(1000 * ms, job.config.dump(), domain, "run");
    }
    for (int i = 0; i < 8 / job.ranks; ++i) {
      main.push(now, "iteration", domain, "iteration");
      main.argument("payload", i);
      phase("preprocess", 5);
      phase("forward", 30);
      phase("backward", r == 0 ? 50 : 60);
      if (job.ranks > 1) {
        const std::int64_t length = r == 0 ? 20 : 10;
        main.push(now, "allreduce", domain, "allreduce");
        main.add_slice(now, now + length * ms, "MPI_Allreduce", "mpi", "collective");
        main.argument("bytes", 1e6);
        main.text_argument("communicator", "MPI_COMM_WORLD");
        main.argument("sequence", i);
        main.pop(now += length * ms);
      }
      phase("optimizer", 10);
      main.pop(now += 5 * ms);
    }
    phase("evaluate", 150 / job.ranks);
    const std::uint32_t mark = main.add_mark(now, "accuracy", domain, "accuracy");
    main.mark_argument(mark, "payload", job.accuracy);
    phase("checkpoint", 50);
    rank.info().start_ns = 0;
    rank.info().end_ns = now;
  }
  return run.finish();
}

}  // namespace paceline::analysis
