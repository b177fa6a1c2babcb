// How figures are written, everywhere in reports: one unit, a space, no more digits than are known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/scaling/interval.h"

namespace paceline::analysis {

std::string fixed(double value, int decimals);      // "3.350"
std::string significant(double value, int digits);  // "0.0647", "0.180", "12.3", "1,234", "1.23e-07"
std::string count(double value);                    // "10,000"; decimals only where there are any
std::string percent(double share);                  // 0.123 → "12.3 %"; below 1 % two decimals
std::string seconds(double value);                  // "47.85 s", "12.3 ms", "850 µs", "37 ns"
std::string duration(std::int64_t ns);              // the same
std::string bytes(double value);                    // "44.7 MB": powers of ten, as networks count
std::string bytes_per_second(double value);         // "1.25 GB/s"
std::string images_per_second(double value);        // "173.4 images/s"
std::string with_interval(const std::string& value, const std::optional<Interval>& ci95, int decimals);
// "1.69 (95 %: 1.66–1.72)"
std::string plural(std::size_t n, const std::string& one, const std::string& many);  // "1 rank", "2 ranks"

}  // namespace paceline::analysis
