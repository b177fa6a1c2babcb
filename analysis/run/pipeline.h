// SPDX-License-Identifier: Apache-2.0
// Pipelines: how long the stages of a network compute and wait for each other, and what other numbers of microbatches
// would change. docs/metrics.md has the formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

// Medians over the iterations, means over the stage's ranks.
struct PipelineStage {
  std::vector<std::size_t> ranks;        // indices into RunAnalysis::per_rank, one for each replica
  double forward_s = 0, backward_s = 0;  // of one microbatch
  double busy_s = 0;                     // of all microbatches of an iteration
  double bubble = 0;                     // 1 − busy ÷ length of the pipeline
};

struct PipelineFigures {
  std::vector<PipelineStage> stages;
  std::size_t microbatches = 0;
  double length_s = 0;                  // of the first stage's work in an iteration: first forward to last backward
  double bubble = 0, ideal_bubble = 0;  // measured, and (K − 1) ÷ (M + K − 1) of equal stages
  double predicted_length_s = 0;        // of these stages with this schedule, if messages took no time
  double predicted_bubble = 0;          // likewise
  double imbalance = 0;                 // longest busy ÷ mean busy
  std::size_t longest = 0;              // the stage with the longest busy

  // What happened in one iteration, means over the replicas.
  struct Iteration {
    std::int64_t number = 0;
    double length_s = 0;
    double bubble = 0;                // over all stages
    std::vector<double> busy_s = {};  // of each stage
    double stage_bubble(std::size_t stage) const { return 1 - busy_s[stage] / length_s; }
  };
  std::vector<Iteration> iterations;   // those that all ranks finished, in order
  std::optional<std::size_t> slowest;  // the index of the longest one after warm-up if it is clearly longer than usual
  std::size_t slowest_stage = 0;       // the one that worked most above its median in it

  // Other numbers of microbatches for the same batch, if a microbatch's time is proportional to its images.
  struct Other {
    std::size_t microbatches = 0;
    double length_s = 0, bubble = 0;
  };
  std::vector<Other> others;
};

// Nothing unless the run's description names its stages (pipeline_stages, microbatches, pipeline_schedule) and all
// ranks have the ranges of their stage.
std::optional<PipelineFigures> pipeline_figures(const RunAnalysis& run);

// The length of a pipeline whose stages take these seconds for a microbatch, if messages take no time. schedule: gpipe
// or 1f1b.
double pipeline_length(const std::vector<PipelineStage>& stages, std::size_t microbatches, const std::string& schedule);

}  // namespace paceline::analysis
