// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/stacks/program_memory.h"

#include <gtest/gtest.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

namespace paceline::inject {
namespace {

constexpr std::size_t page = 4096;

class ProgramMemoryTest : public ::testing::TestWithParam<bool> {};

TEST_P(ProgramMemoryTest, ReadsUpToAPageThatIsGone) {
  ProgramMemory memory;
  ASSERT_TRUE(memory.open(GetParam()));
  auto* pages = static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  std::copy_n("ends", 4, pages + page - 4);
  munmap(pages + page, page);
  const auto end = reinterpret_cast<Address>(pages) + page;
  char text[8] = "";
  EXPECT_TRUE(memory.read(end - 4, text, 4));
  EXPECT_STREQ(text, "ends");
  EXPECT_FALSE(memory.read(end - 4, text, 8));
  EXPECT_TRUE(memory.read_near(end - 4, text, 4));
  EXPECT_FALSE(memory.read_near(end - 4, text, 8));
  EXPECT_FALSE(memory.read(0, text, 1));
  EXPECT_FALSE(memory.read(~Address{0} - 4, text, 4));
  const Address addresses[] = {end - 4, end - 2, end - 1, end - 4};
  char two[8] = "";
  EXPECT_EQ(memory.read_all(addresses, 2, two), 2u);  // the third crosses into the page that is gone
  EXPECT_EQ(memcmp(two, "ends", 4), 0);
  munmap(pages, page);
}

TEST_P(ProgramMemoryTest, KeepsPagesUntilItForgetsThem) {
  ProgramMemory memory;
  ASSERT_TRUE(memory.open(GetParam()));
  static volatile int value;
  value = 1;
  const auto at = reinterpret_cast<Address>(const_cast<int*>(&value));
  int seen = 0;
  EXPECT_TRUE(memory.read_value(at, seen));
  value = 2;
  EXPECT_TRUE(memory.read_value(at, seen));
  EXPECT_EQ(seen, 1);
  memory.forget_pages();
  EXPECT_TRUE(memory.read_value(at, seen));
  EXPECT_EQ(seen, 2);
}

INSTANTIATE_TEST_SUITE_P(SystemCallOrFile, ProgramMemoryTest, ::testing::Bool());

}  // namespace
}  // namespace paceline::inject
