// SPDX-License-Identifier: Apache-2.0
// Predictions for a pipeline with another number of microbatches, another number of stages or another split of the
// layers. docs/metrics.md has the model.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "analysis/graph/prediction.h"
#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

struct PipelineChange {
  std::optional<std::size_t> microbatches = {}, stages = {};
  // "layer2,layer4.0": the first layer of each stage behind the first, as the trainer's --pipeline-split takes it.
  // "balanced": the split with the shortest step. Empty: the recorded split, and a balanced one for other stages.
  std::string split = {};

  bool any() const { return microbatches || stages || !split.empty(); }
};

struct PipelinePrediction {
  std::size_t microbatches = 0, stages = 0;
  std::string split = {};  // the first layers of the stages behind the first; empty if the split is the recorded one
  double length_s = 0;     // first forward to last backward
  double step_s = 0;       // the whole iteration
  double bubble = 0;       // if messages took no time
  double imbalance = 0;    // longest stage ÷ mean
  std::size_t longest = 0;
};

// Throws Error, with the run's path, if the run is no pipeline or cannot be changed so.
PipelinePrediction predict_pipeline(const RunAnalysis& run, const PipelineChange& change);

// The split with the shortest step for the recorded numbers of stages and microbatches, if the step becomes shorter by
// at least a 30th. Nothing where the run does not describe the parts of its network.
std::optional<PipelinePrediction> better_split(const RunAnalysis& run);

// The same predictions as `paceline whatif` prints them: with a change the one of it, without one those of other
// microbatches, of half and twice the stages, and of a better split. `options`: what the user wrote. Throws Error as
// predict_pipeline() does.
WhatIf pipeline_what_if(const RunAnalysis& run, const PipelineChange& change, const std::string& options);

// Adds the predictions of a run that is a pipeline to those of its replay.
void add_pipeline_predictions(const RunAnalysis& run, WhatIf& what_if);

}  // namespace paceline::analysis
