// SPDX-License-Identifier: Apache-2.0
#include "analysis/statistics/duration_sketch.h"

namespace paceline::analysis {

double DurationSketch::stddev_ns() const {
  if (count_ < 2) return 0;
  const double n = static_cast<double>(count_), away = mean_ns() - static_cast<double>(origin_ns_);
  return std::sqrt(std::max(squares_ - n * away * away, 0.0) / (n - 1));
}

double DurationSketch::middle_of(std::size_t bucket) {
  constexpr std::size_t buckets = std::size_t{1} << bucket_bits;
  const std::size_t shift = bucket < 2 * buckets ? 0 : (bucket >> bucket_bits) - 1;
  const double width = std::ldexp(1.0, static_cast<int>(shift));
  return width * static_cast<double>(bucket - (shift << bucket_bits)) + 0.5 * (width - 1);
}

void DurationSketch::add_slowly(std::int64_t ns) {
  if (counts_.empty() && kept_.size() < most_kept) {
    kept_.push_back(ns);
    return;
  }
  if (counts_.empty()) begin_histogram();
  count_in_histogram(bucket_of(ns), 1);
}

void DurationSketch::begin_histogram() {
  for (const std::int64_t ns : kept_) count_in_histogram(bucket_of(ns), 1);
  kept_ = {};
}

void DurationSketch::count_in_histogram(std::size_t bucket, std::uint64_t times) {
  constexpr std::size_t step = std::size_t{1} << bucket_bits;
  const std::size_t low = bucket / step * step;
  if (counts_.empty()) {
    first_ = low;
    counts_.resize(step);
  } else if (low < first_) {
    counts_.insert(counts_.begin(), first_ - low, 0);
    first_ = low;
  } else if (low + step > first_ + counts_.size()) {
    counts_.resize(low + step - first_);
  }
  counts_[bucket - first_] += times;
}

void DurationSketch::merge(const DurationSketch& other) {
  if (other.count_ == 0) return;
  if (count_ == 0) {
    *this = other;
    return;
  }
  // Σ(x − a)² = Σ(x − b)² + 2(b − a)Σ(x − b) + n(b − a)², with the other's origin b and this one's a.
  const double n = static_cast<double>(other.count_), away = static_cast<double>(other.origin_ns_ - origin_ns_);
  const double sum = n * (other.mean_ns() - static_cast<double>(other.origin_ns_));
  squares_ += other.squares_ + 2 * away * sum + n * away * away;
  count_ += other.count_;
  add_to_sum(sum_ns_, other.sum_ns_);
  minimum_ns_ = std::min(minimum_ns_, other.minimum_ns_);
  maximum_ns_ = std::max(maximum_ns_, other.maximum_ns_);
  if (exact() && other.exact() && kept_.size() + other.kept_.size() <= most_kept) {
    kept_.insert(kept_.end(), other.kept_.begin(), other.kept_.end());
    return;
  }
  if (exact()) begin_histogram();
  for (const std::int64_t ns : other.kept_) count_in_histogram(bucket_of(ns), 1);
  for (std::size_t i = 0; i < other.counts_.size(); ++i) {
    if (other.counts_[i] > 0) count_in_histogram(other.first_ + i, other.counts_[i]);
  }
}

double DurationSketch::at(std::uint64_t index) const {
  std::size_t i = 0;
  for (; i + 1 < counts_.size() && index >= counts_[i]; ++i) index -= counts_[i];
  return std::clamp(middle_of(first_ + i), static_cast<double>(minimum_ns_), static_cast<double>(maximum_ns_));
}

double DurationSketch::quantile_ns(double q) const {
  if (count_ == 0) return 0;
  const double place = q * static_cast<double>(count_ - 1);
  const auto below = static_cast<std::uint64_t>(place);
  const std::uint64_t above = std::min(below + 1, count_ - 1);
  double low = 0, high = 0;
  if (exact()) {
    std::vector<std::int64_t> sorted = kept_;
    std::ranges::sort(sorted);
    low = static_cast<double>(sorted[below]), high = static_cast<double>(sorted[above]);
  } else {
    low = at(below), high = at(above);
  }
  // The largest double that converts to an integer of 64 bits.
  constexpr double longest = 0x1.fffffffffffffp62;
  return std::min(low + (high - low) * (place - static_cast<double>(below)), longest);
}

}  // namespace paceline::analysis
