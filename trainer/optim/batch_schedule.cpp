// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/batch_schedule.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace paceline::train {

BatchSchedule::BatchSchedule(std::int64_t first, double factor, std::vector<double> boundaries, std::int64_t largest)
    : boundaries_(std::move(boundaries)), sizes_{first} {
  if (first < 1 || factor < 1) throw std::invalid_argument("a batch grows from at least 1 by a factor of at least 1");
  double size = static_cast<double>(first);
  for (std::size_t i = 0; i < boundaries_.size() && factor > 1; ++i) {
    size *= factor;
    if (largest > 0 && std::llround(size) > largest) break;
    sizes_.push_back(std::llround(size));
  }
}

std::int64_t BatchSchedule::accumulate(double epoch) const {
  const auto passed = std::upper_bound(boundaries_.begin(), boundaries_.end(), epoch) - boundaries_.begin();
  return sizes_[std::min(static_cast<std::size_t>(passed), absorbed())];
}

}  // namespace paceline::train
