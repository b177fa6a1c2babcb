// SPDX-License-Identifier: Apache-2.0
#include "analysis/watch/lateness_looks.h"

#include <algorithm>
#include <array>
#include <utility>

#include "analysis/communication/accusations.h"

namespace paceline::analysis {

std::size_t LatenessLooks::most_iterations(std::size_t ranks) {
  constexpr std::size_t values = 1 << 18, fewest = 512, most = 4096;
  return std::clamp(values / std::max<std::size_t>(ranks, 1), fewest, most);
}

std::uint64_t LatenessLooks::first(std::uint64_t finished, std::size_t ranks) {
  const std::uint64_t warm_up = std::max<std::uint64_t>(1, finished / 10), kept = most_iterations(ranks);
  return std::max(warm_up, finished > kept ? finished - kept : 0);
}

LatenessTest LatenessLooks::look(const LatenessTable& table, std::uint64_t finished, bool ended) {
  LatenessTest test = test_lateness(table, 0);
  constexpr std::size_t fewest = 15;  // iterations in which somebody may be named
  if (table.iterations() < fewest) return test;
  constexpr double for_the_end = 0.75;
  double level = for_the_end * accusation_level;
  if (!ended || !std::exchange(kept_, false)) {
    const auto number = static_cast<double>(++looks_);
    level = (1 - for_the_end) * accusation_level / (number * (number + 1));
  }
  correct_for_all(std::array{Accuser{.late = &test}}, level);
  next_ = 2 * finished;
  return test;
}

}  // namespace paceline::analysis
