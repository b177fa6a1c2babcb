// SPDX-License-Identifier: Apache-2.0
// One level for everything that a report accuses: ranks, hosts, links and changes together.
//
// Holm's procedure with weights (S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian J.
// Statistics 6, 1979): each test has a share of the level, and a test that accuses somebody leaves its share to the
// others.
#pragma once

#include <span>

#include "analysis/communication/lateness_test.h"
#include "analysis/statistics/block_contrasts.h"
#include "analysis/statistics/step_changes.h"

namespace paceline::analysis {

// The shares of the level of one run's questions: divided equally by the ranks, hosts or links that are tested.
// Questions that were not asked of a run have none. A report is read for its slow ranks first.
inline constexpr double slow_ranks_weight = 8, other_weight = 1;

// The tests of one question, or a change of the step time.
struct Accuser {
  LatenessTest* late = nullptr;
  StepChangeTest* change = nullptr;
  double weight = other_weight;
};

// Removes the accusations that are not beyond chance with all others of the report taken into account, and sets `p` of
// those that are left. In a run without real differences the chance of any false accusation is at most `level`.
void correct_for_all(std::span<const Accuser> accusers, double level = accusation_level);

}  // namespace paceline::analysis
