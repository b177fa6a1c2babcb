// SPDX-License-Identifier: Apache-2.0
// What it costs a thread that each of its switches is recorded: two threads on one CPU hand a byte to each other, in
// turns with and without the recorder's rings on both, so that the machine's drift meets both alike. Prints the
// difference for each switch with its 95 % interval (bootstrap over the pairs of turns), and what the drain needs to
// read a switch and to read the sums of a thread.
//
//   switch_cost [PAIRS]
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "profiler/inject/sources/scheduler/switch_ring.h"
#include "profiler/inject/sources/scheduler/thread_sums.h"

namespace {

using paceline::inject::SwitchRing;

constexpr int trips = 100, switches = 4 * trips;  // each trip takes both threads off the CPU and on it again

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

int there[2], back[2];
std::atomic<pid_t> partner{0};

void* answer(void*) {
  partner = static_cast<pid_t>(syscall(SYS_gettid));
  char byte;
  while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) {
  }
  return nullptr;
}

// CPU time of the process for a switch, ns. Waits for a CPU that others use are not in it.
double turn() {
  char byte = 0;
  const double before = seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < trips; ++i) {
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) std::exit(1);
  }
  return 1e9 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - before) / switches;
}

}  // namespace

int main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 2000;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  pthread_t thread;
  if (pipe(there) != 0 || pipe(back) != 0 || pthread_create(&thread, nullptr, answer, nullptr) != 0) return 1;
  while (partner == 0) sched_yield();
  turn();

  std::vector<double> differences, without;
  double reading_ns = 0;
  std::size_t read = 0;
  for (int pair = 0; pair < pairs; ++pair) {
    SwitchRing rings[2];
    const pid_t threads[] = {static_cast<pid_t>(syscall(SYS_gettid)), partner};
    double with = 0, plain = 0;
    const auto recorded = [&] {
      for (int i = 0; i < 2; ++i) {
        if (const int error = rings[i].open(threads[i]); error != 0) {
          std::printf("perf_event_open: %s\n", std::strerror(error));
          std::exit(1);
        }
      }
      with = turn();
      const double before = seconds(CLOCK_THREAD_CPUTIME_ID);
      for (SwitchRing& ring : rings) {
        ring.read([&](SwitchRing::Record, std::int64_t) { ++read; });
      }
      reading_ns += 1e9 * (seconds(CLOCK_THREAD_CPUTIME_ID) - before);
      for (SwitchRing& ring : rings) ring.close();
    };
    if (pair % 2 == 0) recorded();
    plain = turn();
    if (pair % 2 != 0) recorded();
    differences.push_back(with - plain);
    without.push_back(plain);
  }
  std::mt19937 random(1);
  std::vector<double> medians;
  for (int i = 0; i < 1000; ++i) {
    std::vector<double> drawn(differences.size());
    for (double& one_of : drawn) one_of = differences[random() % differences.size()];
    medians.push_back(median(std::move(drawn)));
  }
  std::ranges::sort(medians);
  std::printf(
      "a switch: %.0f ns of CPU time without, %+.0f ns with recording (95 %% interval %+.0f to %+.0f, %d pairs)\n",
      median(without), median(differences), medians[25], medians[974], pairs);
  std::printf("reading a switch: %.0f ns\n", reading_ns / static_cast<double>(std::max<std::size_t>(read, 1)));

  paceline::inject::KeptFile file;
  paceline::inject::ThreadSums sums;
  std::uint64_t running = 0;
  constexpr int reads = 20'000;
  if (!paceline::inject::open_thread_sums(partner, file)) return 1;
  double before = seconds(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < reads; ++i) paceline::inject::read_thread_sums(partner, &file, true, sums);
  std::printf("reading the sums of a thread: %.0f ns\n", 1e9 * (seconds(CLOCK_THREAD_CPUTIME_ID) - before) / reads);
  before = seconds(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < reads; ++i) paceline::inject::read_running_time(partner, running);
  std::printf("finding that a thread did not run: %.0f ns\n",
              1e9 * (seconds(CLOCK_THREAD_CPUTIME_ID) - before) / reads);
  close(there[1]);
  pthread_join(thread, nullptr);
}
