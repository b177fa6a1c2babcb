// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cpu/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace paceline::train {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

onednn::Desc megabytes(std::int64_t count) { return onednn::plain_layout({count << 18}); }

std::span<std::byte> bytes_of(const dnnl::memory& memory) {
  return {static_cast<std::byte*>(memory.get_data_handle()), onednn::bytes(memory.get_desc())};
}

TEST(MemoryPlan, GivesAReleasedBlockToTheNextTensor) {
  MemoryPlan plan(engine());
  const dnnl::memory first = plan.acquire(megabytes(4));
  plan.share(first);
  plan.release(first);
  const dnnl::memory beside = plan.acquire(megabytes(4));  // the first tensor still has an owner
  plan.release(first);
  const dnnl::memory next = plan.acquire(megabytes(3));
  plan.allocate();
  EXPECT_EQ(first.get_data_handle(), next.get_data_handle());
  EXPECT_GE(std::abs(bytes_of(first).data() - bytes_of(beside).data()), std::ptrdiff_t{4} << 20);
}

TEST(MemoryPlan, FillsItsMemoryWhenATensorIsWritten) {
  MemoryPlan plan(engine());
  const dnnl::memory written = plan.acquire(megabytes(16)), unused = plan.acquire(megabytes(16));
  EXPECT_EQ(plan.unfilled_bytes(), 0u);  // there is no memory yet
  plan.allocate();
  EXPECT_EQ(plan.unfilled_bytes(), plan.bytes());
  std::memset(written.get_data_handle(), 1, bytes_of(written).size());
  const std::size_t filled = plan.bytes() - plan.unfilled_bytes();
  EXPECT_GE(filled, bytes_of(written).size());
  EXPECT_LE(filled, bytes_of(written).size() + 2 * huge_page);  // of a page at either end, the rest is another tensor's
}

TEST(MemoryPlan, GivesZerosWhereAnEarlierPlanHadValues) {
  for (int turn = 0; turn < 3; ++turn) {
    MemoryPlan plan(engine());
    const dnnl::memory small = plan.acquire(onednn::plain_layout({100})), large = plan.acquire(megabytes(3));
    plan.allocate();
    for (const dnnl::memory& memory : {small, large}) {
      EXPECT_TRUE(std::ranges::all_of(bytes_of(memory), [](std::byte value) { return value == std::byte{0}; }));
      std::memset(memory.get_data_handle(), 1, bytes_of(memory).size());
    }
  }
}

}  // namespace
}  // namespace paceline::train
