// SPDX-License-Identifier: Apache-2.0
#include "analysis/statistics/counters.h"

#include <algorithm>

namespace paceline::analysis {
namespace {

struct RateUnit {
  std::string text;
  double factor = 1;  // of the rise per second
};

RateUnit rate_unit(const std::string& unit) {
  if (unit == "ns") return {"%", 1e-7};
  if (unit == "µs") return {"%", 1e-4};
  if (unit == "ms") return {"%", 1e-1};
  if (unit == "s") return {"%", 100};
  return {unit + "/s", 1};
}

}  // namespace

CounterCurve curve_of(const Samples& samples) {
  CounterCurve curve;
  if (!samples.is_sum) {
    curve.unit = samples.unit;
    curve.time_ns = samples.time_ns;
    curve.value = samples.value;
    return curve;
  }
  const RateUnit unit = rate_unit(samples.unit);
  curve.unit = unit.text;
  for (std::size_t i = 0; i + 1 < samples.size(); ++i) {
    const std::int64_t passed_ns = samples.time_ns[i + 1] - samples.time_ns[i];
    if (passed_ns <= 0) continue;
    const double rise = std::max(samples.value[i + 1] - samples.value[i], 0.0);
    curve.time_ns.push_back(samples.time_ns[i]);
    curve.value.push_back(rise / static_cast<double>(passed_ns) * 1e9 * unit.factor);
  }
  if (!curve.value.empty()) {
    curve.time_ns.push_back(samples.time_ns.back());
    curve.value.push_back(curve.value.back());
  }
  return curve;
}

const Samples* find_counter(const Rank& rank, std::string_view name, std::string_view device) {
  for (const Track& track : rank.tracks) {
    if (track.kind == TrackKind::counter && track.samples.name == name && track.samples.device == device) {
      return &track.samples;
    }
  }
  return nullptr;
}

}  // namespace paceline::analysis
