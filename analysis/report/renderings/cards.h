// SPDX-License-Identifier: Apache-2.0
// The key figures at the top of the HTML report.
#pragma once

#include <string>
#include <vector>

#include "analysis/report/report.h"

namespace paceline::analysis {

struct Card {
  std::string value, what;
  std::string beside = {};  // smaller: an interval, or what the figure is made of
  const char* definition;   // its id in the glossary
};

std::vector<Card> cards_of(const Report& report);

// The same as a table.
Table cards_table(const Report& report);

}  // namespace paceline::analysis
