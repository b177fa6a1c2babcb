// SPDX-License-Identifier: Apache-2.0
// The example of docs/hacking.md, an updater, as it is compiled here. mpirun starts four ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/trainer/updaters/small_job.h"

namespace paceline::train {

extern const UpdaterKind majority_updater;

namespace example_updater_test {
namespace {

using namespace small_job;

TEST(ExampleUpdater, TakesTheStepThatMostRanksWant) {
  FirstRanks ranks(3);
  if (!ranks.in) return;
  const Communicator communicator = ranks.communicator();
  const int rank = communicator.collectives->rank();
  const auto model = small_model();
  Sgd optimizer(model->weights().size(), {0, 0, false});
  UpdaterParts parts{*model, communicator, optimizer};
  parts.pass.batch = b;
  parts.pass.rank = rank;
  parts.values["vote-size"] = 2;

  GradientPass(*model, parts.pass).run(batch_of(0, rank), 0);
  std::vector<float> votes;
  for (const float g : model->gradients()) votes.push_back(static_cast<float>((g > 0) - (g < 0)));
  communicator.reduction->allreduce_mean(votes);
  const std::vector<float> before(model->weights().begin(), model->weights().end());
  const auto updater = majority_updater.make(parts);
  updater->step(batch_of(0, rank), 0, rate, false);

  std::set<float> seen;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto vote = static_cast<float>((votes[i] > 0) - (votes[i] < 0));
    seen.insert(vote);
    ASSERT_EQ(model->weights()[i], before[i] - static_cast<float>(rate) * (2 * vote)) << i;
  }
  EXPECT_TRUE(seen.contains(1) && seen.contains(-1));
}

std::string text_of(const std::string& path) {
  std::ifstream file(SOURCE_DIRECTORY + ("/" + path));
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ExampleUpdater, StandsInTheDocumentationAsItIsCompiled) {
  const std::string example = text_of("tests/unit/trainer/updaters/example_updater.cpp");
  ASSERT_FALSE(example.empty());
  EXPECT_NE(text_of("docs/hacking.md").find("```cpp\n" + example + "```\n"), std::string::npos);
}

}  // namespace
}  // namespace example_updater_test
}  // namespace paceline::train
