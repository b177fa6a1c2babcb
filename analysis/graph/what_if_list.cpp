// The changes that apply to a run, ranked by what they save.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "analysis/graph/what_if.h"
#include "analysis/trace/parallel.h"

namespace paceline::analysis {
namespace what_if_parts {

constexpr double least_change = 0.01;      // of the step; smaller ones are not worth a line
constexpr std::size_t most_relieved = 64;  // ranks, and hosts, that are relieved one after another

struct Candidate {
  std::string title, options;
  Changes changes;
  bool bound = false;
};

std::vector<Candidate> candidates(const Predictor& predictor) {
  std::vector<Candidate> all;
  const auto add = [&](std::string title, std::string options, const Changes& changes, bool bound = false) {
    all.push_back({std::move(title), std::move(options), changes, bound});
  };
  add("fp16 or bf16 allreduce", "--fp16", {.bytes_per_value = 2});
  add("allreduce in buckets beside backward", "--overlap", {.schedule = GradientSchedule::overlap});
  for (const double mib : {1.0, 4.0, 25.0}) {
    add(fmt::format("buckets of {:g} MiB", mib), fmt::format("--bucket-mb {:g}", mib), {.bucket_bytes = mib * 1048576});
  }
  add("double buffering", "--double-buffering", {.schedule = GradientSchedule::double_buffering});
  add("double buffering and fp16", "--double-buffering --fp16",
      {.bytes_per_value = 2, .schedule = GradientSchedule::double_buffering});
  add("a network of twice the bandwidth", "--bandwidth 2", {.byte_time = 0.5});
  add("a network of half the latency", "--latency 0.5", {.latency = 0.5});
  add("ring allreduce", "--algorithm ring", {.algorithm = AllreduceAlgorithm::ring});
  add("halving-doubling allreduce", "--algorithm halving_doubling",
      {.algorithm = AllreduceAlgorithm::halving_doubling});
  add("ranks with equal work", "--balanced", {.balanced = true});
  add("twice the batch", "--batch 2", {.batch = 2});
  const auto more = static_cast<int>(2 * predictor.program().ranks);
  add("twice the ranks", fmt::format("--ranks {}", more), {.ranks = more});
  add("a loader that is twice as fast", "--loader 2", {.loader = 2});
  for (std::size_t k = 0; k < predictor.faster().size(); ++k) {
    std::vector<FasterWork> faster = predictor.faster();
    for (std::size_t other = 0; other < faster.size(); ++other) {
      if (other != k) faster[other].factor = 1;
    }
    std::string kind = faster[k].name;
    std::erase(kind, '*');
    add(fmt::format("{} {:g} times as fast", kind, faster[k].factor),
        fmt::format("--faster '{}={:g}'", faster[k].name, faster[k].factor), {.faster = faster});
  }
  add("bound: communication free", "", {.free_communication = true}, true);
  add("bound: all ranks equal", "", {.balanced = true}, true);
  add("bound: preprocessing free", "", {.loader = 0}, true);
  for (std::size_t r = 0; r < predictor.program().ranks && predictor.program().ranks <= most_relieved; ++r) {
    add(fmt::format("rank {} no slower than the others", predictor.program().rank_numbers[r]),
        fmt::format("--relieve {}", predictor.program().rank_numbers[r]), {.relieved = {r}});
  }
  const auto& hosts = predictor.hosts();
  for (const HostRanks& of : hosts) {
    if (of.ranks.size() < 2 || hosts.size() < 2 || hosts.size() > most_relieved) continue;
    add(fmt::format("host {} no slower than the others", of.host), fmt::format("--relieve {}", of.host),
        {.relieved = of.ranks});
  }
  return all;
}

}  // namespace what_if_parts

WhatIf all_predictions(const Predictor& predictor) {
  WhatIf out = predictor.unchanged();
  std::vector<what_if_parts::Candidate> candidates = what_if_parts::candidates(predictor);
  std::erase_if(candidates, [&](const what_if_parts::Candidate& candidate) {
    const bool does_so_already = candidate.changes.schedule && candidate.changes.schedule == predictor.schedule() &&
                                 !candidate.changes.bytes_per_value;
    return does_so_already || !predictor.obstacle(candidate.changes).empty();
  });
  out.predictions.resize(candidates.size());
  parallel_for(candidates.size(), [&](std::size_t i) {
    Prediction& prediction = out.predictions[i] = predictor.predict(candidates[i].changes);
    prediction.title = candidates[i].title;
    prediction.options = candidates[i].options;
    prediction.bound = candidates[i].bound;
  });
  std::erase_if(out.predictions,
                [](const Prediction& of) { return !of.bound && std::abs(of.ratio - 1) < what_if_parts::least_change; });
  std::ranges::stable_sort(out.predictions, {}, &Prediction::per_image);
  return out;
}

}  // namespace paceline::analysis
