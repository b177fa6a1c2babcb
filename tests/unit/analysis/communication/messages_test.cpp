// SPDX-License-Identifier: Apache-2.0
// Sends and receives are matched across ranks where the trace decides it, and left alone where it does not.
#include "analysis/communication/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A call of one rank. Peers and tags of -1 are any.
struct Call {
  std::int64_t start, end;
  const char* name;
  int peer = -1, tag = 0, bytes = 8;
  int request = 0;
  const char* communicator = "MPI_COMM_WORLD";
};

void add(TrackBuilder& track, const Call& call) {
  const bool wait = std::string_view(call.name).starts_with("MPI_Wait");
  track.add_slice(call.start, call.end, call.name, "mpi", wait ? "wait" : "point-to-point");
  if (!wait) {
    track.argument("bytes", call.bytes);
    track.text_argument("communicator", call.communicator);
    track.argument("peer", call.peer);
    track.argument("tag", call.tag);
  }
  if (call.request > 0) track.argument("request", call.request);
}

using Job = std::vector<std::vector<Call>>;

void build(TraceBuilder& run, const Job& job) {
  for (std::size_t r = 0; r < job.size(); ++r) {
    RankBuilder& rank = run.add_rank(static_cast<int>(r), static_cast<int>(job.size()));
    const NameId world = rank.names().intern("MPI_COMM_WORLD");
    rank.add_communicator({world, 1, static_cast<std::uint32_t>(job.size())}, static_cast<int>(r));
    TrackBuilder& main = rank.add_main_thread();
    for (const Call& call : job[r]) add(main, call);
  }
}

Trace trace_of(const Job& job) {
  TraceBuilder run;
  build(run, job);
  return run.finish();
}

// Each matched message as {sender, receiver, start of the send, end of the receive}.
using Pair = std::vector<std::int64_t>;
std::vector<Pair> matched(const Messages& messages) {
  std::vector<Pair> pairs;
  for (const Message& message : messages.all) {
    if (!message.matched()) continue;
    pairs.push_back({message.sender, message.receiver, message.send->start_ns, message.receive->end_ns});
  }
  return pairs;
}

TEST(Messages, AreMatchedInTheirOrder) {
  const Messages found = match_messages(trace_of({{{0, 10, "MPI_Send", 1, 7, 100}, {20, 30, "MPI_Send", 1, 7, 200}},
                                                  {{5, 12, "MPI_Recv", 0, 7}, {15, 33, "MPI_Recv", 0, 7}}}));
  EXPECT_THAT(matched(found), ElementsAre(Pair{0, 1, 0, 12}, Pair{0, 1, 20, 33}));
  EXPECT_EQ(found.matched, 2U);
  EXPECT_EQ(found.unmatched_sends, 0U);
  EXPECT_EQ(found.unmatched_receives, 0U);
  EXPECT_EQ(found.all[0].send->bytes, 100U);
  EXPECT_EQ(found.all[1].send->bytes, 200U);
}

TEST(Messages, OfOtherTagsMayOvertake) {
  const Messages found = match_messages(trace_of({{{0, 10, "MPI_Send", 1, 1}, {20, 30, "MPI_Send", 1, 2}},
                                                  {{21, 31, "MPI_Recv", 0, 2}, {32, 40, "MPI_Recv", 0, 1}}}));
  EXPECT_THAT(matched(found), ElementsAre(Pair{0, 1, 0, 40}, Pair{0, 1, 20, 31}));
}

TEST(Messages, OfAnyTagAreTakenInTheirOrder) {
  const Messages found = match_messages(trace_of({{{0, 10, "MPI_Send", 1, 5}, {20, 30, "MPI_Send", 1, 3}},
                                                  {{21, 31, "MPI_Recv", 0, -1}, {32, 40, "MPI_Recv", 0, -1}}}));
  EXPECT_THAT(matched(found), ElementsAre(Pair{0, 1, 0, 31}, Pair{0, 1, 20, 40}));
}

TEST(Messages, WithoutBlockingEndInTheWait) {
  const Messages found =
      match_messages(trace_of({{{0, 2, "MPI_Isend", 1, 0, 8, 41}, {90, 95, "MPI_Wait", -1, 0, 0, 41}},
                               {{1, 3, "MPI_Irecv", 0, 0, 8, 51}, {60, 80, "MPI_Waitall", -1, 0, 0, 51}}}));
  ASSERT_EQ(found.matched, 1U);
  const Message& message = found.all[0];
  EXPECT_EQ(message.send->end_ns, 95);
  EXPECT_EQ(message.receive->start_ns, 1);
  EXPECT_EQ(message.receive->end_ns, 80);
  EXPECT_EQ(message.receive->blocked_from_ns, 60);
  EXPECT_EQ(message.late_sender_ns(), 0);
}

TEST(Messages, KnowHowLongTheReceiverWaitedForTheSender) {
  const Messages found = match_messages(trace_of({{{50, 60, "MPI_Send", 1}}, {{10, 61, "MPI_Recv", 0}}}));
  ASSERT_EQ(found.matched, 1U);
  EXPECT_EQ(found.all[0].late_sender_ns(), 40);
}

// The time that a sender waited for the receiver to begin, for a blocking send from 10 to `end`.
std::int64_t late_receiver(std::int64_t end, const Call& receive) {
  const Messages found = match_messages(trace_of({{{10, end, "MPI_Ssend", 1}}, {receive}}));
  EXPECT_EQ(found.matched, 1U);
  return found.all[0].late_receiver_ns();
}

TEST(Messages, KnowHowLongTheSenderWaitedForTheReceiver) {
  EXPECT_EQ(late_receiver(60, {50, 61, "MPI_Recv", 0}), 40);
  EXPECT_EQ(late_receiver(50, {50, 61, "MPI_Recv", 0}), 40);
  EXPECT_EQ(late_receiver(49, {50, 61, "MPI_Recv", 0}), 0) << "the send was buffered";
  EXPECT_EQ(late_receiver(60, {5, 61, "MPI_Recv", 0}), 0) << "the receiver was there first";
}

TEST(Messages, ASenderThatDoesNotBlockWaitsInItsWait) {
  const auto waited = [](std::int64_t receive) {
    const Messages found = match_messages(trace_of(
        {{{0, 2, "MPI_Isend", 1, 0, 8, 41}, {70, 95, "MPI_Wait", -1, 0, 0, 41}}, {{receive, 96, "MPI_Recv", 0}}}));
    return found.all[0].late_receiver_ns();
  };
  EXPECT_EQ(waited(80), 10);
  EXPECT_EQ(waited(60), 0);
}

TEST(Messages, ACallThatSendsAndReceivesIsNoLateReceiversVictim) {
  const Messages found = match_messages(trace_of({{{0, 60, "MPI_Sendrecv", 1}}, {{50, 61, "MPI_Sendrecv", 0}}}));
  ASSERT_EQ(found.matched, 2U);
  for (const Message& message : found.all) EXPECT_EQ(message.late_receiver_ns(), 0);
  EXPECT_EQ(found.all[1].late_sender_ns(), 50) << "its own receive waited for rank 1";
}

TEST(MessageMatrix, AddsUpWhatEachRankSendsToEachOther) {
  // Rank 0 sends to 1 twice: the first receive is 30 late, the second send 25. Rank 2 sends what nobody receives.
  const Trace trace = trace_of({{{10, 45, "MPI_Send", 1, 7, 100}, {80, 90, "MPI_Send", 1, 7, 200}},
                                {{40, 46, "MPI_Recv", 0, 7}, {55, 91, "MPI_Recv", 0, 7}, {95, 96, "MPI_Send", 0, 1, 5}},
                                {{20, 25, "MPI_Send", 0, 9, 1000}}});
  const MessageMatrix matrix = message_matrix(trace, match_messages(trace));
  ASSERT_EQ(matrix.pairs.size(), 3U);
  const auto figures = [&](std::size_t pair) {
    const MessagePair& of = matrix.pairs[pair];
    return std::vector<std::int64_t>{of.sender,
                                     of.receiver,
                                     static_cast<std::int64_t>(of.messages),
                                     static_cast<std::int64_t>(of.matched),
                                     static_cast<std::int64_t>(of.bytes),
                                     of.late_sender_ns,
                                     of.late_receiver_ns};
  };
  EXPECT_THAT(figures(0), ElementsAre(0, 1, 2, 2, 300, 25, 30));
  EXPECT_THAT(figures(1), ElementsAre(1, 0, 1, 0, 5, 0, 0));
  EXPECT_THAT(figures(2), ElementsAre(2, 0, 1, 0, 1000, 0, 0));
  EXPECT_EQ(matrix.unmatched_sends, 2U);
  EXPECT_EQ(matrix.unmatched_receives, 0U);
}

TEST(Messages, ARequestThatNobodyCompletedHasNoEnd) {
  const Messages found = match_messages(trace_of({{{0, 2, "MPI_Isend", 1, 0, 8, 41}}, {{1, 30, "MPI_Recv", 0}}}));
  ASSERT_EQ(found.matched, 1U);
  EXPECT_FALSE(found.all[0].send->completed);
  EXPECT_TRUE(found.all[0].receive->completed);
}

TEST(Messages, FromAnySourceAreMatchedWhereOnlyOneRankSentByThen) {
  const Messages found = match_messages(trace_of(
      {{{10, 30, "MPI_Recv", -1}, {40, 90, "MPI_Recv", -1}}, {{20, 25, "MPI_Send", 0}}, {{70, 80, "MPI_Send", 0}}}));
  EXPECT_THAT(matched(found), ElementsAre(Pair{1, 0, 20, 30}, Pair{2, 0, 70, 90}));
}

TEST(Messages, FromAnySourceStayUnmatchedWhereSeveralRanksSentByThen) {
  const Messages found =
      match_messages(trace_of({{{10, 30, "MPI_Recv", -1}, {40, 90, "MPI_Recv", 1}, {91, 95, "MPI_Recv", 1, 4}},
                               {{5, 6, "MPI_Send", 0}, {7, 8, "MPI_Send", 0, 4}},
                               {{5, 6, "MPI_Send", 0}}}));
  // The message of rank 1 with tag 0 may have gone to either receive; the one with tag 4 only to the last.
  EXPECT_THAT(matched(found), ElementsAre(Pair{1, 0, 7, 95}));
  EXPECT_EQ(found.unmatched_sends, 2U);
  EXPECT_EQ(found.unmatched_receives, 2U);
}

TEST(Messages, FromAnySourceStayUnmatchedWhereRanksAreMissing) {
  TraceBuilder run;
  build(run, {{{10, 30, "MPI_Recv", -1}}, {{5, 6, "MPI_Send", 0}}});
  Trace trace = run.finish();
  for (Rank& rank : trace.ranks) rank.world_size = 3;
  EXPECT_THAT(matched(match_messages(trace)), IsEmpty());
}

TEST(Messages, OfSendrecvGoBothWays) {
  const Messages found = match_messages(trace_of({{{0, 20, "MPI_Sendrecv", 1, 3, 100}},
                                                  {{5, 21, "MPI_Sendrecv", 2, 3, 200}},
                                                  {{6, 22, "MPI_Sendrecv", 0, 3, 300}}}));
  EXPECT_THAT(matched(found), ElementsAre(Pair{0, 1, 0, 21}, Pair{1, 2, 5, 22}, Pair{2, 0, 6, 20}));
  EXPECT_EQ(found.all[2].send->bytes, 300U);
}

TEST(Messages, ToNobodyAreNone) {
  EXPECT_THAT(match_messages(trace_of({{{0, 2, "MPI_Send", -2}, {3, 4, "MPI_Recv", -2}}})).all, IsEmpty());
}

TEST(Messages, ProbesAndInitialisationsAreNone) {
  EXPECT_THAT(match_messages(trace_of({{{0, 2, "MPI_Probe", 1}, {3, 4, "MPI_Send_init", 1}, {5, 6, "MPI_Cancel", 1}},
                                       {{0, 2, "MPI_Iprobe", 0}, {3, 4, "MPI_Recv_init", 0}}}))
                  .all,
              IsEmpty());
}

TEST(Messages, StartsOfPersistentOperationsAreWhatTheInitialisationSays) {
  const Messages found = match_messages(trace_of(
      {{{0, 1, "MPI_Send_init", 1, 9, 64}, {10, 11, "MPI_Start", 1, 9, 64, 5}, {20, 25, "MPI_Wait", -1, 0, 0, 5}},
       {{0, 1, "MPI_Recv_init", 0, 9, 64}, {12, 13, "MPI_Start", 0, 9, 64, 6}, {22, 27, "MPI_Wait", -1, 0, 0, 6}}}));
  EXPECT_THAT(matched(found), ElementsAre(Pair{0, 1, 10, 27}));
}

TEST(Messages, OfOneCommunicatorUseItsRanks) {
  TraceBuilder run;
  // In "columns" rank 0 has rank 1, and rank 1 has rank 0.
  const Job job = {{{0, 2, "MPI_Send", 0, 0, 8, 0, "columns"}}, {{1, 3, "MPI_Recv", 1, 0, 8, 0, "columns"}}};
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    rank.add_communicator({rank.names().intern("columns"), 2, 2}, 1 - r);
    TrackBuilder& main = rank.add_main_thread();
    for (const Call& call : job[static_cast<std::size_t>(r)]) add(main, call);
  }
  EXPECT_THAT(matched(match_messages(run.finish())), ElementsAre(Pair{0, 1, 0, 3}));
}

TEST(Messages, OfAnInterCommunicatorGoToTheOtherGroup) {
  TraceBuilder run;
  const Job job = {{{0, 2, "MPI_Send", 0, 0, 8, 0, "inter"}}, {{1, 3, "MPI_Recv", 0, 0, 8, 0, "inter"}}};
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    rank.add_communicator({rank.names().intern("inter"), 2, 1}, 0);  // each is rank 0 of its own group
    TrackBuilder& main = rank.add_main_thread();
    for (const Call& call : job[static_cast<std::size_t>(r)]) add(main, call);
  }
  EXPECT_THAT(matched(match_messages(run.finish())), ElementsAre(Pair{0, 1, 0, 3}));
}

TEST(Messages, StayUnmatchedAfterALoss) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    TrackBuilder& main = run.add_rank(r, 2).add_main_thread();
    for (std::int64_t at = 0; at < 300; at += 100) {
      add(main, {at, at + 10, r == 0 ? "MPI_Send" : "MPI_Recv", 1 - r});
    }
    if (r == 1) main.add_lost(120, 150, 3);
  }
  const Messages found = match_messages(run.finish());
  EXPECT_THAT(matched(found), ElementsAre(Pair{0, 1, 0, 10}, Pair{0, 1, 100, 110}));
  EXPECT_EQ(found.unmatched_sends, 1U);
  EXPECT_EQ(found.unmatched_receives, 1U);
}

TEST(Messages, OfNcclHaveNoTag) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    TrackBuilder& track = run.add_rank(r, 2).add_track(TrackKind::nccl, "NCCL");
    track.add_slice(10 + r, 20 + r, r == 0 ? "ncclSend" : "ncclRecv", "nccl", "point-to-point");
    track.argument("bytes", 4096);
    track.text_argument("communicator", "comm");
    track.argument("peer", 1 - r);
  }
  const Messages found = match_messages(run.finish());
  EXPECT_THAT(matched(found), ElementsAre(Pair{0, 1, 10, 21}));
  EXPECT_EQ(found.all[0].send->tag, -1);
}

}  // namespace
}  // namespace paceline::analysis
