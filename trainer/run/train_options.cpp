// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/train_options.h"

#include <fmt/format.h>

#include <utility>

namespace paceline::train {

BatchSchedule batch_schedule_of(const OptimizationOptions& o, std::int64_t first, double stretch) {
  if (o.grow_batch == 1) return BatchSchedule(first);
  std::vector<double> boundaries = o.rate.step_epochs;
  for (double& epoch : boundaries) epoch *= stretch;
  return BatchSchedule(first, o.grow_batch, std::move(boundaries), o.grow_batch_limit);
}

void set_variants(const OptimizationOptions& o, const std::function<void(std::span<double>)>& sum_over_ranks,
                  ModelOptions& model) {
  model.freeze_batch_norm = o.freeze_batch_norm;
  model.batch_norm.ghost_batch = o.ghost_batch;
  if (o.sync_batch_norm) model.batch_norm.sum_over_ranks = sum_over_ranks;
  if (o.batch_norm_statistics == "last") model.batch_norm.momentum = 1;
  model.resnet_v1 = o.resnet_v1;
  model.zero_gamma = o.zero_gamma;
  model.width = o.width;
  model.label_smoothing = o.label_smoothing;
}

std::string title_of(const std::string& model, const OptimizationOptions& o) {
  std::string title = model;
  if (o.resnet_v1) title += " v1";
  if (o.width != 1) title += fmt::format(" width {}", o.width);
  return title;
}

}  // namespace paceline::train
