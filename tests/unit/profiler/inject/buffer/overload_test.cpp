// SPDX-License-Identifier: Apache-2.0
// More events than fit into the live area, and more threads than it has units.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "profiler/inject/buffer/chunks.h"
#include "profiler/inject/buffer/names.h"
#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/process/lifecycle.h"
#include "tests/unit/profiler/inject/child.h"

namespace paceline::test {
namespace {

using format::EventType;
using inject::emit_pop;
using inject::emit_push;

class InjectOverload : public RecordingTest {
 protected:
  // The recorder's own threads write nothing, so that all that is lost belongs to the tests.
  void SetUp() override {
    RecordingTest::SetUp();
    setenv("PACELINE_SCHEDULER", "0", 1);
    setenv("PACELINE_SAMPLE_US", "0", 1);
  }
  void TearDown() override {
    for (const char* name : {"PACELINE_LOSSLESS", "PACELINE_SCHEDULER", "PACELINE_SAMPLE_US"}) unsetenv(name);
    RecordingTest::TearDown();
  }
};

std::uint64_t overload_scope(const std::string& name) {
  return format::pack_scope(inject::intern(std::string_view(name)), 0, 0);
}

constexpr int iterations = 20;

// Sanitizers slow the recorder and its drain equally, and the test itself much more.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int share = 20;
#else
constexpr int share = 1;
#endif

// Withholds all free chunks while it lives, so that a thread that has filled its own finds no other one until the drain
// gives that back. Otherwise whether events are lost depends on which of the two is faster.
class WithheldChunks {
 public:
  WithheldChunks() {
    for (std::uint32_t unit; (unit = inject::take_unit()) != inject::no_chunk;) chunks.push_back(unit);
    for (std::uint32_t page; (page = inject::take_page()) != inject::no_chunk;) chunks.push_back(page);
  }
  WithheldChunks(const WithheldChunks&) = delete;
  WithheldChunks& operator=(const WithheldChunks&) = delete;
  ~WithheldChunks() {
    for (const std::uint32_t chunk : chunks) inject::set_free(chunk);
  }

 private:
  std::vector<std::uint32_t> chunks;
};

// Iterations with one forward range each, which contains more ranges than the drain can write in that time.
void overloaded_work(int inner_ranges) {
  const std::uint64_t iteration = overload_scope("iteration"), forward = overload_scope("forward"),
                      inner = overload_scope("inner");
  for (int step = 0; step < iterations; ++step) {
    emit_push(EventType::push, iteration);
    emit_push(EventType::push, forward);
    for (int range = 0; range < inner_ranges; ++range) {
      emit_push(EventType::push, inner);
      emit_pop(0);
    }
    emit_pop(0);
    emit_pop(0);
  }
}

// Threads that do such work, each with the chunk of its first event and no other one.
void work_with_one_chunk_each(int threads, int inner_ranges) {
  std::atomic<int> with_a_chunk{0};
  std::atomic<bool> withheld{false};
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) {
    all.emplace_back([&] {
      emit_push(EventType::push, overload_scope("first"));
      emit_pop(0);
      ++with_a_chunk;
      while (!withheld) std::this_thread::yield();
      overloaded_work(inner_ranges);
    });
  }
  while (with_a_chunk < threads) std::this_thread::yield();
  const WithheldChunks others;
  withheld = true;
  for (std::thread& thread : all) thread.join();
}

struct Range {
  std::uint64_t begin = 0, end = 0;
};

// The ranges of a name on a track, by the stack of pushes and pops. Depth never falls below 0 and ends at 0.
std::vector<Range> ranges_of(const RecordedFile& file, std::uint32_t track, const std::string& name) {
  std::vector<std::pair<std::string, std::uint64_t>> open;
  std::vector<Range> found;
  for (const RecordedEvent& event : file.events) {
    if (event.track != track) continue;
    if (event.type == EventType::push) open.emplace_back(event.name, event.ticks);
    if (event.type != EventType::pop) continue;
    if (open.empty()) {
      ADD_FAILURE() << "a pop without a push";
      break;
    }
    if (open.back().first == name) found.push_back({open.back().second, event.ticks});
    open.pop_back();
  }
  EXPECT_EQ(open.size(), 0u) << "track " << track;
  return found;
}

std::uint64_t lost_events(const RecordedFile& file) {
  std::uint64_t events = 0;
  for (const format::LostStretch& lost : file.file.lost) events += lost.events;
  return events;
}

TEST_F(InjectOverload, KeepsTheOuterRangesAndRecordsWhenOthersWereLost) {
  setenv("PACELINE_BUFFER_BYTES", "1", 1);
  RECORD({
    inject::open_recorder();
    const WithheldChunks withheld;
    overloaded_work(50'000 / share);
  });
  const RecordedFile file = only_file();
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  ASSERT_GT(file.dropped(), 0u);
  const std::uint32_t track = file.named(EventType::push, "iteration").front().track;
  const std::vector<Range> outer = ranges_of(file, track, "iteration");
  const std::vector<Range> forward = ranges_of(file, track, "forward");
  ASSERT_EQ(outer.size(), std::size_t{iterations});
  ASSERT_EQ(forward.size(), std::size_t{iterations});
  std::uint64_t in_forward = 0, between = 0;
  for (int step = 0; step < iterations; ++step) {
    EXPECT_LE(outer[step].begin, forward[step].begin);
    EXPECT_GE(outer[step].end, forward[step].end);
    in_forward += forward[step].end - forward[step].begin;
    if (step > 0) between += outer[step].begin - outer[step - 1].end;
  }
  EXPECT_LT(between, in_forward / 2) << "ends that come late make the range before too long";
  // The stretches account for all dropped events, lie within the recording, and do not overlap.
  EXPECT_EQ(lost_events(file), file.dropped());
  std::uint64_t before = 0;
  for (const format::LostStretch& lost : file.file.lost) {
    EXPECT_EQ(lost.track, track);
    EXPECT_GE(lost.first_ticks, before);
    EXPECT_LE(lost.last_ticks, outer.back().end);
    before = lost.last_ticks;
  }
}

TEST_F(InjectOverload, KeepsTheOuterRangesOfManyThreads) {
  constexpr int threads = 6;
  setenv("PACELINE_BUFFER_BYTES", "1", 1);
  RECORD({
    inject::open_recorder();
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread) all.emplace_back([] { overloaded_work(20'000 / share); });
    for (std::thread& thread : all) thread.join();
  });
  const RecordedFile file = only_file();
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  if (share > 1 && file.dropped() == 0) GTEST_SKIP() << "under this sanitizer the drain keeps up";
  ASSERT_GT(file.dropped(), 0u);
  EXPECT_EQ(lost_events(file), file.dropped());
  std::map<std::uint32_t, int> tracks;
  for (const RecordedEvent& event : file.named(EventType::push, "iteration")) ++tracks[event.track];
  EXPECT_EQ(tracks.size(), std::size_t{threads});
  for (const auto& [track, count] : tracks) {
    EXPECT_EQ(ranges_of(file, track, "iteration").size(), std::size_t{iterations}) << track;
    EXPECT_EQ(ranges_of(file, track, "forward").size(), std::size_t{iterations}) << track;
  }
}

TEST_F(InjectOverload, AKilledProcessHasRecordedItsLosses) {
  setenv("PACELINE_BUFFER_BYTES", "1", 1);
  const pid_t child = fork();
  if (child == 0) {
    inject::open_recorder();
    std::thread other([] { overloaded_work(50'000'000); });
    overloaded_work(50'000'000);
    _exit(0);
  }
  // The kill comes after the first loss, at any moment.
  constexpr std::uint64_t enough = 200'000 / share;
  std::uint64_t dropped = 0;
  for (int wait = 0; wait < 3000 && dropped < enough; ++wait) {
    usleep(10'000);
    if (!std::filesystem::exists(directory / "run")) continue;
    for (const auto& entry : std::filesystem::directory_iterator(directory / "run")) {
      if (entry.path().extension() != ".pace") continue;
      dropped = format::read_trace_header(entry.path()).header.dropped[0];
    }
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  const RecordedFile file = only_file();
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  EXPECT_EQ(file.file.header.closed, 0u);
  ASSERT_GE(file.dropped(), enough);
  // Each thread may be killed between noting a loss and counting it.
  EXPECT_GE(lost_events(file), file.dropped());
  EXPECT_LE(lost_events(file), file.dropped() + 2);
}

TEST_F(InjectOverload, WithLosslessNothingIsLostAndTheWaitsAreRecorded) {
  setenv("PACELINE_BUFFER_BYTES", "1", 1);
  setenv("PACELINE_LOSSLESS", "1", 1);
  constexpr int inner = share == 1 ? 10'000 : 2'000;
  RECORD({
    inject::open_recorder();
    work_with_one_chunk_each(2, inner);
  });
  const RecordedFile file = only_file();
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  EXPECT_EQ(file.dropped(), 0u);
  EXPECT_TRUE(file.file.lost.empty());
  EXPECT_EQ(file.named(EventType::push, "inner").size(), std::size_t{2 * iterations * inner});
  const auto waits = file.named(EventType::push, "recorder wait");
  std::set<std::uint32_t> tracks;
  for (const RecordedEvent& wait : waits) {
    EXPECT_EQ(wait.domain, "paceline");
    tracks.insert(wait.track);
  }
  EXPECT_EQ(tracks.size(), 2u) << "each thread had to wait for its only chunk";
  for (const std::uint32_t track : tracks) EXPECT_FALSE(ranges_of(file, track, "recorder wait").empty());
}

// A child of fork has no drain that frees chunks, so no thread may wait for one.
TEST_F(InjectOverload, WithLosslessAForkInAnOverloadEnds) {
  setenv("PACELINE_BUFFER_BYTES", "1", 1);
  setenv("PACELINE_LOSSLESS", "1", 1);
  RECORD({
    inject::open_recorder();
    std::thread other([] { overloaded_work(5'000 / share); });
    for (int child = 0; child < 10; ++child) {
      const pid_t forked = fork();
      if (forked == 0) {
        overloaded_work(100);
        _exit(0);
      }
      overloaded_work(100);
      int status = 0;
      waitpid(forked, &status, 0);
      if (status != 0) exit(1);
    }
    other.join();
  });
}

// Each thread has its events, although the live area of 32 MiB holds 512 chunks of the usual size.
TEST_F(InjectOverload, TwoThousandLiveThreadsLoseNothing) {
  constexpr int threads = 2000;
  RECORD({
    inject::open_recorder();
    const std::uint64_t range = overload_scope("range");
    std::atomic<int> written{0};
    std::atomic<bool> done{false};
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread) {
      all.emplace_back([&] {
        for (int i = 0; i < 10; ++i) {
          emit_push(EventType::push, range);
          emit_pop(0);
        }
        ++written;
        while (!done) usleep(50'000);
      });
    }
    while (written < threads) usleep(1000);
    done = true;
    for (std::thread& thread : all) thread.join();
  });
  const RecordedFile file = only_file();
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  EXPECT_EQ(file.dropped(), 0u);
  EXPECT_EQ(file.named(EventType::push, "range").size(), std::size_t{10 * threads});
  std::map<std::uint32_t, int> tracks;
  for (const RecordedEvent& event : file.named(EventType::push, "range")) ++tracks[event.track];
  EXPECT_EQ(tracks.size(), std::size_t{threads});
}

TEST_F(InjectOverload, ManyShortThreadsLoseNothing) {
  constexpr int threads = 10'000 / share;
  setenv("PACELINE_BUFFER_BYTES", "1048576", 1);
  RECORD({
    inject::open_recorder();
    const std::uint64_t range = overload_scope("range");
    for (int thread = 0; thread < threads; ++thread) {
      std::thread([&] {
        emit_push(EventType::push, range);
        emit_pop(0);
      }).join();
    }
  });
  const RecordedFile file = only_file();
  EXPECT_EQ(file.dropped(), 0u);
  EXPECT_EQ(file.named(EventType::push, "range").size(), std::size_t{threads});
}

// Pages become whole units again, so that a program can go from many threads to few and back.
TEST_F(InjectOverload, DividedUnitsBecomeWholeAgain) {
  setenv("PACELINE_BUFFER_BYTES", "1048576", 1);
  setenv("PACELINE_LOSSLESS", "1", 1);
  RECORD({
    inject::open_recorder();
    const std::uint64_t range = overload_scope("range");
    for (int round = 0; round < 5; ++round) {
      std::vector<std::thread> all;
      for (int thread = 0; thread < 200; ++thread) {
        all.emplace_back([&] {
          emit_push(EventType::push, range);
          emit_pop(0);
        });
      }
      for (std::thread& thread : all) thread.join();
      for (int i = 0; i < 50'000 / share; ++i) {
        emit_push(EventType::push, range);
        emit_pop(0);
      }
    }
  });
  const RecordedFile file = only_file();
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  EXPECT_EQ(file.dropped(), 0u);
  EXPECT_EQ(file.named(EventType::push, "range").size(), std::size_t{5 * (200 + 50'000 / share)});
}

}  // namespace
}  // namespace paceline::test
