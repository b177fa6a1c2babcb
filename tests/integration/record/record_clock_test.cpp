// Clocks of ranks on different machines, here one machine with a rank that pretends to another clock.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cinttypes>
#include <cmath>
#include <fstream>

#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;

class RecordClock : public RecordTest {};

constexpr double skew_ns = 7'000'000;
const char* const other_clock = "PACELINE_TEST_CLOCK=domain=other,skew_ns=7000000,drift_ppm=50";

TEST_F(RecordClock, RanksOfOneMachineNeedNoExchange) {
  const Ended ended = run(mpirun() + "-n 2 " + recorded() + PROGRAM);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  for (const RecordedFile& file : files()) {
    EXPECT_TRUE(file.of(EventType::clock_exchange).empty());
    EXPECT_EQ(file.setting("clock_exchange"), "");
  }
  for (const auto& entry : std::filesystem::directory_iterator(directory / "run")) {
    EXPECT_TRUE(entry.path().filename().string().ends_with(".pace")) << entry.path();
  }
}

// Rank 1's clock is 7 ms ahead and runs 50 ppm fast. Its samples say so, to half of their round trips.
TEST_F(RecordClock, TheOffsetLiesWithinHalfTheRoundTrip) {
  const Ended ended = run(mpirun() + "-n 1 " + recorded() + PROGRAM + " : -n 1 " + recorded(other_clock) + PROGRAM);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].setting("clock_exchange"), "reference");
  EXPECT_EQ(ranks[1].setting("clock_exchange"), "done");
  EXPECT_NE(ranks[0].file.boot_id, ranks[1].file.boot_id);
  EXPECT_TRUE(ranks[0].of(EventType::clock_exchange).empty());
  const auto samples = ranks[1].of(EventType::clock_exchange);
  ASSERT_EQ(samples.size(), 20u);
  const format::FileHeader& header = ranks[1].file.header;
  const double ns_per_tick = 1e9 / header.ticks_per_second;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(static_cast<std::uint32_t>(samples[i].head.low), 0u);  // asked rank 0
    EXPECT_EQ(samples[i].head.low >> 32, i < 10 ? 0u : 1u);          // at MPI_Init, at MPI_Finalize
    const double sent = static_cast<double>(samples[i].ticks);
    const double received = static_cast<double>(samples[i].extension[0].high - header.start_ticks);
    const double peer =
        static_cast<double>(static_cast<std::int64_t>(samples[i].extension[0].low - header.start_ticks));
    const double half_round_trip = (received - sent) / 2 * ns_per_tick;
    const double offset = ((sent + received) / 2 - peer) * ns_per_tick;
    const double drift = 50e-6 * sent * ns_per_tick;  // since the recorder began
    EXPECT_GT(half_round_trip, 0);
    EXPECT_LT(half_round_trip, 2e6);
    EXPECT_NEAR(offset, skew_ns + drift, half_round_trip + 1000) << "sample " << i;
  }
}

// A recorder that left its address but answers no more: the program goes on after at most 2 s, and the trace says so.
TEST_F(RecordClock, ARankThatDoesNotAnswerIsGivenUp) {
  std::filesystem::create_directory(directory / "run");
  char name[128];
  snprintf(name, sizeof name, ".clock-%016" PRIx64 "-%016x-0-9-7f000001", XXH3_64bits("test", 4), 1);
  std::ofstream(directory / "run" / name);
  const Ended ended = run(mpirun() + "-n 1 " PROGRAM " : -n 1 " + recorded() + PROGRAM);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  const std::vector<RecordedFile> ranks = files();
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].setting("clock_exchange"), "none");
  EXPECT_TRUE(ranks[0].of(EventType::clock_exchange).empty());
  EXPECT_EQ(ranks[0].named(EventType::mpi_begin_coll, "MPI_Allreduce").size(), 100u);
}

}  // namespace
}  // namespace paceline::test
