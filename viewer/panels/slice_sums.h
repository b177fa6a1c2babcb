// SPDX-License-Identifier: Apache-2.0
// Adds up slices: how many, how long together, and how much time at least one of them covers.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "viewer/panels/slices_in.h"

namespace paceline::viewer {

struct SliceSum {
  std::uint64_t count = 0;
  std::int64_t total_ns = 0;
  std::optional<std::int64_t> covered_ns;  // by at least one of them, on whatever rank; nothing for too many slices
  std::int64_t longest_ns = -1;
  SliceRef longest;
};

struct SliceSums {
  SliceSum all;
  std::vector<std::pair<analysis::KindId, SliceSum>> kinds;  // the largest total first

  static constexpr std::size_t most_covered = 4'000'000;  // of more slices, the covered time would take too much memory
};

// Of these slices and marks. Cost: n log n.
SliceSums sum_kinds(const Run& run, std::span<const SliceRef> slices);
SliceSum sum_of(const Run& run, std::span<const SliceRef> slices);
// Of the slices that begin in the part. Ends early if cancelled.
SliceSums sum_kinds(const Run& run, const Part& part, const Ticket& ticket);

// "3 slices selected: 12.30 ms in total, 10.00 ms covered".
QString sum_text(const SliceSum& sum);

}  // namespace paceline::viewer
