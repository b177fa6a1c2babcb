// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RankSummary rank_on(const char* host, int number, const char* allowed, const char* online = "0-7") {
  RankSummary rank;
  rank.rank = number;
  rank.host = host;
  rank.boot_id = "boot";
  rank.facts = {{"cpus_allowed", allowed}, {"cpus_online", online}};
  return rank;
}

TEST(Machine, ReadsListsOfCpusAsTheKernelWritesThem) {
  EXPECT_THAT(numbers_of("0-2,8"), ElementsAre(0, 1, 2, 8));
  EXPECT_THAT(numbers_of("5"), ElementsAre(5));
  for (const char* wrong : {"", "x", "3-1", "1-", "0 1", "-1", "99999999999"}) {
    EXPECT_THAT(numbers_of(wrong), IsEmpty()) << wrong;
  }
  EXPECT_LE(numbers_of("0-4294967295").size(), 65536U);
}

TEST(Machine, RanksAreCrowdedWhereTheirCpusAreFewerThanThey) {
  std::vector<RankSummary> ranks;
  ranks = {rank_on("a", 0, "0"), rank_on("a", 1, "0"),      // both bound to one CPU
           rank_on("a", 2, "1-2"), rank_on("a", 3, "2-3"),  // overlap, but have three
           rank_on("b", 4, "0")};                           // another machine's CPU 0
  const auto crowded = crowded_cpus(ranks);
  ASSERT_EQ(crowded.size(), 1U);
  EXPECT_THAT(crowded[0].ranks, ElementsAre(0, 1));
  EXPECT_THAT(crowded[0].cpus, ElementsAre(0));
  EXPECT_TRUE(crowded[0].bound);
}

TEST(Machine, RanksThatAreJoinedByAThirdAreOneCrowd) {
  std::vector<RankSummary> ranks;
  ranks = {rank_on("a", 0, "0"), rank_on("a", 1, "1"), rank_on("a", 2, "0-1")};
  ASSERT_EQ(crowded_cpus(ranks).size(), 1U);
  EXPECT_THAT(crowded_cpus(ranks)[0].ranks, ElementsAre(0, 1, 2));
}

TEST(Machine, MoreRanksThanCpusAreACrowdWithoutAnyBinding) {
  std::vector<RankSummary> ranks;
  for (int rank = 0; rank < 3; ++rank) ranks.push_back(rank_on("a", rank, "0-1", "0-1"));
  ASSERT_EQ(crowded_cpus(ranks).size(), 1U);
  EXPECT_FALSE(crowded_cpus(ranks)[0].bound);
}

TEST(Machine, RanksThatRanOneAfterAnotherAreNoCrowd) {
  std::vector<RankSummary> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back(rank_on("a", rank, "0-1", "0-1"));
    ranks.back().start_ns = 100 * rank;
    ranks.back().end_ns = 100 * rank + 150;  // two at a time
  }
  EXPECT_THAT(crowded_cpus(ranks), IsEmpty());
  ranks[0].end_ns = 200;  // and once three
  EXPECT_EQ(crowded_cpus(ranks).size(), 1U);
}

TEST(Machine, WhatIsNotKnownIsNoCrowd) {
  std::vector<RankSummary> ranks;
  ranks.resize(3);
  EXPECT_THAT(crowded_cpus(ranks), IsEmpty());
  EXPECT_THAT(machine_lines(ranks), IsEmpty());
}

TEST(Machine, LinesPutTogetherWhatIsAlike) {
  std::vector<RankSummary> ranks;
  ranks = {rank_on("a", 0, "0-7"), rank_on("a", 1, "0-7"), rank_on("a", 2, "3")};
  for (RankSummary& rank : ranks) {
    rank.facts["cpu_model"] = "Fast 9000";
    rank.facts["memory_bytes"] = "17179869184";
    rank.facts["nic.eth0.5"] = "25000 Mbit/s";
    rank.facts["limit_stack"] = "8388608";
    rank.facts["limit_open_files"] = "1024";
  }
  EXPECT_THAT(machine_lines(ranks), ElementsAre("a: Fast 9000, CPUs 0-7, 16 GiB", "a: nic eth0.5: 25000 Mbit/s",
                                                "ranks 0-1: may run on CPUs 0-7, open files 1024, stack 8 MiB",
                                                "rank 2: may run on CPUs 3, open files 1024, stack 8 MiB"));
}

}  // namespace
}  // namespace paceline::analysis
