// SPDX-License-Identifier: Apache-2.0
// Figures of whole jobs that are written as .pace files and read by the program `paceline`. All of them are worked out
// on paper.
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "analysis/trace/builder.h"
#include "tests/integration/command.h"
#include "tests/unit/analysis/rank_file.h"

namespace paceline::analysis {
namespace report_figures_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr std::int64_t ms = 1'000'000;

// Times of a rank in an iteration, in ms.
struct Work {
  std::int64_t preprocess = 0, forward = 40;
};

// A job whose iterations begin together on all ranks: preprocess, forward, and an allreduce that ends `transfer_ms`
// after the last rank has come.
struct IterationsJob {
  int ranks = 2, iterations = 100;
  std::function<Work(int rank, int iteration)> work = [](int, int) { return Work{}; };
  std::function<std::int64_t(int iteration)> transfer_ms = [](int) { return 10; };
  int ranks_of_a_host = 1000;
  std::int64_t startup_ms = 0;
  json config = {};
  std::optional<double> accuracy = {};  // marked at the end
};

Trace make_trace(const IterationsJob& job) {
  const std::string domain = "paceline.trainer";
  TraceBuilder run;
  std::vector<TrackBuilder*> mains;
  for (int r = 0; r < job.ranks; ++r) {
    RankBuilder& rank = run.add_rank(r, job.ranks);
    rank.info().host = "node" + std::to_string(r / job.ranks_of_a_host);
    rank.info().format = "pace";
    mains.push_back(&rank.add_main_thread());
    if (job.startup_ms > 0) mains[r]->add_slice(0, job.startup_ms * ms, "startup", domain, "startup");
    if (!job.config.empty()) mains[r]->add_mark(job.startup_ms * ms, job.config.dump(), domain, "run");
  }
  std::int64_t begin = job.startup_ms * ms;
  for (int i = 0; i < job.iterations; ++i) {
    std::vector<std::int64_t> arrivals;
    for (int r = 0; r < job.ranks; ++r) {
      const Work work = job.work(r, i);
      TrackBuilder& main = *mains[r];
      main.push(begin, "iteration", domain, "iteration");
      main.argument("payload", i);
      const std::int64_t prepared = begin + work.preprocess * ms;
      if (work.preprocess > 0) main.add_slice(begin, prepared, "preprocess", domain, "preprocess");
      arrivals.push_back(prepared + work.forward * ms);
      main.add_slice(prepared, arrivals.back(), "forward", domain, "forward");
    }
    const std::int64_t end = std::ranges::max(arrivals) + job.transfer_ms(i) * ms;
    for (int r = 0; r < job.ranks; ++r) {
      mains[r]->add_slice(arrivals[r], end, "MPI_Allreduce", "mpi", "collective");
      mains[r]->argument("bytes", 4e6);
      mains[r]->text_argument("communicator", "MPI_COMM_WORLD");
      mains[r]->argument("sequence", i);
      mains[r]->pop(end);
    }
    begin = end;
  }
  for (TrackBuilder* main : mains) {
    if (job.accuracy)
      main->mark_argument(main->add_mark(begin, "accuracy", domain, "accuracy"), "payload", *job.accuracy);
  }
  Trace trace = run.finish();
  for (Rank& rank : trace.ranks) {
    rank.start_ns = 0, rank.end_ns = begin;
    rank.clock_error_ns = 1e5;  // of the host's clock against UTC
  }
  return trace;
}

class ReportFigures : public CommandTest {
 protected:
  void save(const std::string& name, const IterationsJob& job) const { write_run(make_trace(job), directory_ / name); }

  json report(const std::string& runs) const {
    const Outcome outcome = paceline("report --format json " + runs);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return json::parse(outcome.output);
  }
};

// -1 or 1, and 0 to 2, by chance.
std::vector<int> signs(int count) {
  std::mt19937 random(5);
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back(random() % 2 == 0 ? -1 : 1);
  return out;
}
std::vector<int> small_numbers(int count) {
  std::mt19937 random(6);
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back(static_cast<int>(random() % 3));
  return out;
}

// Ranks 0 and 1 take 39 and 41 ms in changing order, and rank 2 takes 40, as rank 3 does before iteration 50. Then rank
// 3 takes 60 and is 20 ms behind the median of the others, who wait for 20 ms on average.
TEST_F(ReportFigures, OfARankThatIsSlowFromAnIterationOn) {
  const auto sign = signs(100), more = small_numbers(100);
  save("run", {.ranks = 4,
               .work =
                   [&](int rank, int i) {
                     if (rank < 2) return Work{.forward = 40 + (rank == 0 ? sign[i] : -sign[i])};
                     return Work{.forward = rank == 3 && i >= 50 ? 60 : 40};
                   },
               .transfer_ms = [&](int i) { return 10 + more[i]; }});
  const json run = report("run")["runs"][0], &slow = run["lateness"]["slow_ranks"];
  ASSERT_EQ(slow.size(), 1U) << run["lateness"];
  EXPECT_EQ(slow[0]["rank"], 3);
  EXPECT_EQ(slow[0]["pattern"], "since");
  EXPECT_EQ(slow[0]["iteration"], 50);
  EXPECT_EQ(slow[0]["phase"], "forward");
  EXPECT_NEAR(slow[0]["late_ns"].get<double>(), 50 * 20e6 / 90, 1);
  EXPECT_NEAR(slow[0]["cost_rank_s"].get<double>(), 3 * 50 * 0.02, 1e-6) << "three ranks wait in 50 iterations";
  EXPECT_EQ(run["per_rank"][3]["waits"]["last_count"], 50);
  EXPECT_EQ(run["per_rank"][3]["waits"]["caused_ns"], 50 * 3 * 20 * ms);
  EXPECT_EQ(run["per_rank"][2]["waits"]["waited_ns"], 50 * (1 + 20) * ms);
  const json& map = run["heat_map"];
  EXPECT_EQ(map["figure"], "lateness");
  EXPECT_EQ(map["ns"][3].front(), 0.0);
  EXPECT_EQ(map["ns"][3].back(), 19.5e6) << "the median of 39, 40, 41 and 60 is 40.5";
  EXPECT_THAT(paceline("report --format md run").output, HasSubstr("3.00 rank-seconds of waiting in all"));
}

// In one iteration of ten, from number 7 on, the loader of rank 1 takes 50 ms longer.
TEST_F(ReportFigures, OfALoaderThatIsSlowPeriodically) {
  const auto sign = signs(200);
  save("run", {.ranks = 3, .iterations = 200, .work = [&](int rank, int i) {
                 const Work slow{.preprocess = i % 10 == 7 ? 55 : 5};
                 return rank == 1 ? slow : Work{.preprocess = 5, .forward = 40 + (rank == 0 ? sign[i] : -sign[i])};
               }});
  const json run = report("run")["runs"][0], &slow = run["lateness"]["slow_ranks"];
  ASSERT_EQ(slow.size(), 1U) << run["lateness"];
  EXPECT_EQ(slow[0]["rank"], 1);
  EXPECT_EQ(slow[0]["pattern"], "periodic");
  EXPECT_EQ(slow[0]["period"], 10);
  EXPECT_EQ(slow[0]["iteration"].get<int>() % 10, 7);
  EXPECT_EQ(slow[0]["phase"], "preprocess");
  EXPECT_NEAR(slow[0]["phase_longer_ns"].get<double>(), 5e6, 0.1e6) << "50 ms in a tenth of the iterations";
}

// The ranks of node1 take 20 or 21 ms longer. A host's lateness is that of its rank that is 1 ms earlier than 40 or 60.
TEST_F(ReportFigures, OfASlowHost) {
  const auto sign = signs(100), more = small_numbers(100);
  save("run", {.ranks = 4,
               .work =
                   [&](int rank, int i) {
                     const int slower = rank < 2 ? 0 : 20 + more[i];
                     return Work{.forward = 40 + slower + (rank % 2 == 0 ? sign[i] : -sign[i])};
                   },
               .ranks_of_a_host = 2});
  const json whole = report("run"), run = whole["runs"][0], &slow = run["lateness"]["slow_hosts"];
  ASSERT_EQ(slow.size(), 1U) << run["lateness"];
  const double behind_s = 1e-3 * std::accumulate(more.begin() + 10, more.end(), 90.0 * 20);
  EXPECT_EQ(slow[0]["host"], "node1");
  EXPECT_NEAR(slow[0]["late_ns"].get<double>(), 1e9 * behind_s / 90, 1);
  EXPECT_NEAR(slow[0]["cost_rank_s"].get<double>(), 2 * behind_s, 1e-6) << "the two ranks of node0 wait";
  EXPECT_THAT(whole["verdict"][0].get<std::string>(), HasSubstr("the host node1 holds the others up"));
  EXPECT_THAT(whole["verdict"][1].get<std::string>(), HasSubstr("first: host node1 no slower than the others"));
  // Steps take 71 to 73 ms. Without the delay, its ranks take the median of 39 and 41 ms, and a step 51 ms.
  const json relieved = json::parse(paceline("whatif run --relieve node1 --format json").output);
  EXPECT_NEAR(relieved["predictions"][0]["step_s"].get<double>(), 0.051, 1e-6);
  EXPECT_EQ(relieved["predictions"][0]["options"], "--relieve node1");
  const Outcome unknown = paceline("whatif run --relieve node2");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.errors, HasSubstr("the run has no such rank or host: --relieve node2"));
}

// Steps of 0.8 s become steps of 2.2 s at iteration 36, with 0 to 20 ms of noise.
TEST_F(ReportFigures, OfAJumpOfTheStepTime) {
  const auto more = small_numbers(60);
  save("run",
       {.iterations = 60, .work = [&](int, int i) { return Work{.forward = (i < 36 ? 790 : 2190) + 10 * more[i]}; }});
  const json iterations = report("run")["runs"][0]["iterations"];
  ASSERT_TRUE(iterations.contains("change")) << iterations;
  const json& change = iterations["change"];
  EXPECT_EQ(change["kind"], "jump");
  EXPECT_EQ(change["iteration"], 36);
  EXPECT_EQ(change["phase"], "forward");
  EXPECT_NEAR(change["before_ns"].get<double>(), 810e6, 10e6);
  EXPECT_NEAR(change["after_ns"].get<double>(), 2210e6, 10e6);
}

// Steps grow by half a millisecond from each to the next, with 0 to 2 ms of noise. After ten of warm-up they take from
// 115 to 159.5 ms, and 1 ms of noise on average.
TEST_F(ReportFigures, OfADriftOfTheStepTime) {
  const auto more = small_numbers(100);
  save("run", {.work = [&](int, int i) { return Work{.forward = 100 + i / 2 + more[i]}; }});
  const json change = report("run")["runs"][0]["iterations"]["change"];
  EXPECT_EQ(change["kind"], "drift");
  EXPECT_FALSE(change.contains("iteration"));
  EXPECT_EQ(change["phase"], "forward");
  EXPECT_NEAR(change["before_ns"].get<double>(), 116e6, 1e6);
  EXPECT_NEAR(change["after_ns"].get<double>(), 160.5e6, 1e6);
}

// Each rank takes 60 ms where the other takes 40, and a transfer takes 10: of 70 ms, a rank works for 50. On a network
// without cost, an iteration takes 60.
TEST_F(ReportFigures, OfPopsEfficiencies) {
  save("run", {.iterations = 40, .work = [](int rank, int i) { return Work{.forward = i % 2 == rank ? 60 : 40}; }});
  const json run = report("run")["runs"][0], &efficiencies = run["efficiencies"];
  EXPECT_NEAR(efficiencies["parallel"].get<double>(), 50.0 / 70, 1e-9);
  EXPECT_NEAR(efficiencies["load_balance"].get<double>(), 1, 1e-9);
  EXPECT_NEAR(efficiencies["communication"].get<double>(), 50.0 / 70, 1e-9);
  EXPECT_NEAR(efficiencies["serialisation"].get<double>(), 50.0 / 60, 1e-6);
  EXPECT_NEAR(efficiencies["transfer"].get<double>(), 60.0 / 70, 1e-6);
  EXPECT_EQ(run["per_rank"][0]["useful_ns"], 40 * 50 * ms);
}

// 40 iterations: four of 300 ms, then 100 and 110 ms in turn. The warm-up is the first tenth. MSER-5 leaves out whole
// batches of five. 2.1 TFLOP in the median of 105 ms are 20 TFLOP/s, a fifth of the peak.
TEST_F(ReportFigures, OfIterationsAndTheirWarmUp) {
  save("run", {.ranks = 1,
               .iterations = 40,
               .work = [](int, int i) { return Work{.forward = i < 4 ? 300 : 100 + i % 2 * 10}; },
               .transfer_ms = [](int) { return 0; },
               .startup_ms = 1000,
               .config = {{"images_per_iteration", 21},
                          {"flops_per_iteration", 2.1e12},
                          {"peak_flops", 1e14},
                          {"target_accuracy", 0.9}},
               .accuracy = 0.95});
  const json run = report("run")["runs"][0], &all = run["iterations"], &rank = run["per_rank"][0]["iterations"];
  EXPECT_EQ(all["count"], 40);
  EXPECT_EQ(all["warmup_excluded"], 4);
  EXPECT_EQ(all["warmup_by_mser5"], 5);
  EXPECT_EQ(all["steady_median_ns"], 105 * ms);
  EXPECT_NEAR(all["steady_images_per_s"].get<double>(), 21 / 0.105, 1e-9);
  EXPECT_NEAR(all["flops_per_s"].get<double>(), 20e12, 1);
  EXPECT_NEAR(all["flops_share_of_peak"].get<double>(), 0.2, 1e-12);
  EXPECT_EQ(rank["count"], 36);
  EXPECT_EQ(rank["min_ns"], 100 * ms);
  EXPECT_EQ(rank["median_ns"], 105 * ms);
  EXPECT_EQ(rank["p95_ns"], 110 * ms);
  EXPECT_NEAR(rank["stddev_ns"].get<double>(), 5e6 * std::sqrt(36.0 / 35), 1);
  const double wall_s = 1 + 4 * 0.3 + 18 * 0.1 + 18 * 0.11;
  EXPECT_NEAR(run["images_per_s"].get<double>(), 40 * 21 / wall_s, 1e-6);
  EXPECT_NEAR(run["seconds_to_accuracy"].get<double>(), wall_s, 1e-9);
}

// T(N) = 2 + 0.064 + 6.4/N seconds: start-up 2 s, then 64/N iterations of 100 ms and transfers of N ms. The 1-rank run
// sums with itself for 1 ms in each iteration, which is parallel work of it.
TEST_F(ReportFigures, OfStrongScaling) {
  std::string runs;
  for (const int n : {1, 2, 4, 8}) {
    const std::string name = "run" + std::to_string(n);
    save(name, {.ranks = n,
                .iterations = 64 / n,
                .work = [](int, int) { return Work{.forward = 100}; },
                .transfer_ms = [n](int) { return n; },
                .startup_ms = 2000,
                .config = {{"images_per_iteration", 32 * n}, {"batch_per_rank", 32}, {"epochs", 1}},
                .accuracy = 0.95 - 0.001 * n});
    runs += " " + name;
  }
  const json whole = report(runs), &scaling = whole["scaling"];
  EXPECT_THAT(whole["verdict"][0].get<std::string>(), HasSubstr("; test accuracy 94.2 % (one rank: 94.9 %)."));
  const auto seconds = [](int n) { return 2.064 + 6.4 / n; };
  const double s = 2.064 / 8.464;
  ASSERT_EQ(scaling["points"].size(), 4U);
  const json& point = scaling["points"][2];
  EXPECT_EQ(point["ranks"], 4);
  EXPECT_NEAR(point["seconds"].get<double>(), seconds(4), 1e-9);
  EXPECT_NEAR(point["speedup"].get<double>(), seconds(1) / seconds(4), 1e-9);
  EXPECT_NEAR(point["efficiency"].get<double>(), seconds(1) / seconds(4) / 4, 1e-9);
  EXPECT_NEAR(point["karp_flatt"].get<double>(), s, 1e-9);
  EXPECT_NEAR(scaling["fits"][0]["serial_fraction"].get<double>(), s, 1e-6);
  const json& choice = scaling["law_choice"][0];
  EXPECT_EQ(choice["chosen"], "amdahl") << choice;
  EXPECT_EQ(choice["predictions"][0]["ranks"], 16);
  EXPECT_NEAR(choice["predictions"][0]["speedup"].get<double>(), seconds(1) / seconds(16), 1e-5);
  const json& waterfall = scaling["waterfall"][1];
  EXPECT_EQ(waterfall["ranks"], 4);
  const json& changes = waterfall["changes"];
  const double per_second = 4 / seconds(4);
  EXPECT_NEAR(changes["serial"].get<double>(), -1.5 * per_second, 1e-9);
  EXPECT_NEAR(changes["transfer"].get<double>(), -0.064 * per_second, 1e-9);
  EXPECT_NEAR(changes["waiting"].get<double>(), 0, 1e-9);
  EXPECT_NEAR(changes["parallel"].get<double>(), 0.016 * per_second, 1e-9);
  double sum = waterfall["ideal"].get<double>();
  for (const auto& [cause, change] : changes.items()) sum += change.get<double>();
  EXPECT_NEAR(sum, seconds(1) / seconds(4), 1e-12);
  EXPECT_NEAR(scaling["lost_time"][1]["computation_scaling"].get<double>(), 6.464 / 6.4, 1e-9);
}

// The images grow with the ranks: T(1) = 2 + 64 × 0.1 and T(2) = 2 + 64 × 0.125 seconds. 2 T(1)/T(2) = 2 − s.
TEST_F(ReportFigures, OfWeakScaling) {
  for (const int n : {1, 2}) {
    save("run" + std::to_string(n),
         {.ranks = n,
          .iterations = 64,
          .work = [](int, int) { return Work{.forward = 100}; },
          .transfer_ms = [n](int) { return n == 1 ? 0 : 25; },
          .startup_ms = 2000,
          .config = {{"images_per_iteration", 32 * n}, {"batch_per_rank", 32}, {"epochs", n}}});
  }
  const json scaling = report("run1 run2")["scaling"];
  EXPECT_NEAR(scaling["points"][1]["weak_efficiency"].get<double>(), 0.84, 1e-9);
  EXPECT_NEAR(scaling["points"][1]["scaled_speedup"].get<double>(), 1.68, 1e-9);
  ASSERT_EQ(scaling["gustafson"].size(), 1U) << scaling;
  EXPECT_NEAR(scaling["gustafson"][0]["serial_fraction"].get<double>(), 0.32, 1e-9);
}

// 32 images in 70 ms and in 50 ms, with noise of 0 to 2 ms. The accuracies of 10,000 test images differ by chance by up
// to 1.96 √(0.95 × 0.05/10,000 + 0.9 × 0.1/10,000) = 0.7 points.
TEST_F(ReportFigures, OfSpeedThatWasBoughtWithAccuracy) {
  const auto more = small_numbers(100);
  const auto run = [&](const std::string& name, int forward, double accuracy) {
    save(name, {.work = [&](int, int i) { return Work{.forward = forward + more[i]}; },
                .config = {{"images_per_iteration", 32}, {"test_images", 10000}},
                .accuracy = accuracy});
  };
  run("base", 60, 0.95);
  run("new", 40, 0.9);
  const json found = json::parse(paceline("compare --format json base new").output), &results = found["results"];
  EXPECT_EQ(results["accuracy"], json({{"base", 0.95}, {"new", 0.9}}));
  const double seconds = 100 * 0.05 + 1e-3 * std::accumulate(more.begin(), more.end(), 0);
  EXPECT_NEAR(results["wall_s"]["new"].get<double>(), seconds, 1e-9);
  EXPECT_NEAR(results["images_per_s"]["new"].get<double>(), 3200 / seconds, 1e-6);
  EXPECT_NEAR(results["seconds_to_accuracy"]["new"].get<double>(), seconds, 1e-9);
  EXPECT_EQ(found["quantities"][0]["verdict"], "faster");
  EXPECT_EQ(found["findings"][0]["text"],
            "Speed bought with accuracy: new takes less time for a step but reaches 90.0 % where base reaches 95.0 %, "
            "more than the 0.7 points that the choice of test images explains (95 %).");
  EXPECT_EQ(paceline("compare --format json base base").output.find("Speed bought"), std::string::npos);
}

}  // namespace
}  // namespace report_figures_test
}  // namespace paceline::analysis
