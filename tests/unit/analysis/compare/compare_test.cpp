// SPDX-License-Identifier: Apache-2.0
// Equal runs are called different in at most 5 % of pairs, and a layer that became slower is found and named.
//
// PACELINE_SIMULATED_RUNS=1000 simulates this number of pairs of each kind instead of 100, and of 50 with a slower
// layer.
#include "analysis/compare/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "analysis/compare/render.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int layers = 20;

struct SimulatedRun {
  std::size_t iterations = 100;
  double autocorrelation = 0;
  double slower_layer = 1;  // factor of the time of layer 7
  double between_runs = 0;  // standard deviation of a run's speed
  double slower = 1;        // factor of all layers
  int further_ranges = 0;   // that take 1 ms with 20 % noise, outside of the step
  bool heavy_tails = false;
};

// A profile of 20 layers of 5 ms each, with 5 % noise of each layer, and their sum as the step.
RunProfile simulate(const SimulatedRun& what, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::student_t_distribution<double> heavy(3);
  const auto noise = [&] { return what.heavy_tails ? heavy(random) / std::sqrt(3.0) : normal(random); };
  RunProfile profile;
  const double speed = what.slower * std::exp(what.between_runs * normal(random));
  profile.quantities.push_back({QuantityType::step, "step", std::vector<double>(what.iterations)});
  for (int layer = 0; layer < layers; ++layer) {
    Quantity quantity{QuantityType::range, "layer" + std::to_string(layer), {}};
    double state = noise();
    for (std::size_t i = 0; i < what.iterations; ++i) {
      const double a = what.autocorrelation;
      state = a * state + std::sqrt(1 - a * a) * noise();
      quantity.seconds.push_back(5e-3 * speed * (layer == 7 ? what.slower_layer : 1) * (1 + 0.05 * state));
      profile.quantities.front().seconds[i] += quantity.seconds.back();
    }
    profile.quantities.push_back(std::move(quantity));
  }
  for (int i = 0; i < what.further_ranges; ++i) {
    Quantity quantity{QuantityType::range, "further" + std::to_string(i), {}};
    for (std::size_t k = 0; k < what.iterations; ++k) quantity.seconds.push_back(1e-3 * (1 + 0.2 * normal(random)));
    profile.quantities.push_back(std::move(quantity));
  }
  return profile;
}

std::size_t simulated_pairs(std::size_t usual) {
  const char* asked = std::getenv("PACELINE_SIMULATED_RUNS");
  return asked != nullptr ? static_cast<std::size_t>(std::strtoul(asked, nullptr, 10)) : usual;
}

std::vector<RunProfile> simulate_set(std::size_t runs, const SimulatedRun& what, std::mt19937_64& random) {
  std::vector<RunProfile> set;
  for (std::size_t i = 0; i < runs; ++i) set.push_back(simulate(what, random));
  return set;
}

bool any_change(const RunComparison& comparison) {
  return std::ranges::any_of(comparison.quantities, [](const auto& q) { return q.change != Change::none; });
}

TEST(Compare, EqualRunsAreCalledDifferentInAtMostFivePercentOfPairs) {
  struct Case {
    std::size_t runs;
    SimulatedRun what;
  };
  const Case cases[] = {{1, {.iterations = 100}},
                        {1, {.iterations = 1000, .autocorrelation = 0.5}},
                        {1, {.iterations = 600, .autocorrelation = 0.9}},
                        {1, {.iterations = 24}},
                        {1, {.iterations = 40, .autocorrelation = 0.5}},
                        {1, {.iterations = 60, .autocorrelation = 0.7}},
                        {1, {.iterations = 60}},
                        {1, {.iterations = 100, .autocorrelation = 0.5}},
                        {1, {.iterations = 110, .autocorrelation = 0.8}},
                        {1, {.iterations = 30, .heavy_tails = true}},
                        {1, {.iterations = 200, .autocorrelation = 0.5, .heavy_tails = true}},
                        {3, {.iterations = 30, .between_runs = 0.02}},
                        {5, {.iterations = 100, .autocorrelation = 0.5, .between_runs = 0.02}}};
  const std::size_t pairs = simulated_pairs(100);
  const auto n = static_cast<double>(pairs);
  for (const Case& each : cases) {
    std::mt19937_64 random(3);
    std::size_t different = 0, judged = 0, covered = 0;
    for (std::size_t i = 0; i < pairs; ++i) {
      auto base = simulate_set(each.runs, each.what, random);
      const RunComparison comparison = compare_runs(std::move(base), simulate_set(each.runs, each.what, random));
      different += any_change(comparison);
      judged += comparison.judged;
      covered += comparison.judged && comparison.step()->ci95->contains(1);
    }
    std::cout << each.runs << " runs of " << each.what.iterations << " iterations, AR(1) " << each.what.autocorrelation
              << ", between runs " << each.what.between_runs << ": " << judged << " of " << pairs << " judged, "
              << different << " called different, the step's interval holds 1 in " << covered << "\n";
    EXPECT_LE(static_cast<double>(different), 0.05 * n + 2 * std::sqrt(0.05 * 0.95 * n));
    // Of short runs with a memory few are judged, those in which it does not show.
    const bool few = each.what.iterations < 200 && each.what.autocorrelation > 0;
    EXPECT_TRUE(few || judged >= pairs / 4) << judged;
    if (few && judged < 20) continue;
    const auto m = static_cast<double>(judged);
    EXPECT_GE(static_cast<double>(covered), 0.93 * m - 2 * std::sqrt(0.05 * 0.95 * m));
  }
}

TEST(Compare, ALayerSlowedByFivePercentOfItselfIsFoundAndNoOther) {
  std::mt19937_64 random(3);
  const std::size_t pairs = simulated_pairs(50);
  std::size_t right = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    auto base = simulate_set(1, {.iterations = 200}, random);
    const RunComparison comparison =
        compare_runs(std::move(base), simulate_set(1, {.iterations = 200, .slower_layer = 1.05}, random));
    std::vector<std::string> named;
    for (const auto& quantity : comparison.quantities) {
      if (quantity.type == QuantityType::range && quantity.change == Change::slower) named.push_back(quantity.name);
    }
    right += named == std::vector<std::string>{"layer7"};
  }
  std::cout << right << " of " << pairs << " pairs name the layer alone\n";
  const auto n = static_cast<double>(pairs);
  EXPECT_GE(static_cast<double>(right), 0.95 * n - 2 * std::sqrt(0.05 * 0.95 * n));
}

// The step is tested before the names in it, so that their number does not hide its difference.
TEST(Compare, ASlowerStepIsFoundBesideManyNames) {
  std::mt19937_64 random(4);
  const std::size_t pairs = simulated_pairs(50);
  std::size_t found = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    auto base = simulate_set(1, {.iterations = 100, .further_ranges = 100}, random);
    const RunComparison comparison = compare_runs(
        std::move(base), simulate_set(1, {.iterations = 100, .slower = 1.007, .further_ranges = 100}, random));
    const QuantityComparison& step = *comparison.step();
    found += step.change == Change::slower;
    EXPECT_EQ(step.change == Change::none, step.ci95->contains(1)) << "the interval is that of the verdict";
  }
  EXPECT_GE(static_cast<double>(found), 0.9 * static_cast<double>(pairs));
}

TEST(Compare, ANameWhoseIntervalShowsADifferenceIsNotCalledEqual) {
  QuantityComparison name{
      .type = QuantityType::range, .name = "a", .ratio = 0.02, .ci95 = Interval{0.005, 0.08}, .p = 0.2};
  EXPECT_STREQ(change_word(name), "perhaps faster");
  name.ci95 = Interval{0.005, 1.08};
  EXPECT_STREQ(change_word(name), "no difference shown");
}

// Two calls of 5 ms in the base, three of 2 ms in the new run.
TEST(Compare, RunsWithoutIterationsAreComparedByTotals) {
  const auto run_of = [](int calls, std::int64_t length_ms) {
    TraceBuilder run;
    RankBuilder& rank = run.add_rank(0);
    TrackBuilder& stream = rank.add_track(TrackKind::stream, "stream 7", 7);
    for (int i = 0; i < calls; ++i) {
      const std::int64_t start = 20'000'000LL * i;
      stream.add_slice(start, start + length_ms * 1'000'000, "flash_fwd_kernel", "cuda", "kernel");
    }
    rank.info().end_ns = 100'000'000;
    return profile_run(run.finish(), "run");
  };
  std::vector<RunProfile> base, fresh;
  base.push_back(run_of(2, 5));
  fresh.push_back(run_of(3, 2));
  const RunComparison comparison = compare_runs(std::move(base), std::move(fresh));
  ASSERT_TRUE(comparison.totals);
  EXPECT_FALSE(comparison.judged);
  const auto kernel = std::ranges::find(comparison.quantities, "flash_fwd_kernel", &QuantityComparison::name);
  ASSERT_NE(kernel, comparison.quantities.end());
  EXPECT_NEAR(kernel->difference_s(), -4e-3, 1e-9);
  EXPECT_FALSE(kernel->p);
  const std::string text = render_text(comparison);
  EXPECT_THAT(text, HasSubstr("compared by totals, which are not tested"));
  EXPECT_THAT(text, HasSubstr("flash_fwd_kernel (−4.00 ms, 3 instead of 2 times)"));
}

TEST(Compare, AShortRunThatIsMuchSlowerIsFound) {
  std::mt19937_64 random(6);
  const std::size_t pairs = simulated_pairs(50);
  std::size_t found = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    auto base = simulate_set(1, {.iterations = 40}, random);
    found += compare_runs(std::move(base), simulate_set(1, {.iterations = 40, .slower = 1.1}, random)).step()->change ==
             Change::slower;
  }
  std::cout << found << " of " << pairs << " pairs of 40 iterations are found slower\n";
  EXPECT_GE(static_cast<double>(found), 0.9 * static_cast<double>(pairs));
}

TEST(Compare, AShortPairIsNotJudgedAndSaysSo) {
  std::mt19937_64 random(3);
  auto base = simulate_set(1, {.iterations = 12}, random);
  const RunComparison comparison =
      compare_runs(std::move(base), simulate_set(1, {.iterations = 12, .slower_layer = 3}, random));
  EXPECT_FALSE(comparison.judged);
  EXPECT_FALSE(any_change(comparison));
  EXPECT_THAT(render_text(comparison), HasSubstr("Differences were not tested: a run needs"));
}

// Two ranks; forward 30 ms, backward 50 ms with a layer inside, then 20 ms that no range names, in 60 iterations.
Trace trace_with_layer(std::int64_t layer_us, bool with_compression) {
  std::mt19937_64 random(static_cast<std::uint64_t>(layer_us));
  std::uniform_int_distribution<std::int64_t> noise(-100'000, 100'000);
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    TrackBuilder& main = rank.add_main_thread();
    std::int64_t now = 0;
    for (int i = 0; i < 60; ++i) {
      main.push(now, "iteration", "test", "iteration");
      main.argument("payload", i);
      main.add_slice(now, now + 30'000'000 + noise(random), "forward", "test", "forward");
      main.push(now += 40'000'000, "backward", "test", "backward");
      const std::int64_t layer = layer_us * 1000 + noise(random);
      main.add_slice(now, now + layer, "conv3", "test", "layer");
      main.pop(now += layer + 30'000'000);
      if (with_compression) main.add_slice(now, now + 2'000'000, "compress", "test");
      main.pop(now += 20'000'000);
    }
    rank.info().end_ns = now;
  }
  return run.finish();
}

TEST(Compare, TheProfileOfATraceHasStepPhasesAndRanges) {
  const RunProfile profile = profile_run(trace_with_layer(20'000, false), "base");
  ASSERT_GE(profile.quantities.size(), 4U);
  const auto find = [&](QuantityType type, const std::string& name) {
    const auto found = std::ranges::find_if(
        profile.quantities, [&](const Quantity& quantity) { return quantity.type == type && quantity.name == name; });
    EXPECT_NE(found, profile.quantities.end()) << name;
    return found == profile.quantities.end() ? 0 : found->seconds.at(10);
  };
  EXPECT_EQ(profile.quantities.front().seconds.size(), 54U);  // without the first tenth
  EXPECT_NEAR(find(QuantityType::step, "step"), 0.11, 2e-4);
  EXPECT_NEAR(find(QuantityType::phase, "forward"), 0.03, 2e-4);
  EXPECT_NEAR(find(QuantityType::phase, "backward"), 0.05, 2e-4);
  EXPECT_NEAR(find(QuantityType::range, "test: backward"), 0.05, 2e-4);
  EXPECT_NEAR(find(QuantityType::range, "test: conv3"), 0.02, 2e-4);
}

TEST(Compare, TwoTracesGiveTheChangedLayerThePhaseAndWhatIsNew) {
  std::vector<RunProfile> base, fresh;
  base.push_back(profile_run(trace_with_layer(20'000, false), "base"));
  fresh.push_back(profile_run(trace_with_layer(25'000, true), "new"));
  const RunComparison comparison = compare_runs(std::move(base), std::move(fresh));
  ASSERT_TRUE(comparison.judged);
  EXPECT_EQ(comparison.step()->change, Change::slower);
  EXPECT_NEAR(comparison.step()->difference_s(), 5e-3, 1e-4);
  const std::string text = render_text(comparison);
  EXPECT_THAT(text, HasSubstr("new is slower in this pair of runs: a step takes"));
  EXPECT_THAT(text, HasSubstr("test: conv3 (+5.0"));
  EXPECT_THAT(text, HasSubstr("Only the new side has these, in an iteration: test: compress (2.00 ms)"));
  EXPECT_THAT(text, Not(HasSubstr("Only the base side")));
  const auto json = nlohmann::json::parse(render_json(comparison));
  EXPECT_EQ(json["schema"], "paceline.compare/1");
  EXPECT_EQ(json["quantities"][0]["verdict"], "slower");
  EXPECT_NEAR(json["quantities"][0]["ratio"].get<double>(), 115.0 / 110, 2e-3);
}

TEST(Compare, AThreadThatNestsANameInItselfCountsOnce) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  TrackBuilder& main = rank.add_main_thread();
  for (int i = 0; i < 40; ++i) {
    const std::int64_t start = i * 1000;
    main.push(start, "iteration");
    main.push(start, "work");
    main.push(start + 100, "work");
    main.pop(start + 200);
    main.pop(start + 500);
    main.pop(start + 1000);
  }
  const RunProfile profile = profile_run(run.finish(), "nested");
  const auto work = std::ranges::find(profile.quantities, "work", &Quantity::name);
  ASSERT_NE(work, profile.quantities.end());
  EXPECT_DOUBLE_EQ(work->seconds.front(), 500e-9);
}

TEST(ComparisonText, OfAChangeThatIsTooLargeForPercentNamesTheFactor) {
  QuantityComparison quantity;
  quantity.ratio = 0.944;
  EXPECT_EQ(change_text(quantity), "−5.6 %");
  quantity.ratio = 99;
  EXPECT_EQ(change_text(quantity), "+9800.0 %");
  quantity.ratio = 7005.2;
  EXPECT_EQ(change_text(quantity), "7,005 times");
}

TEST(ComparisonText, OfAnIntervalHasTheUnitOfItsChange) {
  QuantityComparison quantity;
  quantity.ratio = 0.944;
  EXPECT_EQ(interval_text(quantity), "–");
  quantity.ci95 = {0.9, 1.015};
  EXPECT_EQ(interval_text(quantity), "−10.0 to +1.5 %");
  quantity.ratio = 1435, quantity.ci95 = {45.26, 2011.7};
  EXPECT_EQ(change_text(quantity), "1,435 times");
  EXPECT_EQ(interval_text(quantity), "45.3 to 2,012 times");
  quantity.ratio = 60;
  EXPECT_EQ(change_text(quantity), "60.0 times") << "its interval ends too high for percent";
}

}  // namespace
}  // namespace paceline::analysis
