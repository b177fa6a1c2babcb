// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "profiler/inject/buffer/chunk_set.h"

namespace paceline::inject {
namespace {

TEST(ChunkSet, ReturnsEachNumberOnceAndTheLowestFirst) {
  static ChunkSet set;
  for (std::uint32_t number : {700u, 3u, 64u}) set.insert(number);
  EXPECT_EQ(set.take(1024), 3u);
  EXPECT_EQ(set.take(1024), 64u);
  EXPECT_EQ(set.take(1024), 700u);
  EXPECT_EQ(set.take(1024), ChunkSet::none);
}

// Four threads take and return 100 chunks. Two threads never hold the same chunk.
TEST(ChunkSet, NeverReturnsANumberToTwoThreads) {
  static ChunkSet set;
  static std::atomic<int> holders[100];
  for (std::uint32_t number = 0; number < 100; ++number) set.insert(number);
  std::atomic<int> clashes{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20'000; ++round) {
        const std::uint32_t number = set.take(100);
        if (number == ChunkSet::none) continue;
        if (holders[number].fetch_add(1) != 0) ++clashes;
        holders[number].fetch_sub(1);
        set.insert(number);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
  int left = 0;
  while (set.take(100) != ChunkSet::none) ++left;
  EXPECT_EQ(left, 100);
}

}  // namespace
}  // namespace paceline::inject
