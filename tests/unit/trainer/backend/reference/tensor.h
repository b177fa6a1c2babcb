// SPDX-License-Identifier: Apache-2.0
// A dense float64 array of samples × channels × height × width, for the reference.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/nn/network.h"

namespace paceline::train::reference {

struct Tensor {
  std::int64_t samples = 0;
  Shape shape;
  std::vector<double> values;

  Tensor() = default;
  Tensor(std::int64_t n, Shape s) : samples(n), shape(s), values(static_cast<std::size_t>(n * s.size()), 0.0) {}

  double& at(std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) { return row(n, c, y)[x]; }
  double at(std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) const { return row(n, c, y)[x]; }

  double* row(std::int64_t n, std::int64_t c, std::int64_t y) { return values.data() + start(n, c, y); }
  const double* row(std::int64_t n, std::int64_t c, std::int64_t y) const { return values.data() + start(n, c, y); }

 private:
  std::int64_t start(std::int64_t n, std::int64_t c, std::int64_t y) const {
    return ((n * shape.channels + c) * shape.height + y) * shape.width;
  }
};

// ‖a − b‖₂ ÷ ‖b‖₂, or ‖a‖₂ where b is zero.
template <class A, class B>
double relative_error(const A& a, const B& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += d * d;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(norm > 0 ? difference / norm : difference);
}

}  // namespace paceline::train::reference
