// SPDX-License-Identifier: Apache-2.0
// Renderings of the reports that tests make, with what holds of all of them.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "analysis/report/render.h"
#include "tests/shares.h"
#include "tests/unit/analysis/causes/causes_add_up.h"

namespace paceline::analysis {

inline std::string checked_text(const Report& report) {
  std::string text = render_text(report);
  EXPECT_EQ(impossible_share(text), "");
  for (const RunAnalysis& run : report.runs) expect_causes_add_up(run);
  return text;
}

}  // namespace paceline::analysis
