// SPDX-License-Identifier: Apache-2.0
// The tables of ranges, messages and iterations, the heat map and the waterfall, worked out on paper.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "analysis/report/section.h"
#include "analysis/run/device_peak.h"
#include "analysis/statistics/warm_up.h"
#include "tests/unit/analysis/checked_report.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

json json_of(const Report& report) { return json::parse(render_json(report)); }

json entry_named(const json& list, std::string_view name) {
  for (const json& entry : list) {
    if (entry["name"] == name) return entry;
  }
  return nullptr;
}

TEST(RangesTable, HasTheFiguresOfTheHandMadeJob) {
  const Report report = build_report({analyse_run(make_trace({.ranks = 2}), "run2")});
  const json ranks = json_of(report)["runs"][0]["per_rank"];
  const json allreduce = entry_named(ranks[0]["ranges"], "MPI_Allreduce");
  EXPECT_EQ(allreduce["domain"], "mpi");
  EXPECT_EQ(allreduce["category"], "collective");
  EXPECT_EQ(allreduce["calls"], 4);
  EXPECT_EQ(allreduce["total_ns"], 80'000'000);
  EXPECT_EQ(allreduce["median_ns"], 20'000'000);
  EXPECT_EQ(allreduce["stddev_ns"], 0);
  EXPECT_FALSE(allreduce.contains("device_ns"));
  EXPECT_EQ(entry_named(ranks[1]["ranges"], "backward")["total_ns"], 240'000'000);
  // Both ranks: 4 calls of 20 ms and 4 of 10 ms.
  EXPECT_THAT(render_markdown(report),
              HasSubstr("| MPI\\_Allreduce | mpi (collective) | 8 | 120 ms | 10.0 ms | 15.0 ms "
                        "| 20.0 ms | 5.35 ms | 80.0 ms (rank 0) |"));
}

// 40 layers: the 15 that take longest are shown, and JSON has all.
TEST(RangesTable, ShowsTheLargestOfMany) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  std::int64_t now = 0;
  for (int layer = 0; layer < 40; ++layer) {
    main.add_slice(now, now + 1000 + layer, "layer" + std::to_string(layer));
    now += 2000;
  }
  const Report report = build_report({analyse_run(run.finish(), "run")});
  const std::string text = checked_text(report);
  EXPECT_THAT(text, HasSubstr("Time in ranges and calls: the 15 largest of 40"));
  EXPECT_THAT(text, HasSubstr("layer39"));
  EXPECT_THAT(text, HasSubstr("layer25"));
  EXPECT_THAT(text, Not(HasSubstr("layer24")));
  EXPECT_EQ(json_of(report)["runs"][0]["per_rank"][0]["ranges"].size(), 40U);
}

// A rank of which 20 names were kept, and 9,800,000 were not.
TEST(RangesTable, HasARowForTheNamesThatWereNotKept) {
  const auto row = [](std::string name, std::int64_t ns) {
    RangeStatistics range;
    range.name = std::move(name);
    range.durations.add(ns);
    return range;
  };
  RankSummary rank;
  for (int i = 0; i < 20; ++i) rank.ranges.push_back(row("layer" + std::to_string(i), 1'000'000 - i));
  rank.ranges.push_back(row("other names", 77'000'000));
  rank.ranges.back().others = 9'800'000;
  const Report report = build_report({analyse_run(std::vector{rank}, "run")});
  const std::string text = checked_text(report);
  EXPECT_THAT(text, HasSubstr("Time in ranges and calls: the 15 largest of 9,800,020"));
  EXPECT_THAT(text, HasSubstr("other names (9,800,000)"));
  EXPECT_THAT(text, Not(HasSubstr("layer15")));
  const json ranges = json_of(report)["runs"][0]["per_rank"][0]["ranges"];
  ASSERT_EQ(ranges.size(), 21U);
  EXPECT_EQ(ranges[20]["other_names"], 9'800'000);
  EXPECT_EQ(ranges[20]["total_ns"], 77'000'000);
  EXPECT_FALSE(ranges[19].contains("other_names"));
}

TEST(RangesTable, NamesAreTextInEveryRendering) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.add_slice(0, 1000, "</script><img src=x onerror=alert(1)>", "a|b");
  main.add_slice(2000, 3000, "red\x1b[31m\nnext line");
  main.add_slice(4000, 5000, "=cmd|'/c calc'!A1\",\"");
  const Report report = build_report({analyse_run(run.finish(), "run")});
  const std::string html = render_html(report);
  EXPECT_THAT(html, Not(HasSubstr("<img src=x")));
  EXPECT_THAT(html, HasSubstr("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"));
  EXPECT_THAT(checked_text(report), HasSubstr("red�[31m�next line"));
  EXPECT_THAT(render_markdown(report), HasSubstr("\\</script>\\<img src=x"));
  EXPECT_THAT(render_markdown(report), HasSubstr("a\\|b"));
  EXPECT_EQ(entry_named(json_of(report)["runs"][0]["per_rank"][0]["ranges"], "red\x1b[31m\nnext line")["calls"], 1);
  const auto files = render_csv_tables(report);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_THAT(files[0].text, HasSubstr("\"=cmd|'/c calc'!A1\"\",\"\"\",1,1000,"));
}

// The job's lead: rank 1 arrives 10 ms later than rank 0, in each of 4 iterations of 120 ms, of which 1 is warm-up.
TEST(IterationsTable, HasOneRowForEachRankWithoutTheWarmUp) {
  const Report report = build_report({analyse_run(make_trace({.ranks = 2}), "run2")});
  const json rank = json_of(report)["runs"][0]["per_rank"][1]["iterations"];
  EXPECT_EQ(rank["count"], 3);
  EXPECT_EQ(rank["min_ns"], 120'000'000);
  EXPECT_EQ(rank["p95_ns"], 120'000'000);
  EXPECT_EQ(rank["stddev_ns"], 0);
  const std::string md = render_markdown(report);
  EXPECT_THAT(md, HasSubstr("### Iteration times of each rank"));
  EXPECT_THAT(md, HasSubstr("| 0 | 3 | 120 ms | 120 ms | 120 ms | 120 ms | 120 ms | 120 ms | 0 s |"));
  EXPECT_THAT(md, HasSubstr("without 1 iteration of warm-up: the rule is a tenth of them, at least one."));
}

TEST(WarmUp, EndsWhereTheRestVariesLeast) {
  std::vector<double> seconds;
  for (int i = 0; i < 100; ++i) seconds.push_back(i < 10 ? 3.0 - 0.2 * i : 1.0 + 0.01 * (i % 2));
  EXPECT_EQ(mser5_warm_up(seconds), 10U);
  EXPECT_EQ(mser5_warm_up(std::vector<double>(100, 1.0)), 0U);
  EXPECT_FALSE(mser5_warm_up(std::vector<double>(19, 1.0)));
  std::vector<double> rising;
  for (int i = 0; i < 100; ++i) rising.push_back(i < 80 ? i : 80);
  EXPECT_FALSE(mser5_warm_up(rising)) << "never steady";
}

TEST(HeatMap, HasTheLatenessOfTheHandMadeJob) {
  const Report report = build_report({analyse_run(make_trace({.ranks = 2}), "run2")});
  const json map = json_of(report)["runs"][0]["heat_map"];
  EXPECT_EQ(map["figure"], "lateness");
  EXPECT_EQ(map["iterations_per_column"], 1);
  EXPECT_EQ(map["first_iterations"], json({1, 2, 3}));
  EXPECT_EQ(map["ns"], json({{-5e6, -5e6, -5e6}, {5e6, 5e6, 5e6}}));
  const std::string html = render_html(report);
  EXPECT_THAT(html, HasSubstr("\"kind\":\"heat\""));
  EXPECT_THAT(html, HasSubstr("<summary>Lateness of each rank by iteration</summary>"));
  EXPECT_THAT(render_markdown(report), HasSubstr("| 1 | 5.00 ms | 5.00 ms | 5.00 ms |"));
  EXPECT_THAT(checked_text(report), Not(HasSubstr("Lateness of each rank by iteration")));
}

// Three ranks without collectives; rank 2 takes 30 ms instead of 10 in the iterations from 50 on.
Trace slow_rank(int iterations) {
  TraceBuilder run;
  for (int r = 0; r < 3; ++r) {
    TrackBuilder& main = run.add_rank(r, 3).add_main_thread();
    std::int64_t now = 0;
    for (int i = 0; i < iterations; ++i) {
      const std::int64_t length = (r == 2 && i >= iterations / 2 ? 30 : 10) * 1'000'000;
      main.add_slice(now, now + length, "iteration");
      now += length;
    }
  }
  return run.finish();
}

TEST(HeatMap, ShowsIterationTimesWhereNothingIsCollectiveAndJoinsManyIterations) {
  const json map = json_of(build_report({analyse_run(slow_rank(1000), "run")}))["runs"][0]["heat_map"];
  EXPECT_EQ(map["figure"], "iteration time");
  EXPECT_EQ(map["iterations_per_column"], 5);  // 900 after the warm-up, in at most 200 columns
  EXPECT_EQ(map["first_iterations"].size(), 180U);
  EXPECT_EQ(map["first_iterations"][0], 100);
  EXPECT_EQ(map["ns"][0][179], 0.0);
  EXPECT_EQ(map["ns"][2][0], 0.0);
  EXPECT_EQ(map["ns"][2][179], 20e6);
}

// Three ranks, of which rank 2 comes 5 ms late to the one collective of each of 80 iterations, and half a second late
// to the first.
Trace job_with_a_late_rank() {
  std::mt19937_64 random(3);
  std::exponential_distribution<double> noise(1.0 / 1e5);
  TraceBuilder run;
  std::vector<TrackBuilder*> mains;
  for (int r = 0; r < 3; ++r) mains.push_back(&run.add_rank(r, 3).add_main_thread());
  std::int64_t now = 0;
  for (int i = 0; i < 80; ++i) {
    std::vector<std::int64_t> arrivals;
    for (int r = 0; r < 3; ++r) {
      arrivals.push_back(now + 10'000'000 + static_cast<std::int64_t>(noise(random)) +
                         (r != 2   ? 0
                          : i == 0 ? 500'000'000
                                   : 5'000'000));
    }
    const std::int64_t end = std::ranges::max(arrivals) + 100'000;
    for (int r = 0; r < 3; ++r) {
      mains[r]->add_slice(now, end, "iteration");
      mains[r]->add_slice(arrivals[r], end, "MPI_Allreduce", "mpi", "collective");
      mains[r]->text_argument("communicator", "w");
      mains[r]->argument("sequence", i);
    }
    now = end;
  }
  return run.finish();
}

// 72 iterations are left after the warm-up, two in each character.
TEST(HeatMap, IsABlockOnTheTerminalWhereARankIsSlow) {
  const std::string text = checked_text(build_report({analyse_run(job_with_a_late_rank(), "run")}));
  std::string dark;
  for (int cell = 0; cell < 36; ++cell) dark += "█";
  EXPECT_THAT(text, HasSubstr("Lateness in iterations 8 to 79: █ is"));
  EXPECT_THAT(text, HasSubstr("\n  2     " + dark + "\n"));
}

TEST(LateRanks, HaveTheirWorstArrivalAfterTheWarmUp) {
  const RunAnalysis run = analyse_run(job_with_a_late_rank(), "run");
  const std::optional<TimeInterval>& worst = run.arrivals.at(2).worst;
  ASSERT_TRUE(worst.has_value());
  EXPECT_GE(worst->start_ns, run.iterations.spans.at(run.iterations.warmup).start_ns);
  EXPECT_EQ(run.arrivals.at(2).collectives, 80U);
}

// W(1) = 2.00 s; W(2) = 1.605 s = 1.00 + serial 0.525 + transfer 0.04 + waiting 0.02 + slower work 0.02.
TEST(Waterfall, AddsUpFromTheIdealToTheMeasuredSpeedUp) {
  const Report report =
      build_report({analyse_run(make_trace({.ranks = 1}), "run1"), analyse_run(make_trace({.ranks = 2}), "run2")});
  const json scaling = json_of(report)["scaling"];
  ASSERT_EQ(scaling["waterfall"].size(), 1U);
  const json waterfall = scaling["waterfall"][0];
  EXPECT_NEAR(waterfall["changes"]["serial"].get<double>(), -2 * 0.525 / 1.605, 1e-9);
  EXPECT_NEAR(waterfall["changes"]["transfer"].get<double>(), -2 * 0.04 / 1.605, 1e-9);
  EXPECT_NEAR(waterfall["changes"]["waiting"].get<double>(), -2 * 0.02 / 1.605, 1e-9);
  EXPECT_NEAR(waterfall["changes"]["parallel"].get<double>(), -2 * 0.02 / 1.605, 1e-9);
  double sum = waterfall["ideal"].get<double>();
  for (const auto& [cause, change] : waterfall["changes"].items()) sum += change.get<double>();
  EXPECT_NEAR(sum, scaling["points"][1]["speedup"].get<double>(), 1e-12);
  EXPECT_EQ(waterfall["measured"], scaling["points"][1]["speedup"]);
  EXPECT_THAT(render_markdown(report), HasSubstr("| 2 | 2 | −0.654 | −0.050 | −0.025 | −0.025 |"));
  EXPECT_THAT(render_html(report), HasSubstr("\"kind\":\"waterfall\""));
}

// Where one rank ends 0.2 s before the other, that is in the last step.
TEST(Waterfall, EndsAtTheSpeedUpOfTheWholeJob) {
  Trace two = make_trace({.ranks = 2});
  two.ranks[1].end_ns += 200'000'000;
  const Report report = build_report({analyse_run(make_trace({.ranks = 1}), "run1"), analyse_run(two, "run2")});
  const json scaling = json_of(report)["scaling"], waterfall = scaling["waterfall"][0];
  EXPECT_NEAR(waterfall["measured"].get<double>(), 2.0 / 1.805, 1e-9);
  EXPECT_NEAR(waterfall["changes"]["last_rank"].get<double>(), 2.0 / 1.805 - 2.0 / 1.705, 1e-9);
}

// What was lost without a CPU is in no other step, as in the table of causes. Of the 20 ms of waiting at most all.
TEST(Waterfall, HasTheTimeWithoutACpuOnce) {
  std::vector<RunAnalysis> runs;
  for (const int ranks : {1, 2}) runs.push_back(analyse_run(make_trace({.ranks = ranks}), fmt::format("run{}", ranks)));
  RunCauses& causes = runs[1].causes.emplace();
  causes.ranks.resize(2);
  causes.ranks[0].transfer[LossCause::no_cpu] = 16e6;
  causes.ranks[0].waiting[LossCause::throttled] = 60e6;
  const Report report = build_report(std::move(runs));
  const json scaling = json_of(report)["scaling"], waterfall = scaling["waterfall"][0];
  EXPECT_NEAR(waterfall["changes"]["transfer"].get<double>(), -2 * 0.032 / 1.605, 1e-9);
  EXPECT_NEAR(waterfall["changes"]["waiting"].get<double>(), 0, 1e-9);
  EXPECT_NEAR(waterfall["changes"]["no_cpu"].get<double>(), -2 * 0.028 / 1.605, 1e-9);
  double sum = waterfall["ideal"].get<double>();
  for (const auto& [cause, change] : waterfall["changes"].items()) sum += change.get<double>();
  EXPECT_NEAR(sum, scaling["points"][1]["speedup"].get<double>(), 1e-12);
  const std::string text = render_markdown(report);
  EXPECT_THAT(text, HasSubstr("| 2 | 2 | −0.654 | −0.040 | +0.000 | −0.025 | −0.035 |"));
  EXPECT_THAT(text, HasSubstr("| transfer in communication | 32.0 ms |"));
  EXPECT_THAT(text, HasSubstr("| threads that had no CPU | 28.0 ms |"));
}

TEST(MessagesTable, ShowsPairsAndMatrices) {
  TraceBuilder run;
  for (int r = 0; r < 3; ++r) {
    RankBuilder& rank = run.add_rank(r, 3);
    const NameId world = rank.names().intern("w");
    rank.add_communicator({world, 1, 3}, r);
    TrackBuilder& main = rank.add_main_thread();
    const auto message = [&](std::int64_t begin, std::int64_t end, const char* name, int peer) {
      main.add_slice(begin, end, name, "mpi", "point-to-point");
      main.argument("bytes", 1000);
      main.text_argument("communicator", "w");
      main.argument("peer", peer);
      main.argument("tag", 0);
    };
    // A ring: rank 0 sends 30 µs late, rank 2 receives 10 µs late.
    if (r == 0) message(30'000, 40'000, "MPI_Send", 1), message(41'000, 60'000, "MPI_Recv", 2);
    if (r == 1) message(0, 41'000, "MPI_Recv", 0), message(42'000, 52'500, "MPI_Send", 2);
    if (r == 2) message(52'000, 53'000, "MPI_Recv", 1), message(54'000, 60'000, "MPI_Send", 0);
  }
  const Report report = build_report({analyse_run(run.finish(), "run")});
  const json messages = json_of(report)["runs"][0]["messages"];
  ASSERT_EQ(messages["pairs"].size(), 3U);
  EXPECT_EQ(messages["pairs"][0], json({{"sender", 0},
                                        {"receiver", 1},
                                        {"messages", 1},
                                        {"matched", 1},
                                        {"bytes", 1000},
                                        {"late_sender_ns", 30'000},
                                        {"late_receiver_ns", 0}}));
  EXPECT_EQ(messages["pairs"][1]["late_receiver_ns"], 10'000);
  EXPECT_EQ(messages["pairs"][2]["late_sender_ns"], 13'000);
  const std::string text = checked_text(report), html = render_html(report);
  EXPECT_THAT(text, HasSubstr("Messages between ranks"));
  EXPECT_THAT(text, HasSubstr("Waiting in messages: from the rank of the row to that of the column\n"
                              "  from \\ to        0        1        2\n"
                              "  0                –  30.0 µs        –\n"
                              "  1                –        –  10.0 µs\n"
                              "  2          13.0 µs        –        –\n"));
  EXPECT_THAT(html, HasSubstr("Bytes from rank to rank"));
  EXPECT_THAT(html, HasSubstr("<summary>Messages: from the rank of the row to that of the column</summary>"));
}

TEST(Flops, AreThoseOfTheDescriptionAndTheDevice) {
  Job job{.ranks = 2};
  job.config["flops_per_image"] = 1e9;
  const RunAnalysis unknown = analyse_run(make_trace(job), "run");  // 64 images in 120 ms
  EXPECT_NEAR(*unknown.iterations.flops_per_s, 64e9 / 0.12, 1);
  EXPECT_FALSE(unknown.iterations.flops_share_of_peak);
  job.config["peak_flops"] = 1e12;  // of each rank
  const RunAnalysis known = analyse_run(make_trace(job), "run");
  EXPECT_NEAR(*known.iterations.flops_share_of_peak, 64e9 / 0.12 / 2e12, 1e-9);
  EXPECT_THAT(checked_text(build_report({known})), HasSubstr("533.3 GFLOP/s (26.7 % of the peak)"));
  EXPECT_FALSE(analyse_run(make_trace({.ranks = 2}), "run").iterations.flops_per_s);
  EXPECT_EQ(device_peak_flops("NVIDIA A100-SXM4-40GB, 40 GiB", "bf16"), 312e12);
  EXPECT_FALSE(device_peak_flops("NVIDIA A100-SXM4-40GB, 40 GiB", "f32"));
  EXPECT_FALSE(device_peak_flops("Tesla V100-SXM2-16GB", "bf16"));
}

}  // namespace
}  // namespace paceline::analysis
