// SPDX-License-Identifier: Apache-2.0
#include "trainer/pipeline/partition.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "trainer/core/error.h"

namespace paceline::train {

std::vector<LayerRun> smallest_runs(const Network& network) {
  std::vector<LayerRun> runs{{1, static_cast<int>(network.layers().size())}};
  for (const int cut : network.cuts()) {
    runs.back().last = cut;
    runs.push_back({cut, static_cast<int>(network.layers().size())});
  }
  return runs;
}

std::vector<std::size_t> balanced_cuts(const std::vector<double>& costs, std::size_t parts) {
  const std::size_t count = costs.size();
  std::vector<double> before(count + 1, 0);  // the sum of the costs before each index
  for (std::size_t i = 0; i < count; ++i) before[i + 1] = before[i] + costs[i];
  // least[p][i]: the smallest possible largest sum of p groups over the first i costs; last[p][i]: the first index of
  // the last of these groups.
  constexpr double never = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> least(parts + 1, std::vector<double>(count + 1, never));
  std::vector<std::vector<std::size_t>> last(parts + 1, std::vector<std::size_t>(count + 1, 0));
  least[0][0] = 0;
  for (std::size_t p = 1; p <= parts; ++p) {
    for (std::size_t i = p; i <= count; ++i) {
      for (std::size_t first = p - 1; first < i; ++first) {
        const double most = std::max(least[p - 1][first], before[i] - before[first]);
        if (most >= least[p][i]) continue;
        least[p][i] = most;
        last[p][i] = first;
      }
    }
  }
  std::vector<std::size_t> cuts(parts);
  for (std::size_t p = parts, end = count; p > 0; --p) end = cuts[p - 1] = last[p][end];
  return cuts;
}

std::vector<LayerRun> stages_of(const std::vector<LayerRun>& runs, const std::vector<std::size_t>& first_runs) {
  std::vector<LayerRun> stages;
  for (std::size_t i = 0; i < first_runs.size(); ++i) {
    const std::size_t next = i + 1 < first_runs.size() ? first_runs[i + 1] : runs.size();
    stages.push_back({runs[first_runs[i]].first, runs[next - 1].last});
  }
  return stages;
}

std::vector<LayerRun> stages_from(const Network& network, const std::vector<std::string>& names, std::size_t stages) {
  const auto refuse = [](const std::string& what, const std::string& remedy) {
    return Error("‹pipeline-split›", what, remedy, Status::usage);
  };
  if (names.size() + 1 != stages) {
    throw refuse(fmt::format("names {} layers for {} stages", names.size(), stages),
                 "name the first layer of each stage but the first");
  }
  const std::vector<LayerRun> runs = smallest_runs(network);
  std::vector<std::string> possible;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    possible.push_back(network.layers()[static_cast<std::size_t>(runs[i].first)].name);
  }
  std::vector<std::size_t> first_runs{0};
  for (const std::string& name : names) {
    const auto found = std::ranges::find_if(
        possible, [&](const std::string& layer) { return layer == name || layer.starts_with(name + "."); });
    if (found == possible.end()) {
      throw refuse(fmt::format("the network cannot be cut before a layer '{}'", name),
                   fmt::format("use some of {}", fmt::join(possible, ", ")));
    }
    first_runs.push_back(static_cast<std::size_t>(found - possible.begin()) + 1);
  }
  if (std::ranges::adjacent_find(first_runs, std::ranges::greater_equal()) != first_runs.end()) {
    throw refuse("the layers are not in the network's order", "name each layer once, from the first to the last");
  }
  return stages_of(runs, first_runs);
}

std::vector<double> computed_costs(const Network& network, const std::vector<LayerRun>& runs) {
  std::vector<double> costs;
  for (const LayerRun& run : runs) costs.push_back(network.part(run.first, run.last).train_flops());
  return costs;
}

}  // namespace paceline::train
