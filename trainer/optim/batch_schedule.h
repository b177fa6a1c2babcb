// Growing the batch instead of lowering the learning rate (Smith, Kindermans, Ying and Le, arXiv 1711.00489): the noise
// of an update, g ≈ ε N ÷ (B (1 − m)) with rate ε, training set N, batch B, momentum m, is lowered as well by a larger
// B as by a smaller ε, and larger batches mean fewer updates. Where a step schedule would divide the rate by a factor,
// B is multiplied by it, as long as it stays within a limit (the paper's: B about a tenth of N); after that the rate is
// divided. An update of a larger batch accumulates the gradients of more micro-batches.
#pragma once

#include <cstdint>
#include <vector>

namespace paceline::train {

class BatchSchedule {
 public:
  // `first` micro-batches an update at the start. At each boundary (in epochs, ascending) `factor` times as many, as
  // long as these are not more than `largest` (0: no limit). Without boundaries, or with factor 1: always `first`.
  explicit BatchSchedule(std::int64_t first = 1, double factor = 1, std::vector<double> boundaries = {},
                         std::int64_t largest = 0);

  // Micro-batches that an update takes which begins at this epoch.
  std::int64_t accumulate(double epoch) const;

  const std::vector<double>& boundaries() const { return boundaries_; }

  // How many of the boundaries, the first ones, the batch takes; at the others the rate is to be divided.
  std::size_t absorbed() const { return sizes_.size() - 1; }

  std::int64_t largest() const { return sizes_.back(); }

 private:
  std::vector<double> boundaries_;
  std::vector<std::int64_t> sizes_;  // before the first boundary, after it, …; as far as the limit lets them grow
};

}  // namespace paceline::train
