// SPDX-License-Identifier: Apache-2.0
// Work on several cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace paceline::analysis {

// Calls work(i) for each i below `count`, on as many threads as there are cores; the caller is one of them. After the
// first exception no further work begins, and it is thrown again here.
template <class Work>
void parallel_for(std::size_t count, Work&& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min(cores, count); ++i) helpers.emplace_back(run);
  run();
  helpers.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace paceline::analysis
