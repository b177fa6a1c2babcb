// SPDX-License-Identifier: Apache-2.0
// What a test of ranks for lateness finds (lateness.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline::analysis {

struct LateRank {
  std::uint32_t rank = 0;    // index into the ranks
  double behind_ns = 0;      // mean over iterations, behind the mean of the ranks that are not late
  double share_of_step = 0;  // its cost: the wait of the others, at most the time that it is behind
  // The share of sound runs in which chance makes a report accuse anybody this clearly (correct_for_all()).
  double p = 1;
  double p_alone = 1;  // of the test by itself
};

struct LatenessTest {
  std::size_t iterations = 0;
  double autocorrelation_time = 1;  // in iterations
  std::size_t block = 1;            // iterations; 1 where the run is too short for blocks
  bool judged = false;              // false: fewer than two ranks, or too short a run, where `late` may yet stand out
  std::size_t tests = 0;            // ranks that were tested
  std::vector<LateRank> late = {};  // beyond chance, above 1 % of the step; the costliest first
};

}  // namespace paceline::analysis
