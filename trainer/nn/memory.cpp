// SPDX-License-Identifier: Apache-2.0
#include "trainer/nn/memory.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <numeric>

namespace paceline::train {
namespace {

class HostMemory final : public Memory {
 public:
  Values allocate(std::size_t count) override {
    constexpr std::size_t line = 64;
    const std::size_t bytes = (count * sizeof(float) + line - 1) / line * line;
    auto* memory = static_cast<float*>(std::aligned_alloc(line, std::max(bytes, line)));
    if (memory == nullptr) throw std::bad_alloc();
    std::fill_n(memory, count, 0.0f);
    return {memory, [](float* values) { std::free(values); }};
  }

  void copy(std::span<const float> from, std::span<float> to) override { std::ranges::copy(from, to.begin()); }
  std::span<const float> readable(std::span<const float> values, std::vector<float>&) override { return values; }

  void add(std::span<const float> from, std::span<float> to) override {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }

  void divide(std::span<float> values, float divisor) override {
    for (float& value : values) value /= divisor;
  }

  double sum_of_squares(std::span<const float> values) override {
    constexpr std::size_t longest = 65536;  // values of a part, whose sums are added in order
    std::vector<double> sums((values.size() + longest - 1) / longest);
    const auto parts = static_cast<std::ptrdiff_t>(sums.size());
#pragma omp parallel for schedule(static) if (parts > 4)
    for (std::ptrdiff_t part = 0; part < parts; ++part) {
      const std::size_t first = static_cast<std::size_t>(part) * longest;
      double sum = 0;
      for (const float value : values.subspan(first, std::min(longest, values.size() - first))) {
        sum += static_cast<double>(value) * value;
      }
      sums[static_cast<std::size_t>(part)] = sum;
    }
    return std::accumulate(sums.begin(), sums.end(), 0.0);
  }
};

}  // namespace

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace paceline::train
