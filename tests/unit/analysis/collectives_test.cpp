// Collectives are matched across ranks; waiting and transfer are told apart; who was waited for is known.
#include "analysis/metrics/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/metrics/stragglers.h"
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

TEST(Collectives, TellWaitingFromTransfer) {
  const Trace trace = trace_of({{{100, 210, "MPI_Allreduce", 4000, "MPI_COMM_WORLD", 0}},
                                {{150, 205, "MPI_Allreduce", 4000, "MPI_COMM_WORLD", 0}},
                                {{120, 200, "MPI_Allreduce", 4000, "MPI_COMM_WORLD", 0}}});
  const Collectives found = match_collectives(trace);
  ASSERT_EQ(found.matched.size(), 1U);
  const Collective& collective = found.matched[0];
  EXPECT_EQ(trace.names[collective.operation], "MPI_Allreduce");
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

TEST(Collectives, ThatReturnBeforeTheirWorkIsDoneAreLeftOut) {
  const Trace trace = trace_of({{{0, 10, "MPI_Iallreduce", 8, "w", 0}}, {{0, 10, "MPI_Iallreduce", 8, "w", 0}}});
  const Collectives found = match_collectives(trace);
  EXPECT_TRUE(found.matched.empty());
  EXPECT_EQ(found.unmatched_calls, 0U);
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
  EXPECT_EQ(trace.names[found.rows[0].operation], "MPI_Allreduce");
  EXPECT_EQ(found.rows[0].count, 2U);
  EXPECT_EQ(found.rows[0].wait_ns, 10);
  EXPECT_EQ(found.rows[0].transfer_ns, 190);
  EXPECT_DOUBLE_EQ(found.rows[0].busbw_bytes_per_s, 2 * 4096 / 190e-9);  // 2(n-1)/n is 1 for 2 members
  EXPECT_EQ(trace.names[found.rows[1].operation], "MPI_Bcast");
  EXPECT_EQ(trace.names[found.rows[2].operation], "MPI_Barrier");
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

TEST(Stragglers, AreThoseThatTheOthersWaitedFor) {
  const Trace trace = trace_of({{{0, 100, "MPI_Allreduce", 8, "w", 0}, {250, 300, "MPI_Allreduce", 8, "w", 1}},
                                {{80, 100, "MPI_Allreduce", 8, "w", 0}, {200, 300, "MPI_Allreduce", 8, "w", 1}},
                                {{30, 100, "MPI_Allreduce", 8, "w", 0}, {240, 300, "MPI_Allreduce", 8, "w", 1}}});
  const std::vector<Straggler> stragglers = stragglers_of(trace, match_collectives(trace));
  ASSERT_EQ(stragglers.size(), 3U);
  EXPECT_EQ(stragglers[0].last_count, 1U);
  EXPECT_EQ(stragglers[0].caused_ns, 60);
  EXPECT_EQ(stragglers[0].waited_ns, 80);
  EXPECT_EQ(stragglers[1].last_count, 1U);
  EXPECT_EQ(stragglers[1].caused_ns, 130);
  EXPECT_EQ(stragglers[1].waited_ns, 50);
  EXPECT_EQ(stragglers[2].last_count, 0U);
  EXPECT_EQ(stragglers[2].caused_ns, 0);
  EXPECT_EQ(stragglers[2].waited_ns, 60);
}

}  // namespace
}  // namespace paceline::analysis
