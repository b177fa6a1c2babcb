// SPDX-License-Identifier: Apache-2.0
#include "trainer/pipeline/stage_loop.h"

#include <optional>

namespace paceline::train {
namespace stage_loop {
namespace {

std::optional<StageLinks::Incoming> needed(const StageStep& step, const StageLinks& links, StageWork& work) {
  if (step.kind == StageStep::Kind::forward) {
    if (links.first()) return std::nullopt;
    return StageLinks::Incoming{links.stage() - 1, work.input(step.microbatch)};
  }
  if (links.last()) return std::nullopt;
  return StageLinks::Incoming{links.stage() + 1, work.output_gradient(step.microbatch)};
}

std::optional<StageLinks::Outgoing> result(const StageStep& step, const StageLinks& links, StageWork& work) {
  if (step.kind == StageStep::Kind::forward) {
    if (links.last()) return std::nullopt;
    return StageLinks::Outgoing{links.stage() + 1, work.output(step.microbatch)};
  }
  if (links.first()) return std::nullopt;
  return StageLinks::Outgoing{links.stage() - 1, work.input_gradient(step.microbatch)};
}

}  // namespace
}  // namespace stage_loop

void run_schedule(const std::vector<StageStep>& steps, StageLinks& links, StageWork& work) {
  std::optional<StageLinks::Outgoing> outgoing;
  for (const StageStep& step : steps) {
    links.exchange(outgoing, stage_loop::needed(step, links, work));
    if (step.kind == StageStep::Kind::forward) {
      work.forward(step.microbatch);
    } else {
      work.backward(step.microbatch);
    }
    outgoing = stage_loop::result(step, links, work);
  }
  links.exchange(outgoing, std::nullopt);
}

}  // namespace paceline::train
