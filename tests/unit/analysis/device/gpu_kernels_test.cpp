// SPDX-License-Identifier: Apache-2.0
#include "analysis/device/gpu_kernels.h"

#include <gtest/gtest.h>

#include "analysis/device/gpu.h"
#include "analysis/device/launches.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

TEST(GpuKernels, AreSummedByName) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  TrackBuilder& stream = rank.add_track(TrackKind::stream, "GPU 0 stream 7");
  stream.add_slice(0, 10, "gemm", "cuda", "kernel");
  stream.add_slice(20, 40, "gemm", "cuda", "kernel");
  stream.add_slice(50, 55, "Memset", "cuda", "memset");
  rank.add_track(TrackKind::thread, "thread", 2).add_slice(0, 100, "gemm", "cuda", "kernel");
  const Trace trace = run.finish();
  const auto kernels = gpu_kernels(trace, trace.ranks[0]);
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].name, "gemm");
  EXPECT_EQ(kernels[0].count, 2U);
  EXPECT_EQ(kernels[0].sum_ns, 30);
  EXPECT_EQ(kernels[0].min_ns, 10);
  EXPECT_EQ(kernels[0].max_ns, 20);
  EXPECT_DOUBLE_EQ(kernels[0].mean_ns, 15);
  EXPECT_NEAR(kernels[0].stddev_ns, 7.0711, 1e-4);
  EXPECT_EQ(kernels[1].category, "memset");
  EXPECT_EQ(kernels[1].stddev_ns, 0);
}

TEST(StreamIdle, IsDividedAsHolisticTraceAnalysisDoes) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  TrackBuilder& thread = rank.add_main_thread();
  TrackBuilder& stream = rank.add_track(TrackKind::stream, "GPU 0 stream 7");
  const auto kernel = [&](std::int64_t launch_ns, std::int64_t start_ns, std::int64_t end_ns, int id) {
    thread.add_slice(launch_ns, launch_ns + 10, "cudaLaunchKernel", "cuda", "runtime");
    thread.argument("correlation", id);
    stream.add_slice(start_ns, end_ns, "kernel", "cuda", "kernel");
    stream.argument("correlation", id);
  };
  kernel(0, 1000, 2000, 1);
  kernel(20, 2029, 3000, 2);                                 // 29 ns after the last one: kernel wait
  kernel(40, 3030, 4000, 3);                                 // 30 ns: other
  kernel(4001, 4500, 5000, 4);                               // launched after the last one had ended: host wait
  stream.add_slice(5600, 5700, "Memcpy", "cuda", "memcpy");  // its launch is not recorded: other
  rank.add_track(TrackKind::stream, "GPU 0 stream 8").add_slice(0, 9, "alone", "cuda", "kernel");
  const Trace trace = run.finish();
  const auto idle = stream_idle(trace.ranks[0], Correlations(trace, trace.ranks[0]));
  ASSERT_EQ(idle.size(), 1U);
  EXPECT_EQ(idle[0].stream, "GPU 0 stream 7");
  EXPECT_EQ(idle[0].host_wait_ns, 500);
  EXPECT_EQ(idle[0].kernel_wait_ns, 29);
  EXPECT_EQ(idle[0].other_ns, 630);
}

// With programmatic dependent launch a kernel begins before the one ahead of it in its stream has ended.
TEST(StreamIdle, CountsKernelsThatOverlapInAStreamAsOneStream) {
  TraceBuilder run;
  TrackBuilder& stream = run.add_rank(0).add_track(TrackKind::stream, "GPU 0 stream 7 (compute)");
  stream.add_slice(0, 10'000, "first", "cuda", "kernel");
  stream.add_slice(6'000, 20'000, "second", "cuda", "kernel");
  stream.add_slice(20'500, 30'000, "third", "cuda", "kernel");
  const Trace trace = run.finish();
  ASSERT_EQ(trace.ranks[0].tracks.size(), 2U);
  const auto idle = stream_idle(trace.ranks[0], Correlations(trace, trace.ranks[0]));
  ASSERT_EQ(idle.size(), 1U);
  EXPECT_EQ(idle[0].stream, "GPU 0 stream 7 (compute)");
  EXPECT_EQ(idle[0].host_wait_ns + idle[0].kernel_wait_ns + idle[0].other_ns, 500);
}

TEST(Distribution, InterpolatesQuartiles) {
  const Distribution of = distribution_of({4, 1, 3, 2});
  EXPECT_EQ(of.count, 4U);
  EXPECT_DOUBLE_EQ(of.mean, 2.5);
  EXPECT_DOUBLE_EQ(of.p25, 1.75);
  EXPECT_DOUBLE_EQ(of.median, 2.5);
  EXPECT_DOUBLE_EQ(of.p75, 3.25);
  EXPECT_EQ(of.minimum, 1);
  EXPECT_EQ(of.maximum, 4);
  EXPECT_NEAR(of.stddev, 1.29099, 1e-5);
  EXPECT_EQ(distribution_of({}).count, 0U);
  EXPECT_EQ(distribution_of({5}).stddev, 0);
}

TEST(Launches, AreMeasuredFromTheEndOfTheCallToTheStartOfTheWork) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  TrackBuilder& thread = rank.add_main_thread();
  TrackBuilder& stream = rank.add_track(TrackKind::stream, "GPU 0 stream 7");
  const auto launch = [&](std::int64_t call_ns, std::int64_t took_ns, std::int64_t start_ns, std::int64_t work_ns,
                          int id) {
    thread.add_slice(call_ns, call_ns + took_ns, "cudaLaunchKernel", "cuda", "runtime");
    thread.argument("correlation", id);
    stream.add_slice(start_ns, start_ns + work_ns, "kernel", "cuda", "kernel");
    stream.argument("correlation", id);
  };
  launch(0, 10'000, 4'000, 500, 1);               // starts inside its call: the delay is 0
  launch(20'000, 60'000, 300'000, 1'000'000, 2);  // a slow call, and a late start
  launch(90'000, 5'000, 2'000'000, 1'000, 3);
  stream.add_slice(9'000'000, 9'000'100, "without a call", "cuda", "kernel");
  const Trace trace = run.finish();
  const auto launches = launches_of(trace.ranks[0], Correlations(trace, trace.ranks[0]));
  ASSERT_TRUE(launches);
  const LaunchStatistics& statistics = launches->statistics;
  EXPECT_EQ(statistics.delay_ns.count, 3U);
  EXPECT_EQ(statistics.delay_ns.minimum, 0);
  EXPECT_EQ(statistics.delay_ns.median, 220'000);
  EXPECT_EQ(statistics.delay_ns.maximum, 1'905'000);
  EXPECT_EQ(statistics.slow_calls, 1U);
  EXPECT_EQ(statistics.late_starts, 2U);
  EXPECT_EQ(statistics.short_work, 2U);
  ASSERT_EQ(launches->queues.size(), 1U);
  EXPECT_EQ(launches->queues[0].stream, "GPU 0 stream 7");
  EXPECT_EQ(launches->queues[0].length.count, 6U);  // 1 0 1 2 1 0
  EXPECT_EQ(launches->queues[0].length.maximum, 2);
  EXPECT_NEAR(launches->queues[0].length.mean, 5.0 / 6, 1e-12);
}

TEST(Launches, AreAbsentWithoutCorrelations) {
  TraceBuilder run;
  run.add_rank(0).add_track(TrackKind::stream, "GPU 0 stream 7").add_slice(0, 1, "kernel", "cuda", "kernel");
  const Trace trace = run.finish();
  EXPECT_FALSE(launches_of(trace.ranks[0], Correlations(trace, trace.ranks[0])));
}

}  // namespace
}  // namespace paceline::analysis
