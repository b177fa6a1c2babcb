// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/rate_plan.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace paceline::train {
namespace {

Schedule decay_of(const RateOptions& options, double rate, double global_batch, std::int64_t iterations,
                  std::int64_t iterations_per_epoch, std::size_t absorbed) {
  if (options.schedule == "constant") return constant_rate(rate);
  if (options.schedule == "cosine") return cosine_rate(rate, iterations);
  if (options.schedule == "poly") return polynomial_rate(rate, iterations, options.power);
  if (options.schedule == "slow_start") return slow_start_rate(rate, iterations);
  if (options.schedule != "step") throw std::invalid_argument("unknown schedule '" + options.schedule + "'");
  std::vector<std::int64_t> boundaries{iterations / 2, iterations * 3 / 4};
  if (!options.step_epochs.empty()) {
    boundaries.clear();
    for (const double epoch : options.step_epochs) {
      const double lasting = epoch * stretch(options, global_batch);
      boundaries.push_back(std::llround(lasting * static_cast<double>(iterations_per_epoch)));
    }
  }
  boundaries.erase(boundaries.begin(),
                   boundaries.begin() + static_cast<std::ptrdiff_t>(std::min(absorbed, boundaries.size())));
  return stepped_rate(rate, options.step_factor, std::move(boundaries));
}

}  // namespace

double scaled_rate(const RateOptions& options, double global_batch) {
  const double ratio = global_batch / options.base_batch;
  if (options.scaling == "none") return options.rate;
  if (options.scaling == "linear") return options.rate * ratio;
  if (options.scaling == "sqrt") return options.rate * std::sqrt(ratio);
  throw std::invalid_argument("unknown scaling of the learning rate '" + options.scaling + "'");
}

double stretch(const RateOptions& options, double global_batch) {
  return options.regime_adaptation ? global_batch / options.base_batch : 1;
}

std::int64_t warm_up_iterations(const RateOptions& options, double global_batch, std::int64_t iterations_per_epoch) {
  if (options.warmup == "none") return 0;
  const double lasting = options.warmup_epochs * stretch(options, global_batch);
  return std::llround(lasting * static_cast<double>(iterations_per_epoch));
}

Schedule plan_rate(const RateOptions& options, double global_batch, std::int64_t iterations,
                   std::int64_t iterations_per_epoch, std::size_t absorbed) {
  const double rate = scaled_rate(options, global_batch);
  Schedule schedule = decay_of(options, rate, global_batch, iterations, iterations_per_epoch, absorbed);
  const std::int64_t warm_up = warm_up_iterations(options, global_batch, iterations_per_epoch);
  if (warm_up == 0) return schedule;
  std::optional<double> first = options.warmup_rate;
  if (!first && options.scaling != "none") first = options.rate;
  if (options.warmup == "constant") {
    if (!first) throw std::invalid_argument("a constant warm-up without scaling needs a rate");
    return warmed_up_constantly(std::move(schedule), *first, warm_up);
  }
  if (options.warmup != "gradual") throw std::invalid_argument("unknown warm-up '" + options.warmup + "'");
  if (!first) first = rate / static_cast<double>(warm_up + 1);  // so that no iteration has rate 0
  return warmed_up(std::move(schedule), *first, warm_up);
}

}  // namespace paceline::train
