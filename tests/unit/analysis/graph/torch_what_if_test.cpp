// SPDX-License-Identifier: Apache-2.0
// Predictions for PyTorch's DistributedDataParallel over gloo. Both ranks, in ms: forward 10, backward 20, then one
// allreduce of 4 MB in a thread of its own, for which the main thread waits 6, and optimizer 5.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/graph/what_if.h"
#include "tests/unit/analysis/buckets_in_flight.h"

namespace paceline::analysis {
namespace torch_what_if_test {
namespace {

using ::testing::HasSubstr;

class TorchWhatIf : public ::testing::Test {
 protected:
  explicit TorchWhatIf(std::int64_t noted_late_ns = 0)
      : trace_(trace_of({.how = InFlight::pytorch, .buckets = 1, .delay_ms = 0, .noted_late_ns = noted_late_ns})),
        index_(trace_) {}
  Predictor predictor(double values) const { return {index_, dependency_graph(index_), {.values = values}}; }
  double step_ms(const Changes& changes, double values = 1e6) const {
    return 1e3 * predictor(values).predict(changes).step_s;
  }

  Trace trace_;
  RunIndex index_;
};

TEST_F(TorchWhatIf, SixteenBitsHalveTheTransfer) {
  EXPECT_EQ(predictor(1e6).obstacle({.bytes_per_value = 2}), "");
  EXPECT_NEAR(step_ms({}), 41, 0.05);
  EXPECT_NEAR(step_ms({.bytes_per_value = 2}), 41 - 3, 0.05);
}

TEST_F(TorchWhatIf, GradientsThatAreSentInSixteenBitsStay) {
  EXPECT_NEAR(step_ms({.bytes_per_value = 2}, 2e6), 41, 0.05);
  EXPECT_THAT(predictor(3e6).obstacle({.bytes_per_value = 2}), HasSubstr("type of the gradients is not known"));
}

TEST_F(TorchWhatIf, ItsBucketsAndItsAlgorithmAreItsOwn) {
  for (const Changes& changes : {Changes{.schedule = GradientSchedule::overlap}, Changes{.bucket_bytes = 1e6},
                                 Changes{.algorithm = AllreduceAlgorithm::tree}}) {
    EXPECT_THAT(predictor(1e6).obstacle(changes), HasSubstr("PyTorch's own"));
  }
}

// The thread that the allreduce runs in wakes the main thread and notes the end afterwards, in every second iteration
// after the wait is over. The main thread waited for it all the same.
class NotedLate : public TorchWhatIf {
 protected:
  NotedLate() : TorchWhatIf(1'000'000) {}
};

TEST_F(NotedLate, AMainThreadWaitsForACollectiveWhoseEndIsNotedLater) {
  EXPECT_NEAR(step_ms({.free_communication = true}), 41 - 6, 0.05);
  EXPECT_NEAR(step_ms({.bytes_per_value = 2}), 41 - 3, 0.05);
}

// At 1.5 ns a byte, half of a transfer is CPU time of gloo.
TEST_F(TorchWhatIf, ASlowerNetworkLeavesGloosCpuTimeAsItIs) {
  EXPECT_NEAR(step_ms({.byte_time = 2}), 41 + 3, 0.05);
  EXPECT_NEAR(step_ms({.byte_time = 0.5}), 41 - 1.5, 0.05);
}

}  // namespace
}  // namespace torch_what_if_test
}  // namespace paceline::analysis
