// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/header.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace paceline::format {
namespace {

// The guard bytes after the capacity must not change.
TEST(Header, IsMadeOnlyWhereItFits) {
  constexpr char guard = 0x5a;
  for (const std::size_t length : {10U, 3'000U, 3'900U, 4'096U, 8'000U}) {
    const std::string host(length, 'h');
    HeaderFacts facts;
    facts.host = host.c_str();
    std::vector<char> whole(max_header_bytes);
    const std::size_t needed = make_header(facts, whole.data(), whole.size());
    ASSERT_GT(needed, length);
    ASSERT_EQ(needed % page_bytes, 0U);
    for (const std::size_t capacity : {page_bytes, needed - 1, needed, needed + 1}) {
      std::vector<char> bytes(capacity + page_bytes, guard);
      EXPECT_EQ(make_header(facts, bytes.data(), capacity), capacity < needed ? 0U : needed)
          << length << " bytes of text into " << capacity;
      EXPECT_TRUE(std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(capacity), bytes.end(),
                              [](char byte) { return byte == guard; }));
    }
  }
}

}  // namespace
}  // namespace paceline::format
