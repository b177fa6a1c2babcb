// SPDX-License-Identifier: Apache-2.0
// Times, rates and shares of layers, from traces whose figures are worked out on paper.
#include "analysis/run/layer_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/report/build.h"
#include "analysis/run/run_analysis.h"
#include "analysis/trace/builder.h"
#include "tests/unit/analysis/checked_report.h"

namespace paceline::analysis {
namespace layer_costs_test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t ms = 1'000'000;
constexpr const char* statement = R"({"layers": {
    "conv1": {"kind": "convolution 3×3", "forward": [1e6, 2e5], "backward": [2e6, 4e5]},
    "conv2": {"kind": "convolution 3×3", "forward": [3e6, 1e5], "backward": [6e6, 2e5]},
    "bn": {"kind": "batch norm", "forward": [0, 5e5], "backward": [0, 1e6]}}})";
constexpr const char* peaks = R"({"peak_flops": 1e10, "peak_bytes_per_s": 1e9})";

// Iterations of 100 ms: forward with conv1 10 ms, bn 5 ms, conv2 10 ms; backward with conv2 40 ms. The first one is
// five times as slow. Afterwards an evaluation passes conv1 again.
void add_rank(TraceBuilder& run, int rank, int ranks, std::vector<std::string> marks, double images = 20) {
  TrackBuilder& main = run.add_rank(rank, ranks).add_main_thread();
  main.add_mark(0, nlohmann::json{{"images_per_iteration", images * ranks}}.dump(), "paceline.trainer", "run");
  for (const std::string& mark : marks) main.add_mark(0, mark, "paceline.trainer", "layers");
  std::int64_t now = 0;
  const auto range = [&](const char* category, const char* name, std::int64_t from, std::int64_t length) {
    main.add_slice(from, from + length, name, "paceline.trainer", category);
  };
  for (int i = 0; i < 5; ++i) {
    const std::int64_t unit = i == 0 ? 5 * ms : ms;
    main.push(now, "iteration", "paceline.trainer", "iteration");
    main.argument("payload", i);
    range("forward", "forward", now, 30 * unit);
    range("layer", "conv1", now, 10 * unit);
    range("layer", "bn", now + 10 * unit, 5 * unit);
    range("layer", "conv2", now + 15 * unit, 10 * unit);
    range("backward", "backward", now + 30 * unit, 60 * unit);
    range("layer", "conv2", now + 30 * unit, 40 * unit);
    range("layer", "conv1", now + 92 * unit, 5 * unit);  // in no pass
    main.pop(now += 100 * unit);
  }
  range("evaluate", "evaluate", now, 50 * ms);
  range("forward", "forward", now, 50 * ms);
  range("layer", "conv1", now, 50 * ms);
}

TEST(LayerCosts, AreSumsByKindAndPassOfWhatTheProgramStates) {
  TraceBuilder run;
  add_rank(run, 0, 2,
           {"no JSON", "[1]", R"({"layers": {"x": 1, "bn": {"kind": 2}}, "peak_flops": "much"})", statement, peaks});
  add_rank(run, 1, 2, {statement, peaks});
  const RunAnalysis analysis = analyse_run(run.finish(), "run");
  const RunLayers& layers = analysis.layers;
  ASSERT_EQ(layers.work.size(), 3U);
  EXPECT_EQ(layers.work[0].kind, "convolution 3×3");  // backward, of conv2 alone
  EXPECT_TRUE(layers.work[0].backward);
  EXPECT_DOUBLE_EQ(layers.work[0].iteration_ns, 40 * ms);
  EXPECT_DOUBLE_EQ(layers.work[0].flops, 20 * 6e6);
  EXPECT_DOUBLE_EQ(layers.work[0].bytes, 20 * 2e5);
  EXPECT_FALSE(layers.work[1].backward);
  EXPECT_DOUBLE_EQ(layers.work[1].iteration_ns, 20 * ms);
  EXPECT_DOUBLE_EQ(layers.work[1].flops, 20 * 4e6);
  EXPECT_DOUBLE_EQ(layers.work[1].bytes, 20 * 3e5);
  EXPECT_EQ(layers.work[2].kind, "batch norm");
  EXPECT_DOUBLE_EQ(layers.work[2].iteration_ns, 5 * ms);
  EXPECT_EQ(layers.work[2].flops, 0);
  EXPECT_EQ(layers.peak_flops, 1e10);
  EXPECT_EQ(layers.peak_bytes, 1e9);
  const Report report = build_report({analysis});
  const std::string text = checked_text(report);
  // 120 MFLOP in 40 ms are 3 GFLOP/s; 4 MB are 100 MB/s. The batch norm moves 10 MB in 5 ms, more than the peak.
  EXPECT_THAT(text, ContainsRegex("convolution 3×3 +backward +40.0 ms .40.0 %. +120 MFLOP +4 MB +3 GFLOP/s +"
                                  "0.30 +100 MB/s +0.10"));
  EXPECT_THAT(text, ContainsRegex("batch norm +forward +5.00 ms .5.0 %. +– +10 MB +– +– +2 GB/s +2.00"));
  EXPECT_THAT(render_html(report), HasSubstr("Layers beside the machine"));
  const nlohmann::json json = nlohmann::json::parse(render_json(report))["runs"][0]["layers"];
  EXPECT_EQ(json["work"][1], nlohmann::json({{"kind", "convolution 3×3"},
                                             {"pass", "forward"},
                                             {"iteration_ns", 20.0 * ms},
                                             {"flops", 8e7},
                                             {"bytes", 6e6}}));
  EXPECT_EQ(json["peak_flops"], 1e10);
}

TEST(LayerCosts, HaveNoSharesWithoutPeaksAndNoTableWithoutCosts) {
  TraceBuilder without;
  add_rank(without, 0, 2, {statement, peaks});
  add_rank(without, 1, 2, {statement});  // one rank does not know its peaks
  const RunAnalysis analysis = analyse_run(without.finish(), "run");
  EXPECT_EQ(analysis.layers.work.size(), 3U);
  EXPECT_FALSE(analysis.layers.peak_flops);
  EXPECT_THAT(checked_text(build_report({analysis})), Not(HasSubstr("÷ peak")));
  TraceBuilder none;
  add_rank(none, 0, 1, {peaks});
  const RunAnalysis unstated = analyse_run(none.finish(), "run");
  EXPECT_THAT(checked_text(build_report({unstated})), Not(HasSubstr("Layers beside")));
}

// The thread only launches; the layer takes the time of the kernels that it launched, wherever they run.
TEST(LayerCosts, OfAGpuAreTheWorkThatLayersLaunched) {
  TraceBuilder run;
  add_rank(run, 0, 1, {statement});
  RankBuilder& rank = run.add_rank(1, 2);
  TrackBuilder& main = rank.add_main_thread();
  TrackBuilder& stream = rank.add_track(TrackKind::stream, "GPU 0 stream 7");
  main.add_mark(0, statement, "paceline.trainer", "layers");
  for (int i = 0; i < 3; ++i) {
    const std::int64_t now = i * 100 * ms;
    main.push(now, "iteration", "paceline.trainer", "iteration");
    main.push(now, "forward", "paceline.trainer", "forward");
    main.push(now, "conv1", "paceline.trainer", "layer");
    main.add_slice(now, now + 10, "cudaLaunchKernel", "cuda", "runtime");
    main.argument("correlation", i + 1);
    main.pop(now + ms);
    main.add_slice(now + 2 * ms, now + 2 * ms + 10, "cudaLaunchKernel", "cuda", "runtime");  // of no layer
    main.argument("correlation", i + 11);
    main.pop(now + 5 * ms);
    main.pop(now + 90 * ms);
    stream.add_slice(now + 20 * ms, now + (23 + i) * ms, "gemm", "cuda", "kernel");
    stream.argument("correlation", i + 1);
    stream.add_slice(now + 40 * ms, now + 60 * ms, "copy", "cuda", "kernel");
    stream.argument("correlation", i + 11);
  }
  const std::vector<RankSummary> ranks = summarise(run.finish());
  ASSERT_EQ(ranks[1].layers.work.size(), 1U);
  EXPECT_DOUBLE_EQ(ranks[1].layers.work[0].iteration_ns, 4.5 * ms);  // 4 and 5 ms, without the warm-up's 3
}

}  // namespace
}  // namespace layer_costs_test
}  // namespace paceline::analysis
