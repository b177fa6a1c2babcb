// SPDX-License-Identifier: Apache-2.0
// The iterations that all ranks of a running job have finished, each as a row of figures, and whether they show a rank
// that is late.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "analysis/communication/lateness.h"
#include "analysis/watch/lateness_looks.h"
#include "analysis/watch/live_files.h"
#include "analysis/watch/watch_frame.h"

namespace paceline::analysis {

class LiveSteps {
 public:
  // Figures of all ranks together begin anew where another rank appears.
  void forget();

  // Takes the iterations of an import that are complete: those of which all ranks have finished a later one as well,
  // because a collective of it may end there; the last ones when all ranks have ended.
  void take(const std::vector<LiveFile*>& ranks, const Collectives& collectives, bool all_ended);

  // Tests once there is enough that is new, or now.
  void test_if_due(const std::vector<LiveFile*>& ranks, bool now);
  const std::optional<LatenessTest>& lateness() const { return lateness_; }

  // The figures of the last iterations, also of each rank; `frame` has its ranks.
  void describe(WatchFrame& frame) const;

  static constexpr std::size_t shown = 64;  // the last ones, of which figures are shown

 private:
  struct Row {
    std::int64_t number = 0;
    std::size_t finished = 0;                          // ranks
    std::vector<std::int64_t> duration_ns;             // of each rank; -1: it did not finish
    std::vector<std::int64_t> waited_ns;               // of each rank, for others in collectives
    std::array<std::int64_t, phase_count> phase_ns{};  // sum over the ranks
    LatenessRow lateness;
  };
  using Rows = std::deque<Row>;

  Rows::const_iterator first_shown() const;
  void describe_ranks(WatchFrame& frame) const;

  Rows rows_;  // the last ones
  std::uint64_t finished_rows_ = 0;
  std::optional<LatenessTest> lateness_;
  std::uint64_t tested_rows_ = 0;
  double next_test_s_ = 0;
  LatenessLooks looks_;
};

}  // namespace paceline::analysis
