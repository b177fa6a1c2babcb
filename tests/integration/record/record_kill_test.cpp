// SPDX-License-Identifier: Apache-2.0
// A process that is killed at any moment leaves a readable file with all events before the kill.
// PACELINE_KILLS=200 sets the number of kills; the default is 20.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <map>
#include <random>

#include "profiler/format/error.h"
#include "tests/integration/record/killed.h"
#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using format::EventType;
using format::Slot;

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The log of both threads, in a file that the program also maps.
class Logs {
 public:
  explicit Logs(const std::string& path) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0 || ftruncate(file, bytes) != 0) return;
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) logs_ = static_cast<killed_log*>(mapped);
  }
  ~Logs() {
    if (logs_ != nullptr) munmap(logs_, bytes);
  }
  Logs(const Logs&) = delete;
  Logs& operator=(const Logs&) = delete;

  bool open_for_reading() const { return logs_ != nullptr; }
  std::uint64_t ended(int thread) const {
    return std::atomic_ref<std::uint64_t>(logs_[thread].count).load(std::memory_order_acquire);
  }
  std::uint64_t ended_before(int thread, std::int64_t ns) const {
    std::uint64_t count = 0;
    while (count < ended(thread) && logs_[thread].end_ns[count] < ns) ++count;
    return count;
  }

 private:
  static constexpr std::size_t bytes = 2 * sizeof(killed_log);
  killed_log* logs_ = nullptr;
};

// The number of complete ranges of each thread, in order from 0; a gap ends the count.
std::array<std::uint64_t, 2> ranges_in(const format::TraceFile& file) {
  std::map<std::uint32_t, int> thread_of_name;
  std::array<std::uint64_t, 2> whole{};
  const auto each = [&](auto&& see) {
    for (const format::Track& track : file.tracks) {
      for (std::size_t at = 0; at < track.slots.size(); at += 1 + format::extension_slots(track.slots[at])) {
        see(track.slots[at], &track.slots[at] + 1, track.id);
      }
    }
  };
  each([&](const Slot& head, const Slot* extension, std::uint32_t) {
    if (type_of(head) != EventType::name) return;
    const std::string_view name(reinterpret_cast<const char*>(extension), head.low >> 32);
    if (name.starts_with("thread ")) thread_of_name[static_cast<std::uint32_t>(head.low)] = name.back() - '0';
  });
  std::map<std::uint32_t, std::pair<int, std::uint64_t>> open;  // by track: thread and number
  each([&](const Slot& head, const Slot* extension, std::uint32_t track) {
    if (type_of(head) == EventType::push_payload) {
      open[track] = {thread_of_name.at(static_cast<std::uint32_t>(head.low)), extension->low};
    } else if (type_of(head) == EventType::pop) {
      const auto [thread, number] = open.at(track);
      std::uint64_t& count = whole[static_cast<std::size_t>(thread)];
      if (number == count) ++count;
    }
  });
  return whole;
}

class RecordKill : public RecordTest {};

TEST_F(RecordKill, EveryFileIsReadableAndHasTheEventsBeforeTheKill) {
  const char* wanted = getenv("PACELINE_KILLS");
  const int kills = wanted != nullptr ? atoi(wanted) : 20;
  std::mt19937 random(std::random_device{}());
  std::uint64_t before = 0, early = 0, missing = 0, missing_late = 0, files_read = 0, none = 0, by_itself = 0;
  for (int attempt = 0; attempt < kills; ++attempt) {
    std::filesystem::remove_all(directory / "run");
    const Logs logs((directory / "log").string());
    ASSERT_TRUE(logs.open_for_reading());
    const pid_t program = fork();
    ASSERT_GE(program, 0);
    if (program == 0) {
      setenv("PACELINE_OUTPUT", (directory / "run").c_str(), 1);
      setenv("PACELINE_BUFFER_BYTES", "1048576", 1);
      setenv("NVTX_INJECTION64_PATH", RECORDER, 1);
      setenv("LD_PRELOAD", RECORDER, 1);
      execl(KILLED, KILLED, (directory / "log").c_str(), nullptr);
      _exit(127);
    }
    // A quarter each while the recorder starts, while it records, and from then to its end.
    usleep(attempt % 4 == 0 ? random() % 15'000 : random() % 200'000);
    const std::int64_t killed_at = monotonic_ns();
    kill(program, SIGKILL);
    int status = 0;
    waitpid(program, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << status;
    by_itself += WIFEXITED(status) ? 1 : 0;

    std::array<std::uint64_t, 2> whole{};
    std::vector<std::filesystem::path> paths;
    if (std::filesystem::exists(directory / "run")) {
      for (const auto& entry : std::filesystem::directory_iterator(directory / "run")) {
        if (entry.path().extension() == ".pace") paths.push_back(entry.path());
      }
    }
    ASSERT_LE(paths.size(), 1u);
    if (paths.empty()) {
      ++none;
    } else {
      try {
        const format::TraceFile file = format::read_trace_file(paths.front());
        EXPECT_FALSE(file.damaged) << file.damage;
        for (const std::uint64_t dropped : file.header.dropped) EXPECT_EQ(dropped, 0u);
        whole = ranges_in(file);
        ++files_read;
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    }
    for (int thread = 0; thread < 2; ++thread) {
      const std::uint64_t ended = logs.ended(thread), long_ago = logs.ended_before(thread, killed_at - 10'000'000);
      const std::uint64_t have = whole[static_cast<std::size_t>(thread)];
      before += ended;
      early += long_ago;
      missing += ended > have ? ended - have : 0;
      missing_late += long_ago > have ? long_ago - have : 0;
      EXPECT_LE(have, ended + 1);
    }
  }
  EXPECT_GT(early, 0u);
  EXPECT_EQ(missing_late, 0u);
  EXPECT_EQ(missing, 0u);
  fmt::print("{} kills ({} came after the end): {} files read, {} times there was none yet\n", kills, by_itself,
             files_read, none);
  fmt::print("{} ranges ended more than 10 ms before the kill: {} missing; {} ended before it at all: {} missing\n",
             early, missing_late, before, missing);
}

}  // namespace
}  // namespace paceline::test
