// SPDX-License-Identifier: Apache-2.0
// Whether a series, such as the step times of a run, changed: one jump to another level, or a drift.
//
// The test looks at the places of the iterations in the order of their times, because noise of step times is seldom
// normal: one very slow iteration counts as one place (A. N. Pettitt, "A non-parametric approach to the change-point
// problem", Applied Statistics 28, 1979). Jump and drift are tested together. For each position the places before and
// after it are compared (the CUSUM statistic of E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954), and
// a straight line is fitted through all of them. The larger of the two standardised statistics is compared with those
// of the same series after permutations of blocks of iterations as long as in block_contrasts.h (P. Good,
// "Permutation, Parametric and Bootstrap Tests of Hypotheses", 3rd edition, 2005). Neighbouring blocks are still alike,
// so the statistic is divided by the variance that this leaves out (variance_beyond_blocks) first. The autocorrelation
// time is that of the residuals, since a change by itself makes neighbours alike. The permutations end early where they
// show that the change is not beyond chance (J. Besag and P. Clifford, "Sequential Monte Carlo p-values", Biometrika
// 78, 1991).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace paceline::analysis {

inline constexpr double least_step_change_times = 20;  // autocorrelation times that a run must have to be judged

struct StepChange {
  // Unclear: a jump and a drift explain the values nearly equally well. It is described like a jump.
  enum class Kind { jump, drift, unclear };
  Kind kind = Kind::jump;
  std::size_t at = 0;  // index of the first iteration after the change; 0 for a drift
  double before = 0;   // mean before that iteration; of a drift the line's value at the first iteration
  double after = 0;    // mean from it on; of a drift the line's value at the last iteration
  // The share of sound runs in which chance makes a report accuse anybody this clearly (accusations.h), and the share
  // of unchanging runs in which it makes a change this clear.
  double p = 1, p_alone = 1;
};

struct StepChangeTest {
  bool judged = false;               // false: too short a run
  double autocorrelation_time = 1;   // of the places, in iterations
  std::size_t block = 1;             // iterations
  std::optional<StepChange> change;  // beyond chance, and at least `least_change`
};

// Tests one value for each iteration, in their order, warm-up left out. Smaller changes than `least_change` do not
// count. Cost: up to 999 permutations of a linear scan. Draws the same permutations each time.
StepChangeTest test_step_change(std::span<const double> values, double least_change);

}  // namespace paceline::analysis
