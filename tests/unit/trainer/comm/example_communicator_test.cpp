// SPDX-License-Identifier: Apache-2.0
// The example of docs/hacking.md, a communicator, as it is compiled here. mpirun starts eight ranks.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "trainer/comm/algorithms.h"

namespace paceline::train {

std::unique_ptr<Allreduce> make_gather(const Ranks& ranks);

namespace {

TEST(ExampleCommunicator, GivesEveryRankTheMeans) {
  const Ranks ranks(MPI_COMM_WORLD);
  std::vector<float> values(1'001), expected(values.size());
  std::iota(values.begin(), values.end(), static_cast<float>(ranks.rank * 8));
  std::iota(expected.begin(), expected.end(), static_cast<float>((ranks.size - 1) * 4));  // the mean of rank × 8
  const Element f32("f32");
  make_gather(ranks)->reduce(
      {f32, reinterpret_cast<std::byte*>(values.data()), values.size(), static_cast<float>(ranks.size)});
  EXPECT_EQ(values, expected);
}

std::string text_of(const std::string& path) {
  std::ifstream file(SOURCE_DIRECTORY + ("/" + path));
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ExampleCommunicator, StandsInTheDocumentationAsItIsCompiled) {
  const std::string example = text_of("tests/unit/trainer/comm/example_communicator.cpp");
  ASSERT_FALSE(example.empty());
  EXPECT_NE(text_of("docs/hacking.md").find("```cpp\n" + example + "```\n"), std::string::npos);
}

}  // namespace
}  // namespace paceline::train
