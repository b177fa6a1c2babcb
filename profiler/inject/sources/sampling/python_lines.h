// SPDX-License-Identifier: Apache-2.0
// The line of an instruction, from the line table of a Python code object. The tables are described in CPython's
// Objects/lnotab_notes.txt (3.8 to 3.10) and Objects/locations.md (from 3.11 on).
#pragma once

#include <cstdint>
#include <span>

namespace paceline::inject {

enum class PythonLineTable : std::uint8_t {
  increments,  // co_lnotab of 3.8 and 3.9
  ranges,      // co_linetable of 3.10
  locations,   // co_linetable from 3.11 on
};

// The line of the instruction `offset` bytes behind the first one. Returns `first_line` where the table does not say,
// and for a damaged table some line. Cost: linear in the table.
std::uint32_t python_line(PythonLineTable kind, std::span<const std::uint8_t> table, std::uint32_t first_line,
                          std::int64_t offset);

}  // namespace paceline::inject
