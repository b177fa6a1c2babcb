// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/faults.h"

#include <gmock/gmock.h>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/core/error.h"

namespace paceline::train {
namespace {

using testing::HasSubstr;

TEST(Faults, AreParsedOrRefused) {
  const Faults faults = parse_faults({"slow-rank=1:50", "duplicate-shards"}, 2);
  EXPECT_EQ(faults.slow_rank.of(1).count(), 50);
  EXPECT_EQ(faults.slow_rank.of(0).count(), 0);
  EXPECT_EQ(faults.slow_loader.of(0).count(), 0);
  EXPECT_TRUE(faults.duplicate_shards);
  EXPECT_FALSE(faults.tiny_buckets);
  const auto refusal = [](const char* text) { return message_of<Error>([&] { parse_faults({text}, 2); }); };
  for (const char* text : {"slow-rank", "slow-rank=", "slow-rank=1", "slow-rank=1:", "slow-rank=x:1", "slow-rank=1:5x",
                           "slow-rank=-1:5", "slow-rank=1:-5"}) {
    EXPECT_THAT(refusal(text), HasSubstr("RANK:MILLISECONDS")) << text;
  }
  EXPECT_EQ(parse_faults({"slow-layers=300"}, 2).slow_layers.count(), 300);
  for (const char* text : {"slow-layers", "slow-layers=", "slow-layers=x", "slow-layers=-1", "slow-layers=1:5"}) {
    EXPECT_THAT(refusal(text), HasSubstr("expected MILLISECONDS")) << text;
  }
  EXPECT_THAT(refusal("slow-loader=2:5"), HasSubstr("no rank 2"));
  EXPECT_THAT(message_of<Error>([] { parse_faults({"slow-rank=0:1", "slow-rank=1:2"}, 2); }), HasSubstr("given twice"));
  EXPECT_THAT(refusal("gremlins"), AllOf(HasSubstr("gremlins"), HasSubstr("tiny-buckets")));
}

}  // namespace
}  // namespace paceline::train
