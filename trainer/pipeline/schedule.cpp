// SPDX-License-Identifier: Apache-2.0
#include "trainer/pipeline/schedule.h"

#include <algorithm>
#include <stdexcept>

namespace paceline::train {

std::vector<std::string> schedule_names() { return {"gpipe", "1f1b"}; }

std::vector<StageStep> stage_schedule(const std::string& name, std::size_t stage, std::size_t stages,
                                      std::size_t microbatches) {
  if (name != "gpipe" && name != "1f1b") throw std::invalid_argument("unknown schedule '" + name + "'");
  const std::size_t ahead = name == "gpipe" ? microbatches : std::min(microbatches, stages - stage);
  std::vector<StageStep> steps;
  std::size_t begun = 0;
  for (std::size_t done = 0; done < microbatches; ++done) {
    while (begun < std::min(microbatches, done + ahead)) steps.push_back({StageStep::Kind::forward, begun++});
    steps.push_back({StageStep::Kind::backward, done});
  }
  return steps;
}

std::size_t most_in_flight(const std::vector<StageStep>& schedule) {
  std::size_t now = 0, most = 0;
  for (const StageStep& step : schedule) {
    now += step.kind == StageStep::Kind::forward ? 1 : -std::size_t{1};
    most = std::max(most, now);
  }
  return most;
}

}  // namespace paceline::train
