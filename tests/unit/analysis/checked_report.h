// SPDX-License-Identifier: Apache-2.0
// Renderings of the reports that tests make, with what holds of all of them.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "analysis/report/render.h"
#include "tests/shares.h"
#include "tests/unit/analysis/causes/causes_add_up.h"

namespace paceline::analysis {

// A number and its unit are one word.
inline std::size_t words(const std::string& text) {
  std::istringstream in(text);
  std::string last;
  std::size_t count = 0;
  for (std::string word; in >> word; last = word) {
    const bool number = !last.empty() && last.back() >= '0' && last.back() <= '9';
    const bool unit = word.starts_with("ms") || word.starts_with("s") || word.starts_with("%");
    if (!number || !unit || word.starts_with("steps")) ++count;
  }
  return count;
}

inline void expect_short_verdict(const Report& report) {
  const std::string text = report.verdict.state + " " + report.verdict.change;
  EXPECT_LE(words(text), 40U) << text;
}

inline std::string checked_text(const Report& report) {
  std::string text = render_text(report);
  EXPECT_EQ(impossible_share(text), "");
  expect_short_verdict(report);
  for (const RunAnalysis& run : report.runs) expect_causes_add_up(run);
  return text;
}

}  // namespace paceline::analysis
