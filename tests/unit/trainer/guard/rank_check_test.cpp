// SPDX-License-Identifier: Apache-2.0
#include "trainer/guard/rank_check.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/guard/cgroup_memory.h"

namespace paceline::train {
namespace {

using testing::HasSubstr;

RankFacts good() {
  RankFacts facts;
  facts.build = 1;
  facts.data = 2;
  facts.settings = 3;
  facts.memory_left = std::uint64_t{1} << 30;
  facts.memory_wanted = 1 << 20;
  return facts;
}

TEST(RankCheck, NamesTheRankThatDiffersFromMost) {
  std::vector<RankFacts> facts(4, good());
  EXPECT_FALSE(first_mismatch(facts));
  const auto mismatch_with = [&](std::size_t rank, auto change) {
    std::vector<RankFacts> changed = facts;
    change(changed[rank]);
    const auto mismatch = first_mismatch(changed);
    EXPECT_TRUE(mismatch && mismatch->rank == static_cast<int>(rank));
    return mismatch ? mismatch->what : "";
  };
  EXPECT_THAT(mismatch_with(0, [](RankFacts& f) { f.build = 9; }), HasSubstr("build"));
  EXPECT_THAT(mismatch_with(3, [](RankFacts& f) { f.settings = 9; }), HasSubstr("options"));
  EXPECT_THAT(mismatch_with(2, [](RankFacts& f) { f.data = 9; }), HasSubstr("data"));
  EXPECT_THAT(mismatch_with(1, [](RankFacts& f) { f.ranks_on_host = 2000; }), HasSubstr("2000 more"));
}

TEST(RankCheck, NamesTheOptionsThatDiffer) {
  EXPECT_EQ(differing_settings("--lr=0.1\n--seed=1\n", "--lr=0.2\n--seed=1\n"), "--lr 0.1, there 0.2");
  EXPECT_EQ(differing_settings("--lr=0.1\n--resume=\n", "--lr=0.2\n--resume=true\n"),
            "--lr 0.1, there 0.2; --resume not given, there true");
  EXPECT_EQ(differing_settings("--lr=0.1\n", "--lr=0.1\n"), "");
}

// Control groups as batch systems and containers set them, in files made here: version 2, then version 1.
TEST(CgroupMemory, IsTheLeastMemoryThatAnyGroupLeaves) {
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories((directory / name).parent_path());
    std::ofstream(directory / name) << text;
  };
  const auto left = [&] { return cgroup_memory_left(directory / "groups", directory.path()); };
  EXPECT_EQ(left(), ~std::uint64_t{0}) << "no groups";
  write("groups", "3:cpu:/elsewhere\n0::/job/step\n");
  EXPECT_EQ(left(), ~std::uint64_t{0}) << "no memory in them";
  write("job/step/memory.max", "max\n");
  write("job/step/memory.current", "100\n");
  EXPECT_EQ(left(), ~std::uint64_t{0}) << "no limit";
  write("job/memory.max", "5000\n");
  write("job/memory.current", "3000\n");
  EXPECT_EQ(left(), 2000u) << "of the group above";
  write("job/memory.stat", "anon 1500\nfile 1500\ninactive_file 500\nactive_file 1000\n");
  EXPECT_EQ(left(), 2500u) << "cached files make room";
  write("job/step/memory.max", "50\n");
  EXPECT_EQ(left(), 0u) << "more is used than the limit";
  write("groups", "5:devices:/\n4:cpuset,memory:/job\n0::/\n");
  EXPECT_EQ(left(), ~std::uint64_t{0});
  write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("memory/memory.usage_in_bytes", "900\n");
  write("memory/job/memory.limit_in_bytes", "800\n");
  write("memory/job/memory.usage_in_bytes", "300\n");
  write("memory/job/memory.stat", "inactive_file 7\ntotal_inactive_file 20\n");
  EXPECT_EQ(left(), 520u) << "version 1";
}

}  // namespace
}  // namespace paceline::train
