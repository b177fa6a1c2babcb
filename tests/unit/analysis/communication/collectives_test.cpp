// SPDX-License-Identifier: Apache-2.0
// Collectives are matched across ranks, and waiting is separated from transfer.
#include "analysis/communication/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

struct Call {
  std::int64_t start, end;
  const char* name = "MPI_Allreduce";
  int bytes = 1000;
  const char* communicator = "MPI_COMM_WORLD";
  int sequence = -1;
};

void add(TrackBuilder& track, const Call& call) {
  track.add_slice(call.start, call.end, call.name, "mpi", "collective");
  track.argument("bytes", call.bytes);
  if (call.communicator != nullptr) track.text_argument("communicator", call.communicator);
  if (call.sequence >= 0) track.argument("sequence", call.sequence);
}

Trace trace_of(std::initializer_list<std::initializer_list<Call>> ranks) {
  TraceBuilder run;
  int number = 0;
  for (const auto& calls : ranks) {
    TrackBuilder& main = run.add_rank(number++, static_cast<int>(ranks.size())).add_main_thread();
    for (const Call& call : calls) add(main, call);
  }
  return run.finish();
}

TEST(Collectives, SeparateWaitingFromTransfer) {
  const Trace trace = trace_of({{{100, 210, "MPI_Allreduce", 4000, "MPI_COMM_WORLD", 0}},
                                {{150, 205, "MPI_Allreduce", 4000, "MPI_COMM_WORLD", 0}},
                                {{120, 200, "MPI_Allreduce", 4000, "MPI_COMM_WORLD", 0}}});
  const Collectives found = match_collectives(trace);
  ASSERT_EQ(found.matched.size(), 1U);
  const Collective& collective = found.matched[0];
  EXPECT_EQ(found.operations[collective.operation], "MPI_Allreduce");
  EXPECT_EQ(collective.bytes, 4000U);
  EXPECT_EQ(collective.last_rank, 1U);
  EXPECT_EQ(collective.transfer_ns, 60);
  EXPECT_EQ(collective.wait_ns(collective.calls[0]), 50);
  EXPECT_EQ(collective.wait_ns(collective.calls[1]), 0);
  EXPECT_EQ(collective.wait_ns(collective.calls[2]), 30);
  EXPECT_EQ(found.unmatched_calls, 0U);

  ASSERT_EQ(found.rows.size(), 1U);
  EXPECT_EQ(found.rows[0].count, 1U);
  EXPECT_EQ(found.rows[0].members, 3U);
  EXPECT_EQ(found.rows[0].wait_ns, 80);
  EXPECT_EQ(found.rows[0].transfer_ns, 60);
  EXPECT_DOUBLE_EQ(found.rows[0].busbw_bytes_per_s, 4000 / 60e-9 * 4 / 3);
}

TEST(Collectives, AreMatchedBySequenceEvenWhereOneRankLostACall) {
  const Trace trace = trace_of({{{0, 10, "MPI_Allreduce", 8, "w", 0}, {20, 30, "MPI_Allreduce", 8, "w", 1}},
                                {{22, 30, "MPI_Allreduce", 8, "w", 1}}});
  const Collectives found = match_collectives(trace);
  ASSERT_EQ(found.matched.size(), 1U);
  EXPECT_EQ(found.matched[0].last_start_ns, 22);
  EXPECT_EQ(found.unmatched_calls, 1U);
}

TEST(Collectives, WithoutSequenceAreMatchedByOrderWithinCommunicatorAndOperation) {
  const Trace trace = trace_of(
      {{{0, 10, "MPI_Allreduce", 8, nullptr}, {20, 30, "MPI_Bcast", 8, nullptr}, {40, 50, "MPI_Allreduce", 8, nullptr}},
       {{1, 10, "MPI_Allreduce", 8, nullptr},
        {22, 30, "MPI_Bcast", 8, nullptr},
        {43, 50, "MPI_Allreduce", 8, nullptr}}});
  const Collectives found = match_collectives(trace);
  ASSERT_EQ(found.matched.size(), 3U);
  EXPECT_EQ(found.matched[0].last_start_ns, 1);
  EXPECT_EQ(found.matched[1].last_start_ns, 22);
  EXPECT_EQ(found.matched[2].last_start_ns, 43);
}

TEST(Collectives, OfDifferentCommunicatorsNeverMatch) {
  const Trace trace = trace_of({{{0, 10, "MPI_Allreduce", 8, "row 0", 0}}, {{0, 10, "MPI_Allreduce", 8, "row 1", 0}}});
  const Collectives found = match_collectives(trace);
  EXPECT_TRUE(found.matched.empty());
  EXPECT_EQ(found.unmatched_calls, 2U);
}

TEST(Collectives, InWhichAProcessWasKilledAreCountedAsUnmatched) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    rank.info().end_ns = 100;
    TrackBuilder& main = rank.add_main_thread();
    main.push(10 + r, "MPI_Allreduce", "mpi", "collective");
    if (r == 0) main.pop(50);
  }
  const Trace trace = run.finish();
  const Collectives found = match_collectives(trace);
  EXPECT_TRUE(found.matched.empty());
  EXPECT_EQ(found.unmatched_calls, 2U);
}

// Each rank starts one (0 to 10, or 100 to 110), computes, and waits for it from `waits` on.
Trace nonblocking(std::initializer_list<std::pair<std::int64_t, std::int64_t>> waits, const char* name,
                  bool completed = true) {
  TraceBuilder run;
  int rank = 0;
  for (const auto& [from, to] : waits) {
    TrackBuilder& main = run.add_rank(rank, static_cast<int>(waits.size())).add_main_thread();
    const std::int64_t start = 100 * rank++;
    add(main, {start, start + 10, name, 8000, "w", 7});
    main.argument("request", 5);
    main.add_slice(from, to, "MPI_Waitall", "mpi", "wait");
    main.argument("request", 4);
    if (completed) main.argument("request", 5);
  }
  return run.finish();
}

TEST(Collectives, ThatDoNotBlockEndWithTheirRequestAndAreWaitedForOnlyInItsWait) {
  // The second starts last, at 100. The first computes until 60 and waits 40 for it; the second never waits.
  const Collectives found = match_collectives(nonblocking({{60, 180}, {150, 200}}, "MPI_Iallreduce"));
  ASSERT_EQ(found.matched.size(), 1U);
  const Collective& collective = found.matched[0];
  EXPECT_EQ(collective.last_start_ns, 100);
  EXPECT_EQ(collective.last_rank, 1U);
  EXPECT_EQ(collective.wait_ns(collective.calls[0]), 40);
  EXPECT_EQ(collective.wait_ns(collective.calls[1]), 0);
  EXPECT_EQ(collective.calls[0].start_ns, 0);
  EXPECT_EQ(collective.calls[0].end_ns, 180);
  EXPECT_EQ(collective.transfer_ns, 100);
  EXPECT_EQ(found.rows[0].timed, 1U);
  EXPECT_DOUBLE_EQ(found.rows[0].busbw_bytes_per_s, 8000 / 100e-9);
  // Who comes to the wait after the last start has not waited.
  const Collectives late = match_collectives(nonblocking({{130, 180}, {150, 200}}, "MPI_Iallreduce"));
  EXPECT_EQ(late.rows[0].wait_ns, 0);
}

TEST(Collectives, WhoseCompletionWasNotSeenAreMatchedButNotTimed) {
  const Collectives found = match_collectives(nonblocking({{60, 180}, {150, 200}}, "MPI_Iallreduce", false));
  ASSERT_EQ(found.rows.size(), 1U);
  EXPECT_EQ(found.rows[0].count, 1U);
  EXPECT_EQ(found.rows[0].timed, 0U);
  EXPECT_EQ(found.rows[0].wait_ns + found.rows[0].transfer_ns, 0);
  EXPECT_EQ(found.rows[0].busbw_bytes_per_s, 0);
}

// Rank 0 issues its bucket at 20, and it is complete at 180; the thread waits from `wait` to 190. Rank 1 issues at 150.
Trace two_buckets(std::int64_t wait) {
  TraceBuilder run;
  for (const std::int64_t start : {20, 150}) {
    RankBuilder& rank = run.add_rank(start == 20 ? 0 : 1, 2);
    TrackBuilder& main = rank.add_main_thread();
    TrackBuilder& running = rank.add_track(TrackKind::thread, "ranges");
    for (const int request : {7, 8}) {
      running.add_slice(start + request, 180, "gloo:all_reduce", "torch", "collective");
      running.argument("bytes", 1000);
      running.text_argument("communicator", "default group");
      running.argument("sequence", request);
      running.argument("members", 2);
      running.argument("request", request);
    }
    main.add_slice(wait, 190, "wait", "torch", "wait");
    main.argument("request", 7);
    main.argument("last_request", 8);
  }
  return run.finish();
}

TEST(Collectives, OfPytorchEndByThemselvesAndBlockOnlyInTheWait) {
  const Collectives found = match_collectives(two_buckets(100));
  ASSERT_EQ(found.matched.size(), 2U);
  for (const Collective& collective : found.matched) {
    EXPECT_EQ(collective.calls[0].end_ns, 180);
    EXPECT_EQ(collective.calls[0].blocked_from_ns, 100);
    EXPECT_EQ(collective.wait_ns(collective.calls[0]), collective.last_start_ns - 100);
    EXPECT_EQ(collective.wait_ns(collective.calls[1]), 0);
    EXPECT_EQ(collective.transfer_ns, 180 - collective.last_start_ns);
  }
  EXPECT_GT(bus_factor("gloo:all_reduce", 2), 0.99);
  EXPECT_EQ(bus_factor("gloo:barrier", 2), 0);
}

TEST(Collectives, OfPytorchThatAreCompleteBeforeTheWaitBlockNobody) {
  const Collectives found = match_collectives(two_buckets(185));
  ASSERT_EQ(found.matched.size(), 2U);
  for (const Collective& collective : found.matched) EXPECT_EQ(collective.wait_ns(collective.calls[0]), 0);
}

TEST(Collectives, OfNeighbourhoodsAreMatchedButNotTimed) {
  const Trace blocking =
      trace_of({{{0, 50, "MPI_Neighbor_alltoall", 8, "ring", 0}}, {{20, 60, "MPI_Neighbor_alltoall", 8, "ring", 0}}});
  const Trace later = nonblocking({{60, 180}, {150, 200}}, "MPI_Ineighbor_alltoall");
  for (const Trace* trace : {&blocking, &later}) {
    const Collectives found = match_collectives(*trace);
    ASSERT_EQ(found.rows.size(), 1U);
    EXPECT_EQ(found.rows[0].count, 1U);
    EXPECT_EQ(found.rows[0].timed, 0U);
    EXPECT_EQ(waits_of(found, 2)[1].last_count, 0U);
  }
}

TEST(Collectives, ThatArePersistentAreMatchedByInitialisationAndStart) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    TrackBuilder& main = run.add_rank(r, 2).add_main_thread();
    add(main, {0, 5, "MPI_Allreduce_init", 8, "w", 3});
    add(main, {5, 9, "MPI_Bcast_init", 8, "w", 4});
    for (int round = 0; round < 2; ++round) {
      // The ranks start the two in different order.
      for (const int which : {r, 1 - r}) {
        const std::int64_t at = 100 + 100 * round + 20 * which + 5 * r;
        main.add_slice(at, at + 1, "MPI_Start", "mpi", "point-to-point");
        main.text_argument("communicator", "w");
        main.argument("sequence", 3 + which);
        main.argument("request", 10 * round + which + 1);
        main.argument("bytes", 8);
      }
      for (const int which : {0, 1}) {
        main.add_slice(150 + 100 * round + 10 * which, 155 + 100 * round + 10 * which, "MPI_Wait", "mpi", "wait");
        main.argument("request", 10 * round + which + 1);
      }
    }
    main.add_slice(400, 410, "MPI_Start", "mpi", "point-to-point");  // of a message
    main.argument("peer", 1);
  }
  const Trace trace = run.finish();
  const Collectives found = match_collectives(trace);
  EXPECT_EQ(found.unmatched_calls, 0U);
  ASSERT_EQ(found.matched.size(), 4U);
  for (const Collective& collective : found.matched) {
    EXPECT_EQ(collective.calls[1].start_ns - collective.calls[0].start_ns, 5);
    EXPECT_EQ(collective.calls[0].end_ns, collective.calls[1].end_ns);
  }
  ASSERT_EQ(found.rows.size(), 2U);
  for (const CollectiveRow& row : found.rows) {
    const bool bcast = row.operation == "MPI_Bcast_init";
    EXPECT_TRUE(bcast || row.operation == "MPI_Allreduce_init");
    EXPECT_EQ(row.timed, 2U);
    EXPECT_EQ(row.transfer_ns, bcast ? 2 * 40 : 2 * 50);
  }
}

TEST(Collectives, OfNcclThatWereOnlySeenBeingEnqueuedAreMatchedButNotTimed) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    TrackBuilder& track = run.add_rank(r, 2).add_track(TrackKind::nccl, "NCCL c");
    for (int i = 0; i < 3; ++i) {
      // The second one's time is known on one rank only; the third has no number.
      const bool ran = i == 0 || (i == 1 && r == 0);
      track.add_slice(100 * i + 10 * r, 100 * i + 50, "ncclAllReduce", "nccl", ran ? "collective" : "enqueue");
      track.text_argument("communicator", "c");
      if (i < 2) track.argument("sequence", i);
    }
    track.add_slice(400, 410, "ncclAllReduce", "nccl", "collective");
    track.text_argument("communicator", "c");
  }
  const Collectives found = match_collectives(run.finish());
  ASSERT_EQ(found.rows.size(), 1U);
  EXPECT_EQ(found.rows[0].count, 2U);
  EXPECT_EQ(found.rows[0].timed, 1U);
  EXPECT_EQ(found.rows[0].wait_ns, 10);
  EXPECT_EQ(found.rows[0].transfer_ns, 40);
  EXPECT_EQ(found.unmatched_calls, 2U);
}

TEST(Collectives, WhoLeavesBeforeTheLastComesWaitsUntilItLeaves) {
  const Trace trace = trace_of({{{0, 30, "MPI_Bcast", 8, "w", 0}}, {{100, 120, "MPI_Bcast", 8, "w", 0}}});
  const Collectives found = match_collectives(trace);
  EXPECT_EQ(found.rows[0].wait_ns, 30);
  EXPECT_EQ(found.rows[0].transfer_ns, 20);
}

TEST(Collectives, OfAJobOfOneRankAreNeitherMatchedNorMissed) {
  const Trace trace = trace_of({{{100, 210, "MPI_Allreduce", 4000, "MPI_COMM_WORLD", 0}}});
  const Collectives found = match_collectives(trace);
  EXPECT_TRUE(found.matched.empty());
  EXPECT_EQ(found.unmatched_calls, 0U);
}

TEST(Collectives, OfACommunicatorOfOneMissNobody) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    TrackBuilder& main = run.add_rank(r, 2).add_main_thread();
    add(main, {0, 10, "MPI_Allreduce", 8, r == 0 ? "self 0" : "self 1", 0});
    main.argument("members", 1);
  }
  const Trace trace = run.finish();
  EXPECT_EQ(match_collectives(trace).unmatched_calls, 0U);
}

TEST(Collectives, CountMembersThatWereNotRecorded) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    TrackBuilder& main = run.add_rank(r, 4).add_main_thread();
    add(main, {r, 1000, "MPI_Allreduce", 4000, "w", 0});
    main.argument("members", 4);
  }
  const Trace trace = run.finish();
  const Collectives found = match_collectives(trace);
  ASSERT_EQ(found.rows.size(), 1U);
  EXPECT_EQ(found.rows[0].members, 4U);
  EXPECT_DOUBLE_EQ(found.rows[0].busbw_bytes_per_s, 4000 / 999e-9 * 1.5);
}

TEST(Collectives, AreListedByOperationAndSizeTheCostliestFirst) {
  const Trace trace = trace_of({{{0, 10, "MPI_Bcast", 64, "w", 0},
                                 {20, 120, "MPI_Allreduce", 4096, "w", 1},
                                 {200, 300, "MPI_Allreduce", 4096, "w", 2},
                                 {400, 405, "MPI_Barrier", 0, "w", 3}},
                                {{0, 10, "MPI_Bcast", 64, "w", 0},
                                 {30, 120, "MPI_Allreduce", 4096, "w", 1},
                                 {200, 300, "MPI_Allreduce", 4096, "w", 2},
                                 {400, 405, "MPI_Barrier", 0, "w", 3}}});
  const Collectives found = match_collectives(trace);
  ASSERT_EQ(found.rows.size(), 3U);
  EXPECT_EQ(found.rows[0].operation, "MPI_Allreduce");
  EXPECT_EQ(found.rows[0].count, 2U);
  EXPECT_EQ(found.rows[0].wait_ns, 10);
  EXPECT_EQ(found.rows[0].transfer_ns, 190);
  EXPECT_DOUBLE_EQ(found.rows[0].busbw_bytes_per_s, 2 * 4096 / 190e-9);  // 2(n-1)/n is 1 for 2 members
  EXPECT_EQ(found.rows[1].operation, "MPI_Bcast");
  EXPECT_EQ(found.rows[2].operation, "MPI_Barrier");
  EXPECT_EQ(found.rows[2].busbw_bytes_per_s, 0);
}

TEST(BusFactor, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor("MPI_Allreduce", 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor("ncclDevKernel_AllReduce_Sum_f32", 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor("MPI_Reduce_scatter_block", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("MPI_Allgather", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("MPI_Alltoallv", 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor("MPI_Bcast", 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor("MPI_Reduce", 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor("MPI_Barrier", 4), 0);
}

TEST(Waits, AreCausedByTheRankThatStartedLast) {
  const Trace trace = trace_of({{{0, 100, "MPI_Allreduce", 8, "w", 0}, {250, 300, "MPI_Allreduce", 8, "w", 1}},
                                {{80, 100, "MPI_Allreduce", 8, "w", 0}, {200, 300, "MPI_Allreduce", 8, "w", 1}},
                                {{30, 100, "MPI_Allreduce", 8, "w", 0}, {240, 300, "MPI_Allreduce", 8, "w", 1}}});
  const std::vector<RankWaits> waits = waits_of(match_collectives(trace), 3);
  ASSERT_EQ(waits.size(), 3U);
  EXPECT_EQ(waits[0].last_count, 1U);
  EXPECT_EQ(waits[0].caused_ns, 60);
  EXPECT_EQ(waits[0].waited_ns, 80);
  EXPECT_EQ(waits[1].last_count, 1U);
  EXPECT_EQ(waits[1].caused_ns, 130);
  EXPECT_EQ(waits[1].waited_ns, 50);
  EXPECT_EQ(waits[2].last_count, 0U);
  EXPECT_EQ(waits[2].caused_ns, 0);
  EXPECT_EQ(waits[2].waited_ns, 60);
}

}  // namespace
}  // namespace paceline::analysis
