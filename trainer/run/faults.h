// SPDX-License-Identifier: Apache-2.0
// Injected faults for a profiler to find.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace paceline::train {

struct Faults {
  struct Delay {
    int rank = -1;  // none
    std::chrono::milliseconds time{0};
    std::chrono::milliseconds of(int this_rank) const {
      return this_rank == rank ? time : std::chrono::milliseconds(0);
    }
  };
  Delay slow_rank;    // in every forward pass
  Delay slow_loader;  // in the preparation of every batch
  // In the passes of each iteration through the whole network of a pipeline; each stage has the share of its layers in
  // the multiply-adds, and each microbatch an equal part of it.
  std::chrono::milliseconds slow_layers{0};
  bool duplicate_shards = false;  // every rank trains on the images of rank 0
  bool tiny_buckets = false;      // a bucket for every layer, so that each layer pays the latency
};

// Parses slow-rank=RANK:MS, slow-loader=RANK:MS, slow-layers=MS, duplicate-shards and tiny-buckets. Throws Error
// (usage) for other texts and for a rank that the job does not have.
Faults parse_faults(const std::vector<std::string>& texts, int ranks);

}  // namespace paceline::train
