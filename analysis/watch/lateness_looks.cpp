// SPDX-License-Identifier: Apache-2.0
#include "analysis/watch/lateness_looks.h"

#include <algorithm>
#include <array>

#include "analysis/communication/accusations.h"

namespace paceline::analysis {

std::uint64_t LatenessLooks::first(std::uint64_t finished) {
  const std::uint64_t warm_up = std::max<std::uint64_t>(1, finished / 10);
  return std::max(warm_up, finished > most_iterations ? finished - most_iterations : 0);
}

LatenessTest LatenessLooks::look(const LatenessTable& table, std::uint64_t finished) {
  LatenessTest test = test_lateness(table, 0);
  if (!test.judged && test.late.empty()) return test;
  const auto number = static_cast<double>(++looks_);
  correct_for_all(std::array{Accuser{.late = &test}}, accusation_level / (number * (number + 1)));
  next_ = finished + finished / 2;
  return test;
}

}  // namespace paceline::analysis
