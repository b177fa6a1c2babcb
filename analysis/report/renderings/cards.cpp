// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/renderings/cards.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/sentences.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace card_parts {

constexpr double describes_nothing = 0.999;  // Amdahl's law with this share cannot describe the runs

std::string beside(const std::optional<Interval>& ci95, int decimals) {
  return ci95 ? fmt::format("95 %: {}–{}", fixed(ci95->low, decimals), fixed(ci95->high, decimals)) : "";
}

// One card for both serial shares, because two figures of one name look like a contradiction.
void add_serial_share(const Report& report, std::vector<Card>& cards) {
  const auto measured = measured_serial_share(report);
  const auto& fits = report.scaling.fits;
  if (!fits.empty() && !fits.front().misfit && fits.front().serial_fraction < describes_nothing) {
    std::string note = beside(fits.front().ci95, 3);
    if (measured) {
      note += fmt::format("{}communication included; serial work alone: {}", note.empty() ? "" : "; ",
                          fixed(measured->share, 3));
    }
    cards.push_back({fixed(fits.front().serial_fraction, 3), "share that more ranks do not shorten, by Amdahl's law",
                     std::move(note), "serial-share"});
  } else if (measured) {
    cards.push_back({fixed(measured->share, 3), "share of serial work in the 1-rank run",
                     measured->runs == 1 ? beside(measured->ci95, 3)
                                         : fmt::format("mean of {} runs, {}–{}", measured->runs,
                                                       fixed(measured->low, 3), fixed(measured->high, 3)),
                     "serial-share"});
  }
}

void add_run(const Report& report, const RunAnalysis& run, std::vector<Card>& cards) {
  const std::string on = report.runs.size() > 1 ? ", " + run.name : "";
  if (headline_point(report.scaling) == nullptr)
    cards.push_back({duration(run.wall_ns), "wall time" + on, "", "wall-time"});
  if (run.iterations.steady_images_per_s) {
    cards.push_back({fixed(*run.iterations.steady_images_per_s, 1), "images/s, steady" + on,
                     beside(run.iterations.steady_ci95, 1), "throughput"});
  } else if (run.iterations.count > 0) {
    cards.push_back({duration(run.iterations.steady_median_ns), "a step, median" + on, "", "iteration"});
  }
  if (run.communication_share_of_step) {
    cards.push_back({percent(*run.communication_share_of_step), "of a step is communication, waiting included" + on, "",
                     "waiting"});
  }
  if (run.efficiencies && run.ranks > 1 && headline_point(report.scaling) == nullptr) {
    cards.push_back({percent(run.efficiencies->parallel), "of the iterations is useful work" + on, "", "useful"});
  }
  if (run.accuracy) {
    cards.push_back({percent(*run.accuracy), "test accuracy" + on,
                     run.seconds_to_accuracy
                         ? fmt::format("{:g} % after {}", 100 * run.target_accuracy, seconds(*run.seconds_to_accuracy))
                         : fmt::format("{:g} % not reached", 100 * run.target_accuracy),
                     "accuracy"});
  }
}

}  // namespace card_parts

std::vector<Card> cards_of(const Report& report) {
  using namespace card_parts;
  std::vector<Card> cards;
  const ScalingPoint* best = headline_point(report.scaling);
  if (best != nullptr) {
    cards.push_back({fixed(*best->speedup, 2), fmt::format("speed-up of {} ranks", best->ranks),
                     beside(best->speedup_ci95, 2), "speed-up"});
    cards.push_back({percent(*best->efficiency), fmt::format("efficiency of {} ranks", best->ranks),
                     best->efficiency_ci95 ? fmt::format("95 %: {}–{}", percent(best->efficiency_ci95->low),
                                                         percent(best->efficiency_ci95->high))
                                           : "",
                     "efficiency"});
  }
  add_serial_share(report, cards);
  if (report.scaling.limit_from_time_model) {
    const auto row =
        std::ranges::find(report.scaling.time_model, report.scaling.speedup_limit, &TimeModelRow::speedup_limit);
    const std::string whose = row == report.scaling.time_model.end() ? "" : fmt::format(" of {} ranks", row->ranks);
    cards.push_back({fixed(*report.scaling.speedup_limit, 2),
                     fmt::format("speed-up{} if the runs were much longer", whose),
                     beside(report.scaling.speedup_limit_ci95, 2), "long-runs"});
  }
  if (const auto focus = focus_of(report)) {
    add_run(report, report.runs[*focus], cards);
  } else if (best != nullptr) {
    cards.push_back(
        {images_per_second(best->throughput), fmt::format("throughput of {} ranks", best->ranks), "", "throughput"});
  }
  return cards;
}

Table cards_table(const Report& report) {
  Table table{.id = "cards", .title = "Main figures", .columns = {"figure", "value"}};
  for (const Card& card : cards_of(report)) {
    table.rows.push_back(
        {card.what, card.beside.empty() ? card.value : fmt::format("{} ({})", card.value, card.beside)});
  }
  return table;
}

}  // namespace paceline::analysis
