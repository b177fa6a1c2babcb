// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/layer_costs.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace paceline::analysis {
namespace layer_costs_parts {

struct Stated {
  std::string kind;
  double flops[2] = {}, bytes[2] = {};  // forward, backward
};

// Reads the marks of a rank. What is not as documented is left out.
class Statement {
 public:
  Statement(const Trace& trace, const Slices& marks, LayerCosts& costs) : costs_(costs) {
    const NameId category = trace.names.find("layers");
    for (std::size_t i = 0; category != 0 && i < marks.size(); ++i) {
      if (trace.kind_of(marks, i).category != category) continue;
      const auto mark = nlohmann::json::parse(trace.name_of(marks, i), nullptr, false);
      if (mark.is_object()) read(mark);
    }
  }

  const std::map<std::string, Stated, std::less<>>& layers() const { return layers_; }

 private:
  static void read_peak(const nlohmann::json& mark, const char* key, std::optional<double>& peak) {
    const auto found = mark.find(key);
    if (found != mark.end() && found->is_number() && found->get<double>() > 0) peak = found->get<double>();
  }

  void read(const nlohmann::json& mark) {
    read_peak(mark, "peak_flops", costs_.peak_flops);
    read_peak(mark, "peak_bytes_per_s", costs_.peak_bytes);
    const auto layers = mark.find("layers");
    if (layers == mark.end() || !layers->is_object()) return;
    for (const auto& [name, layer] : layers->items()) {
      if (!layer.is_object() || !layer.contains("kind") || !layer["kind"].is_string()) continue;
      Stated& stated = layers_[name];
      stated.kind = layer["kind"].get<std::string>();
      read_pass(layer, "forward", stated, 0);
      read_pass(layer, "backward", stated, 1);
    }
  }

  static void read_pass(const nlohmann::json& layer, const char* key, Stated& stated, int pass) {
    const auto found = layer.find(key);
    if (found == layer.end() || !found->is_array() || found->size() != 2) return;
    if (!(*found)[0].is_number() || !(*found)[1].is_number()) return;
    stated.flops[pass] = std::max(0.0, (*found)[0].get<double>());
    stated.bytes[pass] = std::max(0.0, (*found)[1].get<double>());
  }

  LayerCosts& costs_;
  std::map<std::string, Stated, std::less<>> layers_;
};

// A slice of a layer.
struct Pass {
  std::int64_t start_ns = 0, end_ns = 0;
  const Stated* layer = nullptr;
  bool backward = false;
};

// The iterations that count: complete ones without the first tenth, at least one of several.
std::vector<const Iteration*> steady(const std::vector<Iteration>& iterations) {
  std::vector<const Iteration*> complete;
  for (const Iteration& iteration : iterations) {
    if (iteration.finished && !iteration.lost) complete.push_back(&iteration);
  }
  const std::size_t warm_up = complete.size() < 2 ? 0 : std::max<std::size_t>(1, complete.size() / 10);
  complete.erase(complete.begin(), complete.begin() + static_cast<std::ptrdiff_t>(warm_up));
  return complete;
}

std::vector<Pass> passes(const PhaseTable& table, const Slices& slices,
                         const std::map<std::string, Stated, std::less<>>& layers,
                         const std::vector<const Iteration*>& iterations) {
  const Trace& trace = table.trace();
  std::vector<const Stated*> layer_of_kind(trace.kinds.size());
  for (std::size_t kind = 0; kind < trace.kinds.size(); ++kind) {
    const auto found = layers.find(trace.names[trace.kinds[kind].name]);
    if (found != layers.end()) layer_of_kind[kind] = &found->second;
  }
  std::vector<Pass> found;
  auto around = iterations.begin();
  std::int64_t direction_end_ns = 0;
  bool backward = false;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::int64_t start = slices.start_ns[i];
    while (around != iterations.end() && (*around)->start_ns + (*around)->duration_ns <= start) ++around;
    if (around == iterations.end()) break;
    if (start < (*around)->start_ns) continue;
    const auto phase = table.phase(slices.kind[i]);
    if (phase == Phase::forward || phase == Phase::backward) {
      direction_end_ns = slices.end_ns(i);
      backward = phase == Phase::backward;
    }
    const Stated* const layer = layer_of_kind[slices.kind[i]];
    if (layer != nullptr && start < direction_end_ns) found.push_back({start, slices.end_ns(i), layer, backward});
  }
  return found;
}

// The time of the work on devices that was launched inside each pass.
std::vector<std::int64_t> device_times(const Rank& rank, const std::vector<Pass>& passes,
                                       const Correlations& correlations) {
  std::vector<std::int64_t> times(passes.size());
  const Track* const main = main_track(rank);
  for (const Track& track : rank.tracks) {
    if (track.kind != TrackKind::stream) continue;
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      const auto calls = correlations.calls_of(track.slices, i);
      if (calls.empty()) continue;
      const Track& thread = rank.tracks[calls.back().track];
      if (thread.thread_id != main->thread_id) continue;
      const std::int64_t launch_ns = thread.slices.start_ns[calls.back().slice];
      const auto after = std::ranges::upper_bound(passes, launch_ns, {}, &Pass::start_ns);
      if (after == passes.begin() || std::prev(after)->end_ns <= launch_ns) continue;
      times[static_cast<std::size_t>(after - passes.begin()) - 1] += track.slices.duration_ns[i];
    }
  }
  return times;
}

LayerWork& row_of(std::vector<LayerWork>& rows, const std::string& kind, bool backward) {
  const auto found =
      std::ranges::find_if(rows, [&](const LayerWork& row) { return row.kind == kind && row.backward == backward; });
  return found != rows.end() ? *found : rows.emplace_back(LayerWork{.kind = kind, .backward = backward});
}

}  // namespace layer_costs_parts

LayerCosts layer_costs(const PhaseTable& table, const Rank& rank, const std::vector<Iteration>& iterations,
                       const Correlations* correlations) {
  using namespace layer_costs_parts;
  LayerCosts costs;
  const Track* const main = main_track(rank);
  if (main == nullptr) return costs;
  const Statement statement(table.trace(), main->marks, costs);
  const std::vector<const Iteration*> counted = steady(iterations);
  if (statement.layers().empty() || counted.empty()) return costs;
  const std::vector<Pass> found = passes(table, main->slices, statement.layers(), counted);
  std::vector<std::int64_t> times;
  if (correlations != nullptr) {
    times = device_times(rank, found, *correlations);
  } else {
    for (const Pass& pass : found) times.push_back(pass.end_ns - pass.start_ns);
  }
  std::map<std::pair<const Stated*, bool>, double> by_layer;
  for (std::size_t i = 0; i < found.size(); ++i) {
    by_layer[{found[i].layer, found[i].backward}] += static_cast<double>(times[i]);
  }
  for (const auto& [layer, ns] : by_layer) {
    LayerWork& row = row_of(costs.work, layer.first->kind, layer.second);
    row.flops += layer.first->flops[layer.second];
    row.bytes += layer.first->bytes[layer.second];
    row.iteration_ns += ns / static_cast<double>(counted.size());
  }
  return costs;
}

std::vector<LayerWork> sum_of_work(std::span<const LayerCosts* const> ranks) {
  std::vector<LayerWork> sum;
  for (const LayerCosts* rank : ranks) {
    for (const LayerWork& work : rank->work) {
      LayerWork& row = layer_costs_parts::row_of(sum, work.kind, work.backward);
      row.flops += work.flops;
      row.bytes += work.bytes;
      row.iteration_ns += work.iteration_ns;
    }
  }
  std::ranges::stable_sort(sum, std::greater(), &LayerWork::iteration_ns);
  return sum;
}

}  // namespace paceline::analysis
