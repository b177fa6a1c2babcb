// SPDX-License-Identifier: Apache-2.0
// The iterations of a run and its throughput.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "analysis/report/cause_text.h"
#include "analysis/report/sections.h"
#include "analysis/report/values.h"
#include "analysis/statistics/distribution.h"
#include "analysis/statistics/statistics.h"

namespace paceline::analysis {
namespace iterations_section {

// "The steps became slower at iteration 36: 802 ms before, 2.21 s from there on (2.76 times)."
void change_finding(const RunAnalysis& run, std::vector<Finding>& out) {
  const RunIterations& it = run.iterations;
  if (!it.change.change) return;
  const StepChange& change = *it.change.change;
  const bool slower = change.after > change.before;
  const char* const became = slower ? "slower" : "faster";
  std::string text;
  const std::string before = seconds(change.before), after = seconds(change.after);
  const std::string ratio = percent_change(change.after / change.before);
  switch (change.kind) {
    case StepChange::Kind::jump:
      text = fmt::format("The steps became {} at iteration {}: {} before, {} from there on ({}).", became,
                         it.numbers[it.warmup + change.at], before, after, ratio);
      break;
    case StepChange::Kind::drift:
      text = fmt::format("The steps became {} in the course of the run: from {} after warm-up to {} at the end ({}).",
                         became, before, after, ratio);
      break;
    case StepChange::Kind::unclear:
      text = fmt::format(
          "The steps became {} during the run: {} on average before iteration {}, {} from there on ({}). "
          "Whether they changed at once or little by little cannot be told from this run.",
          became, before, it.numbers[it.warmup + change.at], after, ratio);
  }
  if (it.changed_phase) {
    text +=
        fmt::format(" Most of that is {} ({} before, {} after, mean over ranks).", phase_name(it.changed_phase->phase),
                    duration(static_cast<std::int64_t>(it.changed_phase->before_ns)),
                    duration(static_cast<std::int64_t>(it.changed_phase->after_ns)));
  }
  text += fmt::format(" In a run that does not change, chance makes so clear a change in at most {} of 1,000 runs.",
                      change.p <= 0.001 ? "1" : fixed(std::ceil(1000 * change.p), 0));
  // A jump lengthened the steps behind it; of a drift, half of the difference is the mean over the steps.
  const bool drift = change.kind == StepChange::Kind::drift;
  const double steps = static_cast<double>(it.seconds.size() - it.warmup - change.at);
  const double cost_s = (change.after - change.before) * steps * (drift ? 0.5 : 1);
  out.push_back({.severity = slower ? Severity::warning : Severity::info,
                 .text = std::move(text),
                 .cost_s = slower ? std::optional(cost_s) : std::nullopt,
                 .kind = "step change"});
}

// "The ranks have unequal batches: 16 images of an iteration on rank 0, 32 on rank 1."
void batch_finding(const RunAnalysis& run, std::vector<Finding>& out) {
  if (run.unequal_batches.empty()) return;
  const auto [least, most] = std::ranges::minmax_element(run.unequal_batches, {}, &RankBatch::images);
  const auto of = [&](const RankBatch& batch) { return run.per_rank[batch.index].rank; };
  const bool two = run.unequal_batches.size() == 2;
  out.push_back(
      {.severity = Severity::warning,
       .text = fmt::format(
           "The ranks have unequal batches: {} images of an iteration on rank {}{}, {} on rank {}{}. Where ranks "
           "compute "
           "equally fast, those with small batches wait for the others. If the gradients of the ranks are averaged, an "
           "image of a small batch counts more than one of a large batch.",
           count(least->images), of(*least), two ? "" : " (the least)", count(most->images), of(*most),
           two ? "" : " (the most)"),
       .kind = "unequal batches",
       .places = {{.name = fmt::format("Rank {} has the largest batch", of(*most)), .rank = most->index}}});
}

// The slow iterations, the longest first.
void slow_findings(const RunAnalysis& run, std::vector<Finding>& out) {
  constexpr std::size_t most = 3;
  const RunIterations& it = run.iterations;
  const double median_s = 1e-9 * static_cast<double>(it.steady_median_ns);
  std::vector<std::size_t> slow = it.slow();
  std::ranges::stable_sort(slow, std::greater(), [&](std::size_t i) { return it.seconds[i]; });
  slow.resize(std::min(most, slow.size()));
  for (const std::size_t i : slow) {
    const std::string title =
        fmt::format("Iteration {} is slow: {} times the median", it.numbers[i], fixed(it.seconds[i] / median_s, 1));
    out.push_back({.text = fmt::format("{} ({} against {}, mean over the ranks).", title, seconds(it.seconds[i]),
                                       seconds(median_s)),
                   .kind = "slow iteration",
                   .places = {{.name = title, .time = it.spans[i], .iteration = it.numbers[i]}}});
  }
}

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  if (run.iterations.count == 0 && !run.refused()) {
    out.push_back(
        {Severity::warning,
         fmt::format("No iterations were seen. Put {} named \"iteration\" around a training step to get step times, "
                     "throughput and the time that shrinks with ranks.",
                     range_name(run))});
  } else if (!run.images && !run.foreign() && run.can_be_compared()) {
    out.push_back({Severity::warning,
                   "The number of images is not known. Record with `--set images_per_iteration=N` to get images/s and "
                   "speed-ups."});
  }
  batch_finding(run, out);
  change_finding(run, out);
  slow_findings(run, out);
}

// The mean over the ranks of each phase in the iterations with these numbers, which all ranks finished: [phase][i] in
// ns.
std::vector<std::vector<double>> phases_of(const RunAnalysis& run, std::span<const std::int64_t> numbers) {
  std::vector phases(phase_count, std::vector<double>(numbers.size()));
  for (const RankSummary& rank : run.per_rank) {
    for (const Iteration& iteration : rank.iterations) {
      const auto found = std::ranges::lower_bound(numbers, iteration.number);
      if (found == numbers.end() || *found != iteration.number || !iteration.finished) continue;
      const auto at = static_cast<std::size_t>(found - numbers.begin());
      for (std::size_t p = 0; p < phase_count; ++p) {
        phases[p][at] += static_cast<double>(iteration.phase_ns[p]) / static_cast<double>(run.per_rank.size());
      }
    }
  }
  return phases;
}

// The mean of each phase in the iterations after the warm-up.
Json steady_phases(const RunAnalysis& run) {
  const std::span numbers = std::span(run.iterations.numbers).subspan(run.iterations.warmup);
  Json out = Json::object();
  const auto phases = phases_of(run, numbers);
  for (std::size_t p = 0; p < phases.size(); ++p) {
    const double sum = std::reduce(phases[p].begin(), phases[p].end());
    if (sum > 0) out[std::string(phase_name(static_cast<Phase>(p)))] = sum / static_cast<double>(numbers.size());
  }
  return out;
}

const char* change_kind(StepChange::Kind kind) {
  switch (kind) {
    case StepChange::Kind::jump:
      return "jump";
    case StepChange::Kind::drift:
      return "drift";
    case StepChange::Kind::unclear:
      break;
  }
  return "unclear";
}

void figures(const RunAnalysis& run, Json& out) {
  set(out, "images_per_s", run.images_per_s());
  const RunIterations& it = run.iterations;
  if (it.count == 0) return;
  Json& iterations = out["iterations"] = {{"count", it.count},
                                          {"median_ns", it.median_ns},
                                          {"p95_ns", it.p95_ns},
                                          {"warmup_excluded", it.warmup},
                                          {"steady_median_ns", it.steady_median_ns}};
  if (run.images) iterations["images"] = whole_number(*run.images);
  iterations["change_judged"] = it.change.judged;
  if (it.change.change) {
    const StepChange& change = *it.change.change;
    Json& entry = iterations["change"] = {{"kind", change_kind(change.kind)},
                                          {"before_ns", whole_number(std::round(1e9 * change.before))},
                                          {"after_ns", whole_number(std::round(1e9 * change.after))},
                                          {"p", change.p}};
    if (change.kind != StepChange::Kind::drift) entry["iteration"] = it.numbers[it.warmup + change.at];
    if (it.changed_phase) entry["phase"] = phase_name(it.changed_phase->phase);
  }
  iterations["phases_ns"] = steady_phases(run);
  set(iterations, "steady_images_per_s", it.steady_images_per_s);
  set(iterations, "steady_images_per_s_ci95", it.steady_ci95);
  set(iterations, "warmup_by_mser5", it.warmup_by_mser5);
  set(iterations, "flops_per_s", it.flops_per_s);
  set(iterations, "flops_share_of_peak", it.flops_share_of_peak);
}

// The durations of a rank's iterations after the warm-up, of those that all ranks finished.
std::vector<std::int64_t> steady_durations(const RunAnalysis& run, const RankSummary& rank) {
  const std::span numbers = std::span(run.iterations.numbers).subspan(run.iterations.warmup);
  std::vector<std::int64_t> durations;
  for (const Iteration& iteration : rank.iterations) {
    const bool common = iteration.finished && std::ranges::binary_search(numbers, iteration.number);
    if (common) durations.push_back(iteration.duration_ns);
  }
  return durations;
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  const RunIterations& it = run.iterations;
  const std::string warm_up = plural(it.warmup, "iteration", "iterations") + " of warm-up";
  Table table{.id = "iterations",
              .title = fmt::format("Iteration times of each rank, without {}", warm_up),
              .columns = {"rank", "iterations", "minimum", "25 %", "median", "75 %", "95 %", "maximum", "σ"}};
  table.note = fmt::format("Iterations that all ranks finished, without {}: the rule is a tenth of them, at least one.",
                           warm_up);
  if (it.warmup_by_mser5) {
    table.note += fmt::format(" The rule MSER-5 (White 1997) would set aside {}.", *it.warmup_by_mser5);
  }
  const auto rounded = [](double ns) { return duration(static_cast<std::int64_t>(std::llround(ns))); };
  for (const RankSummary& rank : run.per_rank) {
    const std::vector<std::int64_t> durations = steady_durations(run, rank);
    if (durations.empty()) continue;
    const Distribution of = distribution_of(durations);
    table.rows.push_back({std::to_string(rank.rank), count(static_cast<double>(of.count)), duration(of.minimum),
                          rounded(of.p25), rounded(of.median), rounded(of.p75), duration(quantile(durations, 0.95)),
                          duration(of.maximum), rounded(of.stddev)});
  }
  out.push_back(std::move(table));
}

void rank_figures(const RunAnalysis& run, std::size_t r, Json& out) {
  const std::vector<std::int64_t> durations = steady_durations(run, run.per_rank[r]);
  if (durations.empty()) return;
  const Distribution of = distribution_of(durations);
  out["iterations"] = {{"count", of.count},      {"min_ns", of.minimum}, {"p25_ns", of.p25},
                       {"median_ns", of.median}, {"p75_ns", of.p75},     {"p95_ns", quantile(durations, 0.95)},
                       {"max_ns", of.maximum},   {"mean_ns", of.mean},   {"stddev_ns", of.stddev}};
}

// What the bars of a chart of iterations are made of.
struct ChartPart {
  std::string name;
  std::vector<double> ns;  // of each bar
};

// By cause, as in the tables of causes. `numbers` are some of the iterations that all ranks finished.
std::vector<ChartPart> cause_parts(const RunCauses& causes, std::span<const std::int64_t> numbers) {
  using enum LossCause;
  std::vector<ChartPart> parts{{"computing", {}}, {"computing longer", {}}};
  constexpr LossCause others[] = {moving_bytes, blocked,   input_output, page_faults,
                                  collecting,   throttled, no_cpu,       unknown};
  for (const LossCause cause : others) parts.push_back({cause_name(cause), {}});
  for (const IterationCauses& iteration : causes.iterations) {
    if (!std::ranges::binary_search(numbers, iteration.number)) continue;
    parts[0].ns.push_back(iteration.parts[computing] - iteration.computing_longer_ns);
    parts[1].ns.push_back(iteration.computing_longer_ns);
    for (std::size_t i = 0; i < std::size(others); ++i) parts[i + 2].ns.push_back(iteration.parts[others[i]]);
  }
  return parts;
}

// Where the bars of the first iterations, of warm-up, would make all others small: the end of the scale without them.
struct ChartCut {
  double end_ms = 0, longest_ms = 0;  // of the scale, of the cut bars
};
std::optional<ChartCut> cut_of(std::span<const ChartPart> parts, std::size_t warm_up) {
  constexpr double small = 1.5, margin = 1.05;
  const std::size_t bars = parts.front().ns.size();
  double cut = 0, rest = 0;
  for (std::size_t i = 0; i < bars; ++i) {
    double ns = 0;
    for (const ChartPart& part : parts) ns += part.ns[i];
    double& longest = i < warm_up ? cut : rest;
    longest = std::max(longest, ns);
  }
  if (rest <= 0 || cut < small * rest) return std::nullopt;
  return ChartCut{margin * rest * 1e-6, cut * 1e-6};
}

// At most 400 bars: each is the longest of its neighbours, so that no slow iteration is hidden. The first page has the
// causes where they are known, else the phases.
void charts(const RunAnalysis& run, std::vector<Chart>& out) {
  constexpr std::size_t most_bars = 400;
  const RunIterations& it = run.iterations;
  if (it.seconds.size() < 3) return;
  const std::size_t group = (it.seconds.size() + most_bars - 1) / most_bars;
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < it.seconds.size(); i += group) {
    const auto first = it.seconds.begin() + static_cast<std::ptrdiff_t>(i);
    const auto end = first + static_cast<std::ptrdiff_t>(std::min(group, it.seconds.size() - i));
    numbers.push_back(it.numbers[static_cast<std::size_t>(std::max_element(first, end) - it.seconds.begin())]);
  }
  const auto warm_up = static_cast<std::size_t>(
      std::ranges::count_if(numbers, [&](std::int64_t number) { return number < it.numbers[it.warmup]; }));
  const auto add = [&](const char* by, const std::vector<ChartPart>& parts, bool picture) {
    nlohmann::json shown = nlohmann::json::array();
    for (const ChartPart& part : parts) {
      if (std::reduce(part.ns.begin(), part.ns.end()) <= 0) continue;
      nlohmann::json ms = nlohmann::json::array();
      for (const double ns : part.ns) ms.push_back(std::round(ns * 1e-3) * 1e-3);
      shown.push_back({{"name", part.name}, {"ms", std::move(ms)}});
    }
    std::string title = fmt::format("Time of each iteration by {}, mean over the ranks, ms", by);
    if (group > 1) title += fmt::format("; each bar is the longest of {} iterations", group);
    nlohmann::json data = {{"x", "iteration"},
                           {"numbers", numbers},
                           {"phases", std::move(shown)},
                           {"median", 1e-6 * static_cast<double>(it.steady_median_ns)}};
    if (const auto cut = cut_of(parts, warm_up)) {
      data["end"] = cut->end_ms;
      title += fmt::format("; the warm-up, up to {:.4g} ms, is cut", cut->longest_ms);
    }
    out.push_back({.title = std::move(title),
                   .kind = "iterations",
                   .data = std::move(data),
                   .height = 260,
                   .wide = true,
                   .picture = picture});
  };
  if (run.causes) add("cause", cause_parts(*run.causes, numbers), true);
  std::vector<ChartPart> phases;
  const auto all = phases_of(run, numbers);
  for (std::size_t p = 0; p < all.size(); ++p) {
    phases.push_back({std::string(phase_name(static_cast<Phase>(p))), all[p]});
  }
  add("phase", phases, !run.causes);
}

}  // namespace iterations_section

RunSection sections::iterations() {
  using namespace iterations_section;
  return {.findings = findings, .tables = tables, .figures = figures, .rank_figures = rank_figures, .charts = charts};
}

}  // namespace paceline::analysis
