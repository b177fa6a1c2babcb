// SPDX-License-Identifier: Apache-2.0
#include "trainer/updaters/threads.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "trainer/core/error.h"

namespace paceline::train {
namespace {

constexpr int most_per_core = 16;

int default_threads(int ranks_on_host) {
  if (const char* wish = std::getenv("OMP_NUM_THREADS")) {
    int threads = 0;
    std::from_chars(wish, wish + std::strlen(wish),
                    threads);  // of a list with one number for each nesting level, the first
    if (threads > 0) return threads;
  }
  cpu_set_t bound;
  CPU_ZERO(&bound);
  const int own = sched_getaffinity(0, sizeof bound, &bound) == 0 ? std::max(1, CPU_COUNT(&bound)) : 1;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / ranks_on_host, 1, own);
}

}  // namespace

int set_threads(int threads, int ranks_on_host) {
  if (threads <= 0) threads = default_threads(ranks_on_host);
  const auto cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (threads > most_per_core * cores) {  // beyond this, threads wait for each other in every loop
    throw Error(fmt::format("‹threads› {}", threads), fmt::format("this host has {} cores", cores),
                fmt::format("give at most {} threads for each", most_per_core), Status::usage);
  }
  // Looked up at run time and not linked: oneDNN brings an OpenMP library even if our own compiler has none.
  if (auto* set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) set(threads);
  return threads;
}

}  // namespace paceline::train
