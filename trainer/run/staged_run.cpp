// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/staged_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace paceline::train {

StagedRun::StagedRun(Collectives& ranks, const Grid& run_grid, Activity& activity, Network whole_network,
                     std::vector<LayerRun> run_stages)
    : grid(run_grid),
      network(std::move(whole_network)),
      stages(std::move(run_stages)),
      part(network.part(stages.at(static_cast<std::size_t>(grid.stage)).first,
                        stages.at(static_cast<std::size_t>(grid.stage)).last)),
      mover(ranks, grid, parts_of(network, stages)),
      links(grid.chain, [&activity](const char* name) {
        if (name != nullptr) {
          activity.begin_wait(name);
        } else {
          activity.end();
        }
      }) {}

const std::string& StagedRun::first_layer(const LayerRun& layers) const {
  return network.layers()[static_cast<std::size_t>(layers.first)].name;
}

std::string StagedRun::split() const {
  std::vector<std::string> names;
  for (std::size_t i = 1; i < stages.size(); ++i) names.push_back(first_layer(stages[i]));
  return fmt::format("{}", fmt::join(names, ","));
}

std::size_t StagedRun::statistics() const { return std::max<std::size_t>(statistics_of(network), 16); }

}  // namespace paceline::train
