// SPDX-License-Identifier: Apache-2.0
// Why a rank is late, and in which iterations.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analysis/communication/lateness.h"
#include "analysis/phases/interludes.h"
#include "analysis/phases/iterations.h"
#include "analysis/phases/phases.h"

namespace paceline::analysis {

// A phase that takes one rank longer than the other ranks.
struct PhaseExcess {
  Phase phase = Phase::other;
  double ns = 0;              // longer in an iteration than the median of the other ranks, mean over the iterations
  double share_of_delay = 0;  // of the time that the rank is behind
};

// The phase that explains most of a rank's lateness: at least half of it. Communication does not count, since a late
// rank waits less in it than the others do. `iterations` holds those of each rank, with phases; only iterations of the
// table count, each with the interludes before it (`interludes`, if given, of each rank). Cost: linear in the
// iterations of all ranks, times log of the ranks.
std::optional<PhaseExcess> slow_phase(const LatenessTable& table,
                                      std::span<const std::span<const Iteration>> iterations, const LateRank& late,
                                      std::span<const std::span<const Interlude>> interludes = {});

// When a rank is late.
struct LatenessPattern {
  enum class Shape : std::uint8_t {
    steady,    // in all iterations alike, as far as chance allows to say
    since,     // from iteration `at` on, and not before
    until,     // before iteration `at`, and not from there on
    periodic,  // in every `period`-th iteration, the first of which is `at`
    single,    // in few iterations without a period
  };
  Shape shape = Shape::steady;
  std::int64_t at = 0;     // number of an iteration
  std::size_t period = 0;  // iterations
  std::size_t affected =
      0;  // iterations that the rank is late in: those that stand out, or by half of the mean lateness
};

// A jump of the lateness to or from less than a third is tested as in step_changes.h. Periodic and single: at most a
// fifth of the iterations have more than half of the largest lateness, and at least four fifths of all lateness.
// Periodic is also a lateness in every second to eighth iteration that is clear of the others by 4.5 standard errors,
// or in every ninth to 256th by 6 and more where few repeat it, unless the rank is late or early elsewhere in the
// period, as in a wave. Cost: that of test_step_change(), and 256 times the iterations.
LatenessPattern lateness_pattern(const LatenessTable& table, std::uint32_t rank);

}  // namespace paceline::analysis
