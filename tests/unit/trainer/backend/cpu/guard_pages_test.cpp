// SPDX-License-Identifier: Apache-2.0
// oneDNN and our own code stay within their memory on every instruction set of this processor. This test runs a few
// networks; tests/bench/guard_pages.cpp runs all.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <optional>

#include "tests/unit/trainer/backend/cpu/guarded/layers.h"
#include "tests/unit/trainer/backend/cpu/guarded/memory.h"

namespace paceline::train {
namespace {

ModelOptions model(const char* name, std::int64_t size, double width, bool cifar_stem = true) {
  ModelOptions options;
  options.name = name;
  options.image_size = size;
  options.width = width;
  options.batch_size = 4;
  options.cifar_stem = cifar_stem;
  return options;
}

struct Instructions {
  const char* name;
  std::optional<dnnl::cpu_isa> most;
  friend void PrintTo(const Instructions& i, std::ostream* out) { *out << i.name; }
};

class GuardPages : public testing::TestWithParam<Instructions> {};

// The first is the network that ended by SIGSEGV on AVX-512.
TEST_P(GuardPages, AreNotAccessedByNarrowNetworks) {
  guarded::Check check;
  check.isa = GetParam().most;
  check.models = {model("resnet18", 48, 0.125), model("resnet50", 33, 0.0625, false), model("vgg11_bn", 32, 0.3)};
  check.reference_limit = 1e6;
  const guarded::Result result = guarded::run(check);
  for (const std::string& fault : result.faults) ADD_FAILURE() << fault;
  EXPECT_GT(result.runs, 300u);
  std::cout << result.runs << " runs with " << result.isa << '\n';
}

INSTANTIATE_TEST_SUITE_P(Under, GuardPages,
                         testing::Values(Instructions{"SSE41", dnnl::cpu_isa::sse41},
                                         Instructions{"AVX", dnnl::cpu_isa::avx},
                                         Instructions{"AVX2", dnnl::cpu_isa::avx2}, Instructions{"all", std::nullopt}),
                         [](const auto& info) { return std::string(info.param.name); });

// The check itself: a fault on either side is reported with the argument, and the other computations still run.
TEST(GuardedMemory, ReportsTheArgumentAndTheDistance) {
  for (const guarded::Side side : {guarded::Side::end, guarded::Side::begin}) {
    guarded::Memory memory("weights", 100, side);
    auto* bytes = static_cast<char*>(memory.data());
    bytes[0] = bytes[99] = 1;  // the whole memory is accessible
    EXPECT_EQ(memory.place(bytes + 107), "7 bytes beyond the end of weights");
    EXPECT_EQ(memory.place(bytes - 3), "3 bytes before the begin of weights");
    EXPECT_EQ(memory.place(&side), "");
  }
  const auto touch = [](guarded::Side side, std::ptrdiff_t at, bool write) {
    static char told[512];
    std::vector<guarded::Memory> arguments;
    arguments.emplace_back("weights", 100, side);
    guarded::tell_faults(told, &arguments);
    volatile char* byte = static_cast<char*>(arguments[0].data()) + at;
    if (write) *byte = 1;
    const char read = *byte;
    (void)read;
    std::exit(0);
  };
  EXPECT_EXIT(touch(guarded::Side::end, 100, true), testing::ExitedWithCode(guarded::faulted), "");
  EXPECT_EXIT(touch(guarded::Side::end, 100, false), testing::ExitedWithCode(guarded::faulted), "");
  EXPECT_EXIT(touch(guarded::Side::begin, -1, true), testing::ExitedWithCode(guarded::faulted), "");
  EXPECT_EXIT(touch(guarded::Side::end, 99, true), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace paceline::train
