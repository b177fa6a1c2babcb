#include "analysis/metrics/counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

std::string quantity_text(double value, const std::string& unit) {
  const bool rate = unit.ends_with("/s");
  std::string of = rate ? unit.substr(0, unit.size() - 2) : unit;
  if (of == "bytes") of = "B";
  if (of == "mW" || of == "mJ") {
    value *= 1e-3;
    of.erase(0, 1);
  } else if (of == "MHz") {
    value *= 1e6;
    of = "Hz";
  }
  const char* prefix = "";
  const bool scales = of.empty() || of == "B" || of == "W" || of == "J" || of == "Hz";
  if (scales) {
    for (const char* larger : {"k", "M", "G", "T", "P"}) {
      if (std::abs(value) < 999.95) break;
      value *= 1e-3;
      prefix = larger;
    }
  }
  // Whole numbers, if they are.
  const int decimals = value == std::round(value) || std::abs(value) >= 1000 ? 0
                       : std::abs(value) >= 100                              ? 1
                       : std::abs(value) >= 10                               ? 2
                                                                             : 3;
  const std::string number = fmt::format("{:.{}f}", value, decimals);
  const std::string tail = prefix + of + (rate ? "/s" : "");
  return tail.empty() ? number : number + " " + tail;
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
