// SPDX-License-Identifier: Apache-2.0
// How long neighbouring values of a series stay alike.
#pragma once

#include <cstddef>
#include <span>

namespace paceline::analysis {

// The autocorrelation time of values from which `fitted_means` means (or a line) were subtracted, at least 1 and at
// most their number: τ = 1 + 2 Σ ρ(k) over the first M lags with M >= 5 τ (A. Sokal, "Monte Carlo Methods in
// Statistical Mechanics", 1996, section 3), but at least that of an AR(1) process whose ρ is `errors` standard errors
// above the estimate. Subtracting a mean makes ρ too small by about (1 + 3 ρ)/n (M. G. Kendall, "Note on bias in the
// estimation of autocorrelation", Biometrika 41, 1954). With several `columns`, the values are those of as many series,
// row by row; ρ is that of all of them together, and all but one of them count as independent. Cost: linear in the
// values for each of up to 5 τ lags, at most some 600 lags. (Longer series are averaged over neighbours.)
double autocorrelation_time(std::span<const double> centred, int fitted_means, std::size_t columns = 1,
                            double errors = 1);

// How much larger the variance of a sum over many iterations is than that of as many independent blocks of the given
// length: neighbouring blocks are still alike. 1/(1 − (τ² − 1)/(2 B τ)), which holds for an AR(1) process in blocks of
// at least τ iterations.
double variance_beyond_blocks(double autocorrelation_time, std::size_t block);

}  // namespace paceline::analysis
