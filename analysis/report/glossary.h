// SPDX-License-Identifier: Apache-2.0
// Definitions of the terms that the report uses, for readers who have not seen one before. docs/metrics.md has the
// formulas in full.
#pragma once

#include <span>
#include <string_view>

namespace paceline::analysis {

struct Definition {
  const char* id;  // of the HTML element
  const char* term;
  const char* text;  // whole sentences
};

// All of them, by term.
std::span<const Definition> glossary();

// The id of the definition of a column, a card or another heading; "" where it needs none.
std::string_view definition_id(std::string_view heading);

}  // namespace paceline::analysis
