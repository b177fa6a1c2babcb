// SPDX-License-Identifier: Apache-2.0
// Whether one of several alike series, such as the lateness of the ranks of a job, is above the others beyond chance.
//
// The values of each series are averaged over blocks of iterations that are longer than the autocorrelation time, so
// that the means of the blocks are nearly normal. A series is compared with the weighted mean of the others, block by
// block, and the mean of these contrasts is compared with their own spread by Student's t (R. Ibragimov and U. K.
// Müller, "t-statistic based correlation and heterogeneity robust inference", J. Business & Economic Statistics 28,
// 2010). The blocks overlap, which makes the spread more certain (M. S. Meketon and B. Schmeiser, "Overlapping batch
// means", Winter Simulation Conference 1984). The series may have different noise: in a run that is long enough to be
// judged, the spread of each is moved towards that of all by as much as they are alike (G. K. Smyth, Statistical
// Applications in Genetics and Molecular Biology 3, 2004), and a series that is noisier than the median of the series
// counts less in the mean of the others. Where long parts of the run vary by more than the blocks show, as noise does
// that lasts, the spread is theirs. A series whose noise lasts longer than that of the others is as certain as its own
// autocorrelation time says.
//
// A run that is too short to be judged may still have a suspect, with three times the p-value; in one of fewer than 20
// iterations or 6 autocorrelation times, only a series that stands out from all that the iterations vary by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace paceline::analysis {

inline constexpr double accusation_level = 0.05;    // of everything that one report accuses, together
inline constexpr double least_contrast_times = 20;  // autocorrelation times that a run must have to be judged

struct Suspect {
  std::uint32_t column = 0;
  double above = 0;  // the mean of the column minus the weighted mean of the others, in units of the values
  double p = 1;      // of this column by itself: one-sided, not corrected for the other columns
};

struct BlockContrasts {
  double autocorrelation_time = 1;  // in iterations, one standard error on the safe side
  std::size_t block = 1;            // iterations; 1 where the run is too short for blocks
  bool judged = false;              // false: too short a run, or fewer than two columns
  std::size_t tests = 0;            // columns that were tested
  // Those with p up to `accusation_level`, in the order in which they may be accused, p rising. Each was compared with
  // the columns that are not before it in the list, so it may be accused only together with all of those.
  std::vector<Suspect> suspects;
};

// `values` has one row for each iteration, in their order, and one value for each column. The columns of `left_out` are
// neither tested nor compared with. Cost: linear in the values, times two more than the suspects, and that of
// autocorrelation_time().
BlockContrasts block_contrasts(std::span<const double> values, std::size_t columns,
                               std::span<const std::uint32_t> left_out = {});

}  // namespace paceline::analysis
