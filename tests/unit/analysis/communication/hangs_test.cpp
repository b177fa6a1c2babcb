// SPDX-License-Identifier: Apache-2.0
// The ranks that never entered a collective in which others wait.
#include "analysis/communication/hangs.h"

#include <gtest/gtest.h>

#include "analysis/importers/pace/import.h"
#include "analysis/report/build.h"
#include "analysis/run/rank_summary.h"
#include "analysis/trace/builder.h"
#include "tests/unit/analysis/checked_report.h"
#include "tests/unit/analysis/imported.h"

namespace paceline::analysis {
namespace {

using format::MpiId;
using testing::import;
using testing::PaceFile;

// `whole` collectives that every rank left, 1 ms each; ends at 60 s.
PaceFile member(int rank, int ranks, std::uint32_t whole) {
  PaceFile file(rank, ranks);
  file.communicator(1, static_cast<std::uint32_t>(ranks), 42, static_cast<std::uint32_t>(rank), "MPI_COMM_WORLD");
  for (std::uint32_t i = 0; i < whole; ++i) {
    file.mpi_collective(1'000'000 * (i + 1), MpiId::Allreduce, -1, 8, 1, i);
    file.mpi_end(1'000'000 * (i + 1) + 500'000, MpiId::Allreduce);
  }
  file.clock_pair(60'000'000'000, 0, 60'000'000'000, 1);
  return file;
}

void enter(PaceFile& file, MpiId function, std::uint32_t sequence, std::uint64_t at) {
  file.mpi_collective(at, function, -1, 8, 1, sequence);
}

TEST(Hangs, NamesTheRankThatNeverCame) {
  std::vector<PaceFile> files;
  for (int rank = 0; rank < 4; ++rank) files.push_back(member(rank, 4, 16));
  for (const int rank : {0, 1, 3}) enter(files[rank], MpiId::Allreduce, 16, 30'000'000'000 + rank * 1'000'000);
  files[2].push(29'000'000'000, format::pack_scope(files[2].name("evaluate"), 0, 0));
  const Trace trace = import(files);
  const auto hangs = find_hangs(trace);
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hangs[0].number, 17u);
  EXPECT_EQ(hangs[0].waiting.size(), 3u);
  EXPECT_EQ(hang_text(hangs[0]),
            "Rank 2 never entered MPI_Allreduce #17 on MPI_COMM_WORLD; ranks 0, 1 and 3 have waited in it since 30.000 "
            "s, for "
            "30.000 s; rank 2 was in evaluate.");
}

TEST(Hangs, OfManyRanksHaveAShortVerdictThatNamesTheFirst) {
  for (const bool third : {true, false}) {  // every third rank is missing, or the upper half
    std::vector<PaceFile> files;
    for (int rank = 0; rank < 64; ++rank) {
      files.push_back(member(rank, 64, 16));
      const bool missing = third ? rank % 3 == 0 : rank >= 32;
      if (!missing) enter(files.back(), MpiId::Allreduce, 16, 30'000'000'000);
      if (missing) files.back().push(29'000'000'000, format::pack_scope(files.back().name("evaluate"), 0, 0));
    }
    const Report report = build_report({analyse_run(import(files), "job")});
    expect_short_verdict(report);
    const char* named = third ? "Ranks 0, 3, 6, 9, 12, 15, 18, 21 and 14 more never entered MPI_Allreduce #17 on"
                              : "Ranks 32 to 63 never entered MPI_Allreduce #17 on";
    EXPECT_TRUE(report.verdict.state.starts_with(named)) << report.verdict.state;
    EXPECT_TRUE(report.verdict.change.starts_with("First find out why they did not come")) << report.verdict.change;
  }
}

TEST(Hangs, NamesARankThatCalledSomethingElse) {
  std::vector<PaceFile> files = {member(0, 2, 3), member(1, 2, 3)};
  enter(files[0], MpiId::Allreduce, 3, 30'000'000'000);
  enter(files[1], MpiId::Bcast, 3, 31'000'000'000);
  const Trace trace = import(files);
  const auto hangs = find_hangs(trace);
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_NE(hang_text(hangs[0]).find("rank 1 called MPI_Bcast instead"), std::string::npos);
}

TEST(Hangs, AFirstCollectiveHangsToo) {
  std::vector<PaceFile> files = {member(0, 2, 0), member(1, 2, 0)};
  enter(files[0], MpiId::Barrier, 0, 5'000'000);
  const Trace trace = import(files);
  ASSERT_EQ(find_hangs(trace).size(), 1u);
  EXPECT_EQ(find_hangs(trace)[0].missing[0].rank, 1);
}

// As a training loop does that sends its layers' gradients while it computes: what is waited for is the first
// collective that somebody has not begun.
TEST(Hangs, OneThatDoesNotBlockIsHeldUpInItsWait) {
  std::vector<PaceFile> files = {member(0, 2, 3), member(1, 2, 3)};
  const auto begin = [](PaceFile& file, std::uint32_t sequence, std::uint64_t at) {
    enter(file, MpiId::Iallreduce, sequence, at);
    file.add(at + 100, format::EventType::mpi_posted, sequence);
    file.mpi_end(at + 200, MpiId::Iallreduce);
  };
  const auto wait = [](PaceFile& file, std::uint32_t first, std::uint32_t last, std::uint64_t at) {
    file.mpi_begin(at, MpiId::Waitall);
    for (std::uint32_t request = first; request <= last; ++request) {
      file.add(at + 10, format::EventType::mpi_completed, request);
    }
  };
  for (PaceFile& file : files) {
    for (std::uint32_t sequence = 3; sequence < 6; ++sequence) begin(file, sequence, 1'000'000'000 + sequence * 1000);
    wait(file, 3, 5, 1'500'000'000);
    file.mpi_end(1'600'000'000, MpiId::Waitall);
  }
  begin(files[1], 6, 29'000'000'000);
  files[1].push(29'500'000'000, format::pack_scope(files[1].name("backward"), 0, 0));
  for (std::uint32_t sequence = 6; sequence < 9; ++sequence)
    begin(files[0], sequence, 29'000'000'000 + sequence * 1000);
  wait(files[0], 6, 8, 30'000'000'000);
  const Trace trace = import(files);
  const auto hangs = find_hangs(trace);
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(
      hang_text(hangs[0]),
      "Rank 1 never entered MPI_Iallreduce #8 on MPI_COMM_WORLD; rank 0 has waited in it since 30.000 s, for 30.000 s; "
      "rank 1 was in backward.");
}

TEST(Hangs, AJobThatWasKilledWithinACollectiveOfAllDoesNotHang) {
  std::vector<PaceFile> files = {member(0, 2, 3), member(1, 2, 3)};
  for (PaceFile& file : files) enter(file, MpiId::Allreduce, 3, 30'000'000'000);
  EXPECT_TRUE(find_hangs(import(files)).empty());
  EXPECT_TRUE(find_hangs(import({member(0, 2, 3), member(1, 2, 3)})).empty());
}

// A job that is ended at any moment: some rank always waits for one that still computes.
TEST(Hangs, AShortWaitOrOneLikeOthersBeforeIsNone) {
  const auto waits_from = [](std::uint64_t longest_before, std::uint64_t since) {
    std::vector<PaceFile> files = {member(0, 2, 3), member(1, 2, 3)};
    for (PaceFile& file : files) {
      enter(file, MpiId::Barrier, 3, 1'000'000'000);
      file.mpi_end(1'000'000'000 + longest_before, MpiId::Barrier);
    }
    enter(files[0], MpiId::Allreduce, 4, since);
    return find_hangs(import(files)).size();
  };
  EXPECT_EQ(waits_from(1'000'000, 59'500'000'000), 0u);
  EXPECT_EQ(waits_from(1'000'000, 58'500'000'000), 1u);
  EXPECT_EQ(waits_from(20'000'000'000, 41'000'000'000), 0u);
  EXPECT_EQ(waits_from(20'000'000'000, 39'000'000'000), 1u);
}

TEST(Hangs, ARankOfWhichTheEndIsNotKnownIsNotAccused) {
  std::vector<PaceFile> files = {member(0, 2, 3), member(1, 2, 3)};
  enter(files[0], MpiId::Allreduce, 3, 30'000'000'000);
  ASSERT_EQ(find_hangs(import(files)).size(), 1u);
  files[1].file.header.dropped[0] = 1;
  EXPECT_TRUE(find_hangs(import(files)).empty());
  files[1].file.header.dropped[0] = 0;
  files[1].add(20'000'000'000, format::EventType::recording, format::by_program);
  EXPECT_TRUE(find_hangs(import(files)).empty());
}

// Three ranks poll a barrier, and the fourth never comes. Tests between two collectives are none.
TEST(Hangs, ARankThatPollsACollectiveWithTestsWaitsInIt) {
  std::vector<PaceFile> files;
  for (int rank = 0; rank < 4; ++rank) files.push_back(member(rank, 4, 3));
  for (const int rank : {0, 1, 2}) {
    PaceFile& file = files[rank];
    enter(file, MpiId::Ibarrier, 3, 10'000'000'000);
    file.add(10'000'000'100, format::EventType::mpi_posted, 9);
    file.mpi_end(10'000'000'200, MpiId::Ibarrier);
    for (std::uint64_t at = 20'000'000'000; at < 60'000'000'000; at += 1'000'000'000) {
      file.mpi_begin(at, MpiId::Test);
      file.mpi_end(at + 1000, MpiId::Test);
    }
  }
  files[3].push(9'000'000'000, format::pack_scope(files[3].name("elsewhere"), 0, 0));
  const auto hangs = find_hangs(import(files));
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(
      hang_text(hangs[0]),
      "Rank 3 never entered MPI_Ibarrier #4 on MPI_COMM_WORLD; ranks 0, 1 and 2 have waited in it since 20.000 s, "
      "for 39.000 s; rank 3 was in elsewhere.");
  // A rank that called something else after its last test does not poll.
  for (const int rank : {0, 1, 2}) files[rank].mpi_begin(59'500'000'000, MpiId::Probe);
  EXPECT_TRUE(find_hangs(import(files)).empty());
}

// Each rank is in a call with a peer and a tag since 30 s.
Trace in_messages(const std::vector<std::tuple<MpiId, int, int>>& calls) {
  const int ranks = static_cast<int>(calls.size());
  std::vector<PaceFile> files;
  for (int rank = 0; rank < ranks; ++rank) {
    files.push_back(member(rank, ranks, 3));
    const auto [function, peer, tag] = calls[rank];
    files[rank].mpi_peer(30'000'000'000, function, tag, 8, 1, peer);
  }
  return import(files);
}

std::vector<std::string> texts_of(const Trace& trace) {
  std::vector<std::string> texts;
  for (const Hang& hang : find_hangs(trace)) texts.push_back(hang_text(hang));
  return texts;
}

TEST(Hangs, RanksThatWaitForEachOthersMessagesAreNamedWithPeersAndTags) {
  EXPECT_EQ(
      texts_of(in_messages({{MpiId::Recv, 1, 7}, {MpiId::Recv, 0, 9}})),
      std::vector<std::string>{"Messages hang: rank 0 waits in MPI_Recv for rank 1, tag 7; rank 1 waits in MPI_Recv "
                               "for rank 0, tag 9; since 30.000 s, for 30.000 s."});
  EXPECT_EQ(texts_of(in_messages({{MpiId::Ssend, 1, 1}, {MpiId::Ssend, 0, 1}})).size(), 1u);
  const auto ring = texts_of(in_messages({{MpiId::Recv, 2, 0}, {MpiId::Recv, 0, 0}, {MpiId::Recv, 1, -1}}));
  ASSERT_EQ(ring.size(), 1u);
  EXPECT_NE(ring[0].find("rank 2 waits in MPI_Recv for rank 1, any tag"), std::string::npos) << ring[0];
  EXPECT_EQ(texts_of(in_messages({{MpiId::Ssend, 1, 7}, {MpiId::Recv, 0, 9}})).size(), 1u) << "the wrong tag";
}

TEST(Hangs, AMessageThatIsUnderWayIsNone) {
  EXPECT_TRUE(texts_of(in_messages({{MpiId::Ssend, 1, 7}, {MpiId::Recv, 0, 7}})).empty());
  EXPECT_TRUE(texts_of(in_messages({{MpiId::Ssend, 1, 7}, {MpiId::Recv, 0, -1}})).empty());
  EXPECT_TRUE(texts_of(in_messages({{MpiId::Sendrecv, 1, 1}, {MpiId::Sendrecv, 0, 2}})).empty());
  EXPECT_TRUE(texts_of(in_messages({{MpiId::Recv, -1, 1}, {MpiId::Recv, -1, 2}})).empty()) << "from any rank";
}

// The wrong tag, where the sender went on to a barrier.
TEST(Hangs, ARankThatWaitsInAMessageInsteadIsNamedWithIt) {
  std::vector<PaceFile> files = {member(0, 2, 3), member(1, 2, 3)};
  enter(files[0], MpiId::Barrier, 3, 30'000'000'000);
  files[1].mpi_peer(29'000'000'000, MpiId::Recv, 7, 8, 1, 0);
  EXPECT_EQ(
      texts_of(import(files)),
      std::vector<std::string>{"Rank 1 never entered MPI_Barrier #4 on MPI_COMM_WORLD; rank 0 has waited in it since "
                               "30.000 s, for 30.000 s; rank 1 waits in MPI_Recv for rank 0, tag 7."});
}

// Two ranks whose calls are given as (name, category, sequence, end); an end of 0 is "never".
struct HangCall {
  const char* name;
  const char* category;
  int sequence;
  std::int64_t start_s, end_s;
};

Trace nccl_run(std::initializer_list<std::vector<HangCall>> ranks) {
  constexpr std::int64_t second = 1'000'000'000;
  TraceBuilder run;
  int number = 0;
  for (const auto& calls : ranks) {
    RankBuilder& rank = run.add_rank(number++, static_cast<int>(ranks.size()));
    rank.info().end_ns = 60 * second;
    rank.add_main_thread();
    TrackBuilder& track = rank.add_track(TrackKind::nccl, "NCCL c");
    for (const HangCall& call : calls) {
      track.add_slice(call.start_s * second, (call.end_s == 0 ? 60 : call.end_s) * second, call.name, "nccl",
                      call.category);
      track.text_argument("communicator", "c");
      track.argument("sequence", call.sequence);
      if (call.end_s == 0) track.argument("unfinished", 1);
    }
  }
  return run.finish();
}

TEST(Hangs, NcclNumbersTheCallsOfEachFunctionAlone) {
  // Rank 1 never came to the second all-reduce. That both have a broadcast with that number is no sign of it.
  const auto hangs = find_hangs(nccl_run({{{"ncclAllReduce", "collective", 0, 1, 2},
                                           {"ncclBroadcast", "collective", 0, 2, 3},
                                           {"ncclBroadcast", "collective", 1, 3, 4},
                                           {"ncclAllReduce", "collective", 1, 10, 0}},
                                          {{"ncclAllReduce", "collective", 0, 1, 2},
                                           {"ncclBroadcast", "collective", 0, 2, 3},
                                           {"ncclBroadcast", "collective", 1, 3, 4}}}));
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hang_text(hangs[0]),
            "Rank 1 never entered ncclAllReduce #2 on c; rank 0 has waited in it since 10.000 s, for 50.000 s.");
}

TEST(Hangs, ARankThatEnqueuedACollectiveOfNcclHasEnteredIt) {
  EXPECT_TRUE(
      find_hangs(nccl_run({{{"ncclAllReduce", "collective", 0, 10, 0}}, {{"ncclAllReduce", "enqueue", 0, 10, 11}}}))
          .empty());
}

// Two ranks initialise a persistent collective and start it; only rank 0 starts it a third time.
Trace persistent_run(bool paused) {
  constexpr std::int64_t second = 1'000'000'000;
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    rank.info().end_ns = 60 * second;
    if (paused && r == 1) rank.info().gaps.push_back({20 * second, 25 * second, "switched off"});
    TrackBuilder& main = rank.add_main_thread();
    const auto number = [&](int sequence) {
      main.text_argument("communicator", "w");
      main.argument("sequence", sequence);
    };
    main.add_slice(0, 1000, "MPI_Allreduce_init", "mpi", "collective");
    number(3);
    for (int round = 0; round < (r == 0 ? 3 : 2); ++round) {
      main.add_slice((10 + round) * second, (10 + round) * second + 10, "MPI_Start", "mpi", "point-to-point");
      number(3);
      main.argument("request", round + 1);
      const bool last = round == 2;
      main.add_slice((10 + round) * second + 20, last ? 60 * second : (10 + round) * second + 30, "MPI_Wait", "mpi",
                     "wait");
      main.argument("request", round + 1);
      if (last) main.argument("unfinished", 1);
    }
  }
  return run.finish();
}

TEST(Hangs, APersistentCollectiveThatARankNeverStartedAgainIsFound) {
  const auto hangs = find_hangs(persistent_run(false));
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hang_text(hangs[0]),
            "Rank 1 never entered start 3 of MPI_Allreduce_init #4 on w; rank 0 has waited in it since 12.000 s, for "
            "48.000 s.");
  EXPECT_TRUE(find_hangs(persistent_run(true)).empty()) << "what rank 1 started during the pause is not known";
}

// The death of a rank ends the call of another one, which has an error and fails.
TEST(Hangs, ACollectiveThatEndedBecauseAnotherRankDiedIsNamed) {
  const auto text = [](bool enters, std::uint64_t status, MpiId function) {
    std::vector<PaceFile> files = {member(0, 2, 3), member(1, 2, 3)};
    enter(files[0], function, 3, 30'000'000'000);
    files[0].mpi_end(30'500'000'000, function);
    files[0].add(60'000'000'000, format::EventType::process_end, status);
    if (enters) enter(files[1], function, 3, 30'000'000'000);
    files[1].file.header.closed = 0;
    const auto hangs = find_hangs(import(files));
    return hangs.empty() ? "" : hang_text(hangs[0]);
  };
  EXPECT_EQ(text(false, 1, MpiId::Allreduce),
            "Rank 1 never entered MPI_Allreduce #4 on MPI_COMM_WORLD, which therefore failed: rank 0 was in it from "
            "30.000 s for 0.500 s.");
  EXPECT_EQ(
      text(true, 1, MpiId::Allreduce),
      "Rank 1 ended in MPI_Allreduce #4 on MPI_COMM_WORLD, which therefore failed: rank 0 was in it from 30.000 s "
      "for 0.500 s.");
  EXPECT_EQ(text(false, 0, MpiId::Allreduce), "") << "the file of rank 1 may be the older one of a running job";
  EXPECT_EQ(text(false, 1, MpiId::Bcast), "") << "the root does not wait for the others";
}

TEST(SuddenEnds, NameTheRanksWhoseFilesAreNotClosed) {
  std::vector<PaceFile> files = {member(0, 3, 3), member(1, 3, 3), member(2, 3, 3)};
  EXPECT_EQ(sudden_ends_text(identities(import(files))), "");
  files[2].file.header.closed = 0;
  EXPECT_EQ(sudden_ends_text(identities(import(files))),
            "Rank 2 did not end by itself (a signal ended it, it crashed, or it still runs): its last event is at "
            "60.000 s.");
  files[1].file.header.closed = 0;
  files[2].push(61'000'000'000, format::pack_scope(files[2].name("forward"), 0, 0));
  EXPECT_EQ(sudden_ends_text(identities(import(files))),
            "Ranks 1 and 2 did not end by themselves (signals ended them, they crashed, or they still run): the "
            "earliest last event is rank 1's, at 60.000 s.");
}

}  // namespace
}  // namespace paceline::analysis
