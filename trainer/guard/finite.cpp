// SPDX-License-Identifier: Apache-2.0
#include "trainer/guard/finite.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace paceline::train {

bool all_finite(std::span<const float> values) {
  // Infinities and NaNs have all bits of the exponent set; no finite number has.
  constexpr std::uint32_t magnitude = 0x7fffffff, infinity = 0x7f800000;
  std::uint32_t largest = 0;
  for (const float value : values) largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & magnitude);
  return largest < infinity;
}

namespace {

// first: where the values are in the flat buffers.
const Parameter* first_nonfinite_parameter(const Model& model, std::span<const float> flat, std::size_t first = 0) {
  if (all_finite(flat)) return nullptr;
  for (const Parameter& parameter : model.parameters()) {
    const std::size_t begin = std::max(parameter.offset, first);
    const std::size_t end = std::min(parameter.offset + parameter.size, first + flat.size());
    if (begin < end && !all_finite(flat.subspan(begin - first, end - begin))) return &parameter;
  }
  return nullptr;  // the value is in the padding between parameters, which nothing reads
}

}  // namespace

std::string first_nonfinite_part(Model& model, Optimizer& optimizer, std::span<const float> pending) {
  std::vector<float> room;
  const auto host = [&](std::span<const float> values) { return model.memory().readable(values, room); };
  if (const Parameter* found = first_nonfinite_parameter(model, host(model.weights()))) return found->name;
  if (!all_finite(host(model.statistics()))) return "the running statistics of the batch norms";
  for (const std::vector<float>& array : optimizer.arrays()) {
    if (const Parameter* found = first_nonfinite_parameter(model, array, optimizer.shard().first))
      return "the optimizer's state of " + found->name;
  }
  if (pending.empty()) return {};
  const Parameter* found = first_nonfinite_parameter(model, pending);
  return found == nullptr ? "" : "the gradient of " + found->name;
}

}  // namespace paceline::train
