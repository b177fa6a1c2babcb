// SPDX-License-Identifier: Apache-2.0
// The values of JSON events: times, numbers and texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/trace/records.h"

namespace paceline::analysis::kineto {

// No time or duration of an event is larger, in ns, so that the sum of three fits into 64 bits. As a date it is in
// 2042.
inline constexpr std::int64_t largest_ns = 2'300'000'000'000'000'000;

// A decimal number of microseconds as nanoseconds, rounded once, half away from zero: "12.0345" is 12035. Exact for any
// number of digits. Returns nothing if the text does not parse as a number or its value exceeds largest_ns.
std::optional<std::int64_t> nanoseconds(std::string_view microseconds);

// The whole number that the text is; nothing where it is none or does not fit.
std::optional<std::int64_t> whole_number(std::string_view text);

// A number as an argument's value (the key is 0): whole ones are exact up to 64 bits, others are doubles. Nothing where
// the text is no finite number.
std::optional<Argument> number(std::string_view text);

// A string as it stands between its quotes, its escapes replaced. Bytes that are not UTF-8 become U+FFFD, and an escape
// that means nothing stays as it is. Texts are cut to 4096 bytes.
std::string plain_text(std::string_view raw);

// The sizes of a grid or a block, "[2400, 1, 1]" as "2400×1×1".
std::string shape_text(std::string_view list);

}  // namespace paceline::analysis::kineto
