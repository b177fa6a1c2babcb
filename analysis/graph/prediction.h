// SPDX-License-Identifier: Apache-2.0
// What predictions found, as plain data (what_if.h makes them).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analysis/statistics/interval.h"

namespace paceline::analysis {

// A part of the step that a change makes longer or shorter.
struct MovedPart {
  std::string name;  // a phase, "waiting for the last rank", "transfer", "waiting for helper threads"
  double before_s = 0, after_s = 0;
};

struct Prediction {
  std::string title;                  // "fp16 allreduce"
  std::string options;                // of `paceline whatif`: "--fp16"
  double step_s = 0;                  // the mean step
  double median_s = 0;                // the median step
  std::optional<Interval> ci95 = {};  // of the mean step
  // The run is too short for that: of a mean step under the conditions of its iterations.
  bool ci95_of_change = false;
  bool error_unknown = false;  // what the model is off by was never measured for this kind of change: no interval
  double ratio = 1;            // of the predicted step to the measured one
  double per_image = 1;  // the same of the time per image of the job: more ranks and larger batches do more in a step
  std::vector<MovedPart> moved;  // the largest change first; those of at least 0.5 % of the step
  bool bound = false;            // no change of the program does it: communication free, preprocessing free
  // The gradients differ (16 bits, stale ones, more images in a step), so the accuracy may, too.
  bool alters_training = false;
};

struct WhatIf {
  double step_s = 0;      // measured: the mean of the steady iterations
  double median_s = 0;    // and their median
  double replayed_s = 0;  // by the replay without changes, from costs of other iterations
  // Share of the steps in which a main thread waits in collectives for the last rank, mean over the ranks: measured,
  // and in the replay without changes.
  double waiting_share = 0, replayed_waiting_share = 0;
  std::size_t iterations = 0;
  std::vector<Prediction> predictions = {};  // the least time per image first
  std::vector<std::string> notes = {};       // limits that matter for this run, whole sentences
};

}  // namespace paceline::analysis
