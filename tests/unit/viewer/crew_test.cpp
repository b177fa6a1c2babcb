// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/crew.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace paceline::viewer {
namespace {

TEST(Crew, CallsEachOnceAndReturnsWhenAllHaveReturned) {
  Crew crew;
  for (std::size_t round = 0; round < 2000; ++round) {
    const std::size_t count = round % 70;
    std::vector<int> calls(count, 0);  // written without a lock: each by one thread
    std::atomic<std::size_t> all = 0;
    crew.each(count, [&](std::size_t i) {
      ++calls[i];
      ++all;
    });
    ASSERT_EQ(all, count);
    ASSERT_EQ(calls, std::vector<int>(count, 1));
  }
}

}  // namespace
}  // namespace paceline::viewer
