// SPDX-License-Identifier: Apache-2.0
// Unchanged programs of other projects: MPI benchmarks, and PyTorch under torchrun.
#include <stdlib.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/integration/record/mpi_calls.h"
#include "tests/integration/record/run.h"

#ifdef PACELINE
namespace paceline::test {
namespace {

using format::EventType;

class RecordPrograms : public RecordTest {
 protected:
  std::string record() const { return PACELINE " record -o " + (directory / "run").string() + " -- "; }

  // Both in the files and in their analysis.
  void expect_each_collective_matched(const std::vector<RecordedFile>& ranks, std::size_t least) const {
    const Collectives all = collectives_of(ranks);
    EXPECT_GT(all.size(), least);
    for (const auto& [key, calls] : all) {
      ASSERT_EQ(calls.size(), calls[0].size) << calls[0].function << " on " << calls[0].communicator;
      for (const CollectiveCall& call : calls) EXPECT_EQ(call.function, calls[0].function) << key.second;
    }
    const Ended report = run(PACELINE " report --format json run");
    EXPECT_TRUE(report.by_itself(0)) << report.err;
    EXPECT_EQ(report.out.find("unmatched_collective_calls"), std::string::npos);
    EXPECT_NE(report.out.find("\"operation\": \"MPI_B"), std::string::npos) << report.out;  // Bcast, Barrier
  }

  // Both ranks have one complete file each, from one host and one clock.
  void expect_two_ranks(const std::vector<RecordedFile>& ranks) const {
    ASSERT_EQ(ranks.size(), 2u);
    for (int rank = 0; rank < 2; ++rank) {
      const format::TraceFile& file = ranks[static_cast<std::size_t>(rank)].file;
      EXPECT_EQ(file.header.rank, rank);
      EXPECT_EQ(file.header.world_size, 2);
      EXPECT_EQ(file.header.local_rank, rank);
      EXPECT_EQ(file.header.closed, 1u);
      EXPECT_EQ(file.boot_id, ranks[0].file.boot_id);
      EXPECT_EQ(file.header.clock_source, ranks[0].file.header.clock_source);
      EXPECT_EQ(file.job, ranks[0].file.job);
      EXPECT_NE(file.job, "");
    }
    const Ended info = run(PACELINE " info --format json run");
    // Both use one machine's clock, whose error between CPUs is measured or bounded.
    const auto document = nlohmann::json::parse(info.out);
    ASSERT_EQ(document["traces"].size(), 2u) << info.out;
    const double error_ns = document["traces"][0]["clock"]["error_ns"];
    EXPECT_GT(error_ns, 0);
    EXPECT_LT(error_ns, 1e5);
    EXPECT_EQ(document["traces"][1]["clock"]["error_ns"], error_ns);
  }
};

// Sent and received: bytes by peer.
std::uint64_t bytes_of(const RecordedFile& file, const char* function) {
  std::uint64_t sum = 0;
  for (const RecordedEvent& event : file.named(EventType::mpi_begin_peer, function)) sum += event.extension[0].high;
  return sum;
}

// NetPIPE (Debian's netpipe-openmpi): messages in both directions, with a barrier and a broadcast between the sizes.
TEST_F(RecordPrograms, EachCollectiveAndMessageOfNetpipeIsMatched) {
  if (!run("command -v NPopenmpi").by_itself(0)) GTEST_SKIP() << "netpipe-openmpi is not installed";
  const Ended ended = run(mpirun() + "-n 2 " + record() + "NPopenmpi -n 5 -u 2048");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  expect_two_ranks(ranks);
  expect_each_collective_matched(ranks, 100);
  EXPECT_GT(bytes_of(ranks[0], "MPI_Send"), 0u);
  EXPECT_EQ(bytes_of(ranks[0], "MPI_Send"), bytes_of(ranks[1], "MPI_Recv"));
  EXPECT_EQ(bytes_of(ranks[1], "MPI_Send"), bytes_of(ranks[0], "MPI_Recv"));
}

// HPC Challenge (Debian's hpcc): seven benchmarks on twenty communicators.
TEST_F(RecordPrograms, EachCollectiveOfHpccIsMatched) {
  const std::filesystem::path example = "/usr/share/doc/hpcc/examples/_hpccinf.txt";
  if (!run("command -v hpcc").by_itself(0) || !std::filesystem::exists(example)) {
    GTEST_SKIP() << "hpcc is not installed";
  }
  // The suite's own example with a tiny problem.
  ASSERT_TRUE(
      run("sed -e \"s/^1000 /32 /; s/^80 /8 /; s/^2            Ps/1 Ps/\" " + example.string() + " >hpccinf.txt")
          .by_itself(0));
  const Ended ended = run(mpirun() + "-n 2 " + record() + "hpcc", 300);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  std::ifstream output(directory / "hpccoutf.txt");
  const std::string text{std::istreambuf_iterator<char>(output), {}};
  EXPECT_NE(text.find("Success=1"), std::string::npos) << text.substr(0, 2000);
  const std::vector<RecordedFile> ranks = files();
  expect_two_ranks(ranks);
  expect_each_collective_matched(ranks, 500);
  for (const RecordedFile& file : ranks) {
    EXPECT_EQ(requests_of(file, EventType::mpi_posted), requests_of(file, EventType::mpi_completed));
  }
}

// A launcher that gives its children their ranks in the environment, as torchrun does, but without PyTorch.
TEST_F(RecordPrograms, EachChildOfALauncherWithARankIsRecorded) {
  const Ended ended = run(record() + "/usr/bin/python3 " SCRIPTS "/launcher.py 2 " WAYS " return 50");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  expect_two_ranks(ranks);
  for (const RecordedFile& file : ranks) EXPECT_EQ(file.of(EventType::push).size(), 50u);
  // Their communication was not observed. The report states that instead of 0.
  const Ended report = run(PACELINE " report --format json run");
  EXPECT_TRUE(report.by_itself(0)) << report.err;
  EXPECT_NE(report.out.find("\"communication_observed\": false"), std::string::npos) << report.out;
  EXPECT_NE(report.out.find("Communication was not observed"), std::string::npos) << report.out;
  EXPECT_EQ(report.out.find("\"communication\""), std::string::npos) << report.out;
}

TEST_F(RecordPrograms, DistributedDataParallelUnderTorchrun) {
  const char* given = getenv("PACELINE_TORCH_PYTHON");
  const std::string python = given != nullptr ? given : "python3";
  if (!run(python + " -c \"import torch.distributed.run, torch.cuda.nvtx as n; n.range_pop()\"").by_itself(0)) {
    GTEST_SKIP() << python << " has no PyTorch with NVTX: name one that has by PACELINE_TORCH_PYTHON";
  }
  const Ended ended = run("OMP_NUM_THREADS=1 " + record() + python +
                              " -m torch.distributed.run --nproc-per-node 2 " SAMPLES "/python/train.py --steps 6",
                          300);  // three interpreters load PyTorch
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  expect_two_ranks(ranks);
  for (const RecordedFile& file : ranks) {
    const auto named = [&](const char* name) {
      return file.named(EventType::push, name).size() + file.named(EventType::push_payload, name).size();
    };
    EXPECT_EQ(named("step"), 6u);
    EXPECT_EQ(named("forward"), 6u);
    EXPECT_EQ(named("backward"), 6u);
    EXPECT_EQ(named("optimizer"), 6u);
  }
  const Ended report = run(PACELINE " report --format json run");
  EXPECT_TRUE(report.by_itself(0)) << report.err;
  EXPECT_NE(report.out.find("Communication was not observed"), std::string::npos) << report.out;
}

}  // namespace
}  // namespace paceline::test
#endif
