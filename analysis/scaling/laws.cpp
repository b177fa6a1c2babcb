// SPDX-License-Identifier: Apache-2.0
#include "analysis/scaling/laws.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace paceline::analysis {
namespace {

// The minimum of a function over the shares 0 to 1: a scan finds the valley, golden sections its floor.
template <class Function>
double minimum_over_shares(Function&& cost) {
  constexpr int steps = 200;
  int best = 0;
  double best_cost = cost(0.0);
  for (int i = 1; i <= steps; ++i) {
    if (const double c = cost(static_cast<double>(i) / steps); c < best_cost) {
      best_cost = c;
      best = i;
    }
  }
  double low = std::max(0.0, (best - 1.0) / steps), high = std::min(1.0, (best + 1.0) / steps);
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double a = high - golden * (high - low), b = low + golden * (high - low);
  double cost_a = cost(a), cost_b = cost(b);
  while (high - low > 1e-12) {
    if (cost_a <= cost_b) {
      high = b;
      b = a;
      cost_b = cost_a;
      a = high - golden * (high - low);
      cost_a = cost(a);
    } else {
      low = a;
      a = b;
      cost_a = cost_b;
      b = low + golden * (high - low);
      cost_b = cost(b);
    }
  }
  return (low + high) / 2;
}

}  // namespace

double amdahl_speedup(double s, double ranks) { return 1 / (s + (1 - s) / ranks); }

double gustafson_speedup(double s, double ranks) { return ranks - s * (ranks - 1); }

double karp_flatt(double speedup, double ranks) { return (1 / speedup - 1 / ranks) / (1 - 1 / ranks); }

double Usl::capacity(double n) const { return n / (1 + sigma * (n - 1) + kappa * n * (n - 1)); }

double Usl::peak_ranks() const {
  if (kappa <= 0) return std::numeric_limits<double>::infinity();
  return std::sqrt(std::max(0.0, 1 - sigma) / kappa);
}

double fit_amdahl(std::span<const SpeedupPoint> points) {
  return minimum_over_shares([&](double s) {
    double cost = 0;
    for (const auto& p : points) cost += std::pow(p.speedup - amdahl_speedup(s, p.ranks), 2);
    return cost;
  });
}

double fit_amdahl_free_start(std::span<const SpeedupPoint> points) {
  return minimum_over_shares([&](double s) {
    double ss = 0, sf = 0, ff = 0;  // the best scale c for this s is Σ S·f / Σ f²
    for (const auto& p : points) {
      const double f = amdahl_speedup(s, p.ranks);
      ss += p.speedup * p.speedup;
      sf += p.speedup * f;
      ff += f * f;
    }
    return ss - sf * sf / ff;
  });
}

}  // namespace paceline::analysis
