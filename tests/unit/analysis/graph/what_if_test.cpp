// SPDX-License-Identifier: Apache-2.0
// Replays and predictions of jobs made by hand, whose step times are worked out on paper.
#include "analysis/graph/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/graph/changed_work.h"
#include "analysis/trace/builder.h"
#include "tests/unit/analysis/buckets_in_flight.h"
#include "tests/unit/analysis/simulated_steps.h"

namespace paceline::analysis {
namespace what_if_test {
namespace {

constexpr std::int64_t ms = 1'000'000;
const std::string trainer = "paceline.trainer";

// `ranks` ranks, `iterations` equal iterations, in ms: preprocess 2, forward 40 on the slow rank and 20 on the others,
// backward 30, an allreduce of 4 MB whose transfer takes 21, a barrier-like allreduce of 8 bytes whose transfer takes
// 1, optimizer 5. A step takes 2 + 40 + 30 + 21 + 1 + 5 = 99, and the other ranks wait 20 in it. With `uneven`, the
// first transfer takes i % 5 longer in iteration i.
Trace blocking_job(int iterations = 40, bool uneven = false, int ranks = 2, int slow = 1) {
  TraceBuilder run;
  for (int r = 0; r < ranks; ++r) {
    TrackBuilder& main = run.add_rank(r, ranks).add_main_thread();
    std::int64_t now = 0;
    const auto range = [&](const char* name, std::int64_t length) {
      main.add_slice(now, now + length * ms, name, trainer, name);
      now += length * ms;
    };
    int sequence = 0;
    const auto allreduce = [&](std::int64_t length, double bytes) {
      main.add_slice(now, now + length * ms, "MPI_Allreduce", "mpi", "collective");
      main.argument("bytes", bytes);
      main.text_argument("communicator", "MPI_COMM_WORLD");
      main.argument("sequence", sequence++);
      now += length * ms;
    };
    for (int i = 0; i < iterations; ++i) {
      main.push(now, "iteration", trainer, "iteration");
      main.argument("payload", i);
      range("preprocess", 2);
      range("forward", r == slow ? 40 : 20);
      range("backward", 30);
      allreduce((r == slow ? 21 : 41) + (uneven ? i % 5 : 0), 4e6);
      allreduce(1, 8);
      range("optimizer", 5);
      main.pop(now);
    }
  }
  return run.finish();
}

class WhatIfTest : public ::testing::Test {
 protected:
  explicit WhatIfTest(Trace trace = blocking_job()) : trace_(std::move(trace)), index_(trace_) {}
  Predictor predictor(const std::vector<FasterWork>& faster = {}) const {
    return {index_, dependency_graph(index_), {}, faster};
  }
  double step_ms(const Changes& changes) const { return 1e3 * predictor(changes.faster).predict(changes).step_s; }

  Trace trace_;
  RunIndex index_;
};

TEST_F(WhatIfTest, AReplayOfEqualIterationsIsExact) {
  const Predictor unchanged = predictor();
  ASSERT_TRUE(unchanged.usable());
  EXPECT_NEAR(unchanged.step_s(), 0.099, 1e-12);
  EXPECT_NEAR(unchanged.replayed_s(), 0.099, 1e-12);
  const Replayed replayed = replay(unchanged.program(), fit_costs(unchanged.program()));
  EXPECT_TRUE(replayed.complete);
  EXPECT_NEAR(replayed.wait_ns[20], 10.0 * ms, 1) << "rank 0 waits 20, and rank 1 does not";
  EXPECT_NEAR(unchanged.program().iterations[20].recorded_wait_ns, 10.0 * ms, 1);
  EXPECT_NEAR(unchanged.unchanged().waiting_share, 10.0 / 99, 1e-9);
  EXPECT_NEAR(unchanged.unchanged().replayed_waiting_share, 10.0 / 99, 1e-9);
}

TEST(WhatIf, OneWaitForManyRequestsIsRecordedOnce) {
  const Trace trace = trace_of({.how = InFlight::waitall, .buckets = 13});
  const RunIndex index(trace);
  const Predictor unchanged(index, dependency_graph(index), {}, {});
  EXPECT_NEAR(unchanged.program().iterations[20].recorded_wait_ns, 15.0 * ms, 0.01 * ms)
      << "rank 0 waits 30, and rank 1 does not";
}

TEST_F(WhatIfTest, TheFitSeparatesLatencyAndBandwidth) {
  const CrossFit fit = fit_costs(predictor().program());
  const TransferCost* cost = fit.of_even.network.cost({"MPI_Allreduce", 2});
  ASSERT_NE(cost, nullptr);
  EXPECT_NEAR(cost->latency_ns, 1.0 * ms, 100);
  EXPECT_NEAR(cost->ns_per_byte, 5, 0.001);
}

TEST_F(WhatIfTest, HalfTheBytesTakeHalfOfTheBandwidthTerm) {
  EXPECT_NEAR(step_ms({.bytes_per_value = 2}), 99 - 10, 0.01);
  EXPECT_NEAR(step_ms({.byte_time = 2}), 99 + 20, 0.01);
  EXPECT_NEAR(step_ms({.latency = 3}), 99 + 2 + 2, 0.01);
  EXPECT_NEAR(step_ms({.free_communication = true}), 99 - 22, 0.01);
}

TEST_F(WhatIfTest, AChangeOfTheNetworkCombinesWithFewerBytes) {
  EXPECT_NEAR(step_ms({.bytes_per_value = 2, .byte_time = 2}), 99, 0.01);
}

// The averaging of 22 − 1 ms runs beside the 72 ms of preprocess, forward and backward of rank 1.
TEST_F(WhatIfTest, DoubleBufferingHidesTheTransferBesideTheNextIteration) {
  EXPECT_NEAR(step_ms({.schedule = GradientSchedule::double_buffering}), 99 - 21, 0.01);
}

// Buckets of 1 MiB, 1 MiB, 1 MiB and the rest (0.854 MB). Bytes become ready evenly over backward, the k-th bucket at
// k × 7.864 ms. A transfer of 1 MiB takes 1 + 5.243 ms, less than the time between two buckets, so that only the last
// one shows: 1 + 4.27 ms after the end of backward.
TEST_F(WhatIfTest, OverlapLeavesOnlyTheLastBucketExposed) {
  EXPECT_NEAR(step_ms({.schedule = GradientSchedule::overlap, .bucket_bytes = 1048576}), 99 - 21 + 1 + 4.27, 0.05);
}

TEST_F(WhatIfTest, RanksWithLessWorkArriveEarlier) {
  EXPECT_NEAR(step_ms({.relieved = {1}}), 99 - 20, 0.01);
  EXPECT_NEAR(step_ms({.relieved = {0}}), 99, 0.01);
  EXPECT_NEAR(step_ms({.balanced = true}), 99 - 10, 0.01);
}

// 8 % of forward and backward do not grow.
TEST_F(WhatIfTest, TwiceTheBatchDoublesTheWorkPerImage) {
  EXPECT_NEAR(step_ms({.batch = 2}), 99 + 2 + 0.92 * (40 + 30), 0.01);
  EXPECT_NEAR(step_ms({.batch = 0.5}), 99 - 1 - 0.46 * (40 + 30), 0.01);
}

TEST_F(WhatIfTest, FasterRangesTakeLess) {
  EXPECT_NEAR(step_ms({.faster = {{"forw*", 2}}}), 99 - 20, 0.01);
  EXPECT_NEAR(step_ms({.faster = {{"forward", 4}, {"backward", 3}}}), 99 - 30 - 20, 0.01);
  EXPECT_NEAR(step_ms({.loader = 2}), 99 - 1, 0.01);
}

// A loader delivers after 5 ms of fetching, in iteration 20 after 500 ms more of a process's start, which nothing
// shows.
TEST(WhatIf, PreprocessingThatIsFreeIsNotWaitedFor) {
  constexpr int iterations = 40;
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0, 1);
  TrackBuilder& main = rank.add_main_thread();
  TrackBuilder& loader = rank.add_track(TrackKind::thread, "loader", 7);
  std::int64_t now = 0;
  for (int i = 0; i < iterations; ++i) {
    const std::int64_t fetched = now + (i == 20 ? 505 : 5) * ms;
    main.push(now, "iteration", trainer, "iteration");
    main.argument("payload", i);
    main.add_slice(now, fetched + 1 * ms, "preprocess", trainer, "preprocess");
    loader.add_slice(fetched - 5 * ms, fetched, "preprocess", trainer, "preprocess");
    main.add_slice(fetched + 1 * ms, fetched + 10 * ms, "forward", trainer, "forward");
    now = fetched + 10 * ms;
    main.pop(now);
  }
  const Trace trace = run.finish();
  const RunIndex index(trace);
  const DependencyGraph graph = dependency_graph(index);
  const Predictor predictor(index, graph, {});
  EXPECT_NEAR(1e3 * predictor.step_s(), 15 + 500.0 / 36, 0.01);
  EXPECT_NEAR(1e3 * predictor.predict({.loader = 0}).step_s, 9, 0.01);
  EXPECT_GT(1e3 * predictor.predict({.loader = 2}).step_s, 9 + 500.0 / 36);
}

// Halving-doubling over 8 ranks: 2·3 instead of 2·1 latencies, and 2·7/8 instead of 2·1/2 of the bytes. Equal
// iterations have no spread that more ranks would turn into waiting.
TEST_F(WhatIfTest, MoreRanksPayTheFactorsOfTheAlgorithm) {
  EXPECT_NEAR(step_ms({.ranks = 8}), 99 + (3 - 1) * 1 + (1.75 - 1) * 20 + ((3 - 1) * 1), 0.01);
}

TEST_F(WhatIfTest, LargerBatchesAndMoreRanksDoMoreInAStep) {
  EXPECT_NEAR(predictor().predict({.batch = 2}).per_image, (99.0 + 2 + 0.92 * 70) / 99 / 2, 1e-6);
  EXPECT_NEAR(predictor().predict({.ranks = 2}).per_image, 1, 1e-9);
  EXPECT_NEAR(predictor().predict({.ranks = 8}).per_image, (99.0 + 2 + 15 + 2) / 99 / 4, 1e-4);
}

TEST_F(WhatIfTest, NamesThePartOfTheStepThatMoves) {
  const Prediction prediction = predictor().predict({.bytes_per_value = 2});
  ASSERT_FALSE(prediction.moved.empty());
  EXPECT_EQ(prediction.moved.front().name, "transfer");
  EXPECT_NEAR(prediction.moved.front().before_s, 0.022, 1e-6);
  EXPECT_NEAR(prediction.moved.front().after_s, 0.012, 1e-6);
  ASSERT_TRUE(prediction.ci95);
  // 5 % of the step, and 35 % of what the change moves.
  const double error = std::hypot(0.05, 0.35 * std::log(89.0 / 99));
  EXPECT_NEAR(prediction.ci95->low, 0.089 * std::exp(-error), 1e-5) << "the error of the model, without any noise";
  EXPECT_NEAR(prediction.ci95->high, 0.089 * std::exp(error), 1e-5);
}

TEST_F(WhatIfTest, HasNoIntervalWhereTheErrorOfTheModelWasNotMeasured) {
  const Predictor base = predictor();
  for (const Changes& changes : {Changes{.ranks = 4}, Changes{.balanced = true}, Changes{.batch = 2, .balanced = true},
                                 Changes{.bytes_per_value = 2, .latency = 0.5}}) {
    const Prediction prediction = base.predict(changes);
    EXPECT_FALSE(prediction.ci95);
    EXPECT_TRUE(prediction.error_unknown);
  }
  for (const Changes& changes :
       {Changes{.bytes_per_value = 2, .byte_time = 2}, Changes{.relieved = {1}}, Changes{.batch = 2},
        Changes{.loader = 2}, Changes{.schedule = GradientSchedule::overlap, .bucket_bytes = 1e6},
        Changes{.schedule = GradientSchedule::double_buffering}}) {
    EXPECT_TRUE(base.predict(changes).ci95);
  }
}

TEST_F(WhatIfTest, OffersNoOtherNetworkToOneHost) {
  const auto offered = [&] {
    std::vector<std::string> options;
    for (const Prediction& of : all_predictions(predictor()).predictions) options.push_back(of.options);
    return options;
  };
  for (Rank& rank : trace_.ranks) rank.host = "alice";
  EXPECT_THAT(offered(), ::testing::Not(::testing::Contains("--bandwidth 2")));
  trace_.ranks[1].host = "bob";
  EXPECT_THAT(offered(), ::testing::Contains("--bandwidth 2"));
}

// Ranks with noise of their own. `late` is added to the last rank in every third step. All become slower by `drift`.
Trace noisy_job(int ranks, int iterations, double late_ms, simulation::Random& random, bool exponential = false,
                double drift_ms = 0) {
  simulation::Noise noise(0, exponential, random);
  TraceBuilder run;
  std::vector<TrackBuilder*> mains;
  for (int r = 0; r < ranks; ++r) mains.push_back(&run.add_rank(r, ranks).add_main_thread());
  std::int64_t start = 0;
  for (int i = 0; i < iterations; ++i) {
    std::vector<std::int64_t> arrivals;
    for (int r = 0; r < ranks; ++r) {
      const double late = r == ranks - 1 && i % 3 == 0 ? late_ms : 0;
      arrivals.push_back(start + std::llround((100 + 5 * noise.next(random) + late + drift_ms * i / iterations) * ms));
    }
    const std::int64_t end = std::ranges::max(arrivals) + ms;
    for (int r = 0; r < ranks; ++r) {
      TrackBuilder& main = *mains[static_cast<std::size_t>(r)];
      main.push(start, "iteration", trainer, "iteration");
      main.argument("payload", i);
      main.add_slice(start, arrivals[static_cast<std::size_t>(r)], "backward", trainer, "backward");
      main.add_slice(arrivals[static_cast<std::size_t>(r)], end, "MPI_Allreduce", "mpi", "collective");
      main.argument("bytes", 4e6);
      main.text_argument("communicator", "MPI_COMM_WORLD");
      main.argument("sequence", i);
      main.pop(end);
    }
    start = end;
  }
  return run.finish();
}

// The mean of the largest of n values of the noise, by simulation.
double mean_step_ms(int ranks, simulation::Random& random, bool exponential = false) {
  simulation::Noise noise(0, exponential, random);
  double sum = 0;
  constexpr int steps = 100'000;
  for (int i = 0; i < steps; ++i) {
    double last = -1e9;
    for (int r = 0; r < ranks; ++r) last = std::max(last, noise.next(random));
    sum += 100 + 5 * last + 1;
  }
  return sum / steps;
}

// The median step hides what every third one costs: 8.5 % of the mean.
TEST(WhatIf, ReliefOfARankThatIsSlowInEveryThirdStepSavesItsMean) {
  simulation::Random random(11);
  const Trace trace = noisy_job(4, 300, 30, random);
  const RunIndex index(trace);
  const Prediction relieved = Predictor(index, dependency_graph(index), {}).predict({.relieved = {3}});
  EXPECT_NEAR(1e3 * relieved.step_s, mean_step_ms(4, random), 1);
  EXPECT_LT(relieved.ratio, 0.94);
  ASSERT_TRUE(relieved.ci95);
  EXPECT_TRUE(relieved.ci95->contains(1e-3 * mean_step_ms(4, random)));
  EXPECT_LT(relieved.ci95->high, relieved.step_s / relieved.ratio);
}

// How long a step takes in the long run cannot be told, but how much of this one the late rank costs.
TEST(WhatIf, AChangeHasAnIntervalWhileTheMachineBecomesSlower) {
  simulation::Random random(14);
  // Of iterations 20 to 199, after the warm-up.
  const double truth = 1e-3 * (mean_step_ms(4, random) + 40 * 109.5 / 200);
  int held = 0, narrow = 0;
  constexpr int runs = 30;
  for (int k = 0; k < runs; ++k) {
    const Trace trace = noisy_job(4, 200, 30, random, false, 40);
    const RunIndex index(trace);
    const Prediction relieved = Predictor(index, dependency_graph(index), {}).predict({.relieved = {3}});
    ASSERT_TRUE(relieved.ci95);
    EXPECT_TRUE(relieved.ci95_of_change);
    held += relieved.ci95->contains(truth);
    narrow += relieved.ci95->high < relieved.step_s / relieved.ratio;
  }
  EXPECT_GE(held, 27);
  EXPECT_EQ(narrow, runs);
}

TEST(WhatIf, ReliefOfARankThatIsNotSlowGainsNothing) {
  simulation::Random random(12);
  const double truth = 1e-3 * mean_step_ms(4, random);
  int held = 0;
  double ratios = 0;
  constexpr int runs = 30;
  for (int k = 0; k < runs; ++k) {
    const Trace trace = noisy_job(4, 100, 0, random);
    const RunIndex index(trace);
    const Prediction relieved = Predictor(index, dependency_graph(index), {}).predict({.relieved = {3}});
    held += relieved.ci95 && relieved.ci95->contains(truth);
    ratios += relieved.ratio / runs;
  }
  EXPECT_GE(held, 27);
  EXPECT_NEAR(ratios, 1, 0.004);
}

TEST(WhatIf, MoreRanksHaveALaterLastRank) {
  for (const bool exponential : {false, true}) {
    simulation::Random random(13);
    const double truth = mean_step_ms(8, random, exponential), now = mean_step_ms(4, random, exponential);
    double error = 0;
    constexpr int runs = 10;
    for (int k = 0; k < runs; ++k) {
      const Trace trace = noisy_job(4, 200, 0, random, exponential);
      const RunIndex index(trace);
      const Predictor predictor(index, dependency_graph(index), {});
      // The allreduce's 1 ms grows with 2(p − 1)/p.
      error += (1e3 * predictor.predict({.ranks = 8}).step_s - truth - 0.17) / runs;
    }
    EXPECT_LT(std::abs(error), 0.25 * (truth - now)) << exponential;
  }
}

TEST_F(WhatIfTest, RanksAllChangesWithTheBoundsAmongThem) {
  const WhatIf all = all_predictions(predictor());
  ASSERT_FALSE(all.predictions.empty());
  EXPECT_TRUE(std::ranges::is_sorted(all.predictions, {}, &Prediction::per_image));
  std::vector<std::string> titles;
  for (const Prediction& of : all.predictions) titles.push_back(of.title);
  EXPECT_THAT(titles, ::testing::IsSupersetOf({"fp16 or bf16 allreduce", "double buffering",
                                               "rank 1 no slower than the others", "bound: communication free",
                                               "bound: all ranks equal", "bound: preprocessing free"}));
  EXPECT_THAT(titles, ::testing::Not(::testing::Contains("rank 0 no slower than the others"))) << "it changes nothing";
}

// Of many ranks, only those with the most work beyond the median are relieved.
TEST(WhatIfList, FindsTheSlowRankAmongMany) {
  const Trace trace = blocking_job(20, false, 12, 10);
  const RunIndex index(trace);
  std::vector<std::string> relieved;
  for (const Prediction& of : all_predictions({index, dependency_graph(index), {}}).predictions) {
    if (of.title.ends_with("no slower than the others")) relieved.push_back(of.title);
  }
  EXPECT_THAT(relieved, ::testing::ElementsAre("rank 10 no slower than the others"));
}

// Three ranks, with 5, 10 and 15 ns of communication, in two iterations, of which the first is warm-up.
TEST(ExcessWork, IsOwnWorkBeyondTheMedianAfterTheWarmUp) {
  ReplayProgram program;
  program.ranks = 3;
  program.iterations.resize(2);
  const double forward[2][3] = {{90, 10, 10}, {10, 14, 11}}, backward[2][3] = {{20, 20, 20}, {20, 23, 29}};
  for (std::uint32_t r = 0; r < 3; ++r) {
    ReplayTrack track;
    track.rank = r;
    track.main = true;
    for (std::int32_t i = 0; i < 2; ++i) {
      track.items.own().push_back({.phase = Phase::forward, .iteration = i, .ns = forward[i][r]});
      track.items.own().push_back({.phase = Phase::backward, .iteration = i, .ns = backward[i][r]});
      track.items.own().push_back({.phase = Phase::communication, .iteration = i, .ns = 5.0 * (r + 1)});
    }
    program.tracks.push_back(track);
  }
  EXPECT_THAT(excess_work(work_of(program), 1), ::testing::ElementsAre(0, 3, 6));
  EXPECT_THAT(excess_work(work_of(program), 0), ::testing::ElementsAre(80, 3, 6));
}

TEST_F(WhatIfTest, KnowsWhichChangesAlterTheTraining) {
  const Predictor base = predictor();
  EXPECT_TRUE(base.predict({.bytes_per_value = 2}).alters_training);
  EXPECT_TRUE(base.predict({.schedule = GradientSchedule::double_buffering}).alters_training);
  EXPECT_TRUE(base.predict({.batch = 2}).alters_training);
  EXPECT_TRUE(base.predict({.ranks = 4}).alters_training);
  EXPECT_FALSE(base.predict({.schedule = GradientSchedule::overlap, .bucket_bytes = 1e6}).alters_training);
  EXPECT_FALSE(base.predict({.algorithm = AllreduceAlgorithm::ring}).alters_training);
}

TEST_F(WhatIfTest, RefusesWhatTheRunCannotShow) {
  EXPECT_THAT(predictor().obstacle({.bucket_bytes = 1e6}), ::testing::HasSubstr("add --overlap"));
  EXPECT_THAT(predictor().obstacle({.relieved = {7}}), ::testing::HasSubstr("no such rank"));
  EXPECT_EQ(predictor().obstacle({.batch = 2}), "");
}

TEST(WhatIf, HasNoIntervalForFewIterations) {
  const Trace trace = blocking_job(20);
  const RunIndex index(trace);
  const Predictor predictor(index, dependency_graph(index), {});
  EXPECT_EQ(predictor.iterations(), 18U);
  EXPECT_FALSE(predictor.predict({.relieved = {1}}).ci95);
  EXPECT_FALSE(predictor.predict({.relieved = {1}}).error_unknown);
}

// Iteration i takes the transfers of iteration i + 5 or i − 5, which take as long.
TEST(WhatIf, AReplayTakesTheTransfersOfANeighbouringBlock) {
  const Trace trace = blocking_job(40, true);
  const RunIndex index(trace);
  const ReplayProgram program = replay_program(index, dependency_graph(index));
  EXPECT_EQ(partner_of(program, 12), 17);
  EXPECT_EQ(partner_of(program, 17), 12);
  EXPECT_EQ(partner_of(program, 7), 12) << "iteration 2 belongs to the warm-up";
  EXPECT_EQ(partner_of(program, 12, 2), 27) << "the next block that has other costs";
  const Replayed replayed = replay(program, fit_costs(program));
  for (std::size_t i = 5; i < 35; ++i) {
    EXPECT_NEAR(replayed.iteration_ns[i], static_cast<double>(99 + i % 5) * ms, 1) << i;
  }
}

// More changes than are replayed at once, some of which alter the order of the program.
TEST_F(WhatIfTest, PredictsChangesTogetherAsAlone) {
  const Predictor base = predictor({{"forw*", 2}});
  const std::vector<Changes> changes = {{.bytes_per_value = 2},
                                        {.schedule = GradientSchedule::double_buffering},
                                        {.latency = 3},
                                        {.relieved = {1}},
                                        {.balanced = true},
                                        {.free_communication = true},
                                        {.batch = 2},
                                        {.schedule = GradientSchedule::overlap, .bucket_bytes = 1048576},
                                        {.ranks = 8},
                                        {.balanced = true},
                                        {.loader = 0},
                                        {.faster = {{"forw*", 2}}},
                                        {.batch = 3, .relieved = {1}}};
  const std::vector<Prediction> together = base.predict_all(changes);
  ASSERT_EQ(together.size(), changes.size());
  for (std::size_t c = 0; c < changes.size(); ++c) {
    const Prediction alone = base.predict(changes[c]);
    EXPECT_EQ(together[c].step_s, alone.step_s) << c;
    EXPECT_EQ(together[c].median_s, alone.median_s) << c;
    ASSERT_EQ(together[c].moved.size(), alone.moved.size()) << c;
    for (std::size_t k = 0; k < alone.moved.size(); ++k) {
      EXPECT_EQ(together[c].moved[k].after_s, alone.moved[k].after_s) << c;
    }
  }
}

// A rank computes 10 in its only iteration and waits for an edge that nothing causes.
TEST(Replay, VariantsOfAProgramThatDoesNotFitTogetherKeepTheirOwnTimes) {
  ReplayProgram program;
  program.ranks = 1;
  program.iterations.resize(1);
  program.edges.push_back({.kind = DependencyKind::helper, .iteration = 0});
  ReplayTrack track;
  track.main = true;
  track.items.own() = {{.what = ReplayItem::begin_iteration, .iteration = 0},
                       {.phase = Phase::forward, .iteration = 0, .ns = 10},
                       {.what = ReplayItem::wait, .iteration = 0},
                       {.what = ReplayItem::end_iteration, .iteration = 0}};
  program.tracks.push_back(track);
  std::vector<ReplayVariant> variants(2);
  constexpr Phase forward[] = {Phase::forward};
  variants[1].work.scale_phases(forward, 3);
  const std::vector<Replayed> replayed = replay(program, fit_costs(program), variants);
  ASSERT_EQ(replayed.size(), 2U);
  for (const Replayed& of : replayed) EXPECT_FALSE(of.complete);
  EXPECT_EQ(replayed[0].iteration_ns[0], 10);
  EXPECT_EQ(replayed[1].iteration_ns[0], 30);
  EXPECT_EQ(replayed[1].parts[0].work[static_cast<std::size_t>(Phase::forward)], 30);
}

class SingleRankTest : public WhatIfTest {
 protected:
  static Trace single() {
    Trace trace = blocking_job();
    trace.ranks.pop_back();
    return trace;
  }
  SingleRankTest() : WhatIfTest(single()) {}
};

TEST_F(SingleRankTest, KnowsNothingAboutTheNetwork) {
  EXPECT_THAT(predictor().obstacle({.bytes_per_value = 2}), ::testing::HasSubstr("at least 2 ranks"));
  EXPECT_NEAR(step_ms({.batch = 2}), 99 + 2 + 0.92 * (20 + 30), 0.01);
}

// The averaging in a helper thread that the main thread announces by marks: backward 30 with marks after 10 and 30, two
// buckets of 1 MB whose transfers take 15 each, so the second one ends 15 after backward. A step takes 20 + 30 + 15
// + 5.
class OverlapTest : public WhatIfTest {
 protected:
  static Trace job() {
    TraceBuilder run;
    for (int r = 0; r < 2; ++r) {
      RankBuilder& rank = run.add_rank(r, 2);
      TrackBuilder& main = rank.add_main_thread();
      TrackBuilder& helper = rank.add_track(TrackKind::thread, "communication", 2);
      std::int64_t now = 0;
      int sequence = 0;
      for (int i = 0; i < 30; ++i) {
        main.push(now, "iteration", trainer, "iteration");
        main.argument("payload", i);
        main.add_slice(now, now + 20 * ms, "forward", trainer, "forward");
        main.add_slice(now + 20 * ms, now + 50 * ms, "backward", trainer, "backward");
        main.add_slice(now + 50 * ms, now + 65 * ms, "allreduce", trainer, "allreduce");
        main.add_slice(now + 65 * ms, now + 70 * ms, "optimizer", trainer, "optimizer");
        main.pop(now + 70 * ms);
        for (const std::int64_t at : {30, 50}) {
          const auto mark = main.add_mark(now + at * ms, "bucket ready", trainer, "allreduce");
          main.mark_argument(mark, "payload", 1'000'000);
          helper.push(now + at * ms, at == 30 ? "bucket 0" : "bucket 1", trainer, "allreduce");
          helper.argument("payload", 1'000'000);
          helper.add_slice(now + at * ms, now + (at + 15) * ms, "MPI_Allreduce", "mpi", "collective");
          helper.argument("bytes", 1e6);
          helper.text_argument("communicator", "MPI_COMM_WORLD");
          helper.argument("sequence", sequence++);
          helper.pop(now + (at + 15) * ms);
        }
        now += 70 * ms;
      }
    }
    return run.finish();
  }
  OverlapTest() : WhatIfTest(job()) {}
};

TEST_F(OverlapTest, ReplaysAHelperThread) {
  const Predictor unchanged = predictor();
  ASSERT_TRUE(unchanged.usable());
  EXPECT_DOUBLE_EQ(unchanged.step_s(), 0.070);
  EXPECT_DOUBLE_EQ(unchanged.replayed_s(), 0.070);
  EXPECT_EQ(unchanged.schedule(), GradientSchedule::overlap);
  const auto ready = recorded_readiness(unchanged.program()).points;
  ASSERT_EQ(ready.size(), 2U);
  EXPECT_NEAR(ready[0].bytes, 0.5, 1e-9);
  EXPECT_NEAR(ready[0].backward, 10.0 / 30, 1e-9);
}

TEST_F(OverlapTest, ASlowerNetworkQueuesBuckets) {
  // Transfers of 45: the first from 30 to 75, the second to 120, and the optimizer 5.
  EXPECT_NEAR(step_ms({.byte_time = 3}), 125, 0.01);
  // Blocking: 20 + 30 + both buckets as one transfer of 30 + 5.
  EXPECT_NEAR(step_ms({.schedule = GradientSchedule::blocking}), 85, 0.01);
}

// A step of one rank on a device, in ms: launches at 1 and 2, a synchronisation from 3 to 50; kernel a from 6 to 20,
// five after its launch, and kernel b directly after it until 45.
class DeviceTest : public WhatIfTest {
 protected:
  static Trace job() {
    TraceBuilder run;
    RankBuilder& rank = run.add_rank(0, 1);
    TrackBuilder& main = rank.add_main_thread();
    TrackBuilder& stream = rank.add_track(TrackKind::stream, "stream 7");
    int correlation = 0;
    for (int i = 0; i < 30; ++i) {
      const std::int64_t now = i * 50 * ms;
      main.push(now, "iteration", trainer, "iteration");
      main.argument("payload", i);
      main.push(now, "forward", trainer, "forward");
      const char* const kernels[] = {"a", "b"};
      const std::int64_t starts[] = {6, 20}, ends[] = {20, 45};
      for (int k = 0; k < 2; ++k) {
        main.add_slice(now + (k + 1) * ms, now + (k + 2) * ms, "cudaLaunchKernel", "cuda", "runtime");
        main.argument("correlation", ++correlation);
        stream.add_slice(now + starts[k] * ms, now + ends[k] * ms, kernels[k], "cuda", "kernel");
        stream.argument("correlation", correlation);
      }
      main.add_slice(now + 3 * ms, now + 50 * ms, "cudaDeviceSynchronize", "cuda", "synchronization");
      main.pop(now + 50 * ms);
      main.pop(now + 50 * ms);
    }
    return run.finish();
  }
  DeviceTest() : WhatIfTest(job()) {}
};

TEST_F(DeviceTest, ReplaysLaunchesKernelsAndSynchronisation) {
  ASSERT_TRUE(predictor().usable());
  EXPECT_NEAR(predictor().replayed_s(), 0.050, 1e-9);
  EXPECT_NEAR(step_ms({.faster = {{"b", 2}}}), 50 - 12.5, 0.01);
  EXPECT_NEAR(step_ms({.faster = {{"a", 2}, {"b", 5}}}), 50 - 7 - 20, 0.01);
}

// Rank 0 computes 40 and sends; rank 1 computes 10, receives 5 after the send began, and both meet in nothing else.
class MessageTest : public WhatIfTest {
 protected:
  static Trace job() {
    TraceBuilder run;
    for (int r = 0; r < 2; ++r) {
      TrackBuilder& main = run.add_rank(r, 2).add_main_thread();
      for (int i = 0; i < 30; ++i) {
        const std::int64_t now = i * 45 * ms, work = (r == 0 ? 40 : 10) * ms;
        main.push(now, "iteration", trainer, "iteration");
        main.argument("payload", i);
        main.add_slice(now, now + work, "forward", trainer, "forward");
        main.add_slice(now + work, now + (r == 0 ? 41 : 45) * ms, r == 0 ? "MPI_Send" : "MPI_Recv", "mpi",
                       "point-to-point");
        main.text_argument("communicator", "MPI_COMM_WORLD");
        main.argument("peer", 1 - r);
        main.argument("tag", 3);
        main.argument("bytes", 1000);
        if (r == 0) main.add_slice(now + 41 * ms, now + 45 * ms, "optimizer", trainer, "optimizer");
        main.pop(now + 45 * ms);
      }
    }
    return run.finish();
  }
  MessageTest() : WhatIfTest(job()) {}
};

TEST_F(MessageTest, ReplaysAReceiveAfterItsSend) {
  EXPECT_NEAR(predictor().replayed_s(), 0.045, 1e-9);
  EXPECT_NEAR(step_ms({.faster = {{"forward", 2}}}), 45 - 20, 0.01);
}

// Rank 0 computes 39 and sends to rank 1, which waits for it, computes 9 and sends back; each message takes 6.
class PingPongTest : public WhatIfTest {
 protected:
  static Trace job() {
    TraceBuilder run;
    for (int r = 0; r < 2; ++r) {
      TrackBuilder& main = run.add_rank(r, 2).add_main_thread();
      const auto call = [&](std::int64_t from, std::int64_t until, const char* name) {
        main.add_slice(from, until, name, "mpi", "point-to-point");
        main.text_argument("communicator", "MPI_COMM_WORLD");
        main.argument("peer", 1 - r);
        main.argument("tag", 3);
        main.argument("bytes", 1000);
      };
      for (int i = 0; i < 30; ++i) {
        const std::int64_t now = i * 60 * ms;
        main.push(now, "iteration", trainer, "iteration");
        main.argument("payload", i);
        if (r == 1) call(now, now + 45 * ms, "MPI_Recv");
        const std::int64_t begin = now + (r == 0 ? 0 : 45) * ms, end = now + (r == 0 ? 39 : 54) * ms;
        main.add_slice(begin, end, "forward", trainer, "forward");
        call(end, end + ms, "MPI_Send");
        if (r == 0) call(end + ms, now + 60 * ms, "MPI_Recv");
        main.pop(now + 60 * ms);
      }
    }
    return run.finish();
  }
  PingPongTest() : WhatIfTest(job()) {}
};

TEST_F(PingPongTest, AnotherNetworkChangesMessagesToo) {
  EXPECT_NEAR(predictor().replayed_s(), 0.060, 1e-9);
  EXPECT_NEAR(step_ms({.byte_time = 2}), 60 + 2 * 6, 0.01);
  EXPECT_NEAR(step_ms({.free_communication = true}), 60 - 2 * 6, 0.01);
  EXPECT_THAT(predictor().obstacle({.bytes_per_value = 2}), ::testing::HasSubstr("no collective"));
}

}  // namespace
}  // namespace what_if_test
}  // namespace paceline::analysis
