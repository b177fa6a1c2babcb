// SPDX-License-Identifier: Apache-2.0
// What sharded optimizers exchange and what compressed gradients cost, on hand-made traces.
#include "analysis/communication/exchange_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "analysis/run/exchanges.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

using testing::HasSubstr;

constexpr std::int64_t ms = 1'000'000;
constexpr int iterations = 6;

void add_range(TrackBuilder& track, std::int64_t start_ms, std::int64_t end_ms, const char* name, const char* category,
               double bytes = 0) {
  track.add_slice(start_ms * ms, end_ms * ms, name, "paceline.trainer", category);
  if (bytes > 0) track.argument("payload", bytes);
}

// Iterations of 100 ms, each filled by fill(start of the iteration in ms).
template <class Fill>
TrackBuilder& add_iterations(RankBuilder& rank, Fill&& fill) {
  TrackBuilder& main = rank.add_main_thread();
  for (int i = 0; i < iterations; ++i) {
    add_range(main, 100 * i, 100 * i + 100, "iteration", "iteration");
    main.argument("payload", i);
    fill(main, std::int64_t{100} * i);
  }
  return main;
}

std::string sentences_of(const Report& report) {
  std::string sentences;
  for (const Finding& finding : report.findings) sentences += finding.text + "\n";
  return sentences;
}

// A reduce-scatter on the main thread, which hides nothing, and an all-gather of a helper thread, half of which lies
// under the next forward pass.
Trace sharded_trace() {
  TraceBuilder run;
  for (const int number : {0, 1}) {
    RankBuilder& rank = run.add_rank(number, 2);
    TrackBuilder& helper = rank.add_track(TrackKind::thread, "communication", 2);
    add_iterations(rank, [&](TrackBuilder& main, std::int64_t at) {
      add_range(main, at, at + 30, "forward", "forward");
      add_range(main, at + 30, at + 60, "backward", "backward");
      add_range(main, at + 60, at + 80, "reduce-scatter", "allreduce", 4000);
      add_range(main, at + 80, at + 90, "optimizer", "optimizer");
      add_range(helper, at + 90, at + 110, "all-gather", "allreduce", 4000);
    });
  }
  return run.finish();
}

TEST(Exchanges, OfAShardedOptimizerAreHiddenUnderCompute) {
  const auto all = exchanges_of(analyse_run(sharded_trace(), "run"));
  ASSERT_TRUE(all);
  const ExchangeRow *const scatter = all->find("reduce-scatter"), *const gather = all->find("all-gather");
  ASSERT_NE(scatter, nullptr);
  ASSERT_NE(gather, nullptr);
  EXPECT_NEAR(scatter->total_s, 0.020, 1e-9);
  EXPECT_EQ(scatter->hidden_s, 0);
  EXPECT_DOUBLE_EQ(scatter->bytes, 4000);
  EXPECT_NEAR(gather->total_s, 0.020, 1e-9);
  EXPECT_NEAR(gather->hidden_s, 0.010 * (iterations - 1) / iterations, 1e-9);  // the last one meets no forward pass
  EXPECT_FALSE(all->compression);
}

TEST(Exchanges, OfAShardedOptimizerAreInTheReport) {
  const Report report = build_report({analyse_run(sharded_trace(), "run")});
  EXPECT_THAT(sentences_of(report), HasSubstr("reduce-scatters take 20.0 ms of an iteration, and none of it is hidden; "
                                              "all-gathers take 20.0 ms, and 41.7 % of it is hidden."));
  const auto parts = report_json(report)["runs"][0]["exchanges"]["parts"];
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0]["name"], "reduce-scatter");
  EXPECT_NEAR(parts[0]["exposed_s"].get<double>(), 0.020, 1e-9);
}

TEST(Exchanges, OnStreamsAreThoseOfNcclsKernels) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  TrackBuilder &compute = rank.add_track(TrackKind::stream, "GPU 0 stream 7"),
               &network = rank.add_track(TrackKind::stream, "GPU 0 stream 8");
  add_iterations(rank, [&](TrackBuilder&, std::int64_t at) {
    compute.add_slice(at * ms, (at + 50) * ms, "gemm", "cuda", "kernel");
    network.add_slice((at + 30) * ms, (at + 60) * ms, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", "cuda", "kernel");
    network.add_slice((at + 60) * ms, (at + 70) * ms, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "cuda", "kernel");
  });
  const auto all = exchanges_of(analyse_run(run.finish(), "run"));
  ASSERT_TRUE(all);
  ASSERT_EQ(all->rows.size(), 1u);
  EXPECT_EQ(all->rows[0].name, "reduce-scatter");
  EXPECT_NEAR(all->rows[0].total_s, 0.030, 1e-9);
  EXPECT_NEAR(all->rows[0].hidden_s, 0.020, 1e-9);
}

// Two ranks. Rank 0 waits 30 ms in each exchange for rank 1, whose own message takes 10 ms.
Trace compressed_trace(std::int64_t compress_ms, double gradient_bytes) {
  TraceBuilder run;
  for (const int number : {0, 1}) {
    add_iterations(run.add_rank(number, 2), [&](TrackBuilder& main, std::int64_t at) {
      add_range(main, at, at + 20, "backward", "backward");
      add_range(main, at + 20, at + 20 + compress_ms, "compress", "optimizer", gradient_bytes);
      add_range(main, number == 0 ? at + 50 : at + 80, at + 90, "all-gather", "allreduce", 1000);
      add_range(main, at + 90, at + 95, "decompress", "optimizer", gradient_bytes);
    });
  }
  return run.finish();
}

TEST(Compression, IsComparedWithWhatTheWholeGradientWouldTake) {
  const auto all = exchanges_of(analyse_run(compressed_trace(20, 40'000), "run"));
  ASSERT_TRUE(all && all->compression);
  const Compression& c = *all->compression;
  EXPECT_NEAR(c.work_s, 0.025, 1e-9);
  EXPECT_DOUBLE_EQ(c.gradient_bytes, 40'000);
  EXPECT_DOUBLE_EQ(c.sent_bytes, 1000);
  EXPECT_DOUBLE_EQ(c.plain_bytes, 40'000);
  EXPECT_NEAR(c.exchange_s, 0.010, 1e-9);
  EXPECT_NEAR(c.plain_exchange_s, 0.400, 1e-9);
}

TEST(Compression, TakesTheRateOfTheLinkWhereItIsGiven) {
  RunAnalysis run = analyse_run(compressed_trace(20, 40'000), "run");
  run.config.set("link_gbit", 0.01);
  const auto all = exchanges_of(run);
  ASSERT_TRUE(all && all->compression);
  EXPECT_NEAR(all->compression->plain_exchange_s, 8 * 40'000 / 1e7, 1e-9);
}

TEST(Compression, IsAWarningWhereItCostsMoreThanItSaves) {
  const Report pays = build_report({analyse_run(compressed_trace(20, 40'000), "run")});
  EXPECT_THAT(sentences_of(pays), HasSubstr("Compressing gradients takes 25.0 ms in an iteration, and each rank sends "
                                            "1.00 kB instead of 40.0 kB."));
  EXPECT_THAT(sentences_of(pays), HasSubstr("takes 10.0 ms instead of 400 ms, so compression pays."));
  const Report costs = build_report({analyse_run(compressed_trace(20, 2'000), "run")});
  EXPECT_THAT(sentences_of(costs),
              HasSubstr("takes 10.0 ms instead of 20.0 ms, so compression costs more than it saves."));
}

// PowerSGD sends two messages by allreduce.
TEST(Compression, AddsUpSeveralMeans) {
  TraceBuilder run;
  for (const int number : {0, 1, 2, 3}) {
    add_iterations(run.add_rank(number, 4), [&](TrackBuilder& main, std::int64_t at) {
      add_range(main, at, at + 10, "compress", "optimizer", 8000);
      add_range(main, at + 10, at + 20, "mean of P", "allreduce", 300);
      add_range(main, at + 20, at + 25, "compress", "optimizer", 8000);
      add_range(main, at + 25, at + 30, "mean of Q", "allreduce", 100);
      add_range(main, at + 30, at + 40, "decompress", "optimizer", 8000);
    });
  }
  const auto all = exchanges_of(analyse_run(run.finish(), "run"));
  ASSERT_TRUE(all && all->compression);
  EXPECT_NEAR(all->compression->work_s, 0.025, 1e-9);
  EXPECT_DOUBLE_EQ(all->compression->gradient_bytes, 8000);
  EXPECT_DOUBLE_EQ(all->compression->sent_bytes, 1.5 * 400);
  EXPECT_DOUBLE_EQ(all->compression->plain_bytes, 1.5 * 8000);
  EXPECT_NEAR(all->compression->exchange_s, 0.015, 1e-9);
}

}  // namespace
}  // namespace paceline::analysis
