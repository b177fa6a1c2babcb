// SPDX-License-Identifier: Apache-2.0
#include "trainer/nn/init.h"

#include <cmath>
#include <numbers>
#include <string_view>

#include "trainer/core/random.h"

namespace paceline::train {
namespace {

// FNV-1a, so that the value does not depend on the standard library.
std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return value;
}

double uniform(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }  // in (0, 1)

// Box–Muller: each turn gives two values.
std::vector<float> normal(std::size_t count, double deviation, std::uint64_t seed) {
  std::vector<float> values(count);
  const auto pairs = static_cast<std::ptrdiff_t>((count + 1) / 2);
#pragma omp parallel for schedule(static) if (pairs > 65536)
  for (std::ptrdiff_t pair = 0; pair < pairs; ++pair) {
    const std::size_t i = 2 * static_cast<std::size_t>(pair);
    const double radius = deviation * std::sqrt(-2 * std::log(uniform(split_mix(seed, i))));
    const double angle = 2 * std::numbers::pi * uniform(split_mix(seed, i + 1));
    values[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < count) values[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return values;
}

}  // namespace

std::vector<float> initial_values(const Layer& layer, const ParameterShape& parameter, std::uint64_t seed) {
  std::size_t count = 1;
  for (const std::int64_t extent : parameter.shape) count *= static_cast<std::size_t>(extent);
  const bool weight = parameter.name.ends_with(".weight");
  if (weight && layer.kind == LayerKind::batch_norm) return std::vector<float>(count, layer.zero_scale ? 0.0f : 1.0f);
  if (!weight) return std::vector<float>(count, 0.0f);
  const double fan_out = static_cast<double>(layer.kernel * layer.kernel * layer.out.channels);
  const double deviation = layer.kind == LayerKind::convolution ? std::sqrt(2 / fan_out) : 0.01;
  return normal(count, deviation, split_mix(seed ^ hash(parameter.name), 0));
}

}  // namespace paceline::train
