// SPDX-License-Identifier: Apache-2.0
// The table of handles: entries are found, replaced and repeated, and never exceed the table's places.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "profiler/inject/sources/mpi/handles.h"

namespace paceline::inject {
namespace {

constexpr unsigned bits = 10;

struct Handles : ::testing::Test {
  std::vector<HandleTable::Place> places{1u << bits};
  HandleTable table{places.data(), bits};
  Remembered found;
};

TEST_F(Handles, ATakenHandleIsForgotten) {
  EXPECT_TRUE(table.put(0x1000, {7, {1, 2, 3}}, false));
  ASSERT_TRUE(table.find(0x1000, found));
  EXPECT_EQ(found.id, 7u);
  EXPECT_EQ(found.facts[2], 3u);
  EXPECT_TRUE(table.take(0x1000, found));
  EXPECT_FALSE(table.take(0x1000, found));
  EXPECT_FALSE(table.find(0x2000, found));
  EXPECT_FALSE(table.put(0, {1, {}}, false));  // not a handle
}

TEST_F(Handles, AnEqualHandleIsReplacedOrKept) {
  table.put(0x1000, {1, {}}, false);
  table.put(0x1000, {2, {}}, false);
  ASSERT_TRUE(table.take(0x1000, found));
  EXPECT_EQ(found.id, 2u);
  EXPECT_FALSE(table.find(0x1000, found));
  for (std::uint64_t id = 1; id <= 3; ++id) table.put(0x3000, {id, {}}, true);
  for (std::uint64_t id = 3; id >= 1; --id) {
    ASSERT_TRUE(table.take(0x3000, found));
    EXPECT_EQ(found.id, id);
  }
  EXPECT_FALSE(table.take(0x3000, found));
}

// Handles that the program never frees make room for later ones.
TEST_F(Handles, TheOldestHandleMakesRoom) {
  for (Handle handle = 1; handle <= 100'000; ++handle) EXPECT_TRUE(table.put(handle << 6, {handle, {}}, true));
  for (Handle handle = 99'990; handle <= 100'000; ++handle) {
    ASSERT_TRUE(table.find(handle << 6, found)) << handle;
    EXPECT_EQ(found.id, handle);
  }
  EXPECT_FALSE(table.find(1 << 6, found));
}

TEST_F(Handles, ThreadsDoNotMixTheirHandles) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0}, lost{0};
  for (Handle thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      Remembered mine;
      for (std::uint64_t round = 1; round <= 20'000; ++round) {
        const Handle handle = thread << 32 | (round % 32) << 6;
        if (!table.put(handle, {round, {thread, round, 0}}, true)) {
          ++lost;
        } else if (!table.take(handle, mine) || mine.id != round || mine.facts[0] != thread || mine.facts[1] != round) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LT(lost, 80);  // of 80,000: other threads got in the way four times
}

}  // namespace
}  // namespace paceline::inject
