// SPDX-License-Identifier: Apache-2.0
#include "analysis/scaling/scaling.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "analysis/scaling/runs_table.h"

namespace paceline::analysis {
namespace {

Scaling of_table(const char* text) { return scaling_of(parse_runs_table(text, "t")); }

Scaling reedbush() { return scaling_of(read_runs_table(PACELINE_TEST_DATA "/reedbush-2018.csv")); }

TEST(Reedbush, SpeedUpsAndKarpFlattAsPublished) {
  const Scaling scaling = reedbush();
  ASSERT_EQ(scaling.points.size(), 5u);
  EXPECT_NEAR(*scaling.points[1].speedup, 1.694, 0.0005);
  EXPECT_NEAR(*scaling.points[2].speedup, 3.350, 0.0005);
  EXPECT_NEAR(*scaling.points[4].speedup, 1.845, 0.0005);
  EXPECT_NEAR(*scaling.points[1].efficiency, 0.847, 0.0005);
  EXPECT_NEAR(*scaling.points[1].karp_flatt, 0.180, 0.001);
  EXPECT_NEAR(*scaling.points[2].karp_flatt, 0.0647, 0.00005);
  EXPECT_NEAR(scaling.points[0].throughput, 51.767, 0.0005);
  EXPECT_NEAR(scaling.points[4].throughput, 96.305, 0.0005);
}

TEST(Reedbush, TwoLengthsSeparateFixedSecondsFromEpochs) {
  const Scaling scaling = reedbush();
  ASSERT_EQ(scaling.time_model.size(), 2u);
  EXPECT_NEAR(scaling.time_model[0].model.per_epoch_s, 47.850, 0.0005);
  EXPECT_NEAR(scaling.time_model[0].model.fixed_s, 1.77, 0.005);
  EXPECT_NEAR(scaling.time_model[1].model.per_epoch_s, 25.738, 0.0005);
  EXPECT_NEAR(scaling.time_model[1].model.fixed_s, 11.06, 0.005);
  EXPECT_NEAR(*scaling.speedup_limit, 1.859, 0.0005);
  EXPECT_TRUE(scaling.limit_from_time_model);
}

TEST(Reedbush, NoLawIsFittedThroughThreePrograms) {
  const Scaling scaling = reedbush();
  EXPECT_TRUE(scaling.fits.empty());
  ASSERT_EQ(scaling.refused.size(), 2u);
  const RefusedFit& refused = scaling.refused[0];
  EXPECT_EQ(refused.columns, std::vector<std::string>{"program"});
  EXPECT_TRUE(refused.karp_flatt_falls);
  EXPECT_EQ(scaling.points[*refused.stranger].ranks, 4);
  EXPECT_EQ(scaling.points[refused.worst_point].ranks, 2);
  EXPECT_NEAR(refused.curve_speedup, 1.87, 0.005);
  EXPECT_NEAR(refused.serial_fraction, 0.069, 0.0005);
  EXPECT_NEAR(refused.serial_fraction_free_start, 0.030, 0.0005);
}

TEST(Reedbush, DifferencesAreNamed) {
  const Scaling scaling = reedbush();
  ASSERT_EQ(scaling.points[2].differences.size(), 1u);
  EXPECT_EQ(scaling.points[2].differences[0].column, "program");
  EXPECT_EQ(scaling.points[2].differences[0].from, "chainer");
  EXPECT_EQ(scaling.points[2].differences[0].to, "chainermn");
}

TEST(Scaling, OneSeriesGivesAmdahlsShare) {  // T(N) = 20 + 80/N
  const Scaling scaling = of_table("ranks,epochs,images,seconds\n1,1,100,100\n2,1,100,60\n4,1,100,40\n8,1,100,30\n");
  ASSERT_EQ(scaling.fits.size(), 1u);
  EXPECT_NEAR(scaling.fits[0].serial_fraction, 0.2, 1e-8);
  EXPECT_FALSE(scaling.fits[0].ci95);
  EXPECT_TRUE(scaling.fits[0].usl);
  EXPECT_TRUE(scaling.fits[0].usl_weak);
  EXPECT_TRUE(scaling.refused.empty());
  EXPECT_NEAR(*scaling.speedup_limit, 5, 1e-6);
  EXPECT_FALSE(scaling.limit_from_time_model);
}

// The seconds of each of 1, 2, 4, 8 and 16 ranks for 100 images and 1 epoch.
Scaling of_times(std::initializer_list<double> seconds, const char* head = "ranks,epochs,images,seconds\n") {
  std::string table = head;
  int ranks = 1;
  for (const double s : seconds) {
    table += fmt::format("{},1,100,{:.12f}\n", ranks, s);
    ranks *= 2;
  }
  return of_table(table.c_str());
}

TEST(LawChoice, TheLawOfTheTimesIsChosenAndExtrapolated) {
  // Serial 20 s + 80 s/N.
  const Scaling serial = of_times({100, 60, 40, 30, 25});
  const LawChoice& amdahl = serial.fits.at(0).choice;
  ASSERT_EQ(amdahl.chosen, Law::amdahl);
  ASSERT_EQ(amdahl.errors.size(), 3U);
  EXPECT_NEAR(amdahl.errors[0].error, 0, 1e-6);
  ASSERT_EQ(amdahl.predictions.size(), 2U);
  EXPECT_EQ(amdahl.predictions[0].ranks, 32);
  EXPECT_NEAR(amdahl.predictions[0].speedup, 100 / 22.5, 1e-6);
  EXPECT_NEAR(*serial.speedup_limit, 5, 1e-6);
  // The same, and 0.5 s (N − 1) of coherency: the USL with σ = 0.2 and κ = 0.005.
  const Scaling coherent = of_times({100, 60.5, 41.5, 33.5, 32.5});
  const LawChoice& usl = coherent.fits.at(0).choice;
  ASSERT_EQ(usl.chosen, Law::usl);
  EXPECT_NEAR(usl.predictions[0].speedup, 100 / 38.0, 1e-6);
  ASSERT_TRUE(coherent.limit_from_usl);
  EXPECT_NEAR(*coherent.speedup_limit, coherent.fits[0].usl->capacity(std::sqrt(0.8 / 0.005)), 1e-6);
}

// The same by search: for each left-out rank count, the T(1) and s that minimise the squares of the relative errors.
TEST(LawChoice, TheErrorIsThatOfTheLeftOutRankCounts) {
  const std::vector<std::pair<double, double>> times = {{1, 100}, {2, 60}, {4, 44}, {8, 30}};
  const LawChoice choice = of_times({100, 60, 44, 30}).fits.at(0).choice;
  double squares = 0;
  for (std::size_t left_out = 1; left_out < times.size(); ++left_out) {
    double least = INFINITY, predicted = 0;
    for (double share = 0; share < 0.5; share += 1e-4) {
      double xx = 0, x = 0;  // the best T(1) for this share
      for (std::size_t i = 0; i < times.size(); ++i) {
        const double of = 1 / amdahl_speedup(share, times[i].first) / times[i].second;
        if (i != left_out) xx += of * of, x += of;
      }
      const double missed = 3 - x * x / xx;
      if (missed < least) least = missed, predicted = x / xx / amdahl_speedup(share, times[left_out].first);
    }
    squares += std::pow(std::log(predicted / times[left_out].second), 2);
  }
  ASSERT_FALSE(choice.errors.empty());
  EXPECT_EQ(choice.errors[0].law, Law::amdahl);
  EXPECT_NEAR(choice.errors[0].error, std::sqrt(squares / 3), 1e-4);
}

// T(N) = 100 s × (0.02 + 0.98/N + c·log2 N).
TEST(LawChoice, LogarithmicCostsAreALaw) {
  std::string table = "ranks,epochs,images,seconds\n";
  for (const int n : {1, 2, 4, 8, 16}) table += fmt::format("{},1,100,{:.9f}\n", n, 2 + 98.0 / n + 2 * std::log2(n));
  const LawChoice exact = of_table(table.c_str()).fits.at(0).choice;
  EXPECT_EQ(exact.chosen, Law::logarithmic);
  EXPECT_NEAR(exact.predictions.at(1).speedup, 100 / (2 + 98.0 / 64 + 2 * 6), 1e-6);
}

// Times of which each has a relative standard deviation of 1 %.
Scaling with_noise(const std::function<double(int)>& seconds, double images_per_rank = 0) {
  std::string table = "ranks,epochs,images,seconds,seconds_sd\n";
  for (const int n : {1, 2, 4, 8, 16}) {
    const double images = images_per_rank > 0 ? n * images_per_rank : 100;
    table += fmt::format("{},1,{},{:.9f},{:.9f}\n", n, images, seconds(n), 0.01 * seconds(n));
  }
  return of_table(table.c_str());
}

// Of most of these tables Amdahl's law is chosen, and its interval leaves out the truth of a small coherency.
TEST(LawChoice, CostsThatDoNotShowBoundThePrediction) {
  const Usl truth{0.03, 0.0003};
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0, 0.01);
  int chosen = 0, held = 0, bounded = 0, tables = 0;
  for (int i = 0; i < 120; ++i) {
    std::map<int, double> seconds;
    for (const int n : {1, 2, 4, 8, 16}) seconds[n] = 100 / truth.capacity(n) * std::exp(noise(random));
    const LawChoice choice = with_noise([&](int n) { return seconds.at(n); }).fits.at(0).choice;
    if (!choice.chosen) continue;  // by chance, all laws are refused
    ++tables;
    const LawChoice::Prediction& prediction = choice.predictions.at(1);
    ASSERT_TRUE(prediction.ci95);
    chosen += choice.chosen == Law::amdahl;
    held += prediction.ci95->contains(truth.capacity(64));
    bounded += prediction.at_least.value_or(prediction.ci95->low) <= truth.capacity(64);
    EXPECT_LT(prediction.at_least.value_or(0), prediction.ci95->low);
    EXPECT_FALSE(prediction.at_least && choice.chosen != Law::amdahl);
  }
  EXPECT_GT(tables, 115);
  EXPECT_GT(chosen, tables / 2);
  EXPECT_LT(held, 0.9 * tables);
  EXPECT_GE(bounded, 0.95 * tables);
  EXPECT_FALSE(of_times({100, 60, 40, 30, 25}).fits.at(0).choice.predictions.at(0).at_least) << "the noise is unknown";
}

TEST(LawChoice, ARefusedLawPredictsNothing) {
  const double bumps[] = {1, 1.1, 0.9, 1.1, 0.9};
  const auto bump = [&](int n) { return bumps[static_cast<std::size_t>(std::log2(n))]; };
  const Scaling strong = with_noise([&](int n) { return bump(n) * (10 + 90.0 / n); });
  const AmdahlFit& fit = strong.fits.at(0);
  EXPECT_TRUE(fit.misfit);
  EXPECT_FALSE(fit.usl);
  EXPECT_FALSE(fit.choice.chosen);
  EXPECT_TRUE(fit.choice.predictions.empty());
  EXPECT_EQ(fit.choice.refused.size(), 3U) << "there are no runs of two lengths";
  const GustafsonFit weak = with_noise([&](int n) { return bump(n) * 100; }, 1000).weak.at(0);
  EXPECT_TRUE(weak.misfit);
  EXPECT_TRUE(weak.choice.predictions.empty());
}

// A table that bends more than its law, so that the best fit has σ = 0.
TEST(Scaling, IntervalsContainTheirEstimates) {
  for (const double bend : {0.0, 0.0005, 0.002, 0.01}) {
    for (const double noise : {-0.02, 0.0, 0.02}) {
      const Scaling scaling =
          with_noise([&](int n) { return (100.0 / n + bend * 100 * (n - 1)) * (n == 4 ? 1 + noise : 1 - noise / 2); });
      const AmdahlFit& fit = scaling.fits.at(0);
      ASSERT_TRUE(fit.ci95);
      EXPECT_TRUE(fit.ci95->contains(fit.serial_fraction));
      if (fit.usl) {
        EXPECT_TRUE(fit.sigma_ci95->contains(fit.usl->sigma));
        EXPECT_TRUE(fit.kappa_ci95->contains(fit.usl->kappa));
        EXPECT_GE(fit.sigma_ci95->low, 0);
      }
      for (const auto& prediction : fit.choice.predictions) {
        ASSERT_TRUE(prediction.ci95);
        EXPECT_TRUE(prediction.ci95->contains(prediction.speedup)) << bend << " " << noise;
      }
    }
  }
}

// The longer runs took more than twice the time, so the fixed seconds are cut at 0.
TEST(Scaling, IntervalsOfTheTimeModelContainItsEstimates) {
  const Scaling scaling = of_table(
      "ranks,epochs,images,seconds,seconds_sd\n1,1,100,100,0.5\n1,2,200,206,0.5\n2,1,100,50,0.5\n2,2,200,103,0.5\n");
  ASSERT_EQ(scaling.time_model.size(), 2U);
  for (const TimeModelRow& row : scaling.time_model) {
    ASSERT_TRUE(row.fixed_cut && row.per_epoch_ci95 && row.fixed_ci95);
    EXPECT_TRUE(row.per_epoch_ci95->contains(row.model.per_epoch_s));
    EXPECT_TRUE(row.fixed_ci95->contains(0));
    if (row.speedup_limit_ci95) {
      EXPECT_TRUE(row.speedup_limit_ci95->contains(*row.speedup_limit));
    }
  }
}

TEST(LawChoice, FixedSecondsBesideEpochsAreFoundFromRunsOfTwoLengths) {
  // T = 30 + epochs × 100/N. Amdahl's law fits each length alone, with different shares, and ties there.
  std::string table = "ranks,epochs,images,seconds\n";
  for (const int epochs : {1, 10}) {
    for (const int n : {1, 2, 4, 8}) {
      const double noise = n == 4 && epochs == 1 ? 1.05 : 1;  // one run is disturbed
      table += fmt::format("{},{},{},{}\n", n, epochs, 100 * epochs, noise * (30 + epochs * 100.0 / n));
    }
  }
  const Scaling scaling = of_table(table.c_str());
  ASSERT_EQ(scaling.fits.size(), 2U);
  const AmdahlFit& shorter = scaling.points[scaling.fits[0].points[0]].epochs == 1 ? scaling.fits[0] : scaling.fits[1];
  EXPECT_EQ(shorter.choice.chosen, Law::fixed_epochs);
  EXPECT_NEAR(shorter.choice.predictions.at(0).speedup, 130 / (30 + 100.0 / 16), 0.1);
}

TEST(LawChoice, ThreeRankCountsAreTooFew) {
  const LawChoice choice = of_times({100, 60, 40}).fits.at(0).choice;
  EXPECT_FALSE(choice.chosen);
  EXPECT_TRUE(choice.errors.empty());
}

TEST(LawChoice, WeakScalingIsComparedWithGustafsonsLaw) {
  std::string table = "ranks,epochs,images,seconds\n";
  for (const int n : {1, 2, 4, 8}) {
    table += fmt::format("{},1,{},{:.9f}\n", n, 1000 * n, 100 * n / gustafson_speedup(0.1, n));
  }
  const Scaling scaling = of_table(table.c_str());
  const LawChoice& choice = scaling.weak.at(0).choice;
  EXPECT_EQ(choice.chosen, Law::gustafson);
  EXPECT_EQ(choice.predictions.at(0).ranks, 16);
  EXPECT_NEAR(choice.predictions.at(0).speedup, 16 - 0.1 * 15, 1e-6);
}

// Welch's interval by hand: log times have the standard deviations 0.0100 and 0.01667 (n = 3 each).
TEST(Scaling, RepeatsAreAveragedAndGiveAnInterval) {
  const Scaling scaling = of_table(
      "ranks,epochs,images,seconds\n1,1,100,99\n1,1,100,101\n1,1,100,100\n2,1,100,59\n2,1,100,61\n2,1,100,60\n");
  ASSERT_EQ(scaling.points.size(), 2u);
  EXPECT_NEAR(*scaling.points[1].speedup, 100.0 / 60, 1e-12);
  ASSERT_TRUE(scaling.points[1].speedup_ci95);
  // se² = (0.01000² + 0.01667²)/3, 3.28 degrees of freedom, t = 3.035: ± 0.03406 in the logarithm.
  EXPECT_NEAR(scaling.points[1].speedup_ci95->low, 100.0 / 60 * std::exp(-0.03406), 2e-4);
  EXPECT_NEAR(scaling.points[1].speedup_ci95->high, 100.0 / 60 * std::exp(0.03406), 2e-4);
  ASSERT_TRUE(scaling.fits[0].ci95);
  EXPECT_LT(scaling.fits[0].ci95->low, 0.2);
  EXPECT_GT(scaling.fits[0].ci95->high, 0.2);
}

TEST(Scaling, RunsOfDifferentWorkAreNotCompared) {
  const Scaling scaling = of_table("ranks,epochs,images,seconds\n1,1,100,100\n2,2,200,120\n2,1,150,60\n");
  EXPECT_FALSE(scaling.points[1].speedup);
  EXPECT_FALSE(scaling.points[2].speedup);
  EXPECT_TRUE(scaling.fits.empty());
}

TEST(Scaling, ADroppedLastBatchIsStillEqualWork) {
  const Scaling scaling = of_table("ranks,epochs,images,seconds\n1,1,10000,100\n2,1,9984,49.92\n");
  EXPECT_NEAR(*scaling.points[1].speedup, 2, 1e-12);  // images/s against images/s
}

TEST(Scaling, OneRankCountGivesNoFit) {
  const Scaling scaling = of_table("ranks,epochs,images,seconds\n1,1,100,100\n1,2,200,190\n");
  EXPECT_EQ(scaling.rank_counts, 1);
  EXPECT_TRUE(scaling.fits.empty());
  ASSERT_EQ(scaling.time_model.size(), 1u);
  EXPECT_NEAR(scaling.time_model[0].model.fixed_s, 10, 1e-9);
  EXPECT_FALSE(scaling.speedup_limit);
}

TEST(Scaling, TheBaselineWithTheFewestDifferencesIsChosen) {
  const Scaling scaling =
      of_table("ranks,epochs,images,seconds,model\n1,1,100,100,vgg\n1,1,100,10,resnet\n2,1,100,6,resnet\n");
  EXPECT_NEAR(*scaling.points[2].speedup, 10.0 / 6, 1e-12);
  EXPECT_TRUE(scaling.points[2].differences.empty());
  EXPECT_EQ(scaling.fits.size(), 1u);
}

TEST(Scaling, IterationsGiveIntervalsAroundTheSpeedUp) {
  ScalingRun one, two;
  one.seconds = 0, two.seconds = 0, one.warmup = 20, two.warmup = 10;
  one.images = two.images = 6400, one.epochs = two.epochs = 1, two.ranks = 2;
  for (int i = 0; i < 200; ++i) one.seconds += one.iteration_seconds.emplace_back(0.1 + 0.001 * (i * 37 % 19));
  for (int i = 0; i < 100; ++i) two.seconds += two.iteration_seconds.emplace_back(0.12 + 0.001 * (i * 29 % 17));
  const Scaling scaling = scaling_of({two, one});
  ASSERT_EQ(scaling.points[0].ranks, 1);
  const ScalingPoint& point = scaling.points[1];
  ASSERT_TRUE(point.speedup_ci95 && point.efficiency_ci95 && point.karp_flatt_ci95 && scaling.fits[0].ci95);
  EXPECT_LT(point.speedup_ci95->low, *point.speedup);
  EXPECT_GT(point.speedup_ci95->high, *point.speedup);
  EXPECT_LT(point.speedup_ci95->high - point.speedup_ci95->low, 0.05);
  EXPECT_NEAR(scaling.fits[0].ci95->low, point.karp_flatt_ci95->low, 1e-6);  // one N: the fit is Karp–Flatt's e
}

TEST(Scaling, FewerThanThreeRepeatsGiveNoInterval) {
  const Scaling scaling = of_table("ranks,epochs,images,seconds\n1,1,100,100\n1,1,100,101\n2,1,100,59\n2,1,100,61\n");
  EXPECT_EQ(scaling.points[0].spread.source, SpreadSource::two_repeats);
  EXPECT_FALSE(scaling.points[1].speedup_ci95);
  EXPECT_FALSE(scaling.fits[0].ci95);
  EXPECT_EQ(scaling.points[1].verdict, Verdict::unknown);
}

TEST(Scaling, EqualRepeatsShowRoundingAndNoNoise) {
  const Scaling scaling = of_table(
      "ranks,epochs,images,seconds\n1,1,100,100\n1,1,100,100\n1,1,100,100\n2,1,100,60\n2,1,100,60\n2,1,100,60\n");
  EXPECT_EQ(scaling.points[0].spread.source, SpreadSource::equal_repeats);
  EXPECT_FALSE(scaling.points[1].speedup_ci95);
}

TEST(Scaling, GivenNoiseGivesAnInterval) {
  const char* table = "ranks,epochs,images,seconds\n1,1,100,100\n2,1,100,60\n";
  ScalingOptions options;
  options.noise = 0.01;
  const auto by_option = scaling_of(parse_runs_table(table, "t"), options).points[1].speedup_ci95;
  ASSERT_TRUE(by_option);
  EXPECT_NEAR(by_option->high, 100.0 / 60 * std::exp(1.96 * 0.01 * std::sqrt(2.0)), 1e-4);
  const auto by_column =
      of_table("ranks,epochs,images,seconds,seconds_sd\n1,1,100,100,1\n2,1,100,60,0.6\n").points[1].speedup_ci95;
  ASSERT_TRUE(by_column);
  EXPECT_NEAR(by_column->high, by_option->high, 1e-9);
}

TEST(Scaling, RunsShorterThanTwentyAutocorrelationTimesGetNoInterval) {
  ScalingRun one, two;
  one.images = two.images = 640, one.epochs = two.epochs = 1, two.ranks = 2;
  for (int i = 0; i < 100; ++i) one.seconds += one.iteration_seconds.emplace_back(0.1 + 0.0001 * i);  // a drift
  for (int i = 0; i < 10; ++i) two.seconds += two.iteration_seconds.emplace_back(0.12 + 0.001 * (i % 3));
  const Scaling scaling = scaling_of({one, two});
  EXPECT_EQ(scaling.points[0].spread.source, SpreadSource::few_iterations);
  EXPECT_EQ(scaling.points[1].spread.source, SpreadSource::few_iterations);
  EXPECT_FALSE(scaling.points[1].speedup_ci95);
}

TEST(Scaling, ASlowFirstIterationIsFixedAndDoesNotWidenTheInterval) {
  const auto width = [](double slow) {
    ScalingRun runs[2];
    for (int n : {1, 2}) {
      ScalingRun& run = runs[n - 1];
      run.ranks = n, run.images = 6400, run.epochs = 1, run.warmup = 20;
      for (int i = 0; i < 200; ++i) {
        run.seconds += run.iteration_seconds.emplace_back((i == 0 ? slow : 1) * (0.1 / n + 0.001 * (i * 37 % 19)));
      }
    }
    const auto ci95 = scaling_of({runs[0], runs[1]}).points[1].speedup_ci95;
    return ci95 ? ci95->high - ci95->low : 0;
  };
  EXPECT_GT(width(1), 0);
  EXPECT_LT(width(50), width(1));  // a larger fixed part makes the rest weigh less
}

TEST(Scaling, LabelsDoNotPartASeriesUnlessAskedTo) {
  const char* table = "ranks,epochs,images,seconds,nodes,date\n1,1,100,100,1,mon\n2,1,100,60,1,tue\n4,1,100,40,2,wed\n";
  const Scaling scaling = of_table(table);
  ASSERT_EQ(scaling.fits.size(), 1u);
  EXPECT_EQ(scaling.fits[0].points.size(), 3u);
  EXPECT_TRUE(scaling.refused.empty());
  ScalingOptions options;
  options.series = {"nodes"};
  const Scaling parted = scaling_of(parse_runs_table(table, "t"), options);
  ASSERT_EQ(parted.refused.size(), 1u);
  EXPECT_EQ(parted.refused[0].columns, std::vector<std::string>{"nodes"});
}

TEST(Scaling, RunsThatDifferInLabelsOnlyAreRepeats) {
  const Scaling scaling =
      of_table("ranks,epochs,images,seconds,date\n1,1,100,100,a\n1,1,100,101,b\n1,1,100,102,c\n2,1,100,60,d\n");
  ASSERT_EQ(scaling.points.size(), 2u);
  EXPECT_EQ(scaling.points[0].runs.size(), 3u);
  EXPECT_EQ(scaling.averaged_labels, std::vector<std::string>{"date"});
}

// 1 % noise, three repeats: 4 and 8 ranks take what the others explain; then 4 ranks take 10 % more.
TEST(Scaling, ALawIsRefusedWhereResidualsExceedTheKnownNoise) {
  const auto with_four_at = [](double seconds) {
    std::string table = "ranks,epochs,images,seconds\n";
    for (const auto& [ranks, time] : {std::pair{1, 100.0}, {2, 60.0}, {4, seconds}, {8, 30.0}, {16, 25.0}}) {
      for (const double noise : {0.99, 1.0, 1.01}) table += fmt::format("{},1,100,{}\n", ranks, time * noise);
    }
    return of_table(table.c_str());
  };
  const Scaling true_to_law = with_four_at(40), off = with_four_at(46);
  EXPECT_FALSE(true_to_law.fits[0].misfit);
  EXPECT_TRUE(true_to_law.speedup_limit_ci95);
  EXPECT_TRUE(off.fits[0].misfit);
  ASSERT_TRUE(off.fits[0].foreign);
  EXPECT_EQ(off.points[*off.fits[0].foreign].ranks, 4);
  EXPECT_FALSE(off.speedup_limit);
}

TEST(Scaling, WithoutRepeatsResidualsRefuseNothing) {
  const Scaling scaling = of_table("ranks,epochs,images,seconds\n1,1,100,100\n2,1,100,60\n4,1,100,60\n8,1,100,30\n");
  EXPECT_FALSE(scaling.fits[0].misfit);
  EXPECT_FALSE(scaling.fits[0].foreign);
}

TEST(Scaling, AShareThatMayBeZeroBoundsNothing) {
  const Scaling scaling = of_table(
      "ranks,epochs,images,seconds\n1,1,100,100\n1,1,100,101\n1,1,100,99\n2,1,100,50\n2,1,100,50.6\n2,1,100,49.5\n");
  ASSERT_TRUE(scaling.fits[0].ci95);
  EXPECT_EQ(scaling.fits[0].ci95->low, 0);
  EXPECT_FALSE(scaling.fits[0].limit_ci95);
  EXPECT_FALSE(scaling.speedup_limit);
}

TEST(Scaling, FixedSecondsAreNeverNegative) {
  const Scaling scaling = of_table("ranks,epochs,images,seconds\n1,1,100,99\n1,10,1000,1000\n");
  ASSERT_EQ(scaling.time_model.size(), 1u);
  EXPECT_EQ(scaling.time_model[0].model.fixed_s, 0);
  EXPECT_TRUE(scaling.time_model[0].fixed_cut);
  EXPECT_NEAR(scaling.time_model[0].model.per_epoch_s, (99 + 10 * 1000) / 101.0, 1e-9);
  const Scaling shorter = of_table("ranks,epochs,images,seconds\n1,1,100,99\n1,10,1000,90\n");
  EXPECT_TRUE(shorter.time_model.empty());
  EXPECT_EQ(shorter.no_time_model, std::vector<int>{1});
}

// Images grow with the ranks: 2 ranks need 104 s for twice the images, so S = 200/104.
// Least squares by hand through three lengths that do not lie on a line: 142/14 seconds an epoch.
TEST(Scaling, AllLengthsDecideTheTimeModel) {
  const Scaling scaling = of_table("ranks,epochs,images,seconds\n1,1,100,16\n1,2,200,24\n1,6,600,66\n");
  ASSERT_EQ(scaling.time_model.size(), 1u);
  EXPECT_NEAR(scaling.time_model[0].model.per_epoch_s, 142.0 / 14, 1e-9);
  EXPECT_NEAR(scaling.time_model[0].model.fixed_s, 106.0 / 3 - 3 * 142.0 / 14, 1e-9);
}

// Of two programs, e(2) = 0.1 and e(4) as given. The unknown noise is taken to be 2 %.
TEST(Scaling, KarpFlattFallsOnlyBeyondTheNoise) {
  const auto falls = [](double e4) {
    const double seconds = 100 / (4 / (1 + 3 * e4));
    const Scaling scaling = of_table(
        fmt::format("ranks,epochs,images,seconds,program\n1,1,100,100,a\n2,1,100,55,b\n4,1,100,{},c\n", seconds)
            .c_str());
    return scaling.refused.at(0).karp_flatt_falls;
  };
  EXPECT_FALSE(falls(0.099));
  EXPECT_FALSE(falls(0.15));
  EXPECT_TRUE(falls(0.001));
}

TEST(Scaling, WeakScalingGivesEfficiencyAndGustafsonsShare) {
  const Scaling scaling = of_table("ranks,epochs,images,seconds\n1,1,100,100\n2,2,200,104\n4,4,400,112\n");
  EXPECT_FALSE(scaling.points[1].speedup);
  EXPECT_NEAR(*scaling.points[1].weak_efficiency, 100.0 / 104, 1e-12);
  EXPECT_NEAR(*scaling.points[2].scaled_speedup, 400.0 / 112, 1e-12);
  ASSERT_EQ(scaling.weak.size(), 1u);
  // The speed of N ranks is X (N − s (N − 1)), by least squares of the relative errors: a search over s.
  double least = INFINITY, best = 0;
  for (double share = 0; share < 0.3; share += 1e-5) {
    double xx = 0, x = 0;
    for (const auto& [ranks, seconds] : {std::pair{1.0, 100.0}, {2.0, 104.0}, {4.0, 112.0}}) {
      const double of = gustafson_speedup(share, ranks) * seconds / ranks;
      xx += of * of, x += of;
    }
    if (3 - x * x / xx < least) least = 3 - x * x / xx, best = share;
  }
  EXPECT_NEAR(scaling.weak[0].serial_fraction, best, 2e-5);
}

TEST(Scaling, EqualRankCountsAreComparedWithEachOther) {
  const Scaling scaling = of_table(
      "ranks,epochs,images,seconds,communicator\n2,1,100,66,mpi\n2,1,100,60,ring\n2,1,100,67,mpi\n2,1,100,61,ring\n"
      "2,1,100,65,mpi\n2,1,100,59,ring\n");
  ASSERT_EQ(scaling.comparisons.size(), 1u);
  const Comparison& comparison = scaling.comparisons[0];
  EXPECT_NEAR(comparison.ratio, 66.0 / 60, 1e-12);
  EXPECT_EQ(comparison.differences[0].column, "communicator");
  ASSERT_TRUE(comparison.ci95);
  EXPECT_TRUE(comparison.ci95->contains(1.1));
  EXPECT_EQ(comparison.verdict, Verdict::faster);
}

TEST(Scaling, OneRankUsesNoCommunicator) {
  const Scaling scaling = of_table(
      "ranks,epochs,images,seconds,communicator\n1,1,100,100,none\n2,1,100,60,ring\n4,1,100,40,ring\n2,1,100,70,mpi\n");
  ASSERT_EQ(scaling.fits.size(), 2u);
  EXPECT_EQ(scaling.fits[0].points.size(), 3u);
  EXPECT_TRUE(scaling.points[1].differences.empty());
  EXPECT_TRUE(scaling.refused.empty());
}

TEST(Scaling, AnotherModelGivesNoSpeedUp) {
  const Scaling scaling = of_table("ranks,epochs,images,seconds,model\n1,1,100,100,vgg\n2,1,100,6,resnet\n");
  EXPECT_FALSE(scaling.points[1].speedup);
  ASSERT_EQ(scaling.points[1].other_work.size(), 1u);
  EXPECT_EQ(scaling.points[1].other_work[0].column, "model");
}

}  // namespace
}  // namespace paceline::analysis
