// SPDX-License-Identifier: Apache-2.0
// What recording the switches of threads costs a step: the main thread computes and hands a byte to another thread and
// back, once in each millisecond, as a training step with gradients in flight does (four switches a millisecond).
// Blocks of steps with and without recording take turns inside one process. With it, both threads have a ring and a
// thread reads the rings and the sums every 20 ms, as the recorder's drain does. Prints by how much a step is longer,
// and how much more CPU time the process needs, each with its 95 % interval (bootstrap over the pairs of blocks).
//
//   step_switches [STEP_MS [PAIRS]]
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "profiler/inject/sources/scheduler/switch_ring.h"
#include "profiler/inject/sources/scheduler/thread_sums.h"
#include "tests/bench/two_threads.h"

namespace {

using namespace paceline::bench;
using paceline::inject::SwitchRing;

constexpr int block_ms = 200;

SwitchRing rings[2];
paceline::inject::KeptFile files[2];
pid_t threads[2];
std::atomic<bool> reads{false}, reading{false}, ends{false};
std::size_t switches = 0;  // read so far

void read_all() {
  for (int i = 0; i < 2; ++i) {
    rings[i].read([&](SwitchRing::Record, std::int64_t) { ++switches; });
    paceline::inject::ThreadSums sums;
    paceline::inject::read_thread_sums(threads[i], &files[i], true, sums);
  }
}

void* drain(void*) {
  while (!ends) {
    usleep(20'000);
    reading = true;
    if (reads) read_all();
    reading = false;
  }
  return nullptr;
}

volatile std::uint64_t sink;
void compute(std::uint64_t rounds) {
  std::uint64_t x = 1;
  for (std::uint64_t i = 0; i < rounds; ++i) x = x * 6364136223846793005 + i;
  sink = x;
}

void step(const Partner& partner, int ms, std::uint64_t rounds) {
  for (int i = 0; i < ms; ++i) {
    compute(rounds);
    partner.hand_a_byte();
  }
}

struct Cost {
  double wall = 0, cpu = 0;  // s for a step
};

Cost block(const Partner& partner, int ms, std::uint64_t rounds) {
  const int steps = std::max(1, block_ms / ms);
  const double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < steps; ++i) step(partner, ms, rounds);
  return {(seconds(CLOCK_MONOTONIC) - wall) / steps, (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / steps};
}

Cost recorded_block(const Partner& partner, int ms, std::uint64_t rounds) {
  for (int i = 0; i < 2; ++i) {
    if (const int error = rings[i].open(threads[i]); error != 0) {
      std::printf("perf_event_open: %s\n", std::strerror(error));
      std::exit(1);
    }
  }
  reads = true;
  const Cost cost = block(partner, ms, rounds);
  reads = false;
  while (reading) usleep(100);
  read_all();
  for (SwitchRing& ring : rings) ring.close();
  return cost;
}

void print(const char* what, const std::vector<double>& ratios) {
  const MedianInterval ci95 = median_interval(ratios);
  std::printf("  %s: %+.2f %% (95 %% interval %+.2f to %+.2f %%)\n", what, 100 * median(ratios), 100 * ci95.low,
              100 * ci95.high);
}

std::string load() {
  std::ifstream file("/proc/loadavg");
  std::string one;
  file >> one;
  return one;
}

}  // namespace

int main(int argc, char** argv) {
  const int ms = argc > 1 ? std::atoi(argv[1]) : 10, pairs = argc > 2 ? std::atoi(argv[2]) : 100;
  pthread_t reader;
  if (ms < 1 || pairs < 10) return 2;
  const Partner partner;
  threads[0] = static_cast<pid_t>(syscall(SYS_gettid)), threads[1] = partner.id();
  for (int i = 0; i < 2; ++i) {
    if (!paceline::inject::open_thread_sums(threads[i], files[i])) return 1;
  }
  if (pthread_create(&reader, nullptr, drain, nullptr) != 0) return 1;
  // A millisecond of computing, by the least time of some tries.
  constexpr std::uint64_t probe = 200'000;
  double least = 1;
  for (int i = 0; i < 50; ++i) {
    const double before = seconds(CLOCK_THREAD_CPUTIME_ID);
    compute(probe);
    least = std::min(least, seconds(CLOCK_THREAD_CPUTIME_ID) - before);
  }
  const auto rounds = static_cast<std::uint64_t>(static_cast<double>(probe) * 0.98e-3 / least);
  block(partner, ms, rounds);

  std::vector<double> wall, cpu, plain_steps;
  const std::string before = load();
  for (int pair = 0; pair < pairs; ++pair) {
    Cost with, plain;
    if (pair % 2 == 0) with = recorded_block(partner, ms, rounds);
    plain = block(partner, ms, rounds);
    if (pair % 2 != 0) with = recorded_block(partner, ms, rounds);
    wall.push_back(with.wall / plain.wall - 1);
    cpu.push_back(with.cpu / plain.cpu - 1);
    plain_steps.push_back(plain.wall);
  }
  const int steps = std::max(1, block_ms / ms);
  std::printf("step of %.1f ms without recording; %.0f switches a step; %d pairs of blocks of %d; load %s to %s\n",
              1e3 * median(plain_steps), static_cast<double>(switches) / pairs / steps, pairs, steps, before.c_str(),
              load().c_str());
  print("a step is longer by", wall);
  print("CPU time of the process", cpu);
  ends = true;
  pthread_join(reader, nullptr);
}
