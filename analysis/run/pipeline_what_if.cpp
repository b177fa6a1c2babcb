// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/pipeline_what_if.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "analysis/run/pipeline.h"
#include "analysis/text/numbers.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace pipeline_prediction {
namespace {

// The seconds of a part of the network for one recorded microbatch.
struct PartTimes {
  std::string first_layer;
  double forward_s = 0, backward_s = 0;
  double both_s() const { return forward_s + backward_s; }
};

// The first part of each stage; the first of them is 0.
using Split = std::vector<std::size_t>;

std::vector<std::string> at_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

// A run that is a pipeline, with what predictions need.
class Recorded {
 public:
  explicit Recorded(const RunAnalysis& run) : run_(run) {
    auto found = pipeline_figures(run);
    if (!found) {
      throw Error(
          fmt::format("{}: the run is not a pipeline, so it has no stages or microbatches to change", run.path));
    }
    figures_ = std::move(*found);
    schedule_ = run.config.text("pipeline_schedule", "gpipe");
    batch_ = run.config.number("batch_per_rank").value_or(0);
    for (const NetworkPart& part : run.per_rank.front().stage.parts) parts_.push_back({part.first_layer});
    read_split();
  }

  const PipelineFigures& figures() const { return figures_; }
  std::size_t parts() const { return parts_.size(); }
  bool has_parts() const { return !split_.empty(); }
  double step_s() const { return 1e-9 * static_cast<double>(run_.iterations.steady_median_ns); }

  PipelinePrediction predict(const PipelineChange& change) const {
    PipelinePrediction prediction{.microbatches = change.microbatches.value_or(figures_.microbatches),
                                  .stages = change.stages.value_or(figures_.stages.size())};
    check(prediction);
    const bool same_split = change.split.empty() && prediction.stages == figures_.stages.size();
    if (same_split) return finished(prediction, figures_.stages);
    if (!has_parts()) {
      throw refusal("the run does not describe the layers of its stages: record it again with this version");
    }
    if (prediction.stages > parts_.size()) {
      throw refusal(
          fmt::format("--stages {}: the network has {} parts that can be separated", prediction.stages, parts_.size()));
    }
    const bool balanced = change.split.empty() || change.split == "balanced";
    const Split split = balanced ? best_split(prediction) : named_split(change.split, prediction.stages);
    prediction.split = text_of(split);
    return finished(prediction, stages_of(split));
  }

 private:
  Error refusal(const std::string& text) const { return Error(fmt::format("{}: {}", run_.path, text)); }

  void check(const PipelinePrediction& wanted) const {
    if (wanted.microbatches == 0 || wanted.stages == 0)
      throw refusal("a pipeline has 1 microbatch and 1 stage at least");
    if (batch_ > 0 && std::fmod(batch_, static_cast<double>(wanted.microbatches)) != 0) {
      throw refusal(fmt::format("--microbatches {}: does not divide the batch of {}", wanted.microbatches, batch_));
    }
  }

  // Which part each stage begins with, and each part's share of its stage's time.
  void read_split() {
    const std::size_t stages = figures_.stages.size();
    const std::vector<std::string> names = at_commas(run_.config.text("pipeline_split"));
    if (parts_.empty() || names.size() + 1 != stages) return;
    Split split{0};
    for (const std::string& name : names) {
      const auto found = std::ranges::find(parts_, name, &PartTimes::first_layer);
      const auto at = static_cast<std::size_t>(found - parts_.begin());
      if (found == parts_.end() || at <= split.back()) return;
      split.push_back(at);
    }
    const std::vector<NetworkPart>& costs = run_.per_rank.front().stage.parts;
    for (std::size_t s = 0; s < stages; ++s) {
      const std::size_t end = s + 1 < stages ? split[s + 1] : parts_.size();
      double sum = 0;
      for (std::size_t i = split[s]; i < end; ++i) sum += costs[i].cost;
      for (std::size_t i = split[s]; i < end; ++i) {
        const double share = sum > 0 ? costs[i].cost / sum : 1 / static_cast<double>(end - split[s]);
        parts_[i].forward_s = share * figures_.stages[s].forward_s;
        parts_[i].backward_s = share * figures_.stages[s].backward_s;
      }
    }
    split_ = std::move(split);
  }

  Split named_split(const std::string& text, std::size_t stages) const {
    Split split{0};
    for (const std::string& name : at_commas(text)) {
      const auto fits = [&](const PartTimes& part) {
        return part.first_layer == name || part.first_layer.starts_with(name + ".");
      };
      const auto found = std::find_if(parts_.begin() + 1, parts_.end(), fits);
      if (found == parts_.end()) {
        std::vector<std::string> possible;
        for (std::size_t i = 1; i < parts_.size(); ++i) possible.push_back(parts_[i].first_layer);
        throw refusal(fmt::format("--split: the network cannot be cut before a layer '{}'; use some of {}", name,
                                  fmt::join(possible, ", ")));
      }
      const auto at = static_cast<std::size_t>(found - parts_.begin());
      if (at <= split.back()) throw refusal("--split: the layers are not in the network's order");
      split.push_back(at);
    }
    if (split.size() != stages) {
      throw refusal(fmt::format("--split: {} layers begin {} stages, but there are {}; give --stages too",
                                split.size() - 1, split.size(), stages));
    }
    return split;
  }

  std::string text_of(const Split& split) const {
    if (split == split_) return "";
    std::vector<std::string> names;
    for (std::size_t s = 1; s < split.size(); ++s) names.push_back(parts_[split[s]].first_layer);
    return fmt::format("{}", fmt::join(names, ","));
  }

  std::vector<PipelineStage> stages_of(const Split& split) const {
    std::vector<PipelineStage> stages(split.size());
    for (std::size_t s = 0; s < split.size(); ++s) {
      const std::size_t end = s + 1 < split.size() ? split[s + 1] : parts_.size();
      for (std::size_t i = split[s]; i < end; ++i) {
        stages[s].forward_s += parts_[i].forward_s;
        stages[s].backward_s += parts_[i].backward_s;
      }
    }
    return stages;
  }

  // Fills the stages with parts in order, each up to `limit` seconds, and leaves a part at least for each later stage.
  Split filled_up_to(double limit, std::size_t stages) const {
    Split split{0};
    double own = parts_[0].both_s();
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      const bool needed = parts_.size() - i == stages - split.size();
      if (split.size() < stages && (needed || own + parts_[i].both_s() > limit)) {
        split.push_back(i);
        own = 0;
      }
      own += parts_[i].both_s();
    }
    return split;
  }

  double length_of(const Split& split, std::size_t microbatches) const {
    return pipeline_length(scaled(stages_of(split), microbatches), microbatches, schedule_);
  }

  // Of several ways to fill the stages the one with the shortest length, improved by moving one cut at a time.
  Split best_split(const PipelinePrediction& wanted) const {
    double all = 0;
    for (const PartTimes& part : parts_) all += part.both_s();
    Split best;
    double least = 0;
    const auto consider = [&](const Split& split) {
      const double length = length_of(split, wanted.microbatches);
      if (!best.empty() && length >= least * (1 - 1e-9)) return false;
      best = split;
      least = length;
      return true;
    };
    if (wanted.stages == figures_.stages.size()) consider(split_);
    constexpr int limits = 64;
    for (int i = 0; i < limits; ++i) {
      consider(filled_up_to(all / static_cast<double>(wanted.stages) * (1 + i / 32.0), wanted.stages));
    }
    for (bool better = true; better;) {
      better = false;
      for (std::size_t cut = 1; cut < wanted.stages; ++cut) {
        for (const int move : {-1, 1}) {
          Split other = best;
          other[cut] += static_cast<std::size_t>(move);
          const std::size_t next = cut + 1 < other.size() ? other[cut + 1] : parts_.size();
          if (other[cut] > other[cut - 1] && other[cut] < next) better = consider(other) || better;
        }
      }
    }
    return best;
  }

  // The same stages with the batch in this number of parts.
  std::vector<PipelineStage> scaled(std::vector<PipelineStage> stages, std::size_t microbatches) const {
    const double factor = static_cast<double>(figures_.microbatches) / static_cast<double>(microbatches);
    for (PipelineStage& stage : stages) {
      stage.forward_s *= factor;
      stage.backward_s *= factor;
      stage.busy_s = static_cast<double>(microbatches) * (stage.forward_s + stage.backward_s);
    }
    return stages;
  }

  PipelinePrediction finished(PipelinePrediction prediction, const std::vector<PipelineStage>& recorded) const {
    const std::vector<PipelineStage> stages = scaled(recorded, prediction.microbatches);
    const double ideal = pipeline_length(stages, prediction.microbatches, schedule_);
    double busy = 0;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      busy += stages[s].busy_s;
      if (stages[s].busy_s > stages[prediction.longest].busy_s) prediction.longest = s;
    }
    const auto k = static_cast<double>(stages.size());
    prediction.bubble = 1 - busy / (k * ideal);
    prediction.imbalance = stages[prediction.longest].busy_s * k / busy;
    prediction.length_s = figures_.length_s * ideal / figures_.predicted_length_s;
    prediction.step_s = step_s() - figures_.length_s + prediction.length_s;
    return prediction;
  }

  const RunAnalysis& run_;
  PipelineFigures figures_;
  std::string schedule_;
  double batch_ = 0;
  std::vector<PartTimes> parts_;  // in the network's order; without times where split_ is empty
  Split split_;                   // the recorded one; empty where the run does not describe it
};

Prediction as_prediction(const Recorded& recorded, const PipelinePrediction& of, std::string title,
                         std::string options) {
  Prediction prediction;
  prediction.title = std::move(title);
  prediction.options = std::move(options);
  prediction.step_s = of.step_s;
  prediction.error_unknown = true;
  prediction.ratio = prediction.per_image = of.step_s / recorded.step_s();
  prediction.moved = {{"first forward to last backward", recorded.figures().length_s, of.length_s}};
  return prediction;
}

std::string title_of(const PipelinePrediction& of) {
  std::string title = fmt::format("{} of {}", plural(of.stages, "stage", "stages"),
                                  plural(of.microbatches, "microbatch", "microbatches"));
  if (!of.split.empty()) title += ", split " + of.split;
  return title;
}

constexpr double least_change = 0.01;

// What the list without a change contains.
std::vector<Prediction> listed(const Recorded& recorded, const RunAnalysis& run) {
  std::vector<Prediction> predictions;
  const auto add = [&](const PipelineChange& change, const std::string& options) {
    PipelinePrediction found = recorded.predict(change);
    if (change.stages) found.split.clear();  // many names
    Prediction prediction = as_prediction(recorded, found, title_of(found), options);
    if (std::abs(prediction.ratio - 1) >= least_change) predictions.push_back(std::move(prediction));
  };
  const std::size_t microbatches = recorded.figures().microbatches, stages = recorded.figures().stages.size();
  const double batch = run.config.number("batch_per_rank").value_or(0);
  for (const std::size_t other : {microbatches / 2, 2 * microbatches, 4 * microbatches}) {
    if (other == 0 || (batch > 0 && std::fmod(batch, static_cast<double>(other)) != 0)) continue;
    add({.microbatches = other}, fmt::format("--microbatches {}", other));
  }
  if (!recorded.has_parts()) return predictions;
  for (const std::size_t other : {stages / 2, 2 * stages}) {
    if (other > 1 && other <= recorded.parts()) add({.stages = other}, fmt::format("--stages {}", other));
  }
  add({.split = "balanced"}, "--split balanced");
  return predictions;
}

}  // namespace
}  // namespace pipeline_prediction

PipelinePrediction predict_pipeline(const RunAnalysis& run, const PipelineChange& change) {
  return pipeline_prediction::Recorded(run).predict(change);
}

std::optional<PipelinePrediction> better_split(const RunAnalysis& run) {
  constexpr double worth_it = 1.0 / 30;
  const pipeline_prediction::Recorded recorded(run);
  if (!recorded.has_parts()) return std::nullopt;
  const PipelinePrediction best = recorded.predict({.split = "balanced"});
  if (best.split.empty() || best.step_s > (1 - worth_it) * recorded.step_s()) return std::nullopt;
  return best;
}

WhatIf pipeline_what_if(const RunAnalysis& run, const PipelineChange& change, const std::string& options) {
  const pipeline_prediction::Recorded recorded(run);
  WhatIf what_if{
      .step_s = recorded.step_s(),
      .median_s = recorded.step_s(),
      .replayed_s = recorded.predict({}).step_s - recorded.figures().length_s + recorded.figures().predicted_length_s};
  what_if.iterations = run.iterations.steady().size();
  if (change.any()) {
    const PipelinePrediction found = recorded.predict(change);
    what_if.predictions.push_back(
        pipeline_prediction::as_prediction(recorded, found, pipeline_prediction::title_of(found), options));
  } else {
    what_if.predictions = pipeline_prediction::listed(recorded, run);
  }
  what_if.notes.push_back(
      "In predictions for a pipeline, a layer takes as long for an image as now, and messages, the loader and the "
      "optimizer as long as now.");
  return what_if;
}

void add_pipeline_predictions(const RunAnalysis& run, WhatIf& what_if) {
  if (!pipeline_figures(run)) return;
  WhatIf more = pipeline_what_if(run, {}, "");
  if (more.predictions.empty()) return;
  std::ranges::move(more.predictions, std::back_inserter(what_if.predictions));
  std::ranges::move(more.notes, std::back_inserter(what_if.notes));
  std::ranges::stable_sort(what_if.predictions, {}, &Prediction::per_image);
}

}  // namespace paceline::analysis
