// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/lateness_causes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "analysis/statistics/statistics.h"
#include "analysis/statistics/step_changes.h"

namespace paceline::analysis {
namespace lateness_cause_parts {

constexpr double least_share_of_delay = 0.5;
constexpr double most_affected = 0.2, lateness_of_affected = 0.8;
constexpr std::size_t fewest_repeats = 3, fewest_long_repeats = 5;  // of a period
constexpr std::size_t longest_folded_period = 256, longest_short_period = 8;
// A rank is late in every p-th iteration if these iterations differ from the others by `clear_period` standard errors,
// which is far beyond the best of all periods and phases by chance, and if the lateness in the others is less than the
// share `elsewhere` of that in these. No other place in the period may be late or early by that share: a wave is noise.
// Long periods are many, and few iterations repeat them, whose mean is skewed as the noise is: most of these must be
// late, and some other place is off by chance.
constexpr double clear_period = 4.5, clear_long_period = 6, elsewhere = 1.0 / 3, most_repeats = 0.75;
constexpr double few_repeats = 3;        // a long period that is repeated this often must be twice as clear
constexpr double clear_other_place = 4;  // standard errors, in a long period

// The iteration with this number, or nullptr. Numbers rise.
const Iteration* numbered(std::span<const Iteration> iterations, std::int64_t number) {
  const auto found = std::ranges::lower_bound(iterations, number, {}, &Iteration::number);
  return found != iterations.end() && found->number == number ? &*found : nullptr;
}

// The indices of the iterations that stand out, in their order: those with more than half of the largest lateness.
// Empty if they are more than a fifth of all, or have less than four fifths of the lateness.
std::vector<std::size_t> outstanding(std::span<const double> behind) {
  double sum = 0, largest = 0;
  for (const double value : behind) sum += std::max(value, 0.0), largest = std::max(largest, value);
  std::vector<std::size_t> indices;
  double held = 0;
  for (std::size_t i = 0; i < behind.size(); ++i) {
    if (behind[i] <= largest / 2) continue;
    indices.push_back(i);
    held += behind[i];
  }
  const bool few = static_cast<double>(indices.size()) <= most_affected * static_cast<double>(behind.size());
  if (!few || held < lateness_of_affected * sum) indices.clear();
  return indices;
}

// The common distance of the indices; 0 if they have none.
std::size_t period_of(std::span<const std::size_t> indices) {
  if (indices.size() < fewest_repeats) return 0;
  const std::size_t period = indices[1] - indices[0];
  for (std::size_t i = 2; i < indices.size(); ++i) {
    if (indices[i] - indices[i - 1] != period) return 0;
  }
  return period;
}

struct Period {
  std::size_t period = 0, first = 0;
};

// The period of a lateness that noise hides in single iterations; 0 without one. (It is a share of a fifth at most
// where outstanding() finds it.)
Period folded_period(std::span<const double> behind) {
  const auto n = static_cast<double>(behind.size());
  double sum = 0, squares = 0;
  for (const double value : behind) sum += value, squares += value * value;
  const auto repeats_above = [&](double limit, std::size_t period, std::size_t first) {
    double count = 0;
    for (std::size_t i = first; i < behind.size(); i += period) count += behind[i] > limit ? 1 : 0;
    return count;
  };
  Period best;
  double clearest = clear_period;
  for (std::size_t period = 2; period <= longest_folded_period; ++period) {
    const bool is_long = period > longest_short_period;
    if (behind.size() < (is_long ? fewest_long_repeats : fewest_repeats) * period) break;
    std::vector<double> sums(period), counts(period);
    for (std::size_t i = 0; i < behind.size(); ++i) sums[i % period] += behind[i], ++counts[i % period];
    for (std::size_t first = 0; first < period; ++first) {
      const double inside = sums[first], count = counts[first];
      const double late = inside / count, other = (sum - inside) / (n - count);
      const double variance = (squares - count * late * late - (n - count) * other * other) / (n - 2);
      const double errors = (late - other) / std::sqrt(std::max(variance, 0.0) * (1 / count + 1 / (n - count)));
      if (errors <= clearest || other >= elsewhere * late) continue;
      const double least = clear_long_period * (1 + few_repeats / count);
      if (is_long && (errors < least || repeats_above(late / 2, period, first) < most_repeats * count)) continue;
      const double chance = is_long ? clear_other_place * std::sqrt(std::max(variance, 0.0) / count) : 0;
      bool is_wave = false;
      for (std::size_t of = 0; of < period; ++of) {
        is_wave |= of != first && std::abs(sums[of] / counts[of]) > std::max(elsewhere * late, chance);
      }
      if (is_wave) continue;
      clearest = errors, best = {period, first};
    }
  }
  return best;
}

}  // namespace lateness_cause_parts

std::optional<PhaseExcess> slow_phase(const LatenessTable& table,
                                      std::span<const std::span<const Iteration>> iterations, const LateRank& late,
                                      std::span<const std::span<const Interlude>> interludes) {
  using namespace lateness_cause_parts;
  const auto time_in = [&](std::size_t r, const Iteration& of, Phase phase) {
    return of.phase_ns[static_cast<std::size_t>(phase)] +
           (interludes.empty() ? 0 : interlude_ns(interludes[r], iterations[r], of, phase));
  };
  std::array<double, phase_count> excess{};
  std::vector<std::int64_t> others;
  for (const std::int64_t number : table.numbers) {
    const Iteration* own = numbered(iterations[late.rank], number);
    if (own == nullptr) return std::nullopt;
    for (std::size_t index = 0; index < phase_count; ++index) {
      const auto phase = static_cast<Phase>(index);
      others.clear();
      for (std::size_t r = 0; r < iterations.size(); ++r) {
        const Iteration* other = r == late.rank ? nullptr : numbered(iterations[r], number);
        if (other != nullptr) others.push_back(time_in(r, *other, phase));
      }
      if (others.empty()) return std::nullopt;
      excess[index] += static_cast<double>(time_in(late.rank, *own, phase) - median(others));
    }
  }
  excess[static_cast<std::size_t>(Phase::communication)] = 0;
  const auto largest = std::ranges::max_element(excess);
  PhaseExcess slow{.phase = static_cast<Phase>(largest - excess.begin()),
                   .ns = *largest / static_cast<double>(std::max<std::size_t>(table.iterations(), 1))};
  slow.share_of_delay = late.behind_ns > 0 ? slow.ns / late.behind_ns : 0;
  if (slow.share_of_delay < least_share_of_delay) return std::nullopt;
  return slow;
}

namespace lateness_cause_parts {

std::size_t count_above(std::span<const double> values, double limit) {
  return static_cast<std::size_t>(std::ranges::count_if(values, [&](double value) { return value > limit; }));
}

// How far a rank is behind in each iteration. Where noise is skewed, each rank is behind the median of its others on
// average, and that is subtracted.
std::vector<double> behind_of(const LatenessTable& table, std::uint32_t rank) {
  std::vector<double> means(table.ranks), behind;
  const auto n = static_cast<double>(table.iterations());
  for (std::size_t i = 0; i < table.behind_ns.size(); ++i) means[i % table.ranks] += table.behind_ns[i] / n;
  means.erase(means.begin() + rank);
  const auto middle = means.begin() + static_cast<std::ptrdiff_t>(means.size() / 2);
  std::nth_element(means.begin(), middle, means.end());
  const double usual = means.size() < 2 ? 0 : std::max(*middle, 0.0);
  for (std::size_t i = 0; i < table.iterations(); ++i)
    behind.push_back(table.behind_ns[i * table.ranks + rank] - usual);
  return behind;
}

}  // namespace lateness_cause_parts

LatenessPattern lateness_pattern(const LatenessTable& table, std::uint32_t rank) {
  using namespace lateness_cause_parts;
  using enum LatenessPattern::Shape;
  const std::vector<double> behind = behind_of(table, rank);
  const std::vector<std::size_t> late = outstanding(behind);
  if (!late.empty()) {
    const std::size_t period = period_of(late);
    return {period > 1 ? periodic : single, table.numbers[late.front()], period, late.size()};
  }
  if (const Period found = folded_period(behind); found.period > 0) {
    const std::size_t repeats = (behind.size() - found.first + found.period - 1) / found.period;
    return {periodic, table.numbers[found.first], found.period, repeats};
  }
  const StepChangeTest test = test_step_change(behind, 0);
  if (test.change && test.change->kind == StepChange::Kind::jump) {
    const double before = test.change->before, after = test.change->after;
    const std::int64_t at = table.numbers[test.change->at];
    const auto late_by = [&](std::size_t from, std::size_t to) {
      return count_above(std::span(behind).subspan(from, to - from), std::max(before, after) / 2);
    };
    const std::size_t n = behind.size(), change = test.change->at;
    if (before < after / 3) return {since, at, 0, late_by(change, n)};
    if (after < before / 3) return {until, at, 0, late_by(0, change)};
  }
  return {.affected = count_above(behind, mean(behind) / 2)};
}

}  // namespace paceline::analysis
