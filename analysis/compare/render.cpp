// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/report/renderings/text_parts.h"
#include "analysis/report/section.h"
#include "analysis/report/values.h"
#include "analysis/text/labels.h"
#include "analysis/text/lists.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {

const char* change_word(const QuantityComparison& quantity) {
  if (!quantity.p) return "not judged";
  switch (quantity.change) {
    case Change::slower:
      return "slower";
    case Change::faster:
      return "faster";
    case Change::none:
      break;
  }
  // One of many names, of which chance moves some as far.
  if (quantity.ci95 && !quantity.ci95->contains(1)) return quantity.ratio > 1 ? "perhaps slower" : "perhaps faster";
  return "no difference shown";
}

namespace comparison_rendering {

// Whether the change, or the upper end of its interval, is too large for percent.
bool in_times(const QuantityComparison& quantity) {
  return std::max(quantity.ratio, quantity.ci95 ? quantity.ci95->high : 0) >= 100;
}

// "7,005", "12.5"
std::string factor(double ratio) { return ratio < 100 ? fixed(ratio, 1) : count(std::round(ratio)); }

constexpr std::size_t most_named = 5;

// Kernels of C++ templates have names of hundreds of characters.
std::string name_in_sentence(const QuantityComparison& quantity) { return label(quantity.name, 60); }

std::string set_name(const std::vector<RunAnalysis>& runs) {
  return runs.size() == 1 ? runs.front().name : fmt::format("{} and {} more", runs.front().name, runs.size() - 1);
}

// "+12.0 %"
std::string signed_percent(double ratio) {
  const double percent = 100 * (ratio - 1);
  return fmt::format("{}{:.1f}", percent < 0 ? "−" : "+", std::abs(percent));
}

// "backward (+20.3 ms), optimizer (+1.2 ms)": what changed, the largest difference first.
std::string changed_names(const RunComparison& comparison, QuantityType type, Change change) {
  std::vector<std::string> names;
  std::size_t more = 0;
  for (const QuantityComparison& quantity : comparison.quantities) {
    if (quantity.type != type || quantity.change != change) continue;
    if (names.size() == most_named) {
      ++more;
    } else {
      names.push_back(fmt::format("{} ({}{}, {})", name_in_sentence(quantity), quantity.difference_s() < 0 ? "−" : "+",
                                  seconds(std::abs(quantity.difference_s())), change_text(quantity)));
    }
  }
  if (more > 0) names.push_back(fmt::format("{} more", more));
  return list_text(names);
}

std::string why_not_judged(const RunComparison& comparison) {
  if (comparison.step() == nullptr) {
    return "Nothing was tested, because a side has no iterations that all ranks finished: names are compared by their "
           "totals over the whole run. Put an NVTX range named \"iteration\" around a training step.";
  }
  const bool some =
      std::ranges::any_of(comparison.quantities, [](const auto& quantity) { return quantity.p.has_value(); });
  return fmt::format(
      "{} not tested: a run needs at least 24 iterations after warm-up and 8 autocorrelation times of them. "
      "Record more iterations, or give several runs for each side (--new).",
      some ? "The step time was" : "Differences were");
}

std::optional<double> mean_of(const std::vector<RunAnalysis>& runs,
                              const std::function<std::optional<double>(const RunAnalysis&)>& figure) {
  double sum = 0;
  for (const RunAnalysis& run : runs) {
    const auto value = figure(run);
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(runs.size());
}

// The difference of two accuracies that the choice of test images alone exceeds in 5 of 100 cases (docs/metrics.md).
// Nothing where the number of test images is not known.
std::optional<double> accuracy_by_chance(double base, double fresh, const RunComparison& comparison) {
  const auto images = [](const RunAnalysis& run) { return run.config.number("test_images"); };
  const auto of_base = mean_of(comparison.base, images), of_fresh = mean_of(comparison.fresh, images);
  if (!of_base || !of_fresh || !(*of_base >= 1) || !(*of_fresh >= 1)) return std::nullopt;
  return 1.96 * std::sqrt(base * (1 - base) / *of_base + fresh * (1 - fresh) / *of_fresh);
}

// Speed that was bought with accuracy: the faster side reaches less.
std::optional<Finding> accuracy_finding(const RunComparison& comparison) {
  const auto accuracy = [](const RunAnalysis& run) { return run.accuracy; };
  const auto base = mean_of(comparison.base, accuracy), fresh = mean_of(comparison.fresh, accuracy);
  const QuantityComparison* step = comparison.step();
  if (!base || !fresh || step == nullptr || step->change == Change::none) return std::nullopt;
  const bool new_is_faster = step->change == Change::faster;
  const double reached = new_is_faster ? *fresh : *base, other = new_is_faster ? *base : *fresh;
  const auto chance = accuracy_by_chance(*base, *fresh, comparison);
  if (other - reached <= chance.value_or(0.01)) return std::nullopt;
  return Finding{
      Severity::warning,
      fmt::format("Speed bought with accuracy: {} takes less time for a step but reaches {} where {} reaches "
                  "{}{}.",
                  set_name(new_is_faster ? comparison.fresh : comparison.base), percent(reached),
                  set_name(new_is_faster ? comparison.base : comparison.fresh), percent(other),
                  chance ? fmt::format(", more than the {:.1f} points that the choice of test images explains "
                                       "(95 %)",
                                       100 * *chance)
                         : "")};
}

std::vector<Finding> findings_of(const RunComparison& comparison) {
  std::vector<Finding> findings;
  if (!comparison.judged) findings.push_back({Severity::warning, why_not_judged(comparison)});
  if (auto finding = accuracy_finding(comparison)) findings.push_back(std::move(*finding));
  constexpr std::pair<QuantityType, const char*> kinds[] = {{QuantityType::phase, "Phases"},
                                                            {QuantityType::range, "Ranges"},
                                                            {QuantityType::call, "Calls"},
                                                            {QuantityType::device, "Work on the device"}};
  for (const auto& [type, heading] : kinds) {
    for (const Change change : {Change::slower, Change::faster}) {
      const std::string names = changed_names(comparison, type, change);
      if (names.empty()) continue;
      findings.push_back({change == Change::slower ? Severity::warning : Severity::info,
                          fmt::format("{} that take {} time in an iteration: {}.", heading,
                                      change == Change::slower ? "more" : "less", names)});
    }
  }
  if (comparison.totals) {
    std::vector<std::string> names;  // the largest differences come first
    for (const QuantityComparison& quantity : comparison.quantities) {
      if (names.size() == most_named || quantity.difference_s() == 0) break;
      names.push_back(fmt::format("{} ({}{}, {} instead of {} times)", name_in_sentence(quantity),
                                  quantity.difference_s() < 0 ? "−" : "+", seconds(std::abs(quantity.difference_s())),
                                  count(quantity.new_count), count(quantity.base_count)));
    }
    if (!names.empty()) {
      findings.push_back({Severity::info, fmt::format("The totals differ most for {}.", list_text(names))});
    }
  }
  if (!comparison.differences.empty()) {
    findings.push_back(
        {Severity::info, fmt::format("The runs are described differently: {}.", list_text(comparison.differences))});
  }
  for (const auto& [only, side] : {std::pair{&comparison.only_base, "base"}, std::pair{&comparison.only_new, "new"}}) {
    std::vector<std::string> names;
    for (const QuantityComparison& quantity : *only) {
      if (names.size() < most_named) {
        names.push_back(fmt::format("{} ({})", name_in_sentence(quantity), seconds(std::abs(quantity.difference_s()))));
      }
    }
    if (names.empty()) continue;
    if (only->size() > names.size()) names.push_back(fmt::format("{} more", only->size() - names.size()));
    findings.push_back(
        {Severity::info, fmt::format("Only the {} side has these, {}: {}.", side,
                                     comparison.totals ? "in all" : "in an iteration", list_text(names))});
  }
  for (const auto* runs : {&comparison.base, &comparison.fresh}) {
    for (const RunAnalysis& run : *runs) {
      if (run.can_be_compared()) continue;
      findings.push_back(
          {Severity::warning, fmt::format("{}: {}. Its iterations are only those that were recorded.", run.path,
                                          !run.ended   ? "it did not end"
                                          : run.failed ? "it failed"
                                                       : "events were lost")});
    }
  }
  if (comparison.judged && !comparison.between_runs) {
    findings.push_back({Severity::info,
                        "The intervals cover the variation within each run. They do not cover the variation between "
                        "equal runs: repeat both (--new) to include it."});
  }
  return findings;
}

// Speed beside accuracy: means over the runs of each side.
struct Result {
  const char *key, *title;
  std::function<std::optional<double>(const RunAnalysis&)> figure;
  std::string (*write)(double);
};

const std::vector<Result>& results() {
  static const std::vector<Result> all = {
      {"wall_s", "wall time",
       [](const RunAnalysis& run) { return std::optional(1e-9 * static_cast<double>(run.wall_ns)); }, seconds},
      {"images_per_s", "throughput, whole job", [](const RunAnalysis& run) { return run.images_per_s(); },
       images_per_second},
      {"steady_images_per_s", "throughput after warm-up",
       [](const RunAnalysis& run) { return run.iterations.steady_images_per_s; }, images_per_second},
      {"accuracy", "test accuracy", [](const RunAnalysis& run) { return run.accuracy; }, percent},
      {"seconds_to_accuracy", "time to the target accuracy",
       [](const RunAnalysis& run) { return run.seconds_to_accuracy; }, seconds}};
  return all;
}

std::vector<Table> tables_of(const RunComparison& comparison) {
  Table outcome{.id = "results", .title = "Results", .columns = {"figure", "base", "new"}};
  for (const Result& result : results()) {
    const auto base = mean_of(comparison.base, result.figure), fresh = mean_of(comparison.fresh, result.figure);
    if (base || fresh) {
      outcome.rows.push_back({result.title, or_none(base, result.write), or_none(fresh, result.write)});
    }
  }
  Table table{.id = "comparison",
              .title = "Time in an iteration, mean over ranks",
              .columns = {"of", "name", "verdict", "base", "new", "difference", "change", "95 % interval"},
              .text_columns = 3,
              .note =
                  "10 % trimmed means. The step is tested first. The verdicts on names are corrected for their number "
                  "(Holm); the "
                  "intervals are not, so a name is \"perhaps\" slower where only its interval shows a difference."};
  if (comparison.totals) {
    table.title = "Time over the whole run, mean over ranks";
    table.columns = {"of", "name", "count in base", "count in new", "base", "new", "difference", "change"};
    table.text_columns = 2;
    table.note = "Totals of the main threads and streams, nested ones of a name once. They are not tested.";
  }
  for (const QuantityComparison& quantity : comparison.quantities) {
    if (comparison.totals) {
      table.rows.push_back({type_name(quantity.type), quantity.name, count(quantity.base_count),
                            count(quantity.new_count), seconds(quantity.base_s), seconds(quantity.new_s),
                            (quantity.difference_s() < 0 ? "−" : "+") + seconds(std::abs(quantity.difference_s())),
                            change_text(quantity)});
      continue;
    }
    table.rows.push_back({type_name(quantity.type), quantity.name, change_word(quantity), seconds(quantity.base_s),
                          seconds(quantity.new_s),
                          (quantity.difference_s() < 0 ? "−" : "+") + seconds(std::abs(quantity.difference_s())),
                          change_text(quantity), interval_text(quantity)});
  }
  limit_rows(table);
  if (!table.rows.empty() && table.rows.back()[1].empty())
    std::swap(table.rows.back()[0], table.rows.back()[1]);  // "more"
  std::vector<Table> tables;
  for (Table* each : {&outcome, &table}) {
    if (!each->rows.empty()) tables.push_back(std::move(*each));
  }
  return tables;
}

Json quantity_json(const QuantityComparison& quantity) {
  Json out = {{"type", type_name(quantity.type)}, {"name", quantity.name}};
  if (quantity.base_s > 0) out["base_s"] = quantity.base_s;
  if (quantity.new_s > 0) out["new_s"] = quantity.new_s;
  if (quantity.base_s > 0 && quantity.new_s > 0) {
    out["ratio"] = quantity.ratio;
    set(out, "ci95", quantity.ci95);
    set(out, "p", quantity.p);
    if (quantity.base_count > 0) out["base_count"] = quantity.base_count, out["new_count"] = quantity.new_count;
    if (quantity.p) {
      out["verdict"] = quantity.change == Change::none ? "undecided" : change_word(quantity);
    }
  }
  return out;
}

Json paths_json(const std::vector<RunAnalysis>& runs) {
  Json paths = Json::array();
  for (const RunAnalysis& run : runs) paths.push_back(run.path);
  return paths;
}

}  // namespace comparison_rendering

std::string change_text(const QuantityComparison& quantity) {
  using namespace comparison_rendering;
  return in_times(quantity) ? factor(quantity.ratio) + " times" : percent_change(quantity.ratio);
}

std::string interval_text(const QuantityComparison& quantity) {
  using namespace comparison_rendering;
  if (!quantity.ci95) return no_value;
  const auto& [low, high] = *quantity.ci95;
  return in_times(quantity) ? fmt::format("{} to {} times", factor(low), factor(high))
                            : fmt::format("{} to {} %", signed_percent(low), signed_percent(high));
}

std::string comparison_headline(const RunComparison& comparison) {
  using namespace comparison_rendering;
  const std::string base = set_name(comparison.base), fresh = set_name(comparison.fresh);
  const QuantityComparison* step = comparison.step();
  if (step == nullptr && comparison.quantities.empty() && comparison.only_base.empty() && comparison.only_new.empty()) {
    return fmt::format("{} and {} cannot be compared: they have no names of ranges, calls or kernels.", base, fresh);
  }
  if (step == nullptr) return fmt::format("{} and {} are compared by totals, which are not tested.", base, fresh);
  const char* pair = comparison.between_runs ? "" : " in this pair of runs";
  const std::string times =
      fmt::format("{} in {} and {} in {}", seconds(step->new_s), fresh, seconds(step->base_s), base);
  if (!step->p) return fmt::format("A step takes {}. Not judged.", times);
  const std::string change = fmt::format("{} ({})", change_text(*step), interval_text(*step));
  switch (step->change) {
    case Change::slower:
      return fmt::format("{} is slower{}: a step takes {}: {}.", fresh, pair, times, change);
    case Change::faster:
      return fmt::format("{} is faster{}: a step takes {}: {}.", fresh, pair, times, change);
    case Change::none:
      break;
  }
  return fmt::format("No difference in the step time is shown{}: {}, {}.", pair, times, change);
}

std::string render_text(const RunComparison& comparison) {
  using namespace comparison_rendering;
  std::string out = wrapped(comparison_headline(comparison), 110, "", "") + "\n";
  for (const Finding& finding : findings_of(comparison)) {
    out += wrapped(finding.text, 110, finding.severity == Severity::info ? "  · " : "  ! ", "    ");
  }
  for (const Table& table : tables_of(comparison)) print_table(table, out, 120);
  return printable_lines(out);
}

std::string render_markdown(const RunComparison& comparison) {
  using namespace comparison_rendering;
  std::string out =
      fmt::format("# Paceline comparison\n\n**{}**\n\n", markdown_escaped(comparison_headline(comparison)));
  for (const Finding& finding : findings_of(comparison)) {
    out += fmt::format("- {}{}\n", finding.severity == Severity::info ? "" : "**Warning:** ",
                       markdown_escaped(finding.text));
  }
  print_markdown_tables(tables_of(comparison), out);
  return out;
}

std::string render_json(const RunComparison& comparison) {
  using namespace comparison_rendering;
  Json out = {{"schema", "paceline.compare/1"},
              {"headline", comparison_headline(comparison)},
              {"base", paths_json(comparison.base)},
              {"new", paths_json(comparison.fresh)},
              {"judged", comparison.judged},
              {"between_runs", comparison.between_runs},
              {"totals", comparison.totals},
              {"differences", comparison.differences},
              {"results", Json::object()},
              {"quantities", Json::array()},
              {"only_base", Json::array()},
              {"only_new", Json::array()},
              {"findings", Json::array()}};
  for (const Result& result : results()) {
    Json entry = Json::object();
    set(entry, "base", mean_of(comparison.base, result.figure));
    set(entry, "new", mean_of(comparison.fresh, result.figure));
    if (!entry.empty()) out["results"][result.key] = entry;
  }
  for (const auto& quantity : comparison.quantities) out["quantities"].push_back(quantity_json(quantity));
  for (const auto& quantity : comparison.only_base) out["only_base"].push_back(quantity_json(quantity));
  for (const auto& quantity : comparison.only_new) out["only_new"].push_back(quantity_json(quantity));
  for (const Finding& finding : findings_of(comparison)) {
    out["findings"].push_back({{"severity", severity_name(finding.severity)}, {"text", finding.text}});
  }
  return printable_json(out.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace paceline::analysis
