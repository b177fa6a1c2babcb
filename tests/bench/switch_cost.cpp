// SPDX-License-Identifier: Apache-2.0
// What it costs a thread that each of its switches is recorded: two threads on one CPU hand a byte to each other, in
// turns with and without the recorder's rings on both, so that the machine's drift meets both alike. Prints the
// difference for each switch with its 95 % interval (bootstrap over the pairs of turns), and what the drain needs to
// read a switch and to read the sums of a thread.
//
//   switch_cost [PAIRS]
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "profiler/inject/sources/scheduler/switch_ring.h"
#include "profiler/inject/sources/scheduler/thread_sums.h"
#include "tests/bench/two_threads.h"

namespace {

using namespace paceline::bench;
using paceline::inject::SwitchRing;

constexpr int trips = 100, switches = 4 * trips;  // each trip takes both threads off the CPU and on it again

// CPU time of the process for a switch, ns. Waits for a CPU that others use are not in it.
double turn(const Partner& partner) {
  const double before = seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < trips; ++i) partner.hand_a_byte();
  return 1e9 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - before) / switches;
}

}  // namespace

int main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 2000;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  const Partner partner;
  turn(partner);

  std::vector<double> differences, without;
  double reading_ns = 0;
  std::size_t read = 0;
  for (int pair = 0; pair < pairs; ++pair) {
    SwitchRing rings[2];
    const pid_t threads[] = {static_cast<pid_t>(syscall(SYS_gettid)), partner.id()};
    double with = 0, plain = 0;
    const auto recorded = [&] {
      for (int i = 0; i < 2; ++i) {
        if (const int error = rings[i].open(threads[i]); error != 0) {
          std::printf("perf_event_open: %s\n", std::strerror(error));
          std::exit(1);
        }
      }
      with = turn(partner);
      const double before = seconds(CLOCK_THREAD_CPUTIME_ID);
      for (SwitchRing& ring : rings) {
        ring.read([&](SwitchRing::Record, std::int64_t) { ++read; });
      }
      reading_ns += 1e9 * (seconds(CLOCK_THREAD_CPUTIME_ID) - before);
      for (SwitchRing& ring : rings) ring.close();
    };
    if (pair % 2 == 0) recorded();
    plain = turn(partner);
    if (pair % 2 != 0) recorded();
    differences.push_back(with - plain);
    without.push_back(plain);
  }
  const MedianInterval ci95 = median_interval(differences);
  std::printf(
      "a switch: %.0f ns of CPU time without, %+.0f ns with recording (95 %% interval %+.0f to %+.0f, %d pairs)\n",
      median(without), median(differences), ci95.low, ci95.high, pairs);
  std::printf("reading a switch: %.0f ns\n", reading_ns / static_cast<double>(std::max<std::size_t>(read, 1)));

  paceline::inject::KeptFile file;
  paceline::inject::ThreadSums sums;
  std::uint64_t running = 0;
  constexpr int reads = 20'000;
  if (!paceline::inject::open_thread_sums(partner.id(), file)) return 1;
  double before = seconds(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < reads; ++i) paceline::inject::read_thread_sums(partner.id(), &file, true, sums);
  std::printf("reading the sums of a thread: %.0f ns\n", 1e9 * (seconds(CLOCK_THREAD_CPUTIME_ID) - before) / reads);
  before = seconds(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < reads; ++i) paceline::inject::read_running_time(partner.id(), running);
  std::printf("finding that a thread did not run: %.0f ns\n",
              1e9 * (seconds(CLOCK_THREAD_CPUTIME_ID) - before) / reads);
}
