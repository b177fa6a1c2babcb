// SPDX-License-Identifier: Apache-2.0
// Laws of scaling and their fits. N is a number of ranks, S = T(1)/T(N) the speed-up at equal total work, s a serial
// share (0 to 1). Every function is pure; fits cost a few hundred evaluations.
#pragma once

#include <span>

namespace paceline::analysis {

// G. M. Amdahl, AFIPS 1967: for work of fixed size whose share s runs on one rank only, S = 1/(s + (1−s)/N).
double amdahl_speedup(double serial_share, double ranks);

// J. L. Gustafson, CACM 31(5), 1988: work that grows with N; s is the serial share of the time on N ranks. N − s(N−1).
double gustafson_speedup(double serial_share, double ranks);

// A. H. Karp, H. P. Flatt, CACM 33(5), 1990: the serial share that a measured speed-up implies,
// e = (1/S − 1/N)/(1 − 1/N). A constant e means serial work, a rising e means overhead that grows with N, and a falling
// e means that the runs are not one program. N must be above 1.
double karp_flatt(double speedup, double ranks);

// N. J. Gunther's Universal Scalability Law (arXiv:0808.1431): σ contention, κ coherency.
struct Usl {
  double sigma = 0;
  double kappa = 0;
  double capacity(double ranks) const;  // C(N) = N/(1 + σ(N−1) + κN(N−1))
  double peak_ranks() const;            // √((1−σ)/κ); infinity where κ = 0
};

struct SpeedupPoint {
  double ranks = 1;
  double speedup = 1;
};

// The s in [0, 1] that minimises Σ(S − S_Amdahl(s, N))². The curve goes through S(1) = 1. Needs a point with N > 1. It
// describes runs that refuse the law; what they do not refuse is fitted by LawFit (law_fit.h).
double fit_amdahl(std::span<const SpeedupPoint> points);

// The same with the speed of one rank fitted as well: the curve is c·S_Amdahl(s, N) and need not go through S(1) = 1.
// If its s is far from that of fit_amdahl, the points do not lie on one curve.
double fit_amdahl_free_start(std::span<const SpeedupPoint> points);

}  // namespace paceline::analysis
