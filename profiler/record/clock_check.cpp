// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/clock_check.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include "profiler/launch/environment.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace paceline::record {
namespace {

constexpr std::int64_t longest_ns = 4'000'000;  // for all pairs; a busy CPU may use all of it
constexpr int most_rounds = 1000, fewest_rounds = 20;

std::int64_t raw_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string first_word_of(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// True if the recorder will use the counter (profiler/inject/buffer/clock.cpp).
bool counter_is_used() {
#if defined(__x86_64__)
  const char* wanted = std::getenv(env_clock);
  if (wanted != nullptr && std::string(wanted) == "monotonic_raw") return false;
  const std::string source = first_word_of("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  return source == "tsc" || source == "kvm-clock" || source == "hyperv_clocksource_tsc_page";
#else
  return false;
#endif
}

std::int64_t read_clock(bool counter) {
#if defined(__x86_64__)
  if (counter) {
    unsigned cpu = 0;
    const auto ticks = static_cast<std::int64_t>(__rdtscp(&cpu));
    _mm_lfence();
    return ticks;
  }
#endif
  return raw_ns();
}

bool move_to(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  return pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0;
}

// Bounds of the offset of a CPU's clock against that of the first CPU, in the clock's own unit.
struct Offset {
  std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
};

struct Channel {
  alignas(64) std::atomic<int> question{0};  // the round's number; -1 = the end
  alignas(64) std::atomic<int> answer{0};
  std::int64_t answered_at = 0;
};

void answer(Channel& channel, int cpu, bool counter) {
  if (!move_to(cpu)) {
    channel.answer.store(-1, std::memory_order_release);
    return;
  }
  for (int round = 1;; ++round) {
    int seen = 0;
    while ((seen = channel.question.load(std::memory_order_acquire)) != round) {
      if (seen < 0) return;
    }
    channel.answered_at = read_clock(counter);
    channel.answer.store(round, std::memory_order_release);
  }
}

std::optional<Offset> compare_with(int cpu, bool counter, std::int64_t budget_ns) {
  Channel channel;
  std::thread other;
  try {
    other = std::thread(answer, std::ref(channel), cpu, counter);
  } catch (const std::system_error&) {
    return std::nullopt;
  }
  Offset offset;
  const std::int64_t end = raw_ns() + budget_ns;
  int rounds = 0;
  for (bool waiting = true; waiting && rounds < most_rounds; ++rounds) {
    const std::int64_t asked = read_clock(counter);
    channel.question.store(rounds + 1, std::memory_order_release);
    int seen = 0;
    for (int tries = 0; (seen = channel.answer.load(std::memory_order_acquire)) != rounds + 1; ++tries) {
      if (seen < 0 || (tries % 64 == 63 && raw_ns() > end)) {
        waiting = false;
        break;
      }
    }
    if (!waiting) break;
    const std::int64_t received = read_clock(counter);
    offset.least = std::max(offset.least, channel.answered_at - received);
    offset.most = std::min(offset.most, channel.answered_at - asked);
  }
  channel.question.store(-1, std::memory_order_release);
  other.join();
  if (rounds < fewest_rounds || offset.least > offset.most) return std::nullopt;
  return offset;
}

std::vector<int> cpus_of(const cpu_set_t& mask) {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  }
  return cpus;
}

std::string measure(const std::vector<int>& cpus) {
  std::map<std::string, std::vector<int>> sockets;
  for (const int cpu : cpus) {
    sockets[first_word_of(fmt::format("/sys/devices/system/cpu/cpu{}/topology/physical_package_id", cpu))].push_back(
        cpu);
  }
  const int first = cpus.front();
  std::vector<int> others;
  for (const auto& [socket, members] : sockets) {
    const bool own = std::ranges::find(members, first) != members.end();
    if (!own) others.push_back(members.front());
    if (own && members.back() != first) others.insert(others.begin(), members.back());
  }
  if (others.empty() || !move_to(first)) return {};
  const bool counter = counter_is_used();
  Offset all{0, 0};
  std::set<int> measured;
  const std::int64_t began = raw_ns(), began_at = read_clock(counter);
  for (const int cpu : others) {
    const auto left = static_cast<std::int64_t>(others.size() - measured.size());
    const std::optional<Offset> offset = compare_with(cpu, counter, (began + longest_ns - raw_ns()) / left);
    if (!offset) return {};
    measured.insert(cpu);
    all.least = std::min(all.least, offset->least);
    all.most = std::max(all.most, offset->most);
  }
  const double ns_per_tick = static_cast<double>(raw_ns() - began) /
                             static_cast<double>(std::max<std::int64_t>(1, read_clock(counter) - began_at));
  const double error_ns = static_cast<double>(all.most - all.least) * (counter ? ns_per_tick : 1);
  return fmt::format("{:.0f} {} measured between {} CPUs of {} socket{}", std::max(1.0, error_ns),
                     first_word_of("/proc/sys/kernel/random/boot_id"), measured.size() + 1, sockets.size(),
                     sockets.size() == 1 ? "" : "s");
}

}  // namespace

std::string measure_clock_error() {
  cpu_set_t mask;
  if (pthread_getaffinity_np(pthread_self(), sizeof mask, &mask) != 0) return {};
  const std::vector<int> cpus = cpus_of(mask);
  if (cpus.size() < 2) return {};
  std::string found = measure(cpus);
  pthread_setaffinity_np(pthread_self(), sizeof mask, &mask);
  return found;
}

}  // namespace paceline::record
