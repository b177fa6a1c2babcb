// SPDX-License-Identifier: Apache-2.0
// The learning rate of a whole run, made from the user's options: scaled with the batch, warmed up, decayed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/optim/schedule.h"

namespace paceline::train {

struct RateOptions {
  double rate = 0.02;  // for a global batch of base_batch if it is scaled, else for the run's global batch
  // linear: × B ÷ base_batch (Goyal et al., arXiv 1706.02677, 2.1); sqrt: × √(B ÷ base_batch) (Hoffer et al., arXiv
  // 1705.08741, section 4; Krizhevsky, arXiv 1404.5997); none: not scaled. B is the global batch of an update.
  std::string scaling = "none";
  double base_batch = 256;

  // constant; step: × step_factor at each of step_epochs, by default at ½ and ¾ of the run; cosine; poly: to 0 with
  // `power`; slow_start.
  std::string schedule = "cosine";
  std::vector<double> step_epochs;
  double step_factor = 0.1;
  double power = 2;

  // none; constant: warmup_rate, then the schedule; gradual: from warmup_rate linearly, iteration by iteration, to the
  // schedule. The default of warmup_rate is the rate before scaling. If the rate is not scaled, gradual starts at rate
  // ÷ (iterations of the warm-up + 1), and constant has no default.
  std::string warmup = "gradual";
  double warmup_epochs = 0.25;
  std::optional<double> warmup_rate;

  // Regime adaptation (Hoffer et al., arXiv 1705.08741, section 5): epochs, step_epochs and the warm-up last B ÷
  // base_batch times as long, so that a large batch gets as many updates as the base batch.
  bool regime_adaptation = false;
};

// The rate after the warm-up and before any decay.
double scaled_rate(const RateOptions& options, double global_batch);

// The factor by which regime adaptation lengthens the run; 1 without it.
double stretch(const RateOptions& options, double global_batch);

// The length of the warm-up in iterations, which may exceed that of the run; 0 without a warm-up.
std::int64_t warm_up_iterations(const RateOptions& options, double global_batch, std::int64_t iterations_per_epoch);

// iterations, iterations_per_epoch: of the run after regime adaptation. absorbed: the number of step boundaries,
// counted from the first, that do not change the rate because the batch grows there (batch_schedule.h). Throws
// std::invalid_argument for an unknown name, and for a constant warm-up without a rate.
Schedule plan_rate(const RateOptions& options, double global_batch, std::int64_t iterations,
                   std::int64_t iterations_per_epoch, std::size_t absorbed = 0);

}  // namespace paceline::train
