// The learning rate of a whole run from what its user asks for: scaled with the batch, warmed up, brought down.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/optim/schedule.h"

namespace paceline::train {

struct RateOptions {
  double rate = 0.02;  // of a global batch of base_batch where it is scaled, else of the run's
  // linear: × B ÷ base_batch (Goyal et al., arXiv 1706.02677, 2.1); sqrt: × √(B ÷ base_batch) (Hoffer et al., arXiv
  // 1705.08741, section 4; Krizhevsky, arXiv 1404.5997); none: as given. B is the global batch of an update.
  std::string scaling = "none";
  double base_batch = 256;

  // constant; step: × step_factor at each of step_epochs, where none are given at ½ and ¾ of the run; cosine; poly:
  // to 0 with `power`; slow_start.
  std::string schedule = "cosine";
  std::vector<double> step_epochs;
  double step_factor = 0.1;
  double power = 2;

  // none; constant: warmup_rate, then the schedule; gradual: from warmup_rate linearly, iteration by iteration, to the
  // schedule. Where no warmup_rate is given it is the rate before scaling; where nothing is scaled, gradual starts at
  // rate ÷ (iterations of the warm-up + 1), and constant has no such default.
  std::string warmup = "gradual";
  double warmup_epochs = 0.25;
  std::optional<double> warmup_rate;

  // Regime adaptation (Hoffer et al., arXiv 1705.08741, section 5): epochs, step_epochs and the warm-up last B ÷
  // base_batch times as long, so that a large batch gets as many updates as the base batch.
  bool regime_adaptation = false;
};

// The rate after the warm-up and before any decay.
double scaled_rate(const RateOptions& options, double global_batch);

// By how much regime adaptation lengthens the run; 1 without it.
double stretch(const RateOptions& options, double global_batch);

// How long the warm-up lasts, however long the run is; 0 without one.
std::int64_t warm_up_iterations(const RateOptions& options, double global_batch, std::int64_t iterations_per_epoch);

// iterations, iterations_per_epoch: of the run as it is, stretched already. absorbed: that many of the first step
// boundaries do nothing, because the batch grows there instead (batch_schedule.h). Throws std::invalid_argument for a
// name that is unknown or constant warm-up without a rate.
Schedule plan_rate(const RateOptions& options, double global_batch, std::int64_t iterations,
                   std::int64_t iterations_per_epoch, std::size_t absorbed = 0);

}  // namespace paceline::train
