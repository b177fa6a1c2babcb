// SPDX-License-Identifier: Apache-2.0
#include "analysis/phases/iterations.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "analysis/statistics/statistics.h"

namespace paceline::analysis {
std::optional<std::int64_t> trailing_number(std::string_view name) {
  const std::size_t last_other = name.find_last_not_of("0123456789");
  const std::string_view digits = name.substr(last_other == std::string_view::npos ? 0 : last_other + 1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || error != std::errc{}) return std::nullopt;
  return number;
}

std::vector<Iteration> iterations_of(const PhaseTable& table, const Rank& rank) {
  const Trace& trace = table.trace();
  std::vector<Iteration> iterations;
  const Track* main = main_track(rank);
  if (main == nullptr || !table.any_iterations()) return iterations;

  const NameId payload = trace.names.find("payload"), unfinished = trace.names.find("unfinished");
  const Slices& slices = main->slices;
  std::int64_t latest_end = rank.start_ns;
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    if (!table.iteration(slices.kind[i])) continue;
    if (slices.start_ns[i] < latest_end) continue;  // inside another iteration
    latest_end = slices.end_ns(i);
    Iteration iteration;
    iteration.start_ns = slices.start_ns[i];
    iteration.duration_ns = slices.duration_ns[i];
    iteration.finished = unfinished == 0 || !main->slices.number(i, unfinished);
    const auto given = payload == 0 ? std::nullopt : main->slices.number(i, payload);
    const auto named =
        given ? std::optional(static_cast<std::int64_t>(*given)) : trailing_number(trace.name_of(slices, i));
    iteration.number = named.value_or(static_cast<std::int64_t>(iterations.size()));
    iteration.counted = !named;
    iterations.push_back(iteration);
  }

  auto gap = rank.gaps.begin();
  for (Iteration& iteration : iterations) {
    while (gap != rank.gaps.end() && gap->end_ns <= iteration.start_ns) ++gap;
    const bool cut = gap != rank.gaps.end() && gap->start_ns < iteration.start_ns + iteration.duration_ns;
    iteration.finished = iteration.finished && !cut;
  }

  // Both ends of a loss belong to it, so it touches what begins or ends with it.
  const std::vector<LostInterval> losses = main_thread_losses(rank);
  auto loss = losses.begin();
  for (Iteration& iteration : iterations) {
    while (loss != losses.end() && loss->end_ns < iteration.start_ns) ++loss;
    iteration.lost = loss != losses.end() && loss->start_ns <= iteration.start_ns + iteration.duration_ns;
    iteration.finished = iteration.finished && !iteration.lost;
  }
  return iterations;
}

void IterationPhases::add_to(const PhaseInterval& interval) {
  const auto end_of = [](const Iteration& iteration) { return iteration.start_ns + iteration.duration_ns; };
  while (next_ < iterations_.size() && end_of(iterations_[next_]) <= interval.start_ns) ++next_;
  for (std::size_t i = next_; i < iterations_.size() && iterations_[i].start_ns < interval.end_ns; ++i) {
    iterations_[i].phase_ns[static_cast<std::size_t>(interval.phase)] +=
        std::min(interval.end_ns, end_of(iterations_[i])) - std::max(interval.start_ns, iterations_[i].start_ns);
  }
}

std::vector<RunIteration> joined_iterations(std::span<const RankIterations> ranks) {
  struct Sum {
    RunIteration iteration;
    std::size_t finished = 0;
  };
  std::map<std::int64_t, Sum> sums;  // by number
  std::size_t expected = 0;
  bool located = true;
  for (const RankIterations& rank : ranks) {
    expected += !rank.of.empty() || rank.lost;
    located = located && rank.located;
    auto next = sums.begin();  // usually the place of the next iteration
    for (const Iteration& one : rank.of) {
      const std::int64_t end = one.start_ns + one.duration_ns;
      if (next == sums.end() || next->first != one.number) {
        next = sums.try_emplace(next, one.number, Sum{{one.number, one.start_ns, end}});
      }
      RunIteration& joined = next->second.iteration;
      joined.start_ns = std::min(joined.start_ns, one.start_ns);
      joined.end_ns = std::max(joined.end_ns, end);
      if (one.finished) joined.mean_ns += static_cast<double>(one.duration_ns), ++next->second.finished;
      ++next;
    }
  }
  std::vector<RunIteration> joined;
  for (auto& [number, sum] : sums) {
    if (sum.finished > 0) sum.iteration.mean_ns /= static_cast<double>(sum.finished);
    sum.iteration.finished = located && sum.finished >= expected;
    joined.push_back(sum.iteration);
  }
  return joined;
}

void leave_out_miscounted(std::vector<Iteration>& iterations, std::int64_t first_loss_ns) {
  for (Iteration& iteration : iterations) {
    if (iteration.counted && iteration.start_ns >= first_loss_ns) iteration.finished = false;
  }
}

IterationSummary summarize(const std::vector<Iteration>& iterations) {
  std::vector<std::int64_t> durations;
  for (const Iteration& iteration : iterations) {
    if (iteration.finished) durations.push_back(iteration.duration_ns);
  }
  return {durations.size(), median(durations), quantile(durations, 0.95)};
}

}  // namespace paceline::analysis
