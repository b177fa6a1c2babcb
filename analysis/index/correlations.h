// SPDX-License-Identifier: Apache-2.0
// From a call to what it started on a device, and back.
//
//   const Correlations correlations(trace, rank);
//   for (const auto& kernel : correlations.started_by(correlation)) …
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

class Correlations {
 public:
  struct Place {
    std::uint32_t correlation = 0;
    std::uint32_t track = 0, slice = 0;  // index into Rank::tracks, and of its slices
  };

  // Both views need the rank as it is. Cost: n log n in the slices with the argument "correlation"; 12 bytes each.
  Correlations(const Trace& trace, const Rank& rank);

  // Slices of streams; more than one for a graph's nodes. O(log n).
  std::span<const Place> started_by(std::uint32_t correlation) const;
  // Slices of threads; the outer call first where the runtime called the driver. O(log n).
  std::span<const Place> calls(std::uint32_t correlation) const;
  // The calls that launched this slice of a stream; none where its argument is no correlation. O(log n).
  std::span<const Place> calls_of(const Slices& work, std::size_t slice) const;

 private:
  NameId key_;                          // of the argument "correlation"
  std::vector<Place> started_, calls_;  // by correlation, then track, then slice
};

}  // namespace paceline::analysis
