// SPDX-License-Identifier: Apache-2.0
// Chakra's execution traces of jobs made by hand, read back by their fields and fed as a simulator would feed itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "analysis/exporters/exporter.h"
#include "analysis/importers/perfetto/fields.h"
#include "analysis/trace/builder.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace chakra_test {
namespace {

using perfetto::Field;
using perfetto::Fields;
using ::testing::ElementsAre;

constexpr std::int64_t ms = 1'000'000;
constexpr std::uint64_t compute = 4, send = 5, receive = 6, collective = 7;

struct Node {
  std::string name;
  std::uint64_t type = 0, us = 0;
  std::vector<std::uint64_t> after;
  std::map<std::string, std::uint64_t> attributes;
  std::string group;
};

// By id: it is the place in the file.
std::vector<Node> nodes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<Node> nodes;
  bool first = true;
  for (const char *at = bytes.data(), *end = at + bytes.size(); at != end;) {
    std::uint64_t size = 0;
    EXPECT_TRUE(Fields::varint(at, end, size));
    Fields fields({at, size});
    at += size;
    Node node;
    for (Field field; fields.next(field);) {
      if (first) continue;  // GlobalMetadata
      EXPECT_TRUE(field.tag != perfetto::integer_tag(1) || field.value == nodes.size()) << field.value;
      if (field.tag == perfetto::text_tag(2)) node.name = field.bytes;
      if (field.tag == perfetto::integer_tag(3)) node.type = field.value;
      if (field.tag == perfetto::integer_tag(5)) node.after.push_back(field.value);
      if (field.tag == perfetto::integer_tag(7)) node.us = field.value;
      if (field.tag != perfetto::text_tag(10)) continue;
      Fields attribute(field.bytes);
      Field name, value;
      EXPECT_TRUE(attribute.next(name) && attribute.next(value));
      if (name.bytes == "pg_name") node.group = value.bytes;
      node.attributes[std::string(name.bytes)] = value.value;
    }
    EXPECT_FALSE(fields.damaged());
    if (!first) nodes.push_back(node);
    first = false;
  }
  return nodes;
}

class ExportChakra : public ::testing::Test {
 protected:
  ExportChakra() {
    std::string name = ::testing::TempDir() + "chakra-XXXXXX";
    directory_ = mkdtemp(name.data());
  }
  ~ExportChakra() override { std::filesystem::remove_all(directory_); }

  std::vector<std::vector<Node>> exported(const Trace& trace, const Selection& selection = {}) {
    const std::filesystem::path folder = directory_ / std::to_string(++folders_);
    chakra_exporter.make(ExportJob(trace, selection), folder);
    std::ifstream groups(folder / "groups.json");
    groups_ = std::string{std::istreambuf_iterator<char>(groups), {}};
    std::vector<std::vector<Node>> ranks;
    for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
      ranks.push_back(nodes_of(folder / ("rank." + std::to_string(r) + ".et")));
    }
    return ranks;
  }

  std::string groups_;
  std::filesystem::path directory_;

 private:
  int folders_ = 0;
};

std::vector<std::string> names_of(const std::vector<Node>& nodes, std::uint64_t type) {
  std::vector<std::string> names;
  for (const Node& node : nodes) {
    if (node.type == type) names.push_back(node.name);
  }
  return names;
}
const Node& only(const std::vector<Node>& nodes, const std::string& name) {
  const auto found = std::ranges::find(nodes, name, &Node::name);
  return found == nodes.end() ? nodes.at(nodes.size()) : *found;
}
bool follows(const std::vector<Node>& nodes, const std::string& later, const std::string& earlier) {
  const auto place = static_cast<std::uint64_t>(&only(nodes, earlier) - nodes.data());
  std::vector<std::uint64_t> open = only(nodes, later).after;
  while (!open.empty()) {
    const std::uint64_t node = open.back();
    open.pop_back();
    if (node == place) return true;
    open.insert(open.end(), nodes.at(node).after.begin(), nodes.at(node).after.end());
  }
  return false;
}

void call(TrackBuilder& track, std::int64_t start, std::int64_t end, const char* function, const char* communicator,
          int sequence, int bytes) {
  track.add_slice(start, end, function, "mpi", "collective");
  track.argument("bytes", bytes);
  track.text_argument("communicator", communicator);
  track.argument("sequence", sequence);
}
void message(TrackBuilder& track, std::int64_t start, std::int64_t end, const char* function, int peer) {
  track.add_slice(start, end, function, "mpi", "point-to-point");
  track.text_argument("communicator", "MPI_COMM_WORLD");
  track.argument("peer", peer);
  track.argument("tag", 3);
  track.argument("bytes", 1000);
}

//   rank 0: forward 0 … 40 ms, send 40 … 41, backward 41 … 60, allreduce 60 … 70, optimizer 70 … 72
//   rank 1: forward 0 … 10 ms, receive 10 … 45, backward 45 … 50, allreduce 50 … 70, optimizer 70 … 74
// The same again in iteration 1, 100 ms later. Rank 0 launches a kernel in forward, and waits for it in backward;
// nothing waits for the last one.
Trace job() {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    TrackBuilder& main = rank.add_main_thread();
    TrackBuilder& stream = rank.add_track(TrackKind::stream, "stream 7");
    for (int i = 0; i < 2; ++i) {
      const std::int64_t at = 100 * i * ms;
      main.push(at, "iteration", "paceline.trainer", "iteration");
      main.argument("payload", i);
      const auto range = [&](std::int64_t from, std::int64_t until, const char* name) {
        main.add_slice(at + from * ms, at + until * ms, name, "paceline.trainer", name);
      };
      if (r == 0) {
        range(0, 40, "forward");
        message(main, at + 40 * ms, at + 41 * ms, "MPI_Send", 1);
        range(41, 60, "backward");
        main.add_slice(at + 1 * ms, at + 2 * ms, "cudaLaunchKernel", "cuda", "runtime");
        main.argument("correlation", i + 1);
        stream.add_slice(at + 3 * ms, at + 43 * ms, "gemm", "cuda", "kernel");
        stream.argument("correlation", i + 1);
        if (i == 1) {
          main.add_slice(at + 46 * ms, at + 47 * ms, "cudaLaunchKernel", "cuda", "runtime");
          main.argument("correlation", 3);
          stream.add_slice(at + 50 * ms, at + 51 * ms, "last", "cuda", "kernel");
          stream.argument("correlation", 3);
        }
        main.add_slice(at + 42 * ms, at + 44 * ms, "cudaDeviceSynchronize", "cuda", "synchronization");
      } else {
        range(0, 10, "forward");
        message(main, at + 10 * ms, at + 45 * ms, "MPI_Recv", 0);
        range(45, 50, "backward");
      }
      call(main, at + (r == 0 ? 60 : 50) * ms, at + 70 * ms, "MPI_Allreduce", "MPI_COMM_WORLD", i, 4000);
      range(70, r == 0 ? 72 : 74, "optimizer");
      main.pop(at + (r == 0 ? 72 : 74) * ms);
    }
  }
  return run.finish();
}

TEST_F(ExportChakra, WritesWorkCollectivesAndMessagesWithWhatTheyDependOn) {
  const auto ranks = exported(job());
  ASSERT_EQ(ranks.size(), 2U);
  for (const auto& nodes : ranks) {
    for (std::size_t id = 0; id < nodes.size(); ++id) {
      for (const std::uint64_t before : nodes[id].after) EXPECT_LT(before, id);
    }
    EXPECT_THAT(names_of(nodes, collective), ElementsAre("MPI_Allreduce", "MPI_Allreduce"));
    const Node& allreduce = only(nodes, "MPI_Allreduce");
    EXPECT_EQ(allreduce.us, 10'000U) << "from the last arrival";
    EXPECT_EQ(allreduce.attributes.at("comm_type"), 0U);
    EXPECT_EQ(allreduce.attributes.at("comm_size"), 4000U);
    EXPECT_EQ(allreduce.attributes.at("is_cpu_op"), 0U) << "a simulator refuses others";
    EXPECT_EQ(allreduce.group, "0");
    EXPECT_TRUE(follows(nodes, "MPI_Allreduce", "backward"));
    EXPECT_TRUE(follows(nodes, "optimizer", "MPI_Allreduce"));
  }
  EXPECT_EQ(only(ranks[1], "forward").us, 10'000U);
  EXPECT_EQ(only(ranks[1], "backward").us, 5'000U);
  EXPECT_EQ(only(ranks[1], "optimizer").us, 4'000U);
  EXPECT_THAT(names_of(ranks[0], send), ElementsAre("send", "send"));
  EXPECT_THAT(names_of(ranks[1], receive), ElementsAre("receive", "receive"));
  EXPECT_TRUE(follows(ranks[0], "send", "forward"));
  EXPECT_TRUE(follows(ranks[1], "backward", "receive"));
  EXPECT_TRUE(follows(ranks[1], "receive", "forward"));
  for (const Node* node : {&only(ranks[0], "send"), &only(ranks[1], "receive")}) {
    EXPECT_EQ(node->attributes.at("comm_src"), 0U);
    EXPECT_EQ(node->attributes.at("comm_dst"), 1U);
    EXPECT_EQ(node->attributes.at("comm_size"), 1000U);
    EXPECT_EQ(node->attributes.at("comm_tag"), 0U);
  }
  EXPECT_EQ(groups_, "");
}

TEST_F(ExportChakra, AKernelFollowsItsLaunchAndTheThreadThatWaitedFollowsTheKernel) {
  const auto nodes = exported(job())[0];
  std::vector<std::size_t> kernels;
  for (std::size_t id = 0; id < nodes.size(); ++id) {
    if (nodes[id].type == compute && nodes[id].attributes.at("is_cpu_op") == 0) kernels.push_back(id);
  }
  ASSERT_EQ(kernels.size(), 3U);
  EXPECT_EQ(nodes[kernels[2]].us, 1'000U);
  EXPECT_EQ(nodes[kernels[0]].us, 40'000U);
  ASSERT_FALSE(nodes[kernels[0]].after.empty());
  EXPECT_TRUE(std::ranges::any_of(nodes, [&](const Node& node) {
    return node.attributes.at("is_cpu_op") == 1 && std::ranges::find(node.after, kernels[0]) != node.after.end();
  }));
}

TEST_F(ExportChakra, TakesTheWholeIterationsOfAWindow) {
  const Trace trace = job();
  const auto ranks = exported(trace, Selection({.from_ns = 90 * ms, .until_ns = 174 * ms}));
  EXPECT_THAT(names_of(ranks[1], collective), ElementsAre("MPI_Allreduce"));
  EXPECT_THAT(names_of(ranks[1], receive), ElementsAre("receive"));
  EXPECT_EQ(only(ranks[1], "forward").attributes.at("iteration"), 1U);
  EXPECT_THROW(exported(trace, Selection({.from_ns = 90 * ms, .until_ns = 173 * ms})), Error);
  EXPECT_THROW(exported(trace, Selection({}, {{0, 0}})), Error);
}

// Each rank receives before it sends, as only wrong times can have it. A simulator would wait for ever.
// As of the dumps of PyTorch's Flight Recorder, which tell of collectives that did not end.
TEST_F(ExportChakra, ARunWithoutWorkIsRefusedAndLeavesNothing) {
  TraceBuilder run;
  run.add_rank(0, 1).add_track(TrackKind::nccl, "group 0");
  EXPECT_THROW(exported(run.finish()), Error);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(ExportChakra, OfWaitsInACircleOneIsLeftOut) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    rank.info().clock_error_ns = 50 * ms;
    TrackBuilder& main = rank.add_main_thread();
    main.add_slice(0, 10 * ms, "forward", "paceline.trainer", "forward");
    message(main, 10 * ms, 20 * ms, "MPI_Recv", 1 - r);
    message(main, 30 * ms, 40 * ms, "MPI_Send", 1 - r);
  }
  const auto ranks = exported(run.finish());
  const std::size_t to_0 = names_of(ranks[0], receive).size(), to_1 = names_of(ranks[1], receive).size();
  EXPECT_EQ(to_0 + to_1, 1U);
  EXPECT_EQ(names_of(ranks[1], send).size(), to_0);
  EXPECT_EQ(names_of(ranks[0], send).size(), to_1);
}

// As a recording of PyTorch has them: the collective is on a track of its own, and the main thread waits at its end.
TEST_F(ExportChakra, ACollectiveInFlightIsNoWork) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    TrackBuilder& main = rank.add_main_thread();
    main.add_slice(0, 50 * ms, "backward", "torch", "backward");
    main.add_slice(50 * ms, 60 * ms, "wait", "torch", "wait");
    main.argument("request", 1);
    TrackBuilder& requests = rank.add_track(TrackKind::thread, "requests");
    requests.add_slice((r == 0 ? 10 : 20) * ms, 60 * ms, "gloo:all_reduce", "torch", "collective");
    requests.argument("bytes", 4000);
    requests.text_argument("communicator", "default group");
    requests.argument("sequence", 0);
    requests.argument("request", 1);
  }
  for (const auto& nodes : exported(run.finish())) {
    EXPECT_THAT(names_of(nodes, collective), ElementsAre("gloo:all_reduce"));
    EXPECT_EQ(only(nodes, "gloo:all_reduce").us, 40'000U);
    EXPECT_THAT(names_of(nodes, compute), ::testing::Not(::testing::Contains("communication")));
  }
}

// Two threads of each rank use a communicator each, and the ranks come to them in another order. Ranks that issued them
// in another order would wait for each other for ever. Only two of the three ranks meet in the last one.
TEST_F(ExportChakra, AllRanksHaveTheirCollectivesInOneOrder) {
  TraceBuilder run;
  for (int r = 0; r < 3; ++r) {
    RankBuilder& rank = run.add_rank(r, 3);
    TrackBuilder& main = rank.add_main_thread();
    main.add_slice(0, 5 * ms, "forward", "paceline.trainer", "forward");
    call(main, (r == 0 ? 10 : 30) * ms, 40 * ms, "MPI_Allreduce", "A", 0, 8);
    if (r < 2) call(main, 50 * ms, 60 * ms, "MPI_Bcast", "C", 0, 8);
    TrackBuilder& helper = rank.add_track(TrackKind::thread, "helper");
    call(helper, (r == 0 ? 20 : 15) * ms, 25 * ms, "MPI_Allgather", "B", 0, 8);
  }
  const auto ranks = exported(run.finish());
  EXPECT_THAT(names_of(ranks[0], collective), ElementsAre("MPI_Allgather", "MPI_Allreduce", "MPI_Bcast"));
  EXPECT_THAT(names_of(ranks[1], collective), ElementsAre("MPI_Allgather", "MPI_Allreduce", "MPI_Bcast"));
  EXPECT_THAT(names_of(ranks[2], collective), ElementsAre("MPI_Allgather", "MPI_Allreduce"));
  EXPECT_EQ(only(ranks[0], "MPI_Bcast").group, "1");
  EXPECT_EQ(only(ranks[0], "MPI_Allgather").group, "0");
  EXPECT_EQ(groups_, "{\"1\":[0,1]}\n");
  // What the helper's collective depends on, the later one of the main thread does, too.
  for (const std::uint64_t before : only(ranks[1], "MPI_Allgather").after) {
    EXPECT_THAT(only(ranks[1], "MPI_Allreduce").after, ::testing::Contains(before));
  }
}

}  // namespace
}  // namespace chakra_test
}  // namespace paceline::analysis
