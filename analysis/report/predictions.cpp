// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/predictions.h"

#include <algorithm>
#include <cmath>

#include "analysis/report/renderings/text_parts.h"
#include "analysis/report/values.h"
#include "analysis/text/labels.h"
#include "analysis/text/lists.h"

namespace paceline::analysis {
namespace prediction_text {

constexpr std::size_t most_moved = 2;

// "transfer −110 ms, forward −3.20 ms"
std::string moved_text(const Prediction& prediction) {
  std::vector<std::string> parts;
  for (const MovedPart& part : prediction.moved) {
    if (parts.size() == most_moved) break;
    const double change = part.after_s - part.before_s;
    parts.push_back(fmt::format("{} {}{}", part.name, change < 0 ? "−" : "+", seconds(std::abs(change))));
  }
  return parts.empty() ? no_value : joined(parts);
}

}  // namespace prediction_text

std::string training_note(const Prediction& prediction) {
  return prediction.alters_training ? " It alters the training, so check the accuracy." : "";
}

std::string marked_title(const Prediction& prediction) {
  return prediction.alters_training ? prediction.title + " (check the accuracy)" : prediction.title;
}

Table prediction_table(const WhatIf& what_if) {
  using namespace prediction_text;
  Table table{.id = "what-if",
              .title = "What if: predicted step time",
              .columns = {"change", "option of whatif", "mean step", "95 % interval", "median step",
                          "change of the mean", "time per image", "moves"},
              .text_columns = 2,
              .note = fmt::format(
                  "Measured: a mean of {} and a median of {}; replayed from costs of other iterations: a mean of {}. "
                  "The model knows "
                  "no contention for cores (except by helper threads) or memory and no congestion of the network.",
                  seconds(what_if.step_s), seconds(what_if.median_s), seconds(what_if.replayed_s)),
              .last_is_text = true};
  for (const std::string& note : what_if.notes) table.note += " " + note;
  const auto& all = what_if.predictions;
  const auto has_interval = [](const Prediction& of) { return of.ci95.has_value(); };
  if (std::ranges::any_of(all, has_interval)) {
    table.note +=
        " The intervals cover the variation between iterations and what such predictions were off by on real runs.";
  }
  if (std::ranges::any_of(all, &Prediction::ci95_of_change)) {
    table.note +=
        " The run is shorter than 20 autocorrelation times, so they hold under the conditions of its iterations.";
  }
  if (std::ranges::any_of(all, &Prediction::error_unknown)) {
    table.note += " A change has no interval where the error of such predictions was not measured on real runs.";
  }
  const auto too_short = [](const Prediction& of) { return !of.ci95 && !of.error_unknown; };
  if (std::ranges::any_of(all, too_short)) {
    table.note += " A change has no interval either where the run is shorter than 20 of its autocorrelation times.";
  }
  for (const Prediction& of : what_if.predictions) {
    const auto interval = [](const Interval& ci95) {
      return fmt::format("{} to {}", seconds(ci95.low), seconds(ci95.high));
    };
    table.rows.push_back({marked_title(of), of.options.empty() ? no_value : of.options, seconds(of.step_s),
                          or_none(of.ci95, interval), of.median_s > 0 ? seconds(of.median_s) : no_value,
                          percent_change(of.ratio), percent_change(of.per_image), moved_text(of)});
  }
  return table;
}

Json predictions_json(const WhatIf& what_if) {
  Json out = {{"step_s", what_if.step_s},
              {"median_s", what_if.median_s},
              {"replayed_s", what_if.replayed_s},
              {"waiting_share", what_if.waiting_share},
              {"replayed_waiting_share", what_if.replayed_waiting_share},
              {"iterations", what_if.iterations},
              {"predictions", Json::array()},
              {"notes", what_if.notes}};
  for (const Prediction& of : what_if.predictions) {
    Json& entry = out["predictions"].emplace_back(Json{{"change", of.title},
                                                       {"options", of.options},
                                                       {"step_s", of.step_s},
                                                       {"ratio", of.ratio},
                                                       {"per_image_ratio", of.per_image}});
    if (of.median_s > 0) entry["median_s"] = of.median_s;
    if (of.bound) entry["bound"] = true;
    if (of.alters_training) entry["alters_training"] = true;
    if (of.ci95) entry["ci95"] = {of.ci95->low, of.ci95->high};
    if (of.ci95_of_change) entry["ci95_of_change"] = true;
    entry["moves"] = Json::array();
    for (const MovedPart& part : of.moved) {
      entry["moves"].push_back({{"part", part.name}, {"before_s", part.before_s}, {"after_s", part.after_s}});
    }
  }
  return out;
}

std::string render_what_if_text(const WhatIf& what_if, const std::string& run) {
  std::string out =
      wrapped(fmt::format("A step of {} takes {} (mean of {} after warm-up; median {}).", run, seconds(what_if.step_s),
                          plural(what_if.iterations, "iteration", "iterations"), seconds(what_if.median_s)),
              110, "", "");
  Table table = prediction_table(what_if);
  const std::string note = table.note;
  if (table.rows.empty()) {
    out += "\n" + wrapped("No change that applies to this run moves the step by 1 % or more.", 110, "  · ", "    ");
  } else {
    print_table(table, out);
  }
  return out + "\n" + wrapped(note, 110, "", "");
}

std::string render_what_if_json(const WhatIf& what_if, const std::string& run) {
  Json out = {{"schema", "paceline.whatif/1"}, {"run", run}};
  out.update(predictions_json(what_if));
  return printable_json(out.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace paceline::analysis
