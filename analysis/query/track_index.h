// SPDX-License-Identifier: Apache-2.0
// Indexes over the slices of one track, each made on first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/trace/slices.h"

namespace paceline::analysis {

class TrackIndex {
 public:
  explicit TrackIndex(const Slices& slices) : slices_(&slices) {}

  // The first slice from `from` on that ends at `end_ns` or later; size() if there is none. About 128 steps, where the
  // slice is near; a step for each 4,096 slices in between. Makes an index of 0.13 bytes for each slice.
  std::size_t next_ending(std::size_t from, std::int64_t end_ns);

  // The slices by kind: for each kind that occurs, its slices in their order. 4 bytes for each slice.
  struct OfKind {
    KindId kind = 0;
    std::span<const std::uint32_t> slices;
  };
  const std::vector<OfKind>& by_kind();

 private:
  static constexpr std::size_t block = 64;

  const Slices* slices_;
  std::vector<std::int64_t> latest_end_, latest_end_above_;  // of 64 slices, of 64 of those
  std::vector<OfKind> by_kind_;
  std::vector<std::uint32_t> order_;
};

}  // namespace paceline::analysis
