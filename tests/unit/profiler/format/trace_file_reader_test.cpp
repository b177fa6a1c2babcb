// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/trace_file_reader.h"

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <map>
#include <thread>

#include "profiler/format/block_summary.h"
#include "profiler/format/error.h"
#include "profiler/format/hash.h"
#include "profiler/format/writer.h"
#include "tests/unit/profiler/format/streams.h"

namespace paceline::format {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class BlockByBlock : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() /
            (std::string("paceline-blocks-") + ::testing::UnitTest::GetInstance()->current_test_info()->name() + "-" +
             std::to_string(getpid()) + ".pace");
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void write(const std::vector<Track>& tracks, Ending ending = Ending::closed) const {
    HeaderFacts facts;
    facts.ticks_per_second = 1e9;
    facts.host = "node7";
    write_trace_file(path_, facts, tracks, ending);
  }
  static std::vector<Track> random_tracks() {
    std::mt19937_64 random(3);
    std::vector<Slot> slots;
    while (slots.size() < 3 * slots_per_chunk) append_random(slots, random);
    return {{0, 4711, slots}, {1, 4712, trainer_stream(9000, 3).slots}};
  }

  std::filesystem::path path_;
};

TEST_F(BlockByBlock, CursorsGiveTheSlotsOfEachTrackInOrder) {
  const std::vector<Track> tracks = random_tracks();
  for (const Ending ending : {Ending::closed, Ending::killed}) {
    write(tracks, ending);
    const TraceFileReader reader(path_);
    ASSERT_THAT(reader.tracks(), SizeIs(2));
    // Two threads, each with a cursor of its own.
    std::vector<std::vector<Slot>> read(2);
    const auto decode = [&](std::size_t track) {
      BlockCursor cursor(reader);
      for (const BlockEntry& block : reader.tracks()[track].blocks) {
        const std::span<const Slot> slots = cursor.slots(block);
        EXPECT_EQ(slots.size(), block.header.slots);
        read[track].insert(read[track].end(), slots.begin(), slots.end());
      }
    };
    std::thread other(decode, 1);
    decode(0);
    other.join();
    for (std::size_t track = 0; track < 2; ++track) {
      EXPECT_EQ(read[track], tracks[track].slots);
      EXPECT_EQ(reader.tracks()[track].slots, tracks[track].slots.size());
      EXPECT_EQ(reader.tracks()[track].thread_id, tracks[track].thread_id);
    }
    EXPECT_EQ(reader.damage(), "");
  }
}

TEST_F(BlockByBlock, HeadersAndTypesSayWhatDecodingGives) {
  for (const Ending ending : {Ending::closed, Ending::killed}) {
    write(random_tracks(), ending);
    const TraceFileReader reader(path_);
    BlockCursor cursor(reader), types_cursor(reader);
    ASSERT_GE(reader.blocks().size(), 6U);
    for (const BlockEntry& block : reader.blocks()) {
      BlockHeader expected{};
      std::vector<EventType> types;
      const std::span<const Slot> slots = cursor.slots(block);
      summarize(slots.data(), slots.size(), expected);
      for_each_event(slots, [&](const Slot& head, const Slot*) { types.push_back(type_of(head)); });
      EXPECT_EQ(block.header.first_ticks, expected.first_ticks);
      EXPECT_EQ(block.header.last_ticks, expected.last_ticks);
      EXPECT_EQ(block.header.contents, expected.contents);
      EXPECT_THAT(block.header.count, ::testing::ElementsAreArray(expected.count));
      EXPECT_THAT(types_cursor.types(block), ::testing::ElementsAreArray(types));
    }
  }
}

TEST_F(BlockByBlock, AFileThatWasReplacedIsRefused) {
  write(random_tracks());
  const TraceFileReader reader(path_);
  const BlockCursor still_the_same(reader);
  HeaderFacts facts;
  facts.file_id = 5;
  write_trace_file(path_, facts, random_tracks());
  try {
    const BlockCursor cursor(reader);
    FAIL() << "the cursor reads another file";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("replaced while it was read"));
  }
}

TEST_F(BlockByBlock, AFileOfARunningProcessMayBeReplacedWhileItIsRead) {
  const std::vector<Track> tracks = random_tracks();
  write(tracks, Ending::killed);
  const TraceFileReader reader(path_);
  std::filesystem::remove(path_);
  BlockCursor cursor(reader);
  EXPECT_EQ(cursor.slots(reader.blocks().front()).size(), reader.blocks().front().header.slots);
}

// Its hash fits, so that only decoding finds that its slots are not the announced number.
TEST_F(BlockByBlock, ABlockThatCannotBeDecodedIsDamage) {
  write({{0, 4711, trainer_stream(9000, 3).slots}});
  const TraceFileReader good(path_);
  ASSERT_THAT(good.blocks(), SizeIs(3));
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  const BlockEntry& second = good.blocks()[1];
  std::vector<std::byte> payload(second.header.payload_bytes);
  file.seekg(static_cast<std::streamoff>(second.payload_at));
  file.read(reinterpret_cast<char*>(payload.data()), static_cast<std::streamsize>(payload.size()));
  BlockHeader header = second.header;
  --header.slots;
  header.hash = block_hash(header, payload.data());
  file.seekp(static_cast<std::streamoff>(second.payload_at - sizeof header));
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  file.close();

  const TraceFileReader reader(path_);
  EXPECT_EQ(reader.damage(), "");
  BlockCursor cursor(reader);
  EXPECT_THAT(cursor.slots(reader.blocks()[1]), IsEmpty());
  EXPECT_THAT(reader.damage(), HasSubstr("its number of slots is wrong"));
  const TraceFile trace = read_trace_file(path_);
  EXPECT_TRUE(trace.damaged);
  ASSERT_THAT(trace.lost, SizeIs(1));
  EXPECT_EQ(trace.lost[0].cause, lost_by_damage);
  EXPECT_EQ(trace.lost[0].first_ticks, header.first_ticks);
  EXPECT_EQ(trace.lost[0].last_ticks, header.last_ticks);
  EXPECT_EQ(trace.tracks[0].slots.size(), good.tracks()[0].slots - second.header.slots);
}

// What a summary must be equal to: everything counted and picked out of all events.
TEST_F(BlockByBlock, SummariesCountAllEventsAndKeepDefinitions) {
  for (const Ending ending : {Ending::closed, Ending::killed}) {
    write(random_tracks(), ending);
    const TraceSummary summary = read_trace_summary(path_);
    const TraceFile whole = read_trace_file(path_);
    ASSERT_THAT(summary.file.tracks, SizeIs(whole.tracks.size()));
    std::uint64_t events[families] = {};
    std::uint64_t last_ticks = 0;
    for (std::size_t t = 0; t < whole.tracks.size(); ++t) {
      std::vector<Slot> kept;
      for_each_event(whole.tracks[t].slots, [&](const Slot& head, const Slot* extension) {
        last_ticks = std::max(last_ticks, ticks_of(head));
        if (content_of(type_of(head)) == 0) {
          ++events[static_cast<std::size_t>(family_of(type_of(head)))];
          return;
        }
        kept.push_back(head);
        kept.insert(kept.end(), extension, extension + extension_slots(head));
      });
      EXPECT_EQ(summary.file.tracks[t].slots, kept);
      EXPECT_EQ(summary.file.tracks[t].id, whole.tracks[t].id);
      EXPECT_EQ(summary.file.tracks[t].thread_id, whole.tracks[t].thread_id);
    }
    EXPECT_THAT(summary.file.left_out.events, ::testing::ElementsAreArray(events));
    EXPECT_GE(summary.file.left_out.last_ticks, last_ticks);
    EXPECT_EQ(summary.file.host, "node7");
    EXPECT_EQ(whole.left_out.last_ticks, 0U);
  }
}

TEST_F(BlockByBlock, SummariesOfVersion1AreDecoded) {
  const TraceSummary summary = read_trace_summary(SOURCE_DIRECTORY "/tests/data/format-1/closed.pace");
  std::uint64_t ranges = 0;
  const TraceFile whole = read_trace_file(SOURCE_DIRECTORY "/tests/data/format-1/closed.pace");
  for_each_event(whole.tracks[0].slots,
                 [&](const Slot& head, const Slot*) { ranges += family_of(type_of(head)) == Family::nvtx ? 1 : 0; });
  EXPECT_EQ(summary.file.left_out.events[static_cast<std::size_t>(Family::nvtx)], ranges);
  EXPECT_GT(ranges, 1000U);
}

TEST_F(BlockByBlock, SummariesKnowWhetherACallIsOpen) {
  std::vector<Slot> calls;
  while (calls.size() < slots_per_chunk) {
    append(calls, calls.size(), EventType::mpi_begin, 203);
    append(calls, calls.size(), EventType::mpi_end, 203);
  }
  const auto followed_by = [&](std::size_t ranges, bool end) {
    std::vector<Slot> slots = calls;
    append(slots, 100'000, EventType::mpi_begin, 203);
    for (std::size_t i = 0; i < ranges; ++i) append(slots, 100'001 + i, EventType::push, 1);
    if (end) append(slots, 200'000, EventType::mpi_end, 203);
    return slots;
  };
  for (const std::size_t ranges : {std::size_t{0}, std::size_t{3}, 3 * slots_per_chunk}) {
    write({{0, 1, followed_by(ranges, true)}});
    EXPECT_FALSE(read_trace_summary(path_).has_open_call) << ranges;
    write({{0, 1, followed_by(ranges, false)}});
    EXPECT_TRUE(read_trace_summary(path_).has_open_call) << ranges;
  }
}

// The last tick of a run is that of its last event, and of what runs on a device its end; waits and CUPTI's overheads
// may end later.
TEST_F(BlockByBlock, SummariesKnowWhenTheLastEventEnds) {
  std::vector<Slot> slots;
  append(slots, 1000, EventType::cuda_kernel_run, 1, {{500, 0}});
  append(slots, 1100, EventType::cuda_wait, 1, {{9000, 0}});
  std::vector<Slot> marks;
  append(marks, 1200, EventType::mark, 1);
  write({{0, 1, slots}, {1, 2, marks}});
  EXPECT_EQ(read_trace_summary(path_).file.left_out.last_ticks, 1500U);
  append(slots, 1700, EventType::cuda_overhead, 1, {{9000, 0}});
  write({{0, 1, slots}, {1, 2, marks}});
  EXPECT_EQ(read_trace_summary(path_).file.left_out.last_ticks, 1700U);
  append(marks, 1800, EventType::mark, 1);
  write({{0, 1, slots}, {1, 2, marks}});
  EXPECT_EQ(read_trace_summary(path_).file.left_out.last_ticks, 1800U);
}

}  // namespace
}  // namespace paceline::format
