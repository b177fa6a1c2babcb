// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace paceline::train {

Schedule constant_rate(double rate) {
  return [rate](std::int64_t) { return rate; };
}

Schedule stepped_rate(double rate, double factor, std::vector<std::int64_t> boundaries) {
  return [=, boundaries = std::move(boundaries)](std::int64_t iteration) {
    const auto passed = std::upper_bound(boundaries.begin(), boundaries.end(), iteration) - boundaries.begin();
    return rate * std::pow(factor, static_cast<double>(passed));
  };
}

Schedule cosine_rate(double rate, std::int64_t iterations) {
  return [=](std::int64_t iteration) {
    const double done = std::min(1.0, static_cast<double>(iteration) / static_cast<double>(iterations));
    return rate * 0.5 * (1 + std::cos(std::numbers::pi * done));
  };
}

Schedule polynomial_rate(double rate, std::int64_t iterations, double power) {
  return [=](std::int64_t iteration) {
    const double left = 1 - static_cast<double>(iteration) / static_cast<double>(iterations);
    return rate * std::pow(std::max(0.0, left), power);
  };
}

Schedule slow_start_rate(double rate, std::int64_t iterations) {
  return [=](std::int64_t iteration) {
    const std::int64_t epochs = 90 * iteration / iterations;  // as if the run had 90
    return rate * (epochs < 40 ? 0.5 : epochs < 70 ? 0.075 : epochs < 85 ? 0.01 : 0.001);
  };
}

Schedule warmed_up_constantly(Schedule schedule, double rate, std::int64_t iterations) {
  return [=, schedule = std::move(schedule)](std::int64_t iteration) {
    return iteration < iterations ? rate : schedule(iteration);
  };
}

Schedule warmed_up(Schedule schedule, double first, std::int64_t iterations) {
  return [=, schedule = std::move(schedule)](std::int64_t iteration) {
    if (iteration >= iterations) return schedule(iteration);
    const double done = static_cast<double>(iteration) / static_cast<double>(iterations);
    return first + done * (schedule(iterations) - first);
  };
}

}  // namespace paceline::train
