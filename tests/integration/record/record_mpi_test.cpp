// SPDX-License-Identifier: Apache-2.0
// MPI programs in C and Fortran: every call is recorded with its bytes, peers and communicators.
#include <set>

#include "tests/integration/record/mpi_calls.h"
#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;

class RecordMpi : public RecordTest {};

std::uint64_t identity_of(const RecordedFile& file, std::uint32_t communicator) {
  for (const RecordedEvent& event : file.of(EventType::communicator)) {
    if (static_cast<std::uint32_t>(event.head.low) == communicator) return event.extension[0].high;
  }
  return 0;
}

// The two ranks of program.c, whose calls are known in number.
TEST_F(RecordMpi, AProgramOfThirtyLinesIsRecordedCallByCall) {
  const Ended ended = run(mpirun() + "-n 2 " + recorded() + PROGRAM);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.recorder_lines(), 0) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 2u);
  std::set<std::uint64_t> worlds, reversed;
  for (int rank = 0; rank < 2; ++rank) {
    const RecordedFile& file = ranks[rank];
    EXPECT_EQ(file.file.header.rank, rank);
    EXPECT_EQ(file.file.header.world_size, 2);
    EXPECT_EQ(file.setting("rank"), std::to_string(rank));
    EXPECT_EQ(file.setting("world_size"), "2");
    EXPECT_EQ(file.setting("mpi_library").substr(0, 8), "Open MPI");
    EXPECT_EQ(file.file.header.closed, 1u);
    EXPECT_EQ(file.dropped(), 0u);
    EXPECT_FALSE(file.file.damaged) << file.file.damage;
    EXPECT_LT(std::filesystem::file_size(file.file.path), 32'000u);

    EXPECT_EQ(file.named(EventType::push, "iteration").size(), 100u);
    EXPECT_EQ(file.named(EventType::push, "even").size(), 50u);
    EXPECT_EQ(file.named(EventType::push, "odd").size(), 50u);
    EXPECT_EQ(file.of(EventType::pop).size(), 200u);

    const auto reductions = file.named(EventType::mpi_begin_coll, "MPI_Allreduce");
    ASSERT_EQ(reductions.size(), 100u);
    for (std::uint32_t i = 0; i < 100; ++i) {
      EXPECT_EQ(reductions[i].extension[0].high, 2048u);
      EXPECT_EQ(reductions[i].extension[0].low >> 32, i);
      EXPECT_EQ(static_cast<std::int32_t>(reductions[i].head.low >> 16), -1);
    }
    worlds.insert(identity_of(file, static_cast<std::uint32_t>(reductions[0].extension[0].low)));
    const auto broadcasts = file.named(EventType::mpi_begin_coll, "MPI_Bcast");
    ASSERT_EQ(broadcasts.size(), 100u);
    EXPECT_EQ(broadcasts[99].extension[0].high, 256u);
    EXPECT_EQ(broadcasts[99].extension[0].low >> 32, 99u);
    EXPECT_EQ(static_cast<std::int32_t>(broadcasts[99].head.low >> 16), 0);
    reversed.insert(identity_of(file, static_cast<std::uint32_t>(broadcasts[0].extension[0].low)));
    const auto last = file.named(EventType::mpi_begin_coll, "MPI_Iallreduce");
    ASSERT_EQ(last.size(), 1u);
    EXPECT_EQ(last[0].extension[0].high, 32u);
    EXPECT_EQ(last[0].extension[0].low >> 32, 100u);

    const auto messages = file.of(EventType::mpi_begin_peer);
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_EQ(messages[0].name, rank == 0 ? "MPI_Send" : "MPI_Recv");
    EXPECT_EQ(messages[0].extension[0].high, 80u);
    EXPECT_EQ(messages[0].head.low >> 16, 77u);
    EXPECT_EQ(static_cast<std::int32_t>(messages[0].extension[0].low >> 32), rank == 0 ? 1 : -1);

    for (const char* once : {"MPI_Init", "MPI_Comm_split", "MPI_Wait", "MPI_Comm_free", "MPI_Finalize"}) {
      EXPECT_EQ(file.named(EventType::mpi_begin, once).size(), 1u) << once;
      EXPECT_EQ(file.named(EventType::mpi_end, once).size(), 1u) << once;
    }
    EXPECT_EQ(file.of(EventType::mpi_end).size(), 100u + 100 + 1 + 1 + 5);
    EXPECT_EQ(requests_of(file, EventType::mpi_posted), requests_of(file, EventType::mpi_completed));
    // The split reversed the order of ranks.
    for (const RecordedEvent& event : file.of(EventType::communicator)) {
      if (event.head.low != (3 | std::uint64_t{2} << 32)) continue;
      EXPECT_EQ(static_cast<int>(event.extension[0].low & 0xffffffff), 1 - rank);
    }
  }
  EXPECT_EQ(worlds.size(), 1u);
  EXPECT_EQ(reversed.size(), 1u);
  EXPECT_NE(*worlds.begin(), *reversed.begin());
  EXPECT_NE(*worlds.begin(), 0u);
}

TEST_F(RecordMpi, OneRankIsRecordedToo) {
  const Ended ended = run(recorded() + PROGRAM);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].file.header.rank, 0);
  EXPECT_EQ(ranks[0].file.header.world_size, 1);
  EXPECT_EQ(ranks[0].named(EventType::mpi_begin_coll, "MPI_Allreduce").size(), 100u);
}

// The second of three ranks has no recorder. The clocks of the other two are compared after MPI_Init and before
// MPI_Finalize.
TEST_F(RecordMpi, NoRankWaitsForOneWithoutARecorder) {
  const Ended ended = run(mpirun() + "-n 1 " + recorded() + PROGRAM + " : -n 1 " PROGRAM " : -n 1 " +
                          recorded("PACELINE_TEST_CLOCK=domain=other,skew_ns=1000000") + PROGRAM);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].file.header.rank, 0);
  EXPECT_EQ(ranks[1].file.header.rank, 2);
  EXPECT_EQ(ranks[1].setting("clock_exchange"), "done");
  for (const RecordedFile& file : ranks) {
    EXPECT_EQ(file.named(EventType::mpi_begin_coll, "MPI_Allreduce").size(), 100u);
    const auto ticks = [&](EventType type, const char* name) { return file.named(type, name).at(0).ticks; };
    const std::uint64_t waited = ticks(EventType::mpi_begin, "MPI_Comm_split") - ticks(EventType::mpi_end, "MPI_Init") +
                                 ticks(EventType::mpi_begin, "MPI_Finalize") -
                                 ticks(EventType::mpi_end, "MPI_Comm_free");
    EXPECT_LT(static_cast<double>(waited) / file.file.header.ticks_per_second, 2.0);
  }
}

#ifdef PACELINE
TEST_F(RecordMpi, PacelineRecordAttachesTheRecorderToOneRankOfTwo) {
  const std::string record = PACELINE " record -o " + (directory / "run").string() + " -- ";
  const Ended ended = run(mpirun() + "-n 1 " + record + PROGRAM + " : -n 1 " PROGRAM);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_NE(ended.out.find("rank 0 of 2 done"), std::string::npos) << ended.out;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].file.command, std::vector<std::string>{PROGRAM});
  EXPECT_EQ(ranks[0].named(EventType::mpi_begin_coll, "MPI_Allreduce").size(), 100u);
  EXPECT_EQ(ranks[0].of(EventType::push).size(), 200u);
}
#endif

}  // namespace
}  // namespace paceline::test
