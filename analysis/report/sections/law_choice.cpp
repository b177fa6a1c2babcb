// SPDX-License-Identifier: Apache-2.0
// The law that predicts left-out rank counts best, and what it predicts for more ranks.
#include <algorithm>
#include <cmath>

#include "analysis/report/sections.h"
#include "analysis/report/sentences.h"
#include "analysis/report/values.h"
#include "analysis/text/lists.h"

namespace paceline::analysis {
namespace law_choice_section {

const char* law_text(Law law) {
  switch (law) {
    case Law::amdahl:
      return "Amdahl's law";
    case Law::usl:
      return "the Universal Scalability Law";
    case Law::fixed_epochs:
      return "fixed + epochs × epoch";
    case Law::gustafson:
      return "Gustafson's law";
    case Law::logarithmic:
      return "serial share + costs that grow with log N";
  }
  return "";
}

constexpr const char* law_keys[] = {"amdahl", "usl", "fixed_epochs", "gustafson", "logarithmic"};
const char* law_key(Law law) { return law_keys[static_cast<std::size_t>(law)]; }

std::string capital(std::string text) {
  if (text.starts_with("the ") || text.starts_with("serial")) text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

// As a relative error of the time.
double relative(double log_error) { return std::expm1(log_error); }

std::string prediction_text(const LawChoice::Prediction& prediction) {
  return fmt::format("S({}) = {}", prediction.ranks, with_interval(fixed(prediction.speedup, 2), prediction.ci95, 2));
}

// A sentence about costs that a law with more parameters would have, or nothing.
std::string hidden_costs_text(const LawChoice& choice) {
  std::vector<std::string> left;
  for (const auto& prediction : choice.predictions) {
    if (prediction.at_least) left.push_back(fmt::format("S({}) at {:.2f}", prediction.ranks, *prediction.at_least));
  }
  return left.empty() ? "" : " Costs too small to show in these runs could leave " + list_text(left) + ".";
}

void say(const Scaling& scaling, const std::vector<std::size_t>& points, const LawChoice& choice, SentenceList& out) {
  const std::string where = rank_counts_text(scaling, points) + " ranks";
  if (!choice.refused.empty()) {
    std::vector<std::string> refused;
    for (const Law law : choice.refused) refused.push_back(law_text(law));
    out.say("law refused", Severity::info,
            fmt::format("{} {} refused for {}: the times are farther from {} than the noise explains.",
                        capital(list_text(refused)), refused.size() == 1 ? "is" : "are", where,
                        refused.size() == 1 ? "it" : "them"));
  }
  if (!choice.chosen) {
    if (points.size() < 3 || !choice.errors.empty()) return;
    out.say(
        "law choice", Severity::info,
        fmt::format("The laws through {} are not compared with each other: leaving one rank count out needs runs on "
                    "at least {} rank counts.",
                    where, fewest_for_choice));
    return;
  }
  std::vector<std::string> errors, predictions;
  for (const auto& error : choice.errors) {
    errors.push_back(fmt::format("{} {}", law_text(error.law), percent(relative(error.error))));
  }
  for (const auto& prediction : choice.predictions) predictions.push_back(prediction_text(prediction));
  const auto best = std::ranges::min_element(choice.errors, {}, &LawChoice::Error::error);
  if (best->law != *choice.chosen) {
    out.say(
        "law choice", Severity::info,
        fmt::format("{} is the simplest law that explains the times of {} as well as chance allows. {} predicts "
                    "left-out rank counts best (error of the time when each rank count is left out once: {}). If the "
                    "first one holds on more ranks, {}.{}",
                    capital(law_text(*choice.chosen)), where, capital(law_text(best->law)), list_text(errors),
                    list_text(predictions), hidden_costs_text(choice)));
    return;
  }
  const std::string law = capital(law_text(*choice.chosen));
  out.say("law choice", Severity::info,
          fmt::format("{} predicts the left-out rank counts of {} best (error of the time when each rank count is left "
                      "out once: {}). If it holds on more ranks, {}.{}",
                      law, where, list_text(errors), list_text(predictions), hidden_costs_text(choice)));
}

void findings(const Report& report, SentenceList& out) {
  for (const auto& fit : report.scaling.fits) say(report.scaling, fit.points, fit.choice, out);
  for (const auto& fit : report.scaling.weak) say(report.scaling, fit.points, fit.choice, out);
}

void add_rows(const Scaling& scaling, const std::vector<std::size_t>& points, const LawChoice& choice, Table& table) {
  for (const auto& error : choice.errors) {
    const bool chosen = error.law == choice.chosen;
    std::vector<std::string> predicted;
    for (const auto& prediction : choice.predictions) predicted.push_back(prediction_text(prediction));
    table.rows.push_back({rank_counts_text(scaling, points) + " ranks, " + work_text(scaling.points[points.front()]),
                          law_text(error.law), percent(relative(error.error)),
                          chosen ? list_text(predicted) : no_value});
  }
}

void tables(const Report& report, std::vector<Table>& out) {
  Table table{
      .id = "law-choice",
      .title = "Laws by cross-validation",
      .columns = {"through", "law", "error of left-out rank counts", "prediction"},
      .text_columns = 2,
      .note =
          "Each rank count above 1 is left out once and predicted by the law through the others; the error is "
          "the root mean square of the time's relative error. The simplest law predicts among those that explain the "
          "times as "
          "well as the one with the smallest error. Its intervals contain those of equally simple laws that do.",
      .last_is_text = true};
  for (const auto& fit : report.scaling.fits) add_rows(report.scaling, fit.points, fit.choice, table);
  for (const auto& fit : report.scaling.weak) add_rows(report.scaling, fit.points, fit.choice, table);
  out.push_back(std::move(table));
}

Json choice_json(const Scaling& scaling, const std::vector<std::size_t>& points, const LawChoice& choice) {
  Json out = {{"ranks", rank_counts_json(scaling, points)}, {"laws", Json::array()}};
  for (const auto& error : choice.errors) {
    out["laws"].push_back({{"law", law_key(error.law)}, {"left_out_log_error", error.error}});
  }
  for (const Law law : choice.refused) out["refused"].push_back(law_key(law));
  if (!choice.chosen) return out;
  out["chosen"] = law_key(*choice.chosen);
  for (const auto& prediction : choice.predictions) {
    Json entry = {{"ranks", prediction.ranks}, {"speedup", prediction.speedup}};
    set(entry, "speedup_ci95", prediction.ci95);
    set(entry, "speedup_at_least", prediction.at_least);
    out["predictions"].push_back(std::move(entry));
  }
  return out;
}

void figures(const Report& report, Json& out) {
  const Scaling& scaling = report.scaling;
  for (const auto& fit : scaling.fits) {
    if (!fit.choice.errors.empty() || !fit.choice.refused.empty())
      out["law_choice"].push_back(choice_json(scaling, fit.points, fit.choice));
  }
  for (const auto& fit : scaling.weak) {
    if (!fit.choice.errors.empty() || !fit.choice.refused.empty())
      out["law_choice"].push_back(choice_json(scaling, fit.points, fit.choice));
  }
}

}  // namespace law_choice_section

ScalingSection sections::law_choice() {
  using namespace law_choice_section;
  return {.findings = findings, .tables = tables, .figures = figures};
}

}  // namespace paceline::analysis
