// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/reader.h"

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <tuple>

#include "profiler/format/block.h"
#include "profiler/format/error.h"
#include "profiler/format/hash.h"
#include "profiler/format/trace_file_reader.h"
#include "profiler/format/writer.h"
#include "tests/rounds.h"
#include "tests/unit/profiler/format/streams.h"

namespace paceline::format {

namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class Reader : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 (std::string("paceline-reader-") + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                  "-" + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
    path_ = directory_ / "a.pace";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static HeaderFacts facts() {
    HeaderFacts facts;
    facts.file_id = 0x1234;
    facts.pid = 4711;
    facts.ticks_per_second = 2.5e9;
    facts.start_ticks = 1'000'000;
    facts.start_utc_ns = 1'700'000'000'000'000'000;
    facts.rank = 1;
    facts.world_size = 2;
    facts.local_rank = 1;
    facts.host = "node7";
    return facts;
  }
  // Tracks of several chunks each, of which the last is not full.
  static std::vector<Track> tracks(std::size_t chunks = 3) {
    return {{0, 4711, trainer_stream((chunks - 1) * slots_per_chunk + 500, 20, 1).slots},
            {1, 4712, trainer_stream((chunks - 1) * slots_per_chunk + 900, 7, 2).slots},
            {5, 4713, trainer_stream(300, 3, 3).slots}};
  }
  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Into a new file: ext4 writes a file that is truncated and filled again to the disk at once, which is slow.
  void store(const std::string& bytes) const {
    std::filesystem::remove(path_);
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  void change_byte(std::size_t at, char value) const {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(value);
  }
  static FileHeader header_of(const std::string& bytes) {
    FileHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    return header;
  }
  std::string error() const {
    try {
      read_trace_file(path_);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  // Every track of `part` begins as the one of `whole` does.
  static bool is_front_of(const TraceFile& part, const std::vector<Track>& whole) {
    return std::all_of(part.tracks.begin(), part.tracks.end(), [&](const Track& track) {
      const auto same = std::find_if(whole.begin(), whole.end(), [&](const Track& w) { return w.id == track.id; });
      return same != whole.end() && track.slots.size() <= same->slots.size() &&
             std::equal(track.slots.begin(), track.slots.end(), same->slots.begin());
    });
  }
  static std::size_t slots_of(const TraceFile& trace) {
    std::size_t slots = 0;
    for (const Track& track : trace.tracks) slots += track.slots.size();
    return slots;
  }
  static void expect_same(const TraceFile& trace, const std::vector<Track>& tracks) {
    ASSERT_EQ(trace.tracks.size(), tracks.size());
    for (std::size_t i = 0; i < tracks.size(); ++i) {
      EXPECT_EQ(trace.tracks[i].id, tracks[i].id);
      EXPECT_EQ(trace.tracks[i].thread_id, tracks[i].thread_id);
      EXPECT_TRUE(trace.tracks[i].slots == tracks[i].slots) << "track " << tracks[i].id;
    }
  }

  std::filesystem::path directory_, path_;
};

TEST_F(Reader, GivesBackTheHeader) {
  HeaderFacts facts = Reader::facts();
  facts.boot_id = "0b1c";
  const char command[] = "./a.out\0--name\0x \"y\"\\\n\xff\0";
  facts.command = {command, sizeof command - 1};
  facts.directory = "/home/ä/\x1b[1m";
  facts.job = "slurm-1.0";
  facts.pid_namespace = 4026531836;
  facts.heartbeat_s = 5;
  const char environment[] = "OMP_NUM_THREADS=1\0EMPTY=\0";
  facts.environment = {environment, sizeof environment - 1};
  facts.set = "model=resnet18\nnote=a=b, \"c\"\nmodel=vgg16\n=nothing\nnor this";
  write_trace_file(path_, facts, {});
  EXPECT_TRUE(is_trace_file(path_));
  const TraceFile trace = read_trace_file(path_);
  EXPECT_FALSE(trace.damaged) << trace.damage;
  EXPECT_EQ(trace.path, path_);
  EXPECT_EQ(trace.header.version, 2U);
  EXPECT_EQ(trace.header.file_id, 0x1234U);
  EXPECT_EQ(trace.header.pid, 4711U);
  EXPECT_EQ(trace.header.ticks_per_second, 2.5e9);
  EXPECT_EQ(trace.header.start_ticks, 1'000'000U);
  EXPECT_EQ(trace.header.start_utc_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(trace.header.rank, 1);
  EXPECT_EQ(trace.header.world_size, 2);
  EXPECT_EQ(trace.header.local_rank, 1);
  EXPECT_EQ(trace.header.closed, 1U);
  EXPECT_EQ(trace.host, "node7");
  EXPECT_EQ(trace.boot_id, "0b1c");
  EXPECT_THAT(trace.command, ElementsAre("./a.out", "--name", "x \"y\"\\\n\xef\xbf\xbd"));
  EXPECT_EQ(trace.directory, "/home/ä/\x1b[1m");
  EXPECT_EQ(trace.job, "slurm-1.0");
  EXPECT_EQ(trace.pid_namespace, 4026531836U);
  EXPECT_EQ(trace.heartbeat_s, 5);
  EXPECT_THAT(trace.environment, UnorderedElementsAre(Pair("OMP_NUM_THREADS", "1"), Pair("EMPTY", "")));
  EXPECT_THAT(trace.set, UnorderedElementsAre(Pair("model", "vgg16"), Pair("note", "a=b, \"c\"")));
  EXPECT_THAT(trace.tracks, IsEmpty());
}

TEST_F(Reader, CutsAHugeCommandLine) {
  std::string command;
  for (int i = 0; i < 100'000; ++i) command += "argument " + std::to_string(i) + '\0';
  HeaderFacts facts = Reader::facts();
  facts.command = {command.data(), command.size()};
  write_trace_file(path_, facts, {});
  const TraceFile trace = read_trace_file(path_);
  EXPECT_FALSE(trace.damaged);
  EXPECT_GT(trace.command.size(), 4000U);
  EXPECT_EQ(trace.command[3999], "argument 3999");
  EXPECT_EQ(trace.command.back(), "…");
}

TEST_F(Reader, GivesBackAllTracksOfAClosedFile) {
  write_trace_file(path_, facts(), tracks());
  const TraceFile trace = read_trace_file(path_);
  EXPECT_FALSE(trace.damaged) << trace.damage;
  expect_same(trace, tracks());
}

TEST_F(Reader, GivesBackAllTracksOfAKilledProcess) {
  write_trace_file(path_, facts(), tracks(), Ending::killed);
  const TraceFile trace = read_trace_file(path_);
  EXPECT_FALSE(trace.damaged) << trace.damage;
  EXPECT_EQ(trace.header.closed, 0U);
  EXPECT_EQ(trace.header.live_bytes, 4 * chunk_bytes);
  expect_same(trace, tracks());
}

TEST_F(Reader, EndsALiveChunkAtItsFirstTornEvent) {
  write_trace_file(path_, facts(), tracks(), Ending::killed);
  std::string torn = bytes();
  const std::size_t chunk = header_of(torn).header_bytes + chunk_bytes;  // of track 5, the shortest
  ChunkHeader header;
  std::memcpy(&header, &torn[chunk], sizeof header);
  ASSERT_EQ(header.track, 5U);
  const std::size_t whole = 100;
  std::memset(&torn[chunk + sizeof(ChunkHeader) + whole * sizeof(Slot)], 0, 8);  // its `high`; `low` was written
  store(torn);
  const TraceFile trace = read_trace_file(path_);
  EXPECT_FALSE(trace.damaged) << trace.damage;
  ASSERT_THAT(trace.tracks, SizeIs(3));
  EXPECT_EQ(trace.tracks[2].slots.size(), whole);
  EXPECT_TRUE(is_front_of(trace, tracks()));
}

TEST_F(Reader, TakesAChunkOnceThatIsInABlockAndStillLive) {
  // As after SIGKILL between appending a block and setting its chunk free.
  const std::vector<Track> one = {{0, 4711, trainer_stream(500, 5).slots}};
  write_trace_file(path_, facts(), one, Ending::killed);
  std::string file = bytes();
  ChunkHeader chunk;
  std::memcpy(&chunk, &file[header_of(file).header_bytes + chunk_bytes], sizeof chunk);
  BlockEncoder encoder;
  const auto block = encoder.encode(chunk, one[0].slots.data(), one[0].slots.size());
  const std::string block_bytes(reinterpret_cast<const char*>(block.data()), block.size());

  FileHeader header = header_of(file);
  store(file + block_bytes.substr(0, 100));  // while it was being appended
  expect_same(read_trace_file(path_), one);
  EXPECT_FALSE(read_trace_file(path_).damaged);
  store(file + block_bytes);  // before blocks_end was stored
  expect_same(read_trace_file(path_), one);
  EXPECT_FALSE(read_trace_file(path_).damaged);
  header.blocks_end += block.size();
  std::memcpy(file.data(), &header, sizeof header);
  store(file + block_bytes);
  expect_same(read_trace_file(path_), one);
  EXPECT_FALSE(read_trace_file(path_).damaged);
}

TEST_F(Reader, ReadsAClosedFileThatKeptItsLiveArea) {
  write_trace_file(path_, facts(), tracks());
  std::string file = bytes();
  FileHeader header = header_of(file);
  header.live_bytes = 8 * chunk_bytes;
  header.blocks_end += header.live_bytes;
  std::memcpy(file.data(), &header, sizeof header);
  file.insert(header.header_bytes, header.live_bytes, '\0');
  store(file);
  const TraceFile trace = read_trace_file(path_);
  EXPECT_FALSE(trace.damaged) << trace.damage;
  expect_same(trace, tracks());
}

TEST_F(Reader, ReadsUpToTheCutAtEveryThousandthByte) {
  for (const Ending ending : {Ending::closed, Ending::killed}) {
    write_trace_file(path_, facts(), tracks(), ending);
    const std::string whole = bytes();
    const FileHeader header = header_of(whole);
    std::size_t before = 0;
    for (std::size_t cut = 1000; cut < whole.size(); cut += 1000 * test::stride(5)) {
      store(whole.substr(0, cut));
      if (cut < header.header_bytes) {
        EXPECT_THAT(error(), AllOf(HasSubstr(path_.string()), HasSubstr("cut in its header"))) << cut;
        continue;
      }
      const TraceFile trace = read_trace_file(path_);
      EXPECT_TRUE(trace.damaged) << cut;
      EXPECT_THAT(trace.damage, HasSubstr("cut")) << cut;
      if (ending == Ending::closed) {
        EXPECT_TRUE(is_front_of(trace, tracks())) << cut;
      }
      EXPECT_GE(slots_of(trace), before) << cut;
      before = slots_of(trace);
    }
    EXPECT_GT(before, 10'000U);
  }
}

// As a power cut leaves it: the file ends where a block ends or begins, or right around. The blocks before the cut and
// the live area are there, and nothing else.
TEST_F(Reader, HasWhatIsWholeWhereTheFileEndsAtAnyBlock) {
  for (const Ending ending : {Ending::closed, Ending::killed}) {
    write_trace_file(path_, facts(), tracks(4), ending);
    const std::string whole = bytes();
    const FileHeader header = header_of(whole);
    const std::size_t first_block = header.header_bytes + header.live_bytes;
    std::vector<std::size_t> ends = {first_block}, slots = {0};
    while (ends.back() < whole.size()) {
      BlockHeader block;
      std::memcpy(&block, &whole[ends.back()], sizeof block);
      ends.push_back(ends.back() + sizeof block + block.payload_bytes);
      slots.push_back(slots.back() + block.slots);
    }
    ASSERT_EQ(ends.back(), whole.size());
    ASSERT_GT(ends.size(), 6U);
    const std::size_t live_slots = slots_of(read_trace_file(path_)) - slots.back();
    EXPECT_EQ(live_slots > 0, ending == Ending::killed);
    for (std::size_t block = 0; block < ends.size(); block += test::stride(3)) {
      for (const std::ptrdiff_t beside : {-100, -1, 0, 1, 3, 4, 24, 47, 48, 49, 1000}) {
        const std::size_t cut = ends[block] + static_cast<std::size_t>(beside);
        if (cut < first_block || cut > whole.size()) continue;
        store(whole.substr(0, cut));
        const TraceFile trace = read_trace_file(path_);
        const auto last = std::upper_bound(ends.begin(), ends.end(), cut) - ends.begin() - 1;
        EXPECT_EQ(slots_of(trace), live_slots + slots[static_cast<std::size_t>(last)]) << cut;
        EXPECT_EQ(trace.damaged, cut < whole.size()) << cut;
        EXPECT_TRUE(ending == Ending::killed || is_front_of(trace, tracks(4))) << cut;
      }
    }
    // Into the live area: whole chunks up to the cut, and of the one that is cut its whole events.
    std::size_t before = 0;
    for (std::size_t cut = header.header_bytes; cut <= first_block; cut += 4096 - 40) {
      store(whole.substr(0, cut));
      const TraceFile trace = read_trace_file(path_);
      EXPECT_EQ(trace.damaged, cut < whole.size()) << cut;
      EXPECT_GE(slots_of(trace), before) << cut;
      before = slots_of(trace);
    }
    EXPECT_LE(before, live_slots);
  }
}

TEST_F(Reader, ReadsUpToTheCutAtEveryByteOfASmallFile) {
  const std::vector<Track> small = {{0, 1, trainer_stream(200, 3).slots}, {1, 2, trainer_stream(100, 2).slots}};
  write_trace_file(path_, facts(), small);
  const std::string whole = bytes();
  const FileHeader header = header_of(whole);
  BlockHeader first;
  std::memcpy(&first, &whole[header.header_bytes], sizeof first);
  const std::size_t first_end = header.header_bytes + sizeof first + first.payload_bytes;
  for (std::size_t cut = 0; cut < whole.size(); cut += test::stride(5)) {
    store(whole.substr(0, cut));
    if (cut < header.header_bytes) {
      EXPECT_THAT(error(), HasSubstr(cut < 8 ? "not a .pace trace" : "cut in its header")) << cut;
      continue;
    }
    const TraceFile trace = read_trace_file(path_);
    EXPECT_TRUE(trace.damaged) << cut;
    EXPECT_EQ(slots_of(trace), cut < first_end ? 0 : small[0].slots.size()) << cut;
    EXPECT_TRUE(is_front_of(trace, small)) << cut;
  }
}

TEST_F(Reader, AnyChangedByteGivesDamageOrTheSameEvents) {
  const std::vector<Track> small = {{0, 1, trainer_stream(200, 3).slots}, {1, 2, trainer_stream(100, 2).slots}};
  write_trace_file(path_, facts(), small);
  const std::string whole = bytes();
  for (std::size_t at = 0; at < whole.size(); at += test::stride(7)) {
    for (const int bit : {0, 7}) {
      change_byte(at, static_cast<char>(whole[at] ^ 1 << bit));
      try {
        const TraceFile trace = read_trace_file(path_);
        if (!trace.damaged) {
          expect_same(trace, small);
        } else {
          EXPECT_TRUE(is_front_of(trace, small)) << at;
        }
      } catch (const Error&) {
        EXPECT_LT(at, offsetof(FileHeader, live_bytes));
      }
    }
    change_byte(at, whole[at]);
  }
}

TEST_F(Reader, AnyChangedByteOfALiveFileIsReadWithoutACrash) {
  const std::vector<Track> small = {{0, 1, trainer_stream(200, 3).slots}, {1, 2, trainer_stream(100, 2).slots}};
  write_trace_file(path_, facts(), small, Ending::killed);
  const std::string whole = bytes();
  const std::size_t live = header_of(whole).header_bytes;
  std::mt19937_64 random(7);
  // Mostly where events are: they fill the first bytes of a chunk.
  const auto step = [&](std::size_t at) { return at < live || (at - live) % chunk_bytes < 5000 ? 17U : 1997U; };
  for (std::size_t at = 0; at < whole.size(); at += step(at)) {
    change_byte(at, static_cast<char>(random()));
    try {
      EXPECT_LE(slots_of(read_trace_file(path_)), 3 * slots_per_chunk);
    } catch (const Error&) {
      EXPECT_LT(at, live);
    }
    change_byte(at, whole[at]);
  }
  expect_same(read_trace_file(path_), small);
}

TEST_F(Reader, ReadsTheBlocksBehindABrokenOne) {
  write_trace_file(path_, facts(), tracks());
  std::string file = bytes();
  file[header_of(file).header_bytes + 4000] ^= 1;  // inside the first block, of track 0
  store(file);
  const TraceFile trace = read_trace_file(path_);
  EXPECT_TRUE(trace.damaged);
  EXPECT_EQ(trace.damage, "the block at byte 4096 is broken: the checksum does not fit");
  ASSERT_THAT(trace.tracks, SizeIs(3));
  EXPECT_TRUE(trace.tracks[1].slots == tracks()[1].slots);
  EXPECT_TRUE(trace.tracks[2].slots == tracks()[2].slots);
  const std::vector<Slot> all = tracks()[0].slots;
  const std::vector<Slot> expected(all.end() - static_cast<std::ptrdiff_t>(trace.tracks[0].slots.size()), all.end());
  EXPECT_TRUE(trace.tracks[0].slots == expected);
  EXPECT_GT(trace.tracks[0].slots.size(), slots_per_chunk);
}

TEST_F(Reader, SaysWhatIsWrongWithAHeader) {
  EXPECT_THAT(error(), HasSubstr("No such file"));
  path_ = directory_;
  EXPECT_THAT(error(), HasSubstr("not a regular file"));
  path_ = directory_ / "b.pace";
  store("");
  EXPECT_FALSE(is_trace_file(path_));
  EXPECT_THAT(error(), HasSubstr("not a .pace trace"));
  write_trace_file(path_, facts(), {});
  const std::string good = bytes();
  std::string file = good;
  file[8] = 3;
  store(file);
  EXPECT_THAT(error(), HasSubstr("version 3 of the trace format, but this program reads versions 1 to 2"));
  file = good;
  file[offsetof(FileHeader, ticks_per_second)] ^= 1;
  store(file);
  EXPECT_THAT(error(), HasSubstr("checksum"));
  // Sizes that lie, under a hash that fits.
  FileHeader header = header_of(good);
  header.text_bytes = 0xffff'ff00;
  header.hash = header_hash(header);
  file = good;
  std::memcpy(file.data(), &header, sizeof header);
  store(file);
  EXPECT_THAT(error(), HasSubstr("sizes are out of range"));
}

TEST_F(Reader, TakesATextThatIsNotJsonAsDamage) {
  write_trace_file(path_, facts(), tracks());
  for (const std::string text : {"{\"host\":", "[1,2]", "{\"host\":5,\"command\":{},\"set\":[]}", ""}) {
    std::string file = bytes();
    FileHeader header = header_of(file);
    header.text_bytes = static_cast<std::uint32_t>(text.size());
    header.text_hash = XXH3_64bits(text.data(), text.size());
    header.hash = header_hash(header);
    std::memcpy(file.data(), &header, sizeof header);
    std::memcpy(file.data() + sizeof header, text.data(), text.size());
    store(file);
    const TraceFile trace = read_trace_file(path_);
    EXPECT_EQ(trace.damaged, text.find('5') == std::string::npos) << text;
    EXPECT_EQ(trace.host, "");
    expect_same(trace, tracks());
  }
}

TEST_F(Reader, AHugeLiveAreaOrSparseFileCostsNoMemory) {
  write_trace_file(path_, facts(), tracks());
  std::string file = bytes();
  FileHeader header = header_of(file);
  header.live_bytes = std::uint64_t{1} << 62;
  header.blocks_end = ~std::uint64_t{0};
  std::memcpy(file.data(), &header, sizeof header);
  store(file);
  const TraceFile trace = read_trace_file(path_);
  EXPECT_TRUE(trace.damaged);
  EXPECT_TRUE(is_front_of(trace, tracks()));
}

// Files that the writer of version 1 made.
TEST_F(Reader, ReadsClosedAndKilledFilesOfVersion1) {
  std::vector<Slot> expected = trainer_stream(5000, 20).slots;
  const std::vector<Slot> each = two_of_each_type_of_version_1();
  expected.insert(expected.end(), each.begin(), each.end());
  for (const char* name : {"closed.pace", "killed.pace"}) {
    const std::filesystem::path file = std::filesystem::path(SOURCE_DIRECTORY "/tests/data/format-1") / name;
    const TraceFile trace = read_trace_file(file);
    EXPECT_FALSE(trace.damaged) << trace.damage;
    EXPECT_EQ(trace.header.version, 1U);
    expect_same(trace, {{0, 4711, expected}});
    const TraceFileReader reader(file);
    ASSERT_THAT(reader.tracks(), SizeIs(1));
    ASSERT_THAT(reader.blocks(), SizeIs(2));
    EXPECT_FALSE(reader.blocks()[0].has_summary());
    EXPECT_EQ(reader.tracks()[0].slots, expected.size());
  }
}

TEST_F(Reader, GivesBackThousandsOfThreadsThatHaveAPageEach) {
  std::vector<Track> threads;
  for (std::uint32_t id = 0; id < 500; ++id) threads.push_back({id, 1000 + id, trainer_stream(100, 2, id).slots});
  write_trace_file(path_, facts(), threads, Ending::killed);
  const TraceFile trace = read_trace_file(path_);
  EXPECT_FALSE(trace.damaged) << trace.damage;
  EXPECT_EQ(trace.header.live_bytes, (1 + 500 / 16 + 1) * chunk_bytes);
  expect_same(trace, threads);
}

TEST_F(Reader, GivesLostStretchesOfEventsAndOfTheTableOnce) {
  std::vector<Slot> slots;
  append(slots, 900, EventType::lost, pack_lost(0, 7), {{100, 800}});
  append(slots, 950, EventType::mark, pack_scope(1, 0, 0));
  write_trace_file(path_, facts(), {{3, 1, slots}}, Ending::killed);
  std::string file = bytes();
  const std::size_t unit = header_of(file).header_bytes;  // a free one
  ChunkHeader table{};
  table.state = static_cast<std::uint32_t>(ChunkState::lost_table);
  std::memcpy(&file[unit], &table, sizeof table);
  const LostEntry entries[] = {{7, 100, 800, 1, 3, 0, {}},         // the event has said it
                               {9, 2000, 3000, 1, 3, 0, {}},       // another one of this track
                               {0, 4000, 5000, 1, 3, 0, {}},       // nothing
                               {2, 4000, 100, 77, 8, 0, {}},       // a thread that never had a chunk; torn
                               {5, 1, 2, 0, 0, 1U << 8 | 3, {}}};  // of any thread
  std::memcpy(&file[unit + sizeof table], entries, sizeof entries);
  store(file);
  const TraceFile trace = read_trace_file(path_);
  EXPECT_FALSE(trace.damaged) << trace.damage;
  ASSERT_THAT(trace.tracks, SizeIs(1));
  ASSERT_THAT(trace.lost, SizeIs(4));
  const auto& [any, said, ongoing, never] = std::tie(trace.lost[0], trace.lost[1], trace.lost[2], trace.lost[3]);
  EXPECT_TRUE(any.any_thread);
  EXPECT_EQ(any.cause, 3U);
  EXPECT_EQ(said.first_ticks, 100U);
  EXPECT_EQ(said.last_ticks, 800U);
  EXPECT_EQ(said.events, 7U);
  EXPECT_EQ(ongoing.events, 9U);
  EXPECT_EQ(never.track, 8U);
  EXPECT_EQ(never.thread_id, 77U);
  EXPECT_EQ(never.last_ticks, never.first_ticks);
}

TEST_F(Reader, SaysBetweenWhichTimesABrokenBlockWas) {
  const std::vector<Track> whole = {{0, 4711, trainer_stream(4 * slots_per_chunk, 20, 1).slots},
                                    {1, 4712, trainer_stream(4 * slots_per_chunk, 20, 1).slots}};
  write_trace_file(path_, facts(), whole);
  const TraceFileReader good(path_);
  const BlockEntry& second = good.blocks()[1];  // of track 0
  std::string file = bytes();
  file[second.payload_at + 1000] ^= 1;
  store(file);
  const TraceFile trace = read_trace_file(path_);
  EXPECT_TRUE(trace.damaged);
  ASSERT_THAT(trace.lost, SizeIs(1));
  EXPECT_EQ(trace.lost[0].track, 0U);
  EXPECT_EQ(trace.lost[0].cause, lost_by_damage);
  EXPECT_EQ(trace.lost[0].first_ticks, second.header.first_ticks);
  EXPECT_EQ(trace.lost[0].last_ticks, second.header.last_ticks);
}

}  // namespace
}  // namespace paceline::format
