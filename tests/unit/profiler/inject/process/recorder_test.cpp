// SPDX-License-Identifier: Apache-2.0
// The recorder with many threads, full buffers, forks and sudden ends.
#include "profiler/inject/buffer/writer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <thread>

#include "profiler/inject/buffer/names.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/process/control.h"
#include "profiler/inject/process/lifecycle.h"
#include "profiler/inject/system/settings.h"
#include "tests/unit/profiler/inject/child.h"

extern "C" int paceline_recording(int on);

// A forked child may have the sanitizer's allocator as another thread had locked it, and would wait for it for ever
// when it looks for leaks at its end.
static bool leaks_are_looked_for = true;
extern "C" int __lsan_is_turned_off() { return leaks_are_looked_for ? 0 : 1; }

namespace paceline::test {
namespace {

using format::EventType;
using inject::emit;
using inject::emit_pop;

class InjectRecorder : public RecordingTest {};

std::uint64_t scope(const char* name) { return format::pack_scope(inject::intern(std::string_view(name)), 0, 0); }

void push(std::uint64_t low) { inject::emit_push(EventType::push, low); }

// Depth never falls below 0 and ends at 0, and each pop finds a push.
void expect_balanced(const RecordedFile& file) {
  std::map<std::uint32_t, int> depth;
  for (const RecordedEvent& event : file.events) {
    if (event.type == EventType::push) ++depth[event.track];
    if (event.type == EventType::pop) {
      ASSERT_GE(--depth[event.track], 0) << "track " << event.track;
    }
  }
  for (const auto& [track, left] : depth) EXPECT_EQ(left, 0) << "track " << track;
}

TEST_F(InjectRecorder, EachThreadHasItsTrackAndAllItsEvents) {
  constexpr int ranges = 6'000;
  setenv("PACELINE_BUFFER_BYTES", "67108864", 1);
  RECORD({
    inject::open_recorder();
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([thread] {
        const std::string name = "thread " + std::to_string(thread);
        for (int range = 0; range < ranges; ++range) {
          push(scope(name.c_str()));
          emit_pop(0);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  const RecordedFile file = only_file();
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  EXPECT_EQ(file.dropped(), 0u);
  for (int thread = 0; thread < 4; ++thread) {
    const auto pushes = file.named(EventType::push, "thread " + std::to_string(thread));
    ASSERT_EQ(pushes.size(), std::size_t{ranges});
    for (const RecordedEvent& event : pushes) ASSERT_EQ(event.track, pushes.front().track);
  }
  expect_balanced(file);
}

// Four chunks for two threads that write without pause: many events are lost, all of them are counted, and the rest is
// complete. Where the drain keeps up, because clock readings are slow, the threads write until events are lost.
TEST_F(InjectRecorder, EventsThatDoNotFitAreCountedAndRangesStayBalanced) {
  constexpr std::uint64_t fewest_ranges = 60'000, most_ranges = 100 * fewest_ranges;
  const std::filesystem::path count = directory / "ranges";
  setenv("PACELINE_BUFFER_BYTES", "1", 1);
  RECORD({
    inject::open_recorder();
    const std::uint64_t outer = scope("outer");
    const std::uint64_t inner = scope("inner");
    const std::atomic_ref<std::uint64_t> dropped(
        inject::session.file.header->dropped[static_cast<std::size_t>(format::DropCause::no_free_chunk)]);
    const auto enough = [&](std::uint64_t number) {
      return number >= most_ranges || (number >= fewest_ranges && dropped > 1000);
    };
    std::atomic<std::uint64_t> ranges{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&] {
        for (std::uint64_t range = 0; !enough(range); ++range) {
          ++ranges;
          push(outer);
          push(inner);
          emit_pop(0);
          emit_pop(0);
        }
        usleep(100'000);  // the drain catches up, so that deferred ends can be written
        push(outer);
        emit_pop(0);
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::ofstream(count) << ranges;
  });
  std::uint64_t ranges = 0;
  ASSERT_TRUE(std::ifstream(count) >> ranges);
  const RecordedFile file = only_file();
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  const std::uint64_t recorded = file.of(EventType::push).size() + file.of(EventType::pop).size();
  const std::uint64_t written = 4 * (ranges + 1);
  // A pop that was dropped and counted is still written later: at most a few for each time that a thread found no room.
  EXPECT_GT(file.dropped(), 1000u);
  EXPECT_GE(recorded + file.dropped(), written);
  EXPECT_LE(recorded + file.dropped(), written + written / 1000);
  expect_balanced(file);
}

TEST_F(InjectRecorder, NamesOfManyThreadsAreRecordedOnce) {
  RECORD({
    inject::open_recorder();
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([] {
        for (int name = 0; name < 500; ++name) emit(EventType::mark, scope(("name " + std::to_string(name)).c_str()));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  const RecordedFile file = only_file();
  std::map<std::string, int> names, marks;
  for (const RecordedEvent& event : file.of(EventType::name)) {
    if (event.name.starts_with("name ")) ++names[event.name];  // in a slow run the recorder's counters have names, too
  }
  for (const RecordedEvent& event : file.of(EventType::mark)) ++marks[event.name];
  EXPECT_EQ(names.size(), 500u);
  EXPECT_EQ(marks.size(), 500u);
  for (const auto& [name, count] : names) EXPECT_EQ(count, 1) << name;
  for (const auto& [name, count] : marks) EXPECT_EQ(count, 4) << name;
}

// The other tests leave these sources out. They start, work and end beside the drain and threads that come and go,
// which ThreadSanitizer watches here.
TEST_F(InjectRecorder, TheSourcesStartAndEndBesideTheDrain) {
  setenv("PACELINE_SCHEDULER", "sums", 1);
  setenv("PACELINE_COUNTERS_US", "1000", 1);
  setenv("PACELINE_SAMPLE_US", "1000", 1);
  setenv("PACELINE_SAMPLE_THREADS", "all", 1);
  setenv("PACELINE_HANG_MS", "50", 1);
  RECORD({
    inject::open_recorder();
    for (int round = 0; round < 4; ++round) {
      std::vector<std::thread> threads;
      for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([] {
          push(scope("sleep"));
          usleep(100'000);
          emit_pop(0);
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
  });
  setenv("PACELINE_SCHEDULER", "0", 1);
  for (const char* name : {"PACELINE_SAMPLE_US", "PACELINE_SAMPLE_THREADS", "PACELINE_HANG_MS"}) unsetenv(name);
  const RecordedFile file = only_file();
  EXPECT_EQ(file.of(EventType::push).size(), 16u);
  EXPECT_GT(file.of(EventType::thread_times).size(), 0u);
  EXPECT_GT(file.of(EventType::sample).size(), 0u);
  EXPECT_GT(file.of(EventType::stack_sample).size(), 0u);
}

TEST_F(InjectRecorder, RecordingCanBeSwitchedOffAndOn) {
  RECORD({
    inject::open_recorder();
    for (int step = 0; step < 10; ++step) {
      if (paceline_recording(step % 2) != (step == 0 ? 1 : (step - 1) % 2)) exit(1);
      if (inject::recording()) emit(EventType::mark, scope("on"));
      if (!inject::recording()) scope("named while off");
    }
  });
  const RecordedFile file = only_file();
  EXPECT_EQ(file.of(EventType::mark).size(), 5u);
  EXPECT_EQ(file.named(EventType::name, "named while off").size(), 1u);
}

TEST_F(InjectRecorder, AProcessThatEndsAtOnceLeavesAllItsEvents) {
  EXPECT_EXIT(
      {
        inject::open_recorder();
        for (int i = 0; i < 10'000; ++i) {
          push(scope("range"));
          emit_pop(0);
        }
        _exit(3);
      },
      ::testing::ExitedWithCode(3), "");
  const RecordedFile file = only_file();
  EXPECT_EQ(file.file.header.closed, 0u);
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  EXPECT_EQ(file.of(EventType::push).size(), 10'000u);
  EXPECT_EQ(file.of(EventType::pop).size(), 10'000u);
  EXPECT_TRUE(file.of(EventType::process_end).empty());
}

TEST_F(InjectRecorder, AnExcludedChildRecordsNothingAndLeavesTheParentsFileAlone) {
  RECORD({
    inject::open_recorder();
    inject::settings.children = inject::Children::none;
    emit(EventType::mark, scope("parent before"));
    const pid_t child = fork();
    if (child == 0) {
      if (inject::recording() || inject::file_is_open()) _exit(1);
      inject::set_recording(true);
      if (inject::recording()) _exit(2);
      if (inject::open_recorder()) _exit(3);
      leaks_are_looked_for = false;
      exit(0);  // runs the destructors, which must not close the parent's file
    }
    int status = 0;
    waitpid(child, &status, 0);
    emit(EventType::mark, scope("parent after"));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) exit(10);
  });
  const RecordedFile file = only_file();
  EXPECT_EQ(file.file.header.closed, 1u);
  EXPECT_EQ(file.named(EventType::mark, "parent before").size(), 1u);
  EXPECT_EQ(file.named(EventType::mark, "parent after").size(), 1u);
}

TEST_F(InjectRecorder, AnEarlierFileIsNeverOverwritten) {
  setenv("PACELINE_PATTERN", "trace.pace", 1);
  for (const char* mark : {"first", "second"}) {
    RECORD({
      inject::open_recorder();
      emit(EventType::mark, scope(mark));
    });
  }
  unsetenv("PACELINE_PATTERN");
  EXPECT_EQ(read_recorded(directory / "run" / "trace.pace").named(EventType::mark, "first").size(), 1u);
  EXPECT_EQ(read_recorded(directory / "run" / "trace-2.pace").named(EventType::mark, "second").size(), 1u);
}

TEST_F(InjectRecorder, TheHeaderDescribesTheProcess) {
  setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "5", 1);
  setenv("PACELINE_SET", "model=resnet18\nbatch=64", 1);
  RECORD(inject::open_recorder());
  unsetenv("OMPI_COMM_WORLD_RANK");
  unsetenv("OMPI_COMM_WORLD_SIZE");
  unsetenv("PACELINE_SET");
  const RecordedFile file = only_file();
  char host[256] = "";
  gethostname(host, sizeof host);
  EXPECT_EQ(file.file.host, host);
  EXPECT_EQ(file.file.header.rank, 3);
  EXPECT_EQ(file.file.header.world_size, 5);
  EXPECT_EQ(file.file.set.at("model"), "resnet18");
  EXPECT_EQ(file.file.set.at("batch"), "64");
  ASSERT_FALSE(file.file.command.empty());
  EXPECT_NE(file.file.command[0].find("test_profiler_inject"), std::string::npos);
  EXPECT_EQ(file.file.directory, std::filesystem::current_path());
  // The process began shortly before its recording.
  const std::int64_t age = file.file.header.start_utc_ns - file.file.header.process_start_utc_ns;
  EXPECT_GT(age, -20'000'000);  // the system counts in hundredths of a second
  EXPECT_LT(age, 60'000'000'000);
}

// The clock pairs confirm the nominal rate of the ticks to 1 %.
TEST_F(InjectRecorder, ClockPairsRelateTicksToTheSystemClocks) {
  RECORD({
    inject::open_recorder();
    usleep(50'000);
  });
  const RecordedFile file = only_file();
  const auto pairs = file.of(EventType::clock_pair);
  ASSERT_EQ(pairs.size(), 2u);
  const double ticks = static_cast<double>(pairs[1].ticks - pairs[0].ticks);
  const double ns = static_cast<double>(pairs[1].extension[0].high - pairs[0].extension[0].high);
  EXPECT_GE(ns, 50e6);
  EXPECT_NEAR(ticks / file.file.header.ticks_per_second * 1e9 / ns, 1.0, 0.01);
  const auto utc_at_zero = static_cast<double>(pairs[0].head.low) -
                           static_cast<double>(pairs[0].ticks) / file.file.header.ticks_per_second * 1e9;
  EXPECT_NEAR(utc_at_zero, static_cast<double>(file.file.header.start_utc_ns), 1e6);
}

}  // namespace
}  // namespace paceline::test
