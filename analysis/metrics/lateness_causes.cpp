#include "analysis/metrics/lateness_causes.h"

#include <algorithm>
#include <array>
#include <vector>

#include "analysis/metrics/statistics.h"
#include "analysis/metrics/step_changes.h"

namespace paceline::analysis {
namespace lateness_cause_parts {

constexpr double least_share_of_delay = 0.5;
constexpr double most_affected = 0.2, lateness_of_affected = 0.8;
constexpr std::size_t fewest_repeats = 3;  // of a period

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

}  // namespace lateness_cause_parts

std::optional<PhaseExcess> slow_phase(const LatenessTable& table,
                                      std::span<const std::span<const Iteration>> iterations, const LateRank& late) {
  using namespace lateness_cause_parts;
  std::array<double, phase_count> excess{};
  std::vector<std::int64_t> others;
  for (const std::int64_t number : table.numbers) {
    const Iteration* own = numbered(iterations[late.rank], number);
    if (own == nullptr) return std::nullopt;
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      others.clear();
      for (std::size_t r = 0; r < iterations.size(); ++r) {
        const Iteration* other = r == late.rank ? nullptr : numbered(iterations[r], number);
        if (other != nullptr) others.push_back(other->phase_ns[phase]);
      }
      if (others.empty()) return std::nullopt;
      excess[phase] += static_cast<double>(own->phase_ns[phase] - median(others));
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

LatenessPattern lateness_pattern(const LatenessTable& table, std::uint32_t rank) {
  using namespace lateness_cause_parts;
  using enum LatenessPattern::Shape;
  std::vector<double> behind;
  for (std::size_t i = 0; i < table.iterations(); ++i) behind.push_back(table.behind_ns[i * table.ranks + rank]);
  const std::vector<std::size_t> late = outstanding(behind);
  if (!late.empty()) {
    const std::size_t period = period_of(late);
    return {period > 1 ? periodic : single, table.numbers[late.front()], period, late.size()};
  }
  const StepChangeTest test = test_step_change(behind, 0);
  if (test.change && test.change->kind == StepChange::Kind::jump) {
    const double before = test.change->before, after = test.change->after;
    const std::int64_t at = table.numbers[test.change->at];
    if (before < after / 3) return {since, at};
    if (after < before / 3) return {until, at};
  }
  return {};
}

}  // namespace paceline::analysis
