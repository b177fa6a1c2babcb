// SPDX-License-Identifier: Apache-2.0
// NCCL's own outputs become facts of the ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "analysis/importers/nccl/facts.h"
#include "analysis/importers/reader.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Trace read_outputs(std::initializer_list<const char*> names) {
  std::vector<TraceFile> files;
  for (const char* name : names) {
    files.push_back({std::filesystem::path(PACELINE_TEST_DATA) / "fuzz-nccl" / name, name});
    EXPECT_TRUE(nccl_reader.recognises(files.back())) << name;
    for (const TraceReader* other : {&kineto_reader, &flight_recorder_reader, &perfetto_reader}) {
      EXPECT_FALSE(other->recognises(files.back())) << name << " " << other->name;
    }
  }
  return nccl_reader.read(files, {});
}

TEST(NcclOutputs, InspectorSumsTheOperationsOfARank) {
  const Trace trace = read_outputs({"inspector"});
  ASSERT_EQ(trace.ranks.size(), 1U);
  const Rank& rank = trace.ranks[0];
  EXPECT_EQ(rank.rank, 2) << "in the largest communicator";
  EXPECT_EQ(rank.world_size, 8);
  EXPECT_EQ(rank.host, "node1");
  EXPECT_EQ(rank.pid, 1639453);
  EXPECT_EQ(rank.facts.at("nccl.inspector.AllReduce"),
            "2 calls, 34359738368 bytes in 124 ms, median bus bandwidth 485.1 GB/s");
  EXPECT_EQ(rank.facts.at("nccl.inspector.Send"), "1 calls, 1048576 bytes in 100 µs, median bus bandwidth 10.5 GB/s");
  EXPECT_EQ(rank.facts.at("nccl.inspector.communicators"),
            "0x11 of 2 ranks on 1 nodes; 0x7f8c496ae9f661 of 8 ranks on 1 nodes");
  EXPECT_THAT(trace.notes, ElementsAre("inspector: 1 lines of it could not be read"));
}

TEST(NcclOutputs, RasTellsWhoIsDeadAndWhoIsBehind) {
  const Trace trace = read_outputs({"ras"});
  ASSERT_EQ(trace.ranks.size(), 3U);
  EXPECT_EQ(trace.ranks[0].facts.at("nccl.ras.0xabc"), "rank 0 of 3, running, AllReduce 17, Broadcast 1");
  EXPECT_EQ(trace.ranks[1].facts.at("nccl.ras.0xabc"), "rank 1 of 3, error 6, AllReduce 16, Broadcast 1");
  EXPECT_EQ(trace.ranks[1].facts.at("nccl.ras.0xdef"), "rank 0 of 1, aborted") << "the same process";
  EXPECT_EQ(trace.ranks[2].facts.at("nccl.ras.0xabc"), "rank 2 of 3, is dead");
  EXPECT_EQ(trace.ranks[2].facts.at("nccl.version"), "2.28.3");
  EXPECT_THAT(trace.notes,
              ElementsAre("ras: RAS: rank 2 of communicator 0xabc (process 102 on 10.0.0.2) is dead",
                          "ras: RAS: communicator 0xabc: AllReduce was begun by rank 1 16 times, rank 0 17 times"));
}

TEST(NcclOutputs, TheDebugLogTellsHowRanksAreConnected) {
  const Trace trace = read_outputs({"debug-log"});
  ASSERT_EQ(trace.ranks.size(), 2U);
  const auto& facts = trace.ranks[0].facts;
  EXPECT_EQ(facts.at("nccl.version"), "2.28.3+cuda13.0");
  EXPECT_EQ(facts.at("nccl.network"), "IB");
  EXPECT_EQ(facts.at("nccl.nics"), "[0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]");
  EXPECT_EQ(facts.at("nccl.nodes"), "2");
  EXPECT_EQ(facts.at("nccl.rings"), "Channel 00/02 : 0 1; Channel 01/02 : 0 1; Ring 00 : 1 -> 0 -> 1");
  EXPECT_EQ(facts.at("nccl.transports"), "2 NET/IB/0/GDRDMA");
  EXPECT_EQ(facts.at("nccl.channels"),
            "2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer");
  EXPECT_EQ(trace.ranks[1].host, "node2");
  EXPECT_EQ(trace.ranks[1].pid, 77);
  EXPECT_EQ(trace.ranks[1].world_size, 2);
}

TEST(NcclOutputs, OfOneRankAreJoined) {
  const Trace trace = read_outputs({"debug-log", "ras"});
  ASSERT_EQ(trace.ranks.size(), 3U);
  EXPECT_EQ(trace.ranks[0].facts.count("nccl.rings") + trace.ranks[0].facts.count("nccl.ras.0xabc"), 2U);
  EXPECT_EQ(trace.ranks[0].host, "node1");
}

TEST(NcclOutputs, WithoutARankAreRefused) {
  EXPECT_THROW(nccl::read_debug_log("node1:1:1 [0] NCCL INFO Using network IB\n"), Error);
  EXPECT_THROW(nccl::read_ras("{\"communicators\": []}"), Error);
  EXPECT_THROW(nccl::read_inspector("{}\n[]\n"), Error);
}

}  // namespace
}  // namespace paceline::analysis
