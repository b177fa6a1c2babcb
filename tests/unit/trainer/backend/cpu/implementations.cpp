// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trainer/backend/cpu/implementations.h"

#include <set>

#include "tests/unit/trainer/backend/cpu/layer_text.h"

namespace paceline::train {

std::vector<Choice> choices_of(const Network& network, std::int64_t batch, onednn::Type type) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  CpuBuild build{engine, dnnl::stream(engine), MemoryPlan(engine), batch, false, true, {}, {}, {}, {}, type};
  build.activations.reserve(network.layers().size());
  build.parameters.reserve(2 * network.layers().size());
  build.activations.emplace_back().needs_gradient = false;
  if (network.layers().at(1).kind != LayerKind::convolution) {
    build.activations[0].value = build.plan.acquire(onednn::plain_layout(build.dims(network.layers()[0].out), type));
  }
  std::vector<Choice> choices;
  std::set<std::string> seen;
  for (const Layer& layer : network.layers()) {
    if (layer.kind == LayerKind::input) continue;
    const std::unique_ptr<CpuLayer> made = make_layer(layer, build);
    const std::string text = text_of(layer);
    for (const Implementation& used : made->implementations()) {
      if (!seen.insert(text + used.computation + used.name).second) continue;
      choices.push_back({text, used.computation, used.name, layer.multiply_adds() * static_cast<double>(batch)});
    }
  }
  return choices;
}

}  // namespace paceline::train
