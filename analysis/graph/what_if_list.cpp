// SPDX-License-Identifier: Apache-2.0
// The changes that apply to a run, ranked by what they save.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "analysis/graph/changed_work.h"
#include "analysis/graph/what_if.h"

namespace paceline::analysis {
namespace what_if_parts {

constexpr double least_change = 0.01;  // of the step; smaller ones are not worth a line
// Ranks, and hosts, that are relieved one after another: those with the most work beyond the median of all ranks. If
// more of them are slow, relieving one alone saves nothing.
constexpr std::size_t most_relieved = 8;

struct Candidate {
  std::string title, options;
  Changes changes;
  bool bound = false;
};

// The places of the largest values, at most most_relieved, in their order.
std::vector<std::size_t> largest(const std::vector<double>& values) {
  std::vector<std::size_t> places(values.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::ranges::stable_sort(places, std::greater(), [&](std::size_t place) { return values[place]; });
  places.resize(std::min(places.size(), most_relieved));
  std::ranges::sort(places);
  return places;
}

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
  // The ranks of one host need no network, so there is none to buy.
  if (predictor.hosts().size() > 1 || predictor.hosts().front().host.empty()) {
    add("a network of twice the bandwidth", "--bandwidth 2", {.byte_time = 0.5});
    add("a network of half the latency", "--latency 0.5", {.latency = 0.5});
  }
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
  const auto warmup = static_cast<std::size_t>(warm_up_of(predictor.program()));
  const std::vector<double> excess = excess_work(predictor.work(), warmup);
  for (const std::size_t r : largest(excess)) {
    add(fmt::format("rank {} no slower than the others", predictor.program().rank_numbers[r]),
        fmt::format("--relieve {}", predictor.program().rank_numbers[r]), {.relieved = {r}});
  }
  const auto& hosts = predictor.hosts();
  std::vector<double> of_hosts;
  for (const HostRanks& of : hosts) {
    double sum = 0;
    for (const std::size_t r : of.ranks) sum += excess[r];
    of_hosts.push_back(sum);
  }
  for (const std::size_t h : largest(of_hosts)) {
    if (hosts[h].ranks.size() < 2 || hosts.size() < 2) continue;
    add(fmt::format("host {} no slower than the others", hosts[h].host), fmt::format("--relieve {}", hosts[h].host),
        {.relieved = hosts[h].ranks});
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
  std::vector<Changes> changes;
  for (const what_if_parts::Candidate& of : candidates) changes.push_back(of.changes);
  out.predictions = predictor.predict_all(changes);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    out.predictions[i].title = candidates[i].title;
    out.predictions[i].options = candidates[i].options;
    out.predictions[i].bound = candidates[i].bound;
  }
  std::erase_if(out.predictions,
                [](const Prediction& of) { return !of.bound && std::abs(of.ratio - 1) < what_if_parts::least_change; });
  std::ranges::stable_sort(out.predictions, {}, &Prediction::per_image);
  return out;
}

}  // namespace paceline::analysis
