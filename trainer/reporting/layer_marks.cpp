// SPDX-License-Identifier: Apache-2.0
#include "trainer/reporting/layer_marks.h"

#include <nlohmann/json.hpp>

#include "trainer/backend/cpu/peaks.h"
#include "trainer/core/ranges.h"
#include "trainer/nn/layer_cost.h"

namespace paceline::train {

void mark_layers(const Network& network, std::int64_t batch, const std::string& dtype, bool on_cpu) {
  if (!is_profiled()) return;
  constexpr std::size_t most_layers = 100;  // of a mark: the recorder cuts texts of more than 32 KiB
  const std::size_t element = dtype == "bf16" || dtype == "f16" ? 2 : 4;
  nlohmann::json layers;
  for (const Layer& layer : network.layers()) {
    if (layer.kind == LayerKind::input) continue;
    const LayerCost cost = cost_of(layer, network.has_data_gradient(layer), batch, element);
    layers[layer.name] = {{"kind", kind_name(layer)},
                          {"forward", {cost.forward.flops, cost.forward.bytes}},
                          {"backward", {cost.backward.flops, cost.backward.bytes}}};
    if (layers.size() < most_layers && &layer != &network.layers().back()) continue;
    mark(Category::layers, nlohmann::json{{"layers", layers}}.dump());
    layers.clear();
  }
  if (!on_cpu) return;
  const Peaks peaks = measure_peaks(dtype);
  mark(Category::layers, nlohmann::json{{"peak_flops", peaks.flops}, {"peak_bytes_per_s", peaks.bytes}}.dump());
}

}  // namespace paceline::train
