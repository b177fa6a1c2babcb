// SPDX-License-Identifier: Apache-2.0
// How figures are written everywhere: a number, a space and one unit, with no more digits than are known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/statistics/interval.h"

namespace paceline::analysis {

// Numbers without a unit. Thousands are separated by commas; numbers that are not finite are written as "∞".
std::string fixed(double value, int decimals);      // "3.350"
std::string significant(double value, int digits);  // "0.0647", "0.180", "12.3", "1,234", "1.23e-07"
std::string count(double value);                    // "10,000"; two decimals only where the value is not whole
std::string plural(std::size_t n, const std::string& one, const std::string& many);  // "1 rank", "2 ranks"
std::string percent(double share);         // 0.123 → "12.3 %"; two decimals below 1 %
std::string percent_change(double ratio);  // 0.944 → "−5.6 %", 1.123 → "+12.3 %"

// The whole ÷ the part as a share; 0 where the whole is 0.
inline double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Durations, in the largest unit that fits: "47.85 s", "12.3 ms", "850 µs", "37 ns".
std::string seconds(double value);
std::string duration(std::int64_t ns);
// A point in time since the run's zero, always in seconds and to the millisecond: "1.204 s".
std::string point_in_time(std::int64_t ns);
// A date, from nanoseconds since 1970: "2026-11-22T10:04:05Z".
std::string utc_time(std::int64_t utc_ns);

// Sizes and rates in powers of ten, as networks count.
std::string bytes(double value);              // "44.7 MB"
std::string bytes_per_second(double value);   // "1.25 GB/s"
std::string images_per_second(double value);  // "173.4 images/s"
// A size in powers of two, as memory is counted: "16 GiB".
std::string memory_size(double bytes);
// A counter's value with four significant digits and a prefix that fits its unit: "1.250 GB/s", "187.3 %", "352 W",
// "12.35 k/s". Units without prefixes keep theirs: "64 bits".
std::string quantity(double value, const std::string& unit);

// "1.69 (95 %: 1.66–1.72)"; the value alone where there is no interval.
std::string with_interval(const std::string& value, const std::optional<Interval>& ci95, int decimals);

}  // namespace paceline::analysis
