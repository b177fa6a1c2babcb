#include "analysis/scaling/scaling.h"

#include <gtest/gtest.h>

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

TEST(Scaling, RepeatsAreAveragedAndGiveAnInterval) {
  const Scaling scaling = of_table(
      "ranks,epochs,images,seconds\n1,1,100,99\n1,1,100,101\n1,1,100,100\n2,1,100,59\n2,1,100,61\n2,1,100,60\n");
  ASSERT_EQ(scaling.points.size(), 2u);
  EXPECT_NEAR(*scaling.points[1].speedup, 100.0 / 60, 1e-12);
  ASSERT_TRUE(scaling.points[1].speedup_ci95);
  EXPECT_GE(scaling.points[1].speedup_ci95->low, 99.0 / 61);
  EXPECT_LE(scaling.points[1].speedup_ci95->high, 101.0 / 59);
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
  one.seconds = 0, two.seconds = 0;
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

}  // namespace
}  // namespace paceline::analysis
