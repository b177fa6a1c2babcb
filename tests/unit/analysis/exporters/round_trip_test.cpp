// SPDX-License-Identifier: Apache-2.0
// A trace that was exported comes back the same where a reader knows the format.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "analysis/exporters/exporter.h"
#include "analysis/importers/reader.h"
#include "analysis/trace/builder.h"
#include "tests/unit/analysis/kineto_file.h"

namespace paceline::analysis {
namespace {

using testing::ElementsAreArray;

class RoundTrip : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static void add_rank(TraceBuilder& run, int number, int world_size) {
    Rank info;
    info.rank = number;
    info.world_size = world_size;
    info.host = "node17";
    info.utc_of_zero_ns = 1'700'000'000'000'000'000;
    RankBuilder& rank = run.add_rank(std::move(info));
    TrackBuilder& main = rank.add_main_thread();
    main.push(0, "process", "", "");
    main.push(10, "iteration", "paceline.trainer", "iteration");
    main.argument("payload", 3);
    main.push(20, "forward", "paceline.trainer", "forward");
    main.pop(50);
    main.push(60, "MPI_Allreduce", "mpi", "collective");
    main.argument("bytes", std::uint64_t{4096});
    main.text_argument("communicator", "MPI_COMM_WORLD");
    main.argument("members", world_size);
    main.argument("sequence", 7);
    main.pop(80);
    main.push(82, number == 0 ? "MPI_Send" : "MPI_Recv", "mpi", "point-to-point");
    main.argument("bytes", std::uint64_t{64});
    main.text_argument("communicator", "MPI_COMM_WORLD");
    main.argument("peer", 1 - number);
    main.argument("tag", 5);
    main.pop(84);
    main.push(85, "ncclAllReduce", "nccl", "collective");
    main.argument("share", 0.25);
    main.argument("most", std::uint64_t{18'446'744'073'709'551'615U});
    main.argument("least", std::int64_t{-9'000'000'000});
    main.pop(90);
    main.pop(95);
    main.push(96, "cudaLaunchKernel", "cuda", "runtime");
    main.argument("correlation", 11);
    main.pop(97);
    main.pop(200);
    TrackBuilder& stream = rank.add_track(TrackKind::stream, "GPU 0 stream 7", 7);
    stream.push(100, "square(float*)", "cuda", "kernel");
    stream.argument("correlation", 11);
    stream.text_argument("grid", "8x1x1");
    stream.pop(150);
    TrackBuilder& worker = rank.add_track(TrackKind::thread, "worker", 12);
    worker.push(5, "load", "data", "loading");
    worker.pop(30);
    TrackBuilder& counter = rank.add_counter("memory", "bytes", "GPU 0", false);
    counter.add_sample(0, 1.5);
    counter.add_sample(100, 3e9);
    rank.add_counter("temperature", "", "", false).add_sample(50, 40);
    const NameId world = rank.names().intern("MPI_COMM_WORLD");
    rank.add_communicator({world, 99, static_cast<std::uint32_t>(world_size)}, number);
  }
  static Trace run_of(int ranks) {
    TraceBuilder run;
    for (int rank = 0; rank < ranks; ++rank) add_rank(run, rank, ranks);
    return run.finish();
  }

  // A line for each slice and sample, those of tracks of one rank together: tracks may come in another order.
  static std::vector<std::string> lines_of(const Trace& trace) {
    std::vector<std::string> lines;
    for (const Rank& rank : trace.ranks) {
      const std::string of_rank = std::to_string(rank.rank) + " of " + std::to_string(rank.world_size) + ": ";
      for (const Track& track : rank.tracks) {
        const std::string start = of_rank + track.label + (track.main ? " (main): " : ": ");
        for (std::size_t i = 0; i < track.slices.size(); ++i) {
          const Kind& kind = trace.kind_of(track.slices, i);
          std::string line = start + trace.names[kind.domain] + "/" + trace.names[kind.category] + "/" +
                             trace.names[kind.name] + " " + std::to_string(track.slices.start_ns[i]) + " " +
                             std::to_string(track.slices.duration_ns[i]) + " " + std::to_string(track.slices.depth[i]);
          std::set<std::string> arguments;  // in any order
          track.slices.each_argument(i, [&](const Argument& argument) {
            arguments.insert(" " + trace.names[argument.key] + "=" +
                             (argument.is_text() ? trace.names[argument.text()] : number_text(argument)));
          });
          for (const std::string& argument : arguments) line += argument;
          lines.push_back(line);
        }
        for (std::size_t i = 0; i < track.samples.time_ns.size(); ++i) {
          lines.push_back(start + track.samples.unit + " " + std::to_string(track.samples.time_ns[i]) + " " +
                          std::to_string(track.samples.value[i]));
        }
      }
    }
    std::ranges::sort(lines);
    return lines;
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("paceline-round-trip-" + std::to_string(::getpid()));
};

TEST_F(RoundTrip, ATraceComesBackFromOtf2) {
  const Trace before = run_of(2);
  const std::filesystem::path folder = folder_ / "archive";
  std::filesystem::create_directories(folder);
  otf2_exporter.make(ExportJob(before), folder);
  const std::vector<TraceFile> files{{folder / "traces.otf2", "the archive"}};
  const Trace after = otf2_reader.read(files, {});
  EXPECT_THAT(lines_of(after), ElementsAreArray(lines_of(before)));
  ASSERT_EQ(after.ranks.size(), 2U);
  for (const Rank& rank : after.ranks) {
    EXPECT_FALSE(rank.damaged) << rank.damage;
    EXPECT_EQ(rank.host, "node17");
    EXPECT_EQ(rank.utc_of_zero_ns, before.ranks[0].utc_of_zero_ns);
    EXPECT_EQ(rank.mpi_events, 2U);
    EXPECT_EQ(rank.nccl_events, 1U);
    EXPECT_EQ(rank.communicators.size(), 1U);
  }
  ASSERT_NE(after.communicators.find(after.names.find("MPI_COMM_WORLD")), nullptr);
  EXPECT_EQ(after.communicators.find(after.names.find("MPI_COMM_WORLD"))->members, 2U);
}

TEST_F(RoundTrip, ACallThatCompletedItsOwnRequestComesBackFromOtf2) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.push(10, "MPI_Isend", "mpi", "point-to-point");
  main.argument("request", 7);
  main.argument("request", 7);
  main.pop(20);
  const Trace before = run.finish();
  const std::filesystem::path folder = folder_ / "archive";
  std::filesystem::create_directories(folder);
  otf2_exporter.make(ExportJob(before), folder);
  const std::vector<TraceFile> files{{folder / "traces.otf2", "the archive"}};
  const Trace after = otf2_reader.read(files, {});
  const Track* track = track_of(after, "main thread");
  ASSERT_NE(track, nullptr);
  EXPECT_EQ(argument_of(after, track->slices, 0, "request"), "7");
}

TEST_F(RoundTrip, RanksComeBackFromChromeJson) {
  const Trace before = run_of(2);
  const std::filesystem::path path = folder_ / "rank.json";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  chrome_exporter.write(ExportJob(before), file);
  std::fclose(file);
  const std::vector<TraceFile> files{{path, "the file"}};
  const Trace after = kineto_reader.read(files, {});
  EXPECT_THAT(lines_of(after), ElementsAreArray(lines_of(before)));
  ASSERT_EQ(after.ranks.size(), 2U);
  for (const Rank& rank : after.ranks) {
    EXPECT_EQ(rank.host, "node17");
    EXPECT_EQ(rank.utc_of_zero_ns, before.ranks[0].utc_of_zero_ns);
    EXPECT_EQ(rank.cuda_events, 1U);
    EXPECT_EQ(rank.counter_events, 3U);
    EXPECT_EQ(rank.end_ns, 200);
  }
}

TEST_F(RoundTrip, RanksComeBackFromPerfetto) {
  Trace before = run_of(2);
  before.ranks[1].pid = 4711;
  before.ranks[1].command = {"python3", "train.py"};
  const auto states = [](bool exact) {
    return ThreadStates{
        .time_ns = {20, 50, 60, 90}, .running_ns = {0, 30, 30, 50}, .waiting_ns = {0, 0, 10, 15}, .exact = exact};
  };
  before.ranks[0].tracks[0].states = states(false);
  before.ranks[1].tracks[0].states = {
      .time_ns = {20, 50, 60, 90}, .running_ns = {0, 30, 30, 30}, .waiting_ns = {0, 0, 10, 10}, .exact = true};
  const std::filesystem::path path = folder_ / "run.pftrace";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  perfetto_exporter.write(ExportJob(before), file);
  std::fclose(file);
  const std::vector<TraceFile> files{{path, "the file"}};
  ASSERT_TRUE(perfetto_reader.recognises(files[0]));
  const Trace after = perfetto_reader.read(files, {});
  EXPECT_THAT(lines_of(after), ElementsAreArray(lines_of(before)));
  EXPECT_TRUE(after.notes.empty());
  ASSERT_EQ(after.ranks.size(), 2U);
  for (std::size_t r = 0; r < 2; ++r) {
    const Rank& rank = after.ranks[r];
    EXPECT_EQ(rank.host, "node17");
    EXPECT_EQ(rank.utc_of_zero_ns, before.ranks[0].utc_of_zero_ns);
    EXPECT_EQ(rank.cuda_events, 1U);
    EXPECT_EQ(rank.counter_events, 3U);
    EXPECT_EQ(rank.start_ns, 0);
    EXPECT_EQ(rank.end_ns, 200);
    EXPECT_EQ(rank.pid, before.ranks[r].pid);
    EXPECT_EQ(rank.command, before.ranks[r].command);
    ASSERT_EQ(rank.tracks.size(), before.ranks[r].tracks.size());
    for (std::size_t t = 0; t < rank.tracks.size(); ++t) EXPECT_EQ(rank.tracks[t].kind, before.ranks[r].tracks[t].kind);
    const ThreadStates &ours = before.ranks[r].tracks[0].states, &theirs = rank.tracks[0].states;
    EXPECT_EQ(theirs.exact, ours.exact);
    EXPECT_EQ(theirs.time_ns, ours.time_ns);
    EXPECT_EQ(theirs.running_ns, ours.running_ns);
    EXPECT_EQ(theirs.waiting_ns, ours.waiting_ns);
  }
}

TEST_F(RoundTrip, CollectivesOfNcclComeBackOnceFromChromeJson) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0, 2);
  rank.add_main_thread().add_slice(0, 100, "step");
  TrackBuilder& stream = rank.add_track(TrackKind::stream, "GPU 0 stream 7");
  stream.add_slice(10, 40, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "cuda", "kernel");
  TrackBuilder& calls = rank.add_track(TrackKind::nccl, "NCCL world");
  calls.add_slice(10, 40, "ncclAllReduce", "nccl", "collective");
  calls.argument("sequence", 3);
  const std::filesystem::path path = folder_ / "nccl.json";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  const Trace before = run.finish();
  chrome_exporter.write(ExportJob(before), file);
  std::fclose(file);
  const std::vector<TraceFile> files{{path, "the file"}};
  const Trace after = kineto_reader.read(files, {});
  EXPECT_THAT(lines_of(after), ElementsAreArray(lines_of(before)));
  ASSERT_EQ(after.ranks.size(), 1U);
  EXPECT_EQ(after.ranks[0].nccl_events, 1U);
  ASSERT_EQ(after.ranks[0].tracks.size(), 3U);
  EXPECT_EQ(after.ranks[0].tracks[2].kind, TrackKind::nccl);
}

}  // namespace
}  // namespace paceline::analysis
