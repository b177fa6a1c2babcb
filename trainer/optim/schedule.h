// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules: pure functions of the iteration, which is counted from 0 over the whole run, so that a
// resumed run needs no other state.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace paceline::train {

using Schedule = std::function<double(std::int64_t iteration)>;

Schedule constant_rate(double rate);

// Multiplied by factor at each boundary (an iteration; ascending).
Schedule stepped_rate(double rate, double factor, std::vector<std::int64_t> boundaries);

// From rate at iteration 0 along half a cosine to 0 at `iterations` (Loshchilov and Hutter, arXiv 1608.03983, without
// restarts).
Schedule cosine_rate(double rate, std::int64_t iterations);

// rate × (1 − iteration ÷ iterations)^power, then 0 (LARS, arXiv 1708.03888: power 2).
Schedule polynomial_rate(double rate, std::int64_t iterations, double power);

// Slow start (Akiba et al., arXiv 1711.04325, 3.1): ½ rate for 40 of 90 epochs, 0.075 rate for 30, 0.01 rate for 15,
// 0.001 rate for the last 5; a run of another length is divided in the same proportions.
Schedule slow_start_rate(double rate, std::int64_t iterations);

// `rate` for the first `iterations`, then `schedule`: constant warm-up (Goyal et al., arXiv 1706.02677, 2.2).
Schedule warmed_up_constantly(Schedule schedule, double rate, std::int64_t iterations);

// During the first `iterations` linear from `first` to the value of `schedule` at `iterations`, then `schedule` itself:
// gradual warm-up (Goyal et al., arXiv 1706.02677, 2.2), where first = rate ÷ ranks.
Schedule warmed_up(Schedule schedule, double first, std::int64_t iterations);

}  // namespace paceline::train
