// What a counter's samples say over time: of a level the value, of a sum what it rose by per second.
#pragma once

#include <string>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

// value[i] holds from time_ns[i] to time_ns[i + 1]; the last one is of the last moment only.
struct CounterCurve {
  std::string
      unit;  // of a level its own; of a sum "bytes/s", "/s"; of a sum of times "%": 100 % is one second a second
  std::vector<std::int64_t> time_ns;
  std::vector<double> value;
};

// A sum's first value is that between its first two samples, its last the same as the one before; a sum of one sample
// has none. What falls was set back, and counts as 0. Cost: linear.
CounterCurve curve_of(const Samples& samples);

// With four significant digits and a fitting unit: "1.25 GB/s", "187 %", "352 W", "12.3 k/s".
std::string quantity_text(double value, const std::string& unit);

// The rank's counter of that name and device; nullptr where there is none. O(tracks).
const Samples* find_counter(const Rank& rank, std::string_view name, std::string_view device = "");

}  // namespace paceline::analysis
