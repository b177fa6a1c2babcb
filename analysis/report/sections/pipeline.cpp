// SPDX-License-Identifier: Apache-2.0
// Pipelines of stages: how long the stages wait for each other, and which one is the longest.
#include "analysis/run/pipeline.h"

#include "analysis/report/sections.h"
#include "analysis/report/values.h"
#include "analysis/run/pipeline_what_if.h"

namespace paceline::analysis {
namespace pipeline_section {

constexpr double uneven = 1.1;  // longest stage ÷ mean stage

std::string ranks_of(const RunAnalysis& run, const PipelineStage& stage) {
  std::string text = stage.ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < stage.ranks.size(); ++i) {
    text += fmt::format("{} {}", i == 0 ? "" : ",", run.per_rank[stage.ranks[i]].rank);
  }
  return text;
}

void findings(const RunAnalysis& run, std::vector<Finding>& out) {
  const auto found = pipeline_figures(run);
  if (!found) return;
  const PipelineFigures& p = *found;
  const PipelineStage& longest = p.stages[p.longest];
  std::string text = fmt::format(
      "The {} stages of the pipeline wait for each other {} of the time from the first forward to the last backward "
      "pass; {} equal stages with {} would wait {}.",
      p.stages.size(), percent(p.bubble), p.stages.size(), plural(p.microbatches, "microbatch", "microbatches"),
      percent(p.ideal_bubble));
  text += fmt::format(" The longest stage is {} ({}): {} of work in an iteration, {:.2f} times the mean.", p.longest,
                      ranks_of(run, longest), seconds(longest.busy_s), p.imbalance);
  if (const auto better = better_split(run)) {
    text += fmt::format(" With --pipeline-split {} its stages would wait {}, and a step would take {} instead of {}.",
                        better->split, percent(better->bubble), seconds(better->step_s),
                        duration(run.iterations.steady_median_ns));
  } else if (p.imbalance > uneven) {
    text += " Move layers from it to another stage.";
  } else if (!p.others.empty() && p.others.back().length_s < p.length_s) {
    const auto& other = p.others.back();
    text += fmt::format(
        " With {} microbatches the stages would wait {}, if a microbatch's time is proportional to its "
        "images.",
        other.microbatches, percent(other.bubble));
  }
  out.push_back({Severity::info, std::move(text)});
  if (!p.slowest) return;
  const PipelineFigures::Iteration& slowest = p.iterations[*p.slowest];
  out.push_back({Severity::info,
                 fmt::format("The pipeline took longest in iteration {}: {} with {} of waiting, where {} is usual. "
                             "Stage {} ({}) worked {} in it.",
                             slowest.number, seconds(slowest.length_s), percent(slowest.bubble), seconds(p.length_s),
                             p.slowest_stage, ranks_of(run, p.stages[p.slowest_stage]),
                             seconds(slowest.busy_s[p.slowest_stage]))});
}

void tables(const RunAnalysis& run, std::vector<Table>& out) {
  const auto found = pipeline_figures(run);
  if (!found) return;
  const PipelineFigures& p = *found;
  Table stages{.id = "pipeline",
               .title = "Stages of the pipeline",
               .columns = {"stage", "ranks", "forward of a microbatch", "backward", "work in an iteration", "bubble"}};
  stages.text_columns = 2;
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const PipelineStage& stage = p.stages[s];
    stages.rows.push_back({std::to_string(s), ranks_of(run, stage), seconds(stage.forward_s), seconds(stage.backward_s),
                           seconds(stage.busy_s), percent(stage.bubble)});
  }
  stages.note = fmt::format(
      "The bubble is the share of the time from the first forward to the last backward pass ({}) in which a stage does "
      "neither: messages and waiting. These stages would have {} if messages took no time.",
      seconds(p.length_s), percent(p.predicted_bubble));
  out.push_back(std::move(stages));
  Table others{.id = "microbatches",
               .title = "Other numbers of microbatches (prediction)",
               .columns = {"microbatches", "first forward to last backward", "bubble"},
               .note =
                   "The same batch in other parts, if a microbatch's time is proportional to its images and messages "
                   "take no time. Small microbatches take longer for each image."};
  for (const PipelineFigures::Other& other : p.others) {
    others.rows.push_back({std::to_string(other.microbatches), seconds(other.length_s), percent(other.bubble)});
  }
  out.push_back(std::move(others));
}

void figures(const RunAnalysis& run, Json& out) {
  const auto found = pipeline_figures(run);
  if (!found) return;
  const PipelineFigures& p = *found;
  Json json = {{"microbatches", p.microbatches},
               {"length_s", p.length_s},
               {"bubble", p.bubble},
               {"ideal_bubble", p.ideal_bubble},
               {"predicted_length_s", p.predicted_length_s},
               {"predicted_bubble", p.predicted_bubble},
               {"imbalance", p.imbalance},
               {"longest_stage", p.longest}};
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const PipelineStage& stage = p.stages[s];
    Json ranks = Json::array();
    for (const std::size_t rank : stage.ranks) ranks.push_back(run.per_rank[rank].rank);
    json["stages"].push_back({{"stage", s},
                              {"ranks", ranks},
                              {"forward_s", stage.forward_s},
                              {"backward_s", stage.backward_s},
                              {"busy_s", stage.busy_s},
                              {"bubble", stage.bubble}});
  }
  for (const PipelineFigures::Other& other : p.others) {
    json["other_microbatches"].push_back(
        {{"microbatches", other.microbatches}, {"length_s", other.length_s}, {"bubble", other.bubble}});
  }
  for (const PipelineFigures::Iteration& one : p.iterations) {
    Json bubbles = Json::array();
    for (std::size_t s = 0; s < p.stages.size(); ++s) bubbles.push_back(one.stage_bubble(s));
    json["iterations"].push_back(
        {{"iteration", one.number}, {"length_s", one.length_s}, {"bubble", one.bubble}, {"stage_bubbles", bubbles}});
  }
  if (p.slowest) json["slowest_iteration"] = p.iterations[*p.slowest].number;
  if (const auto better = better_split(run)) {
    json["better_split"] = {{"split", better->split},
                            {"length_s", better->length_s},
                            {"bubble", better->bubble},
                            {"step_s", better->step_s}};
  }
  out["pipeline"] = std::move(json);
}

}  // namespace pipeline_section

RunSection sections::pipeline() {
  return {
      .findings = pipeline_section::findings, .tables = pipeline_section::tables, .figures = pipeline_section::figures};
}

}  // namespace paceline::analysis
