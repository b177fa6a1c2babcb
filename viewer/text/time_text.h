// SPDX-License-Identifier: Apache-2.0
// Times and durations as text.
#pragma once

#include <QString>
#include <cstdint>

namespace paceline::viewer {

// Four significant digits with the fitting unit: "183 ns", "12.35 µs", "4.120 ms", "1.250 s", "18 min 20.5 s",
// "26 h 23 min".
QString duration_text(std::int64_t ns);
// The same for the length of a range; one that no integer holds, of a damaged file, as the longest duration.
QString length_text(double ns);

// A point in time, with enough digits to tell points `step_ns` apart: "1.250 s", "12.345678 s", "350 µs". The unit is
// that of `span_ns`, the largest time on the same axis: "1 h 05 min 20 s" from an hour on.
QString time_text(double time_ns, double step_ns, double span_ns);

// Reads "1.5s", "20ms", "7 us", "3 µs", "100ns", "1 h 05 min 20 s", "18 min" or a plain number of seconds. Returns NaN
// for any other text.
double time_from_text(const QString& text);

// "12.3 %", and "<0.1 %" for a positive share that would be rounded to zero.
QString share_text(double share);

// "1,234,567".
QString count_text(std::uint64_t count);

}  // namespace paceline::viewer
