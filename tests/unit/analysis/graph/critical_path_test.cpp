// SPDX-License-Identifier: Apache-2.0
// The dependency graph, the critical path and the slack of jobs made by hand, whose paths are worked out on paper.
#include "analysis/graph/critical_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace critical_path_test {
namespace {

constexpr std::int64_t ms = 1'000'000;
const std::string trainer = "paceline.trainer";

// Ranges with the name of their category, one after the other, in ms.
class Hand {
 public:
  Hand(TrackBuilder& track, std::int64_t start_ms) : track_(track), now_(start_ms * ms) {}
  Hand& range(const char* name, std::int64_t length_ms) {
    track_.add_slice(now_, now_ + length_ms * ms, name, trainer, name);
    now_ += length_ms * ms;
    return *this;
  }
  // From now to `end_ms`.
  Hand& allreduce(int sequence, std::int64_t end_ms, double bytes = 1e6) {
    track_.add_slice(now_, end_ms * ms, "MPI_Allreduce", "mpi", "collective");
    track_.argument("bytes", bytes);
    track_.text_argument("communicator", "MPI_COMM_WORLD");
    track_.argument("sequence", sequence);
    now_ = end_ms * ms;
    return *this;
  }
  Hand& begin_iteration(int number) {
    track_.push(now_, "iteration", trainer, "iteration");
    track_.argument("payload", number);
    return *this;
  }
  Hand& end_iteration() {
    track_.pop(now_);
    return *this;
  }

 private:
  TrackBuilder& track_;
  std::int64_t now_;
};

std::optional<CriticalPath> path_of(const Trace& trace) {
  const RunIndex index(trace);
  return critical_path(index, dependency_graph(index));
}

std::int64_t phase_of(const CriticalPath& path, std::size_t rank, Phase phase) {
  return path.rank_phase_ns[rank][static_cast<std::size_t>(phase)] / ms;
}
std::int64_t slack_of(const CriticalPath& path, std::size_t rank, Phase phase) {
  return path.slack[rank].phase_ns[static_cast<std::size_t>(phase)].value_or(-ms) / ms;
}

//   rank 0: forward 30 | allreduce 30 … 60  | optimizer 5     | forward 45 | allreduce 110 … 120 | optimizer 5
//   rank 1: forward 50 | allreduce 50 … 60  | optimizer 5     | forward 20 | allreduce 85 … 120  | optimizer 5
// Path: forward of rank 1 (50), transfer (10), optimizer and forward of rank 0 (5 + 45), transfer (10), optimizer (5).
Trace two_iterations() {
  TraceBuilder run;
  const std::int64_t forward[2][2] = {{30, 45}, {50, 20}};
  for (int r = 0; r < 2; ++r) {
    Hand hand(run.add_rank(r, 2).add_main_thread(), 0);
    hand.begin_iteration(0).range("forward", forward[r][0]).allreduce(0, 60).range("optimizer", 5).end_iteration();
    hand.begin_iteration(1).range("forward", forward[r][1]).allreduce(1, 120).range("optimizer", 5).end_iteration();
  }
  return run.finish();
}

TEST(CriticalPath, GoesThroughTheRankThatArrivesLast) {
  const auto path = path_of(two_iterations());
  ASSERT_TRUE(path);
  EXPECT_EQ(path->wall_ns, 125 * ms);
  EXPECT_EQ(phase_of(*path, 1, Phase::forward), 50);
  EXPECT_EQ(phase_of(*path, 0, Phase::forward), 45);
  EXPECT_EQ(path->phase_ns(Phase::communication), 20 * ms);
  EXPECT_EQ(path->phase_ns(Phase::optimizer), 10 * ms);
  ASSERT_EQ(path->iterations.size(), 2U);
  EXPECT_EQ(path->iterations[0].wall_ns, 65 * ms);
  EXPECT_EQ(path->iterations[1].wall_ns, 60 * ms);
  EXPECT_EQ(path->iterations[0].work_ns, (std::vector<std::int64_t>{5 * ms, 50 * ms}));
  EXPECT_EQ(path->names.front().name, "forward");
  EXPECT_EQ(path->names.front().ns, 95 * ms);
}

// From the forward of rank 1 to the end of the allreduce on rank 0, where the path stays.
TEST(CriticalPath, SegmentsLeadFromSliceToSlice) {
  const Trace trace = two_iterations();
  const RunIndex index(trace);
  const DependencyGraph graph = dependency_graph(index);
  const auto path = critical_path(index, graph);
  ASSERT_TRUE(path);
  const auto name_of = [&](const PathPlace& place) {
    const Slices& slices = trace.ranks[place.rank].tracks[place.track].slices;
    return place.slice ? trace.name_of(slices, *place.slice) : "";
  };
  const auto segments = path_segments(trace, graph, *path, 40 * ms, 65 * ms);
  ASSERT_EQ(segments.size(), 3U);
  EXPECT_EQ(segments[0].from.time_ns, 0) << "a segment that begins before the stretch of time is whole";
  EXPECT_EQ(segments[0].to.time_ns, 50 * ms);
  EXPECT_EQ(segments[0].to.rank, 1U);
  EXPECT_FALSE(segments[0].transfer);
  EXPECT_TRUE(segments[1].transfer);
  EXPECT_EQ(segments[1].kind, DependencyKind::collective);
  EXPECT_EQ(segments[1].from.rank, 1U);
  EXPECT_EQ(name_of(segments[1].from), "forward");
  EXPECT_EQ(segments[1].to.rank, 0U);
  EXPECT_EQ(segments[1].to.time_ns, 60 * ms);
  EXPECT_EQ(name_of(segments[1].to), "MPI_Allreduce");
  EXPECT_EQ(segments[2].from.rank, 0U);
  EXPECT_EQ(name_of(segments[2].from), "optimizer");
  EXPECT_EQ(segments[2].to.time_ns, 125 * ms) << "rank 0 arrived last in the second allreduce and did not wait";
  EXPECT_EQ(name_of(segments[2].to), "optimizer");
  EXPECT_TRUE(path_segments(trace, graph, *path, 125 * ms, 200 * ms).empty());
}

TEST(CriticalPath, SlackIsTheTimeByWhichARankMayBeLater) {
  const auto path = path_of(two_iterations());
  ASSERT_TRUE(path);
  // Rank 0 may take 20 longer in iteration 0 and nothing in iteration 1; rank 1 nothing and 25.
  EXPECT_EQ(slack_of(*path, 0, Phase::forward), 10);
  EXPECT_EQ(slack_of(*path, 1, Phase::forward), 12);
  EXPECT_EQ(slack_of(*path, 0, Phase::evaluate), -1);
}

//   main thread:   forward 0 … 20, backward 20 … 50 with marks at 30 and 50, allreduce 50 … 90, optimizer 90 … 95
//   communication: bucket A (1 MB) 30 … 55, bucket B (2 MB) 55 … 90; the ranks arrive together
// Path: main until 30, bucket A, bucket B, optimizer.
TEST(CriticalPath, FollowsAHelperThreadThatWasHandedWork) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0, 1);
  TrackBuilder& main = rank.add_main_thread();
  Hand hand(main, 0);
  hand.begin_iteration(0).range("forward", 20).range("backward", 30).range("allreduce", 40).range("optimizer", 5);
  hand.end_iteration();
  main.mark_argument(main.add_mark(30 * ms, "ready", trainer, "allreduce"), "payload", 1'000'000);
  main.mark_argument(main.add_mark(50 * ms, "ready", trainer, "allreduce"), "payload", 2'000'000);
  TrackBuilder& helper = rank.add_track(TrackKind::thread, "communication", 2);
  helper.add_slice(30 * ms, 55 * ms, "bucket A", trainer, "allreduce");
  helper.argument("payload", 1'000'000);
  helper.add_slice(55 * ms, 90 * ms, "bucket B", trainer, "allreduce");
  helper.argument("payload", 2'000'000);
  const auto path = path_of(run.finish());
  ASSERT_TRUE(path);
  EXPECT_EQ(path->wall_ns, 95 * ms);
  EXPECT_EQ(path->phase_ns(Phase::forward), 20 * ms);
  EXPECT_EQ(path->phase_ns(Phase::backward), 10 * ms);
  EXPECT_EQ(path->phase_ns(Phase::communication), 60 * ms);
  EXPECT_EQ(path->phase_ns(Phase::optimizer), 5 * ms);
  // Backward's second half has 5 to spare before bucket B would begin later.
  EXPECT_EQ(slack_of(*path, 0, Phase::forward), 0);
}

//   thread: forward from 0; launch at 1 … 2 (kernel a), launch at 2 … 3 (kernel b), synchronise 3 … 50
//   stream: a 6 … 20, b 20 … 45
// Path: forward until 1, latency of the launch until 6, a, b, and the end of the synchronisation.
TEST(CriticalPath, GoesThroughStreamsAndTheirLaunches) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0, 1);
  TrackBuilder& main = rank.add_main_thread();
  main.push(0, "iteration", trainer, "iteration");
  main.push(0, "forward", trainer, "forward");
  for (int i = 0; i < 2; ++i) {
    main.add_slice((i + 1) * ms, (i + 2) * ms, "cudaLaunchKernel", "cuda", "runtime");
    main.argument("correlation", i + 1);
  }
  main.add_slice(3 * ms, 50 * ms, "cudaDeviceSynchronize", "cuda", "synchronization");
  main.pop(50 * ms);
  main.pop(50 * ms);
  TrackBuilder& stream = rank.add_track(TrackKind::stream, "stream 7");
  stream.add_slice(6 * ms, 20 * ms, "a", "cuda", "kernel");
  stream.argument("correlation", 1);
  stream.add_slice(20 * ms, 45 * ms, "b", "cuda", "kernel");
  stream.argument("correlation", 2);
  const auto path = path_of(run.finish());
  ASSERT_TRUE(path);
  EXPECT_EQ(path->wall_ns, 50 * ms);
  EXPECT_EQ(path->phase_ns(Phase::launch), 5 * ms);
  EXPECT_EQ(path->phase_ns(Phase::forward), 40 * ms);
  EXPECT_EQ(path->names[0].name, "b");
  EXPECT_EQ(path->names[0].ns, 25 * ms);
  EXPECT_EQ(path->names[1].name, "a");
}

//   thread: preprocess 0 … 10 (launch of a at 1 … 2), forward 10 … 13 (launch of b at 11 … 12), synchronise 14 … 50
//   stream: a 2 … 40, b 40 … 49
// Forward's launch could come 28 later, but forward's kernel is on the critical path.
TEST(CriticalPath, SlackCountsTheWorkOfStreams) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0, 1);
  TrackBuilder& main = rank.add_main_thread();
  TrackBuilder& stream = rank.add_track(TrackKind::stream, "stream 7");
  const auto launch = [&](std::int64_t call_ms, std::int64_t start_ms, std::int64_t end_ms, const char* name, int id) {
    main.add_slice(call_ms * ms, (call_ms + 1) * ms, "cudaLaunchKernel", "cuda", "runtime");
    main.argument("correlation", id);
    stream.add_slice(start_ms * ms, end_ms * ms, name, "cuda", "kernel");
    stream.argument("correlation", id);
  };
  main.push(0, "iteration", trainer, "iteration");
  main.push(0, "preprocess", trainer, "preprocess");
  launch(1, 2, 40, "a", 1);
  main.pop(10 * ms);
  main.push(10 * ms, "forward", trainer, "forward");
  launch(11, 40, 49, "b", 2);
  main.pop(13 * ms);
  main.push(13 * ms, "optimizer", trainer, "optimizer");
  main.add_slice(14 * ms, 50 * ms, "cudaDeviceSynchronize", "cuda", "synchronization");
  main.pop(50 * ms);
  main.pop(50 * ms);
  const auto path = path_of(run.finish());
  ASSERT_TRUE(path);
  EXPECT_EQ(path->phase_ns(Phase::forward), 9 * ms);
  EXPECT_EQ(slack_of(*path, 0, Phase::forward), 0);
}

//   rank 0: forward 0 … 40, send 40 … 41
//   rank 1: forward 0 … 10, receive 10 … 45
TEST(CriticalPath, GoesFromAReceiveToItsSend) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    TrackBuilder& main = run.add_rank(r, 2).add_main_thread();
    main.push(0, "iteration", trainer, "iteration");
    main.add_slice(0, (r == 0 ? 40 : 10) * ms, "forward", trainer, "forward");
    main.add_slice((r == 0 ? 40 : 10) * ms, (r == 0 ? 41 : 45) * ms, r == 0 ? "MPI_Send" : "MPI_Recv", "mpi",
                   "point-to-point");
    main.text_argument("communicator", "MPI_COMM_WORLD");
    main.argument("peer", 1 - r);
    main.argument("tag", 3);
    main.argument("bytes", 1000);
    main.pop((r == 0 ? 41 : 45) * ms);
  }
  const auto path = path_of(run.finish());
  ASSERT_TRUE(path);
  EXPECT_EQ(path->wall_ns, 45 * ms);
  EXPECT_EQ(phase_of(*path, 0, Phase::forward), 40);
  EXPECT_EQ(phase_of(*path, 1, Phase::communication), 5);
}

// An allreduce whose algorithm makes no MPI call: the ranges are the collective.
TEST(CriticalPath, TakesRangesOfAnAllreduceForACollective) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    TrackBuilder& main = run.add_rank(r, 2).add_main_thread();
    const std::int64_t arrival = r == 0 ? 10 : 30;
    main.push(0, "iteration", trainer, "iteration");
    main.add_slice(0, arrival * ms, "backward", trainer, "backward");
    main.add_slice(arrival * ms, 50 * ms, "allreduce", trainer, "allreduce");
    main.argument("payload", 4'000'000);
    main.pop(50 * ms);
  }
  const auto path = path_of(run.finish());
  ASSERT_TRUE(path);
  EXPECT_EQ(phase_of(*path, 1, Phase::backward), 30);
  EXPECT_EQ(phase_of(*path, 0, Phase::backward), 0);
  EXPECT_EQ(path->phase_ns(Phase::communication), 20 * ms);
}

// A parameter server: the ranks exchange gradients in ranges of equal size, but no rank waits for the other's. A thread
// of rank 0 probes for the gradient of rank 1, which comes from it and not from rank 0's main thread.
//   rank 0: forward 0 … 20, push 20 … 25, forward 25 … 70;  its server: probes from 1, receives 48 … 52, sends 52 … 60
//   rank 1: forward 0 … 45, push 45 … 62: sends 45 … 52, receives 53 … 62;  forward 62 … 80
TEST(CriticalPath, AServerThatProbesWaitsForTheSender) {
  TraceBuilder run;
  const auto call = [](TrackBuilder& track, std::int64_t from_ms, std::int64_t until_ms, const char* name, int peer) {
    track.add_slice(from_ms * ms, until_ms * ms, name, "mpi", "point-to-point");
    track.text_argument("communicator", "MPI_COMM_WORLD");
    track.argument("peer", peer);
    track.argument("tag", 7);
    track.argument("bytes", 4'000'000);
  };
  const auto push = [](TrackBuilder& track, std::int64_t from_ms, std::int64_t until_ms) {
    track.push(from_ms * ms, "push and pull", trainer, "allreduce");
    track.argument("payload", 8'000'000);
    track.pop(until_ms * ms);
  };
  RankBuilder& server = run.add_rank(0, 2);
  TrackBuilder& zero = server.add_main_thread();
  zero.push(0, "iteration", trainer, "iteration");
  zero.add_slice(0, 20 * ms, "forward", trainer, "forward");
  push(zero, 20, 25);
  zero.add_slice(25 * ms, 70 * ms, "forward", trainer, "forward");
  zero.pop(70 * ms);
  TrackBuilder& thread = server.add_track(TrackKind::thread, "server", 2);
  for (const std::int64_t probe : {1, 11, 21, 31, 41}) call(thread, probe, probe + 1, "MPI_Iprobe", 1);
  call(thread, 48, 52, "MPI_Recv", 1);
  call(thread, 52, 60, "MPI_Send", 1);
  TrackBuilder& one = run.add_rank(1, 2).add_main_thread();
  one.push(0, "iteration", trainer, "iteration");
  one.add_slice(0, 45 * ms, "forward", trainer, "forward");
  one.push(45 * ms, "push and pull", trainer, "allreduce");
  one.argument("payload", 8'000'000);
  call(one, 45, 52, "MPI_Send", 0);
  call(one, 53, 62, "MPI_Recv", 0);
  one.pop(62 * ms);
  one.add_slice(62 * ms, 80 * ms, "forward", trainer, "forward");
  one.pop(80 * ms);
  const Trace trace = run.finish();
  const RunIndex index(trace);
  const DependencyGraph graph = dependency_graph(index);
  EXPECT_TRUE(graph.collectives.empty()) << "rank 0 went on before rank 1 came";
  EXPECT_TRUE(graph.tracks[graph.main[0]].waits.empty());
  const auto& waits = graph.tracks[1].waits;  // of the server
  const auto receive = std::ranges::find(waits, DependencyKind::message, &Dependency::kind);
  ASSERT_NE(receive, waits.end());
  EXPECT_EQ(receive->from_ns, 1 * ms) << "from the first probe";
  EXPECT_EQ(receive->until_ns, 48 * ms);
  EXPECT_EQ(receive->cause_ns, 45 * ms);
  EXPECT_TRUE(std::ranges::none_of(waits, [](const Dependency& of) { return of.kind == DependencyKind::hand_over; }));
  const auto path = path_of(trace);
  ASSERT_TRUE(path);
  EXPECT_EQ(phase_of(*path, 1, Phase::forward), 45 + 18);
  EXPECT_EQ(phase_of(*path, 0, Phase::forward), 0);
}

TEST(CriticalPath, IsAbsentWithoutIterations) {
  TraceBuilder run;
  run.add_rank(0, 1).add_main_thread().add_slice(0, ms, "forward", trainer, "forward");
  EXPECT_FALSE(path_of(run.finish()));
}

// Time between iterations is in no window, and what crosses the border of a window is cut there.
TEST(CriticalPath, LeavesOutTheTimeBetweenIterations) {
  TraceBuilder run;
  Hand hand(run.add_rank(0, 1).add_main_thread(), 0);
  hand.begin_iteration(0).range("forward", 10).end_iteration().range("evaluate", 70);
  hand.begin_iteration(1).range("forward", 20).end_iteration();
  const auto path = path_of(run.finish());
  ASSERT_TRUE(path);
  EXPECT_EQ(path->wall_ns, 30 * ms);
  EXPECT_EQ(path->phase_ns(Phase::forward), 30 * ms);
  EXPECT_EQ(path->phase_ns(Phase::evaluate), 0);
}

}  // namespace
}  // namespace critical_path_test
}  // namespace paceline::analysis
