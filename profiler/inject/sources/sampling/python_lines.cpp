// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/sampling/python_lines.h"

#include <cstddef>

namespace paceline::inject {
namespace {

using Table = std::span<const std::uint8_t>;

std::int64_t by_increments(Table table, std::int64_t line, std::int64_t offset) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    at += table[i];
    if (at > offset) break;
    line += static_cast<std::int8_t>(table[i + 1]);
  }
  return line;
}

std::int64_t by_ranges(Table table, std::int64_t first_line, std::int64_t offset) {
  constexpr std::int8_t no_line = -128;
  std::int64_t end = 0, line = first_line;
  for (std::size_t i = 0; i + 1 < table.size(); i += 2) {
    end += table[i];
    const auto step = static_cast<std::int8_t>(table[i + 1]);
    if (step != no_line) line += step;
    if (offset < end) return step != no_line ? line : first_line;
  }
  return first_line;
}

// A number in groups of six bits, the lowest first. Moves `at` behind it.
std::uint64_t read_varint(Table table, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; at < table.size(); shift += 6) {
    const std::uint8_t byte = table[at++];
    if (shift < 60) value |= std::uint64_t{byte & 63U} << shift;
    if ((byte & 64) == 0) break;
  }
  return value;
}

std::int64_t read_signed_varint(Table table, std::size_t& at) {
  const std::uint64_t coded = read_varint(table, at);
  const auto value = static_cast<std::int64_t>(coded >> 1);
  return (coded & 1) != 0 ? -value : value;
}

std::int64_t by_locations(Table table, std::int64_t first_line, std::int64_t offset) {
  constexpr unsigned one_line = 10, last_one_line = 12, no_columns = 13, all = 14, none = 15;
  std::int64_t end = 0, line = first_line;
  for (std::size_t at = 0; at < table.size();) {
    const std::uint8_t head = table[at++];
    const unsigned form = head >> 3 & 15U;
    end += 2 * ((head & 7) + 1);
    if (form >= one_line && form <= last_one_line) line += form - one_line;
    if (form == no_columns || form == all) line += read_signed_varint(table, at);
    if (offset < end) return form != none ? line : first_line;
    while (at < table.size() && (table[at] & 128) == 0) ++at;  // the columns
  }
  return first_line;
}

}  // namespace

std::uint32_t python_line(PythonLineTable kind, Table table, std::uint32_t first_line, std::int64_t offset) {
  if (offset < 0) return first_line;  // before the first instruction
  std::int64_t line = first_line;
  switch (kind) {
    case PythonLineTable::increments:
      line = by_increments(table, first_line, offset);
      break;
    case PythonLineTable::ranges:
      line = by_ranges(table, first_line, offset);
      break;
    case PythonLineTable::locations:
      line = by_locations(table, first_line, offset);
      break;
  }
  return line > 0 && line <= INT32_MAX ? static_cast<std::uint32_t>(line) : first_line;
}

}  // namespace paceline::inject
