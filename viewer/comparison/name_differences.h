// SPDX-License-Identifier: Apache-2.0
// Compares the time of each name in a part of one run with its time in a part of another run.
#pragma once

#include <optional>
#include <vector>

#include "analysis/compare/compare.h"
#include "viewer/panels/slices_in.h"

namespace paceline::viewer {

// The slices that are added up: those of a part of a run, or those of one iteration, each rank's from its own begin to
// its own end of it.
struct Stretch {
  Part part;
  std::optional<std::int64_t> iteration = {};  // if set, only the ranks of the part count
};

struct NameTotal {
  std::uint64_t count = 0;          // slices on all ranks that begin in the stretch
  double mean_ns = 0;               // their time, mean over the ranks
  std::optional<SliceRef> longest;  // nothing where there are none
};

struct NameDifference {
  std::string name, domain, category;
  NameTotal a, b;
  bool iteration = false;  // slices of this name are the iterations

  double difference_ns() const { return b.mean_ns - a.mean_ns; }
};

// Names are the same where name, domain and category are. The largest difference comes first. A slice inside another
// one counts in both. Ends early, with any result, if cancelled. Cost: linear in the slices of both stretches.
std::vector<NameDifference> name_differences(const Run& a, const Stretch& of_a, const Run& b, const Stretch& of_b,
                                             const Ticket& ticket);

// The result of `paceline compare` for the range, the call or the kernel of this name; nullptr if it compared none.
const analysis::QuantityComparison* compared(const analysis::RunComparison& comparison, const NameDifference& name);

}  // namespace paceline::viewer
