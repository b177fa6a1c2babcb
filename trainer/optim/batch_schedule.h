// SPDX-License-Identifier: Apache-2.0
// Growing the batch instead of lowering the learning rate (Smith, Kindermans, Ying and Le, arXiv 1711.00489): the noise
// of an update, g ≈ ε N ÷ (B (1 − m)) with rate ε, training set N, batch B, momentum m, falls with a larger B as it
// does with a smaller ε, and larger batches mean fewer updates. At each boundary where a step schedule would divide the
// rate by a factor, B is multiplied by it, until it reaches a limit (in the paper, B is about a tenth of N); from there
// on the rate is divided. An update of a larger batch accumulates the gradients of more micro-batches.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline::train {

class BatchSchedule {
 public:
  // An update takes `first` micro-batches at the start and `factor` times as many after each boundary (in epochs,
  // ascending), as long as that is at most `largest` (0: no limit). Without boundaries, or with factor 1, it always
  // takes `first`.
  explicit BatchSchedule(std::int64_t first = 1, double factor = 1, std::vector<double> boundaries = {},
                         std::int64_t largest = 0);

  // The micro-batches of an update that begins at this epoch.
  std::int64_t accumulate(double epoch) const;

  const std::vector<double>& boundaries() const { return boundaries_; }

  // The number of boundaries, counted from the first, at which the batch grows; at the others the rate must be divided.
  std::size_t absorbed() const { return sizes_.size() - 1; }

  std::int64_t largest() const { return sizes_.back(); }

 private:
  std::vector<double> boundaries_;
  std::vector<std::int64_t> sizes_;  // before the first boundary, after it, …; as far as the limit lets them grow
};

}  // namespace paceline::train
