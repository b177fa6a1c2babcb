// SPDX-License-Identifier: Apache-2.0
// The panel of docs/hacking.md compiles and does what it claims. The documentation has count_panel.h word by word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/unit/viewer/count_panel.h"
#include "tests/unit/viewer/simulated_run.h"

namespace paceline::viewer {
namespace {

std::string text_of_file(const std::string& path) {
  std::ifstream file(std::string(PACELINE_SOURCE) + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Examples, APanelCountsTheSlicesOfTheSelectedRange) {
  const auto run = index_run("simulated", simulate({.ranks = 2, .iterations = 3}));
  Document document(run);
  ViewState state(*run);
  const CountPanel panel(document, state);
  EXPECT_EQ(panel.text(), "computing…");
  document.background().finish();
  EXPECT_EQ(panel.text(), QString("%L1 slices").arg(run->slices));
  const auto& iteration = run->index->iterations(0)[1];
  const auto begin = static_cast<double>(iteration.start_ns);
  state.selection.select_range(TimeRange{begin, begin + 1});
  document.background().finish();
  EXPECT_EQ(panel.text(), "2 slices") << "the iteration and the range inside it that starts with it";
}

TEST(Examples, StandInTheDocumentation) {
  const std::string example = text_of_file("/tests/unit/viewer/count_panel.h");
  ASSERT_GT(example.size(), 500u);
  EXPECT_THAT(text_of_file("/docs/hacking.md"), testing::HasSubstr("```cpp\n" + example + "```\n"));
}

}  // namespace
}  // namespace paceline::viewer
