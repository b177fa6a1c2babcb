// SPDX-License-Identifier: Apache-2.0
// The table of options against the program's options and against the messages of the other folders.
#include "trainer/cli/option_table.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "trainer/cli/add_options.h"

namespace paceline::train {
namespace {

std::set<std::string> keys_of(const CLI::App& app) {
  std::set<std::string> keys;
  for (const CLI::Option* option : app.get_options()) keys.insert(key_of(*option));
  return keys;
}

TEST(OptionTable, HasOneRowForEachTrainingOption) {
  CLI::App app;
  TrainOptions options;
  add_training_options(app, options);
  std::set<std::string> rows;
  for (const OptionRow& row : option_table()) {
    EXPECT_TRUE(rows.insert(row.key).second) << row.key << " has two rows";
    for (const OptionOwner& owner : row.owners) EXPECT_NE(find_option(owner.owner), nullptr) << row.key;
  }
  for (const char* of_the_parser : {"preset", "config", "show-config", "version"}) rows.erase(of_the_parser);
  EXPECT_EQ(rows, keys_of(app));
}

TEST(OptionTable, FindsRowsByKey) {
  ASSERT_NE(find_option("lars-trust"), nullptr);
  EXPECT_EQ(find_option("lars-trust")->topic, Topic::optimizer);
  EXPECT_EQ(find_option("lars"), nullptr);
}

TEST(OptionTable, LearningSettingsLeaveOutWhatDoesNotChangeTheResult) {
  EXPECT_EQ(learning_settings("--lr=0.1\n--resume=true\n--epochs=3\n--eval-every=0\n--checkpoint-every=5\n--seed=4\n"),
            "--lr=0.1\n--seed=4\n");
}

TEST(OptionNames, ReplaceTheKeysOfMessages) {
  EXPECT_EQ(with_option_names("lower ‹batch-size›, or give ‹on-bad-image› skip"),
            "lower --batch-size, or give --on-bad-image skip");
  EXPECT_EQ(with_option_names("no keys"), "no keys");
  EXPECT_EQ(with_option_names("‹ alone"), "‹ alone");
}

// A message of another folder that misspells a key would name an option that does not exist.
TEST(OptionNames, EveryKeyInTheSourcesIsAnOption) {
  CLI::App bench;
  BenchAllreduceOptions options;
  add_bench_allreduce(bench, options);
  const std::set<std::string> of_bench = keys_of(bench);
  const std::regex key("‹([a-z0-9-]+)›");
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(PACELINE_TEST_SOURCES)) {
    const std::string extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".h" && extension != ".cu") continue;
    std::ifstream in(entry.path());
    const std::string text(std::istreambuf_iterator<char>(in), {});
    for (auto match = std::sregex_iterator(text.begin(), text.end(), key); match != std::sregex_iterator(); ++match) {
      ++found;
      const std::string name = (*match)[1];
      EXPECT_TRUE(find_option(name) != nullptr || of_bench.contains(name)) << entry.path() << ": " << name;
    }
  }
  EXPECT_GT(found, 40u);
}

}  // namespace
}  // namespace paceline::train
