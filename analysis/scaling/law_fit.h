// SPDX-License-Identifier: Apache-2.0
// Laws of scaling as linear models of the times, with their fits, their intervals and the test whether they hold.
//
// With p parameters that are all at least 0, each law is linear in them: Amdahl's law, the USL and logarithmic costs in
// N × the time for an image, Gustafson's law in the speed, fixed + epochs × epoch in the seconds. The fit minimises the
// squares of the relative errors of all points, that of 1 rank like the others.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "analysis/scaling/fitting.h"

namespace paceline::analysis {

inline constexpr std::size_t most_parameters = 3;
using Parameters = std::array<double, most_parameters>;

// A ratio of two sums over the parameters, such as a share or a speed-up.
struct LawFigure {
  Parameters over{}, under{};
  double low = 0, high = 0;  // between which it lies
  double of(const Parameters& parameters) const;
};

class LawFit {
 public:
  // logs[i] belongs to points[which[i]]; `predicted` are the positions in `which` whose times the law has to explain.
  LawFit(Law law, const std::vector<ScalingPoint>& points, std::vector<std::size_t> which,
         std::vector<std::size_t> predicted);

  Law law() const { return law_; }
  std::size_t parameters() const { return law_ == Law::usl || law_ == Law::logarithmic ? 3 : 2; }
  // The serial share of Amdahl's and Gustafson's law, σ of the others.
  static LawFigure share();
  // κ of the USL, the cost of a doubling of logarithmic costs.
  static LawFigure growth();
  // The square of the rank count at which the USL has its peak, (1 − σ)/κ.
  static LawFigure peak_squared() { return {{1, -1, 0}, {0, 0, 1}, 0, 1e12}; }
  // T(1)/T(N) for the work of the predicted points.
  LawFigure speedup(double ranks) const;

  // The figure's estimate, within its bounds; nothing where the points do not determine the law. Points with the rank
  // count `without` are left out.
  std::optional<double> estimate(const LawFigure& figure, double without = 0) const;
  // 95 %: all values of the figure for which the best fit explains the times as well as chance allows, within the
  // figure's bounds (E. C. Fieller, J. R. Stat. Soc. B 16, 1954). The other parameters may be below 0 there: bounds
  // would make the interval hold the truth too seldom where a true parameter is 0 (S. G. Self and K.-Y. Liang, JASA 82,
  // 1987, case 6). Only where these values leave out the estimate do the bounds hold for all parameters (profile
  // likelihood; D. J. Venzon and S. H. Moolgavkar, Applied Statistics 37, 1988), so that the interval contains it.
  // Chance is the variance of the points, weighted as they move the estimate, by Student's t.
  std::optional<Interval> interval(const LawFigure& figure) const;
  // The sum of the squares of the relative errors; infinite where the points do not determine the law.
  double squares() const;
  // Whether some residual is larger than the noise explains: the largest of the points, corrected for their number.
  bool is_misfit(double error_rate) const;
  // The root mean square of the logarithm of predicted ÷ measured time, each rank count predicted by the others.
  // Nothing if one of them cannot be predicted.
  std::optional<double> left_out_error() const;

 private:
  struct Best {
    Parameters parameters{};
    double squares = 0;
  };
  double ranks(std::size_t i) const { return (*points_)[which_[i]].ranks; }
  Parameters terms(double ranks, double epochs) const;
  double quantity(std::size_t i, double log) const;  // that is linear in the parameters
  std::optional<Best> fit(std::span<const double> logs, bool bounded, double without = 0,
                          const Parameters* zero = nullptr) const;

  Law law_;
  const std::vector<ScalingPoint>* points_;
  std::vector<std::size_t> which_, predicted_;
  LogTimes times_;
};

}  // namespace paceline::analysis
