// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>

#include "analysis/communication/hang_stacks.h"
#include "analysis/load/load.h"
#include "analysis/run/run_analysis.h"
#include "analysis/watch/live_job.h"
#include "analysis/watch/render_frame.h"
#include "profiler/format/error.h"
#include "profiler/format/event_table.h"
#include "profiler/format/liveness.h"
#include "profiler/format/mpi_functions.h"
#include "profiler/format/payload_layout.h"
#include "profiler/format/writer.h"
#include "tests/unit/analysis/pace_file.h"

namespace paceline::analysis {
namespace {

namespace fs = std::filesystem;
using format::EventType;
using format::Slot;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

class Watch : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() /
                 (std::string("paceline-watch-") + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                  "-" + std::to_string(getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  static format::HeaderFacts facts(int rank, int ranks) {
    format::HeaderFacts facts;
    facts.file_id = 70 + static_cast<std::uint64_t>(rank);
    facts.pid = 100 + static_cast<std::uint32_t>(rank);
    facts.ticks_per_second = 1e9;
    facts.start_ticks = 5'000'000;
    facts.start_utc_ns = 1'700'000'000'000'000'000;
    facts.rank = rank;
    facts.world_size = ranks;
    facts.host = "node7";
    facts.boot_id = "boot";
    facts.job = "7";
    return facts;
  }

  fs::path path(int rank) const { return directory_ / ("rank" + std::to_string(rank) + ".pace"); }

  static std::string bytes_of_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write_bytes(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  // Steps of 10 ms with an allreduce each, to which `late_rank` comes `late_ns` late.
  void write_rank(int rank, int ranks, int steps, int late_rank, std::uint64_t late_ns,
                  format::Ending ending = format::Ending::closed, const char* name = "forward") const {
    constexpr auto allreduce = static_cast<std::uint64_t>(format::MpiId::Allreduce);
    format::TraceWriter writer(facts(rank, ranks));
    writer.thread(0, 100 + static_cast<std::uint64_t>(rank), "main thread");
    writer.add(0, 10, EventType::communicator, 1 | static_cast<std::uint64_t>(ranks) << 32,
               {{4711, static_cast<std::uint64_t>(rank) | std::uint64_t{writer.name("MPI_COMM_WORLD")} << 32}});
    std::uint64_t at = 1'000'000;
    for (int step = 0; step < steps; ++step) {
      const auto noise = static_cast<std::uint64_t>((step * 7919 + rank * 104'729) % 1000);
      writer.add(0, at, EventType::push_payload, writer.scope("step"),
                 {{static_cast<std::uint64_t>(format::PayloadType::signed_integer), static_cast<std::uint64_t>(step)}});
      writer.add(0, at + 1000, EventType::push, writer.scope(name));
      writer.add(0, at + 4'000'000, EventType::pop, 0);
      const std::uint64_t arrival = at + 6'000'000 + noise + (rank == late_rank ? late_ns : 0);
      writer.add(0, arrival, EventType::mpi_begin_coll, allreduce | std::uint64_t{0xffffffff} << 16,
                 {{1024, 1 | static_cast<std::uint64_t>(step) << 32}});
      writer.add(0, at + 9'000'000, EventType::mpi_end, allreduce);
      writer.add(0, at + 10'000'000, EventType::pop, 0);
      at += 10'000'500;
    }
    writer.write(path(rank), ending);
  }

  fs::path directory_;
};

std::vector<Slot> slots_of(const std::vector<NewEvents>& parts) {
  std::vector<Slot> slots;
  for (const NewEvents& part : parts) slots.insert(slots.end(), part.slots.begin(), part.slots.end());
  return slots;
}

bool equal(const std::vector<Slot>& a, const std::vector<Slot>& b) {
  return std::ranges::equal(a, b, [](const Slot& x, const Slot& y) { return x.high == y.high && x.low == y.low; });
}

// The whole file as it was when only its first blocks had been written.
std::string with_blocks(std::string bytes, std::size_t blocks) {
  format::FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::uint64_t at = header.header_bytes + header.live_bytes;
  for (std::size_t b = 0; b < blocks; ++b) {
    format::BlockHeader block;
    std::memcpy(&block, bytes.data() + at, sizeof block);
    at += sizeof block + block.payload_bytes;
  }
  header.blocks_end = at;
  header.closed = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes.resize(at);
  return bytes;
}

// Where the slots of the only chunk in use begin, in bytes.
std::size_t live_slots_at(const std::string& bytes) {
  format::FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (std::size_t at = header.header_bytes; at < header.header_bytes + header.live_bytes; at += format::page_bytes) {
    format::ChunkHeader chunk;
    std::memcpy(&chunk, bytes.data() + at, sizeof chunk);
    const bool in_use = chunk.state == static_cast<std::uint32_t>(format::ChunkState::open) ||
                        chunk.state == static_cast<std::uint32_t>(format::ChunkState::full);
    if (in_use) return at + sizeof chunk;
  }
  ADD_FAILURE() << "no chunk is in use";
  return 0;
}

// The shares of the iterations that the frame shows.
void expect_phases_of(const RunAnalysis& run, const WatchFrame& frame) {
  std::array<double, phase_count> phases{};
  double sum = 0;
  for (const RankSummary& rank : run.per_rank) {
    // The frame shows the last iterations.
    for (std::size_t i = rank.iterations.size() - LiveSteps::shown; i < rank.iterations.size(); ++i) {
      for (std::size_t p = 0; p < phase_count; ++p) {
        phases[p] += static_cast<double>(rank.iterations[i].phase_ns[p]);
        sum += static_cast<double>(rank.iterations[i].phase_ns[p]);
      }
    }
  }
  for (std::size_t p = 0; p < phase_count; ++p) {
    EXPECT_THAT(frame.phase_shares[p], DoubleNear(phases[p] / sum, 1e-9)) << phase_name(static_cast<Phase>(p));
  }
}

TEST_F(Watch, ASecondPollReadsOnlyTheNewBlocks) {
  std::vector<Slot> slots;
  for (std::uint64_t i = 0; i < 10 * format::slots_per_chunk; ++i) {
    slots.push_back({format::pack_high(i * 977 % 100'000 + i, EventType::pop), i % 7});
  }
  const fs::path file = path(0);
  format::write_trace_file(file, facts(0, 1), {{0, 100, slots}});
  const std::string whole = bytes_of_file(file);
  GrowingFile growing(file);

  write_bytes(file, with_blocks(whole, 8));
  std::vector<Slot> read = slots_of(growing.poll());
  EXPECT_EQ(read.size(), 8 * format::slots_per_chunk);
  const std::uint64_t first = growing.bytes_read();

  write_bytes(file, with_blocks(whole, 9));
  const std::uint64_t ninth = with_blocks(whole, 9).size() - with_blocks(whole, 8).size();
  const std::vector<Slot> more = slots_of(growing.poll());
  EXPECT_EQ(more.size(), format::slots_per_chunk);
  read.insert(read.end(), more.begin(), more.end());
  const std::uint64_t second = growing.bytes_read() - first;
  EXPECT_GE(second, ninth);
  EXPECT_LE(second, ninth + sizeof(format::FileHeader));

  EXPECT_THAT(growing.poll(), IsEmpty());
  EXPECT_LE(growing.bytes_read() - first - second, sizeof(format::FileHeader));

  write_bytes(file, whole);
  const std::vector<Slot> last = slots_of(growing.poll());
  read.insert(read.end(), last.begin(), last.end());
  EXPECT_TRUE(equal(read, slots));
  EXPECT_EQ(growing.facts().header.closed, 1U);
  EXPECT_EQ(growing.damage(), "");
}

TEST_F(Watch, EventsOfTheLiveAreaAreReadOnceAlsoWhenTheyMoveIntoABlock) {
  std::vector<Slot> slots;
  for (std::uint64_t i = 0; i < 900; ++i) slots.push_back({format::pack_high(10 * i + 1, EventType::pop), i % 5});
  const fs::path file = path(0);
  format::write_trace_file(file, facts(0, 1), {{0, 100, slots}}, format::Ending::killed);
  const std::string live = bytes_of_file(file);

  // The last 100 slots are not written yet.
  std::string earlier = live;
  std::memset(earlier.data() + live_slots_at(live) + 800 * sizeof(Slot), 0, 100 * sizeof(Slot));
  write_bytes(file, earlier);
  GrowingFile growing(file);
  EXPECT_THAT(slots_of(growing.poll()), SizeIs(800));
  const std::uint64_t first = growing.bytes_read();

  write_bytes(file, live);
  EXPECT_TRUE(equal(slots_of(growing.poll()), std::vector(slots.begin() + 800, slots.end())));
  EXPECT_LE(growing.bytes_read() - first, 2 * format::page_bytes);

  format::write_trace_file(file, facts(0, 1), {{0, 100, slots}});
  EXPECT_THAT(slots_of(growing.poll()), IsEmpty());
  EXPECT_EQ(growing.facts().header.closed, 1U);
}

TEST_F(Watch, OfVeryManyNewBlocksOnlyTheLastOnesAreDecoded) {
  std::vector<Slot> slots;
  const std::size_t blocks = GrowingFile::most_blocks + 3;
  for (std::uint64_t i = 0; i < blocks * format::slots_per_chunk; ++i) {
    slots.push_back({format::pack_high(i + 1, EventType::mark), 0});
  }
  format::write_trace_file(path(0), facts(0, 1), {{0, 100, slots}});
  GrowingFile growing(path(0));
  const std::vector<NewEvents> parts = growing.poll();
  ASSERT_THAT(parts, SizeIs(GrowingFile::most_blocks));
  EXPECT_TRUE(parts.front().after_skipped);
  EXPECT_FALSE(parts.back().after_skipped);
  EXPECT_EQ(growing.skipped_events(), 3 * format::slots_per_chunk);
  EXPECT_EQ(growing.events(format::Family::nvtx), slots.size());
}

TEST_F(Watch, FiguresOfAnEndedJobAreThoseOfTheReport) {
  for (int rank = 0; rank < 3; ++rank) write_rank(rank, 3, 120, 1, 1'000'000);
  LiveJob job(directory_);
  job.poll();
  const WatchFrame frame = job.frame();
  const RunAnalysis run = analyse_run(load_run(directory_), directory_.string());

  EXPECT_TRUE(frame.ended);
  ASSERT_THAT(frame.ranks, SizeIs(3));
  EXPECT_EQ(frame.iterations, run.iterations.count);
  EXPECT_EQ(frame.median_ns, run.iterations.median_ns);
  ASSERT_TRUE(frame.lateness);
  EXPECT_TRUE(frame.lateness->judged);
  EXPECT_EQ(frame.lateness->iterations, run.lateness.iterations);
  ASSERT_THAT(frame.lateness->late, SizeIs(1));
  ASSERT_THAT(run.lateness.late, SizeIs(1));
  EXPECT_EQ(frame.lateness->late.front().rank, run.lateness.late.front().rank);
  EXPECT_THAT(frame.lateness->late.front().behind_ns, DoubleNear(run.lateness.late.front().behind_ns, 1));
  EXPECT_EQ(frame.lateness->late.front().p, run.lateness.late.front().p);
  const std::vector<FrameLine> lines = render_frame(frame, 200, 0);
  EXPECT_TRUE(std::ranges::any_of(lines, [](const FrameLine& line) {
    return line.text.starts_with("slowest rank: rank 1 comes") &&
           line.text.ends_with(" of the step, over 108 iterations");
  }));
  expect_phases_of(run, frame);
  EXPECT_THAT(frame.phase_shares[static_cast<std::size_t>(Phase::communication)], DoubleNear(0.27, 0.05));
  EXPECT_EQ(frame.ranks[2].nvtx_events, 240U);
  EXPECT_EQ(frame.ranks[2].mpi_events, 120U);
}

// A training script's asynchronous collectives are ranges by start and end. Only those that nest in the main thread's
// other ranges are a part of its phases.
TEST_F(Watch, RangesThatCrossOthersHaveNoPhase) {
  constexpr int steps = 120;
  constexpr std::uint64_t ms = 1'000'000;
  format::TraceWriter writer(facts(0, 1));
  writer.thread(0, 100, "main thread");
  std::uint64_t at = ms;
  for (int step = 0; step < steps; ++step, at += 100 * ms) {
    const auto number = static_cast<std::uint64_t>(step);
    writer.add(0, at, EventType::push_payload, writer.scope("step"),
               {{static_cast<std::uint64_t>(format::PayloadType::signed_integer), number}});
    writer.add(0, at + 1, EventType::push, writer.scope("backward"));
    writer.add(0, at + 10 * ms, EventType::start, writer.scope("allreduce"), {{2 * number + 1, 0}});
    writer.add(0, at + 20 * ms, EventType::push, writer.scope("forward"));
    writer.add(0, at + 30 * ms, EventType::pop, 0);
    writer.add(0, at + 60 * ms, EventType::pop, 0);  // backward; the allreduce crosses it
    writer.add(0, at + 70 * ms, EventType::end, 2 * number + 1);
    writer.add(0, at + 80 * ms, EventType::start, writer.scope("allreduce"), {{2 * number + 2, 0}});
    writer.add(0, at + 90 * ms, EventType::end, 2 * number + 2);  // this one nests
    writer.add(0, at + 99 * ms, EventType::pop, 0);
  }
  writer.write(path(0), format::Ending::closed);
  LiveJob job(directory_);
  job.poll();
  const WatchFrame frame = job.frame();
  expect_phases_of(analyse_run(load_run(directory_), directory_.string()), frame);
  EXPECT_THAT(frame.phase_shares[static_cast<std::size_t>(Phase::communication)], DoubleNear(10.0 / 99, 1e-6));
  EXPECT_THAT(frame.phase_shares[static_cast<std::size_t>(Phase::backward)], DoubleNear(50.0 / 99, 1e-6));
}

// Steps of 60 ms with 5 nonblocking allreduces of the main thread, which it awaits together, while a second thread
// makes 3 calls of its own under backward and beyond. Rank 1 begins backward 8 ms late.
TEST_F(Watch, WaitsOfCollectivesInFlightTogetherAreThoseOfTheReport) {
  constexpr int ranks = 3, steps = 64;
  constexpr std::uint64_t ms = 1'000'000;
  const auto function = [](format::MpiId id) { return static_cast<std::uint64_t>(id); };
  for (int rank = 0; rank < ranks; ++rank) {
    format::TraceWriter writer(facts(rank, ranks));
    writer.thread(0, 100 + static_cast<std::uint64_t>(rank), "main thread");
    writer.thread(1, 900, "sender");
    for (const std::uint64_t communicator : {1U, 2U}) {
      writer.add(0, 10, EventType::communicator, communicator | std::uint64_t{ranks} << 32,
                 {{4711 * communicator, static_cast<std::uint64_t>(rank) |
                                            std::uint64_t{writer.name(communicator == 1 ? "a" : "b")} << 32}});
    }
    std::uint64_t sequence = 0, sent = 0, request = 0;
    for (int step = 0; step < steps; ++step) {
      const std::uint64_t begin = ms + static_cast<std::uint64_t>(step) * 60 * ms;
      const auto noise = static_cast<std::uint64_t>((step * 7919 + rank * 104'729) % 1000);
      const std::uint64_t backward = begin + 5 * ms + noise + (rank == 1 ? 8 * ms : 0);
      writer.add(0, begin, EventType::push_payload, writer.scope("step"),
                 {{static_cast<std::uint64_t>(format::PayloadType::signed_integer), static_cast<std::uint64_t>(step)}});
      writer.add(0, backward, EventType::push, writer.scope("backward"));
      const std::uint64_t first = request + 1;
      for (std::uint64_t k = 0; k < 5; ++k) {
        const std::uint64_t at = backward + (2 + 2 * k) * ms;
        const std::uint64_t id = function(format::MpiId::Iallreduce);
        writer.add(0, at, EventType::mpi_begin_coll, id | std::uint64_t{0xffffffff} << 16,
                   {{1024, 1 | sequence++ << 32}});
        writer.add(0, at + 500, EventType::mpi_posted, ++request);
        writer.add(0, at + 1000, EventType::mpi_end, id);
      }
      for (std::uint64_t k = 0; k < 3; ++k) {
        const std::uint64_t id = function(format::MpiId::Allreduce), at = backward + (4 + 6 * k) * ms;
        writer.add(1, at, EventType::mpi_begin_coll, id | std::uint64_t{0xffffffff} << 16, {{1024, 2 | sent++ << 32}});
        writer.add(1, begin + (22 + 6 * k) * ms, EventType::mpi_end, id);
      }
      writer.add(0, backward + 12 * ms, EventType::pop, 0);
      writer.add(0, backward + 13 * ms, EventType::mpi_begin, function(format::MpiId::Waitall));
      for (std::uint64_t done = first; done <= request; ++done) {
        writer.add(0, begin + 40 * ms, EventType::mpi_completed, done);
      }
      writer.add(0, begin + 40 * ms + 10, EventType::mpi_end, function(format::MpiId::Waitall));
      writer.add(0, begin + 55 * ms, EventType::pop, 0);
    }
    writer.write(path(rank));
  }
  LiveJob job(directory_);
  job.poll();
  const WatchFrame frame = job.frame();
  const RunAnalysis run = analyse_run(load_run(directory_), directory_.string());
  ASSERT_THAT(frame.ranks, SizeIs(ranks));
  for (std::size_t r = 0; r < ranks; ++r) {
    EXPECT_GT(run.waits[r].blocked_ns, 0);
    EXPECT_THAT(frame.ranks[r].wait_share,
                DoubleNear(static_cast<double>(run.waits[r].waited_ns) / (steps * 55e6), 1e-6));
  }
  EXPECT_GT(run.waits[0].waited_ns, 0);
  const double on_main = static_cast<double>(run.waits[0].waited_ns) / steps;
  EXPECT_LT(on_main, 8.1e6) << "rank 1 is 8 ms late";
  // The report leaves the warm-up out, and the noise of an iteration is at most 1 µs.
  const LatenessTable& table = run.lateness_table;
  ASSERT_EQ(table.iterations(), steps - 6U);
  for (std::size_t i = 0; i < table.iterations(); ++i) {
    EXPECT_THAT(table.behind_ns[i * ranks + 1], DoubleNear(8e6, 1000));
  }
  EXPECT_THAT(frame.ranks[1].late_ns, DoubleNear(8e6, 1000));
}

// A training script's steps of 55 ms. In backward it starts 5 collectives, which end on its own thread or on another
// one, and then it waits for all of them. Rank 1 begins backward 8 ms late, 1 ms of which it is blocked in the last
// collective of the step before.
TEST_F(Watch, AsynchronousCollectivesOfAScriptAreThoseOfTheReport) {
  constexpr int ranks = 3, steps = 120;
  constexpr std::uint64_t ms = 1'000'000, buckets = 5;
  constexpr std::uint16_t torch = 1;
  constexpr std::uint32_t collective_schema = format::payload::first_own_schema, wait_schema = collective_schema + 1;
  for (int rank = 0; rank < ranks; ++rank) {
    testing::PaceFile file(rank, ranks);
    file.domain(torch, "torch");
    file.category(torch, 1, "collective");
    file.category(torch, 2, "wait");
    file.category(torch, 3, "backward");
    const auto schema = [&](std::uint32_t number, std::initializer_list<const char*> fields) {
      file.add(0, EventType::schema, number);
      file.extension(torch | std::uint64_t{1} << 16, 0);
      file.extension(0, 0);
      std::uint64_t index = 0;
      for (const std::string_view field : fields) {
        const auto type =
            field == "communicator" ? format::payload::type_registered_string : format::payload::type_uint64;
        file.schema_entry(number, index++, field, type, 0, torch);
      }
    };
    schema(collective_schema, {"communicator", "bytes", "sequence", "members", "request"});
    schema(wait_schema, {"request", "last_request"});
    const std::uint64_t step_scope = format::pack_scope(file.name("step"), 0, 0),
                        backward_scope = format::pack_scope(file.name("backward"), 3, torch),
                        collective_scope = format::pack_scope(file.name("gloo:all_reduce"), 1, torch),
                        wait_scope = format::pack_scope(file.name("wait"), 2, torch);
    const std::uint64_t communicator = file.name("default");
    std::multimap<std::uint64_t, std::function<void()>> events;
    std::uint64_t request = 0;
    for (std::uint64_t step = 0; step < steps; ++step) {
      const std::uint64_t begin = ms + step * 60 * ms,
                          noise = (step * 7919 + static_cast<std::uint64_t>(rank) * 104'729) % 1000;
      const std::uint64_t backward = begin + 5 * ms + noise + (rank == 1 ? 8 * ms : 0);
      const std::uint64_t wait = backward + 13 * ms, first = request + 1, last = request + buckets;
      events.emplace(begin, [=, &file] {
        file.add(begin, EventType::push_payload, step_scope);
        file.extension(static_cast<std::uint64_t>(format::PayloadType::signed_integer), step);
      });
      events.emplace(backward, [=, &file] { file.push(backward, backward_scope); });
      for (std::uint64_t k = 0; k < buckets; ++k) {
        const std::uint64_t at = backward + (2 + 2 * k) * ms, own = ++request;
        const std::uint64_t end = begin + (rank == 1 && k == 4 ? 61 : 24 + 3 * k) * ms;
        events.emplace(at, [=, &file] {
          file.payload(at, collective_schema, {communicator, 4096, own, ranks, own});
          file.start(at, collective_scope, own);
        });
        events.emplace(end, [=, &file] {
          if (k % 2 == 0) file.use_thread(900);
          file.end(end, own);
          file.use_thread(file.file.header.pid);
        });
      }
      events.emplace(wait, [=, &file] {
        file.payload(wait, wait_schema, {first, last});
        file.push(wait, wait_scope);
      });
      events.emplace(begin + 40 * ms, [=, &file] {
        file.pop(begin + 40 * ms, torch);
        file.pop(begin + 40 * ms, torch);
      });
      events.emplace(begin + 55 * ms, [=, &file] { file.pop(begin + 55 * ms); });
    }
    for (const auto& [ticks, write] : events) write();
    format::write_trace_file(path(rank), facts(rank, ranks), file.file.tracks);
  }
  LiveJob job(directory_);
  job.poll();
  const WatchFrame frame = job.frame();
  const RunAnalysis run = analyse_run(load_run(directory_), directory_.string());
  EXPECT_EQ(frame.iterations, run.iterations.count);
  ASSERT_THAT(frame.ranks, SizeIs(ranks));
  EXPECT_GT(run.waits[0].waited_ns, 0);
  for (std::size_t r = 0; r < ranks; ++r) {
    EXPECT_GT(run.waits[r].blocked_ns, 0);
    EXPECT_THAT(frame.ranks[r].wait_share,
                DoubleNear(static_cast<double>(run.waits[r].waited_ns) / (steps * 55e6), 1e-4));
  }
  // Rank 1 works 8 ms more before it waits, and 4 ms less after it.
  const LatenessTable& table = run.lateness_table;
  ASSERT_EQ(table.iterations(), steps - 12U);
  for (std::size_t i = 0; i < table.iterations(); ++i) {
    EXPECT_THAT(table.behind_ns[i * ranks + 1], DoubleNear(4e6, 1000));
  }
  EXPECT_THAT(frame.ranks[1].late_ns, DoubleNear(4e6, 1000));
  ASSERT_THAT(run.lateness.late, SizeIs(1));
  ASSERT_TRUE(frame.lateness);
  EXPECT_EQ(frame.lateness->iterations, run.lateness.iterations);
  ASSERT_THAT(frame.lateness->late, SizeIs(1));
  EXPECT_EQ(frame.lateness->late.front().rank, run.lateness.late.front().rank);
  EXPECT_THAT(frame.lateness->late.front().behind_ns, DoubleNear(run.lateness.late.front().behind_ns, 1));
}

TEST_F(Watch, DamagedRequestsOfAScriptAreLeftOut) {
  testing::PaceFile file(0, 2);
  file.domain(1, "torch");
  file.category(1, 1, "collective");
  file.category(1, 2, "wait");
  const std::uint64_t collective = format::pack_scope(file.name("gloo:all_reduce"), 1, 1),
                      wait = format::pack_scope(file.name("wait"), 2, 1);
  constexpr std::uint64_t range = 7, none = ~std::uint64_t{0};
  std::uint64_t ticks = 1000;
  for (const std::uint64_t request : {1, 2}) {  // of one range
    file.payload(ticks, 1, {0, 4096, request, 2, request});
    file.start(ticks++, collective, range);
  }
  file.end(ticks++, range);
  for (const auto& [first, last] : {std::pair{1UL, 2UL}, {0UL, none}, {1UL, none}, {none - 1, none}, {5UL, 3UL}}) {
    file.payload(ticks, 2, {first, last});
    file.push(ticks++, wait);
    file.pop(ticks++, 1);
  }
  format::write_trace_file(path(0), facts(0, 2), file.file.tracks);
  LiveJob job(directory_);
  job.poll();
  ASSERT_THAT(job.frame().ranks, SizeIs(1));
  EXPECT_EQ(job.frame().ranks.front().problem, "");
}

TEST_F(Watch, ACollectiveThatOneRankNeverReachedIsAHang) {
  write_rank(0, 3, 21, -1, 0, format::Ending::killed);
  write_rank(1, 3, 20, -1, 0, format::Ending::killed);
  write_rank(2, 3, 21, -1, 0, format::Ending::killed);
  // Ranks 0 and 2 are still inside the last allreduce: without its end and what follows.
  for (const int rank : {0, 2}) {
    std::string bytes = bytes_of_file(path(rank));
    const std::size_t begin = live_slots_at(bytes);
    std::size_t last_end = 0;
    for (std::size_t at = begin; at < begin + format::slots_per_page * sizeof(Slot); at += sizeof(Slot)) {
      Slot slot;
      std::memcpy(&slot, bytes.data() + at, sizeof slot);
      if (type_of(slot) == EventType::mpi_end && ticks_of(slot) > 200'000'000) last_end = at;
    }
    ASSERT_GT(last_end, 0U);
    std::memset(bytes.data() + last_end, 0, 2 * sizeof(Slot));
    write_bytes(path(rank), bytes);
  }
  LiveJob job(directory_);
  job.poll();
  const WatchFrame frame = job.frame();
  ASSERT_THAT(frame.findings, SizeIs(1));
  EXPECT_EQ(frame.findings.front().kind, "hang");
  EXPECT_THAT(frame.findings.front().text,
              HasSubstr("Rank 1 never entered MPI_Allreduce #21 on MPI_COMM_WORLD; ranks 0 and 2"));
  EXPECT_EQ(frame.ranks[0].doing, "MPI_Allreduce");
  EXPECT_EQ(frame.iterations, 19U);  // of 20; the last one may still get collectives
}

// Ranks 0 and 2 are in step(), rank 1 in a call below load(). Samples of other threads and regular ones do not count.
TEST_F(Watch, RecordedStacksAreOneTree) {
  const auto word = [](std::uint64_t low, std::uint64_t high) { return low | high << 32; };
  for (const int rank : {0, 1, 2}) {
    const std::uint64_t thread = 100 + static_cast<std::uint64_t>(rank);
    format::TraceWriter writer(facts(rank, 3));
    const auto stack = [&](std::uint64_t number, std::uint64_t caller, const char* function, const char* file,
                           std::uint64_t line) {
      writer.add(0, 10, EventType::stack, word(number, caller),
                 {{word(writer.name(function), writer.name(file)), line}});
    };
    stack(1, 0, "<module>", "/home/u/train.py", 9);
    stack(2, 1, "step", "/home/u/train.py", 5);
    stack(3, 1, "load", "/home/u/data.py", 41);
    stack(4, 3, "[read]", "/data/x", 0);
    writer.add(0, 20, EventType::stack_sample, word(thread, rank == 1 ? 4 : 2), {{0, 0}});
    writer.add(0, 30, EventType::stack_sample, word(999, 1), {{0, 0}});
    writer.add(0, 40, EventType::stack_sample, word(thread, 3), {{10'000'000, 0}});
    writer.write(path(rank));
  }
  LiveJob job(directory_);
  job.poll();
  const Trace stacks = job.stacks_since({});
  EXPECT_EQ(last_stacks_text(stacks),
            "Rank 1 is in read (/data/x) below load (data.py:41); ranks 0 and 2 are in step (train.py:5).");
  EXPECT_THAT(stack_tree(stacks), ElementsAre("ranks 0, 1 and 2  <module> (train.py:9)",  //
                                              "rank 1             load (data.py:41)",     //
                                              "rank 1              [read] (/data/x)",     //
                                              "ranks 0 and 2      step (train.py:5)"));
  EXPECT_THAT(job.stacks_since({{0, 20}, {1, 20}, {2, 19}}).ranks, SizeIs(1));
}

TEST_F(Watch, FilesThatVanishAreDamagedOrAreNoTracesTakeOneLineEach) {
  for (int rank = 0; rank < 3; ++rank) write_rank(rank, 3, 30, -1, 0, format::Ending::killed);
  write_bytes(directory_ / "notes.txt", "hello");
  write_bytes(directory_ / "cut.pace", bytes_of_file(path(0)).substr(0, 100));
  std::string damaged = bytes_of_file(path(2));
  format::FileHeader header;
  std::memcpy(&header, damaged.data(), sizeof header);
  header.blocks_end += 4000;
  std::memcpy(damaged.data(), &header, sizeof header);
  write_bytes(path(2), damaged);
  LiveJob job(directory_);
  job.poll();
  fs::remove(path(1));
  job.poll();
  job.poll();
  const WatchFrame frame = job.frame();
  ASSERT_THAT(frame.ranks, SizeIs(3));
  EXPECT_EQ(frame.ranks[0].problem, "");
  EXPECT_EQ(frame.ranks[1].state, LiveState::lost);
  EXPECT_THAT(frame.ranks[1].problem, HasSubstr("No such file"));
  EXPECT_THAT(frame.ranks[2].problem, HasSubstr("cut"));
  ASSERT_THAT(frame.notes, SizeIs(1));
  EXPECT_THAT(frame.notes.front(), HasSubstr("cut.pace"));
}

TEST_F(Watch, AProcessThatIsGoneIsKilled) {
  format::HeaderFacts gone = facts(0, 1);
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string boot_id;
  std::getline(boot, boot_id);
  gone.boot_id = boot_id.c_str();
  const std::string host = format::this_host();
  gone.host = host.c_str();
  gone.process_start = 1;  // no process with this id began at that time
  format::write_trace_file(path(0), gone, {{0, 100, {{format::pack_high(5, EventType::mark), 0}}}},
                           format::Ending::killed);
  LiveJob job(directory_);
  job.poll();
  job.poll();
  const WatchFrame frame = job.frame();
  ASSERT_THAT(frame.ranks, SizeIs(1));
  EXPECT_EQ(frame.ranks.front().state, LiveState::killed);
  EXPECT_TRUE(frame.ended);
}

TEST_F(Watch, ADirectoryThatIsEmptyOrNotThereHasNoRanks) {
  LiveJob absent(directory_ / "later"), empty(directory_);
  absent.poll();
  empty.poll();
  EXPECT_FALSE(absent.any_ranks());
  EXPECT_FALSE(empty.any_ranks());
  fs::create_directories(directory_ / "later");
  write_rank(0, 1, 5, -1, 0);
  fs::rename(path(0), directory_ / "later" / "rank0.pace");
  absent.poll();
  EXPECT_TRUE(absent.any_ranks());
}

TEST_F(Watch, ControlCharactersOfNamesNeverReachTheTerminal) {
  write_rank(0, 1, 5, -1, 0, format::Ending::killed);
  LiveJob job(directory_);
  job.poll();
  WatchFrame frame = job.frame();
  const std::string hostile =
      "a\x1b]0;owned\x07\x1b[2Jb\nc\x9b"
      "31m\xe2\x80\xae";
  frame.path = frame.ranks[0].host = frame.ranks[0].doing = frame.ranks[0].problem = hostile;
  frame.notes = {hostile};
  for (const FrameLine& line : render_frame(frame, 200, 0)) {
    for (const char c : line.text) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line.text;
    EXPECT_THAT(line.text, Not(HasSubstr("\x9b")));
    EXPECT_THAT(line.text, Not(HasSubstr("\xe2\x80\xae")));
  }
  EXPECT_THAT(frame_json(frame), Not(HasSubstr("\x1b")));
  EXPECT_THAT(closing_line(frame), Not(HasSubstr("\x1b")));
  EXPECT_THAT(frame_summary(frame), Not(HasSubstr("\x1b")));
}

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

WatchFrame frame_of_64() {
  WatchFrame frame;
  frame.path = "run";
  frame.hosts = 8;
  frame.expected_ranks = 64;
  frame.iterations = 500;
  frame.steps_ns.assign(64, 1.283e8);
  frame.median_ns = 128'300'000;
  frame.phase_shares[2] = 1;
  for (int rank = 0; rank < 64; ++rank) {
    WatchedRank& own = frame.ranks.emplace_back();
    own.rank = rank;
    own.host = "a-host-with-a-long-name-" + std::to_string(rank / 8);
    own.iterations = 500;
    own.step_ns = 128'300'000;
    own.doing = "a range with a name that is longer than its column";
  }
  return frame;
}

TEST_F(Watch, SixtyFourRanksFitOnAScreenOf80Times70) {
  const std::vector<FrameLine> lines = render_frame(frame_of_64(), 80, 70);
  ASSERT_THAT(lines, SizeIs(Le(70U)));
  for (int rank = 0; rank < 64; ++rank) {
    const auto is_of_rank = [&](const FrameLine& line) {
      return line.text.starts_with((rank < 10 ? "    " : "   ") + std::to_string(rank) + "  ");
    };
    EXPECT_EQ(std::ranges::count_if(lines, is_of_rank), 1) << rank;
  }
  for (const FrameLine& line : lines) EXPECT_LE(characters(line.text), 80U) << line.text;
}

TEST_F(Watch, ASmallScreenCountsTheRanksThatItDoesNotShow) {
  const WatchFrame frame = frame_of_64();
  const std::vector<FrameLine> lines = render_frame(frame, 40, 20, 10);
  ASSERT_THAT(lines, SizeIs(20));
  EXPECT_THAT(lines[5].text, HasSubstr("   10  "));
  EXPECT_THAT(lines.back().text, HasSubstr("50 of 64 ranks"));
  for (const FrameLine& line : lines) EXPECT_LE(characters(line.text), 40U) << line.text;
  EXPECT_THAT(render_frame(frame, 1, 1), SizeIs(1));
}

}  // namespace
}  // namespace paceline::analysis
