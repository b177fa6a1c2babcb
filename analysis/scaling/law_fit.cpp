// SPDX-License-Identifier: Apache-2.0
#include "analysis/scaling/law_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace paceline::analysis {
namespace law_fit_parts {

constexpr double infinity = std::numeric_limits<double>::infinity();

double product(const Parameters& a, const Parameters& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// Solves a system of up to four equations in place; false where it is singular.
using Rows = std::array<std::array<double, 5>, 4>;
bool solve(Rows& rows, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < size; ++r) {
      if (std::abs(rows[r][i]) > std::abs(rows[pivot][i])) pivot = r;
    }
    std::swap(rows[i], rows[pivot]);
    if (!(std::abs(rows[i][i]) > 1e-12)) return false;
    for (std::size_t r = 0; r < size; ++r) {
      if (r == i) continue;
      const double factor = rows[r][i] / rows[i][i];
      for (std::size_t c = i; c < 5; ++c) rows[r][c] -= factor * rows[i][c];
    }
  }
  for (std::size_t i = 0; i < size; ++i) rows[i][4] /= rows[i][i];
  return true;
}

}  // namespace law_fit_parts

using namespace law_fit_parts;

double LawFigure::of(const Parameters& parameters) const {
  return std::clamp(product(over, parameters) / product(under, parameters), low, high);
}

LawFit::LawFit(Law law, const std::vector<ScalingPoint>& points, std::vector<std::size_t> which,
               std::vector<std::size_t> predicted)
    : law_(law),
      points_(&points),
      which_(std::move(which)),
      predicted_(std::move(predicted)),
      times_(log_times(points, which_)) {}

Parameters LawFit::terms(double n, double epochs) const {
  switch (law_) {
    case Law::amdahl:
      return {1, n - 1, 0};
    case Law::usl:
      return {1, n - 1, n * (n - 1)};
    case Law::logarithmic:
      return {1, n - 1, n * std::log2(n)};
    case Law::gustafson:
      return {n, 1 - n, 0};
    case Law::fixed_epochs:
      return {1, epochs / n, 0};
  }
  return {};
}

double LawFit::quantity(std::size_t i, double log) const {
  if (law_ == Law::gustafson) return std::exp(-log);
  return std::exp(log) * (law_ == Law::fixed_epochs ? (*points_)[which_[i]].images : ranks(i));
}

LawFigure LawFit::share() { return {{0, 1, 0}, {1, 0, 0}, 0, 1}; }
LawFigure LawFit::growth() { return {{0, 0, 1}, {1, 0, 0}, 0, infinity}; }

LawFigure LawFit::speedup(double n) const {
  const double epochs = (*points_)[which_[predicted_.front()]].epochs;
  if (law_ == Law::gustafson) return {terms(n, epochs), terms(1, epochs), 0, n};
  if (law_ == Law::fixed_epochs) return {terms(1, epochs), terms(n, epochs), 0, n};
  return {{n, 0, 0}, terms(n, epochs), 0, n};
}

// The minimum with all parameters at least 0 is that of one of the fits in which some of them are 0. With `zero`, only
// parameters whose product with it is 0 are compared.
std::optional<LawFit::Best> LawFit::fit(std::span<const double> logs, bool bounded, double without,
                                        const Parameters* zero) const {
  const std::size_t count = parameters();
  std::vector<Parameters> rows;
  for (std::size_t i = 0; i < which_.size(); ++i) {
    if (ranks(i) == without) continue;
    Parameters row = terms(ranks(i), (*points_)[which_[i]].epochs);
    for (double& term : row) term /= quantity(i, logs[i]);
    rows.push_back(row);
  }
  if (rows.size() < count) return std::nullopt;
  Parameters scale{};  // so that all columns are of one size
  for (std::size_t k = 0; k < count; ++k) {
    for (const Parameters& row : rows) scale[k] += row[k] * row[k];
    scale[k] = std::sqrt(scale[k]);
    if (!(scale[k] > 0)) return std::nullopt;
  }
  std::optional<Best> best;
  for (unsigned without_mask = 0; without_mask < (bounded ? 1U << count : 1U); ++without_mask) {
    std::vector<std::size_t> free;
    for (std::size_t k = 0; k < count; ++k) {
      if ((without_mask >> k & 1U) == 0) free.push_back(k);
    }
    double largest = 0;
    if (zero != nullptr) {
      for (const std::size_t k : free) largest = std::max(largest, std::abs((*zero)[k]) / scale[k]);
    }
    const bool constrained = largest > 0;
    Rows system{};
    for (std::size_t a = 0; a < free.size(); ++a) {
      for (const Parameters& row : rows) {
        const double of = row[free[a]] / scale[free[a]];
        for (std::size_t b = 0; b < free.size(); ++b) system[a][b] += of * row[free[b]] / scale[free[b]];
        system[a][4] += of;
      }
      if (constrained) {
        system[a][free.size()] = system[free.size()][a] = (*zero)[free[a]] / scale[free[a]] / largest;
      }
    }
    if (free.empty() || !solve(system, free.size() + (constrained ? 1 : 0))) continue;
    Best found;
    bool allowed = true;
    for (std::size_t a = 0; a < free.size(); ++a) {
      allowed = allowed && (!bounded || system[a][4] >= -1e-9);
      found.parameters[free[a]] = system[a][4] / scale[free[a]];
    }
    if (!allowed) continue;
    for (const Parameters& row : rows) found.squares += std::pow(1 - product(row, found.parameters), 2);
    if (!best || found.squares < best->squares) best = found;
  }
  return best;
}

std::optional<double> LawFit::estimate(const LawFigure& figure, double without) const {
  const auto best = fit(times_.logs, true, without);
  if (!best) return std::nullopt;
  const double value = figure.of(best->parameters);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

double LawFit::squares() const {
  const auto best = fit(times_.logs, true);
  return best ? best->squares : infinity;
}

std::optional<Interval> LawFit::interval(const LawFigure& figure) const {
  const auto best = fit(times_.logs, true), best_free = fit(times_.logs, false);
  const auto value = estimate(figure);
  if (!best || !best_free || !value || !have_interval(times_.spreads)) return std::nullopt;
  const auto free_value = [&](std::span<const double> logs) {
    const auto free = fit(logs, false);
    return free ? product(figure.over, free->parameters) / product(figure.under, free->parameters) : NAN;
  };
  const Estimate error = estimate_of(times_.logs, times_.spreads, free_value);
  const Spread one{SpreadSource::given, 1, 1e9};
  const std::vector<const Spread*> ones(times_.spreads.size(), &one);
  const double moves = estimate_of(times_.logs, ones, free_value).error;
  if (!(error.error > 0) || !std::isfinite(error.error) || !(moves > 0)) return std::nullopt;
  const double t = t_quantile_two_sided(0.05, error.degrees);
  const double more = std::pow(t * error.error / moves, 2);
  const auto explains = [&](double at, bool bounded) {
    Parameters zero;
    for (std::size_t k = 0; k < most_parameters; ++k) zero[k] = figure.over[k] - at * figure.under[k];
    const auto there = fit(times_.logs, bounded, 0, &zero);
    return there && there->squares <= (bounded ? best : best_free)->squares + more;
  };
  const bool bounded = !explains(*value, false);
  const auto within = [&](double at) { return explains(at, bounded); };
  const auto end = [&](double bound, double sign) {
    double inside = *value, step = std::max(t * error.error, 1e-12), outside = inside;
    do {
      outside = sign > 0 ? std::min(inside + step, bound) : std::max(inside - step, bound);
      if (!within(outside)) break;
      inside = outside;
      step *= 2;
    } while (inside != bound && step < 1e12);
    for (int i = 0; i < 40 && inside != outside; ++i) {
      const double middle = (inside + outside) / 2;
      (within(middle) ? inside : outside) = middle;
    }
    return inside;
  };
  return Interval{end(figure.low, -1), end(figure.high, 1)};
}

bool LawFit::is_misfit(double error_rate) const {
  for (const std::size_t i : predicted_) {
    const auto residual = estimate_of(times_.logs, times_.spreads, [&](std::span<const double> logs) {
      const auto best = fit(logs, true);
      if (!best) return static_cast<double>(NAN);
      return std::log(product(terms(ranks(i), (*points_)[which_[i]].epochs), best->parameters) / quantity(i, logs[i]));
    });
    if (!(residual.error > 1e-9) || !std::isfinite(residual.error)) continue;
    const double chance = t_two_sided(residual.value / residual.error, residual.degrees);
    if (chance < error_rate / static_cast<double>(predicted_.size())) return true;
  }
  return false;
}

std::optional<double> LawFit::left_out_error() const {
  double squares = 0;
  for (const std::size_t i : predicted_) {
    const auto best = fit(times_.logs, true, ranks(i));
    if (!best) return std::nullopt;
    const double predicted = product(terms(ranks(i), (*points_)[which_[i]].epochs), best->parameters);
    if (!(predicted > 0)) return std::nullopt;
    squares += std::pow(std::log(predicted / quantity(i, times_.logs[i])), 2);
  }
  return std::sqrt(squares / static_cast<double>(predicted_.size()));
}

}  // namespace paceline::analysis
