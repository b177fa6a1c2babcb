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

// The sums of the normal equations of N/S − 1 = σx + κz.
struct UslSums {
  double xx = 0, xz = 0, zz = 0, xy = 0, zy = 0;
};

UslSums sums_of(std::span<const SpeedupPoint> points) {
  UslSums sums;
  for (const auto& p : points) {
    const double x = p.ranks - 1, z = p.ranks * (p.ranks - 1), y = p.ranks / p.speedup - 1;
    sums.xx += x * x;
    sums.xz += x * z;
    sums.zz += z * z;
    sums.xy += x * y;
    sums.zy += z * y;
  }
  return sums;
}

Usl usl_of(const UslSums& s) {
  const double determinant = s.xx * s.zz - s.xz * s.xz;
  return {(s.xy * s.zz - s.zy * s.xz) / determinant, (s.zy * s.xx - s.xy * s.xz) / determinant};
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

double fit_amdahl_unbounded(std::span<const SpeedupPoint> points) {
  // Starts from the linear fit of N/S − 1 = s(N−1) and goes on by Gauss–Newton steps; a step that would leave the
  // range in which the curve is finite is halved.
  double xy = 0, xx = 0, lowest = -1e300;
  for (const auto& p : points) {
    const double weight = p.speedup * p.speedup / (p.ranks * p.ranks), x = p.ranks - 1;
    xy += weight * x * (p.ranks / p.speedup - 1);
    xx += weight * x * x;
    lowest = std::max(lowest, -1 / x);
  }
  double s = std::max(xy / xx, 0.999 * lowest);
  for (int i = 0; i < 50; ++i) {
    double slope_miss = 0, slope_slope = 0;
    for (const auto& p : points) {
      const double curve = amdahl_speedup(s, p.ranks), slope = -curve * curve * (1 - 1 / p.ranks);
      slope_miss += slope * (p.speedup - curve);
      slope_slope += slope * slope;
    }
    double step = slope_miss / slope_slope;
    while (s + step <= lowest) step /= 2;
    s += step;
    if (std::abs(step) < 1e-13) break;
  }
  return s;
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

Usl fit_usl_unbounded(std::span<const SpeedupPoint> points) { return usl_of(sums_of(points)); }

Usl fit_usl(std::span<const SpeedupPoint> points) {
  const UslSums sums = sums_of(points);
  // With both coefficients at least 0, the optimum is the free one where it is allowed, else on an edge.
  const Usl usl = usl_of(sums);
  if (usl.kappa < 0) return {std::max(0.0, sums.xy / sums.xx), 0};
  if (usl.sigma < 0) return {0, std::max(0.0, sums.zy / sums.zz)};
  return usl;
}

double fit_gustafson_unbounded(std::span<const SpeedupPoint> points) {
  double xx = 0, xy = 0;
  for (const auto& p : points) {
    xx += (p.ranks - 1) * (p.ranks - 1);
    xy += (p.ranks - 1) * (p.ranks - p.speedup);
  }
  return xy / xx;
}

double fit_gustafson(std::span<const SpeedupPoint> points) {
  return std::clamp(fit_gustafson_unbounded(points), 0.0, 1.0);
}

}  // namespace paceline::analysis
