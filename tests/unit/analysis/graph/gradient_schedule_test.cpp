// SPDX-License-Identifier: Apache-2.0
// When gradients are ready and how they are averaged, in jobs made by hand whose step times are worked out on paper.
#include "analysis/graph/gradient_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analysis/graph/what_if.h"
#include "analysis/trace/builder.h"
#include "tests/unit/analysis/buckets_in_flight.h"

namespace paceline::analysis {
namespace gradient_schedule_test {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr int iterations = 30;
const std::string trainer = "paceline.trainer";

class ScheduleTest : public ::testing::Test {
 protected:
  explicit ScheduleTest(Trace trace) : trace_(std::move(trace)), index_(trace_) {}
  Predictor predictor() const { return {index_, dependency_graph(index_), {}}; }
  double step_ms(const Changes& changes, const RankCpus& cpus = {}) const {
    const Predictor predictor(index_, dependency_graph(index_), {.cpus = cpus});
    return 1e3 * predictor.predict(changes).step_s;
  }

  Trace trace_;
  RunIndex index_;
};

// Two equal ranks, in ms: forward 20, backward 30 with three layers that end after 6, 20 and 30 and have gradients of
// 2, 1.5 and 0.5 MB, an allreduce of 4 MB whose transfer takes 21, one of 8 bytes whose transfer takes 1, optimizer 5.
class LayersTest : public ScheduleTest {
 protected:
  static Trace job() {
    TraceBuilder run;
    for (int r = 0; r < 2; ++r) {
      RankBuilder& rank = run.add_rank(r, 2);
      TrackBuilder& main = rank.add_main_thread();
      TrackBuilder& time = rank.add_counter("CPU time", "µs", "", true);  // each rank keeps a core busy
      for (const int i : {0, iterations}) time.add_sample(i * 77 * ms, i * 77e3);
      int sequence = 0;
      for (int i = 0; i < iterations; ++i) {
        const std::int64_t now = i * 77 * ms;
        main.push(now, "iteration", trainer, "iteration");
        main.argument("payload", i);
        main.add_slice(now, now + 20 * ms, "forward", trainer, "forward");
        main.push(now + 20 * ms, "backward", trainer, "backward");
        const std::int64_t ends[] = {0, 6, 20, 30};
        const double bytes[] = {2e6, 1.5e6, 0.5e6};
        for (int k = 0; k < 3; ++k) {
          main.add_slice(now + (20 + ends[k]) * ms, now + (20 + ends[k + 1]) * ms, "layer" + std::to_string(k), trainer,
                         "layer");
          main.argument("payload", static_cast<std::int64_t>(bytes[k]));
        }
        main.pop(now + 50 * ms);
        for (const bool gradient : {true, false}) {
          const std::int64_t from = gradient ? 50 : 71;
          main.add_slice(now + from * ms, now + (gradient ? 71 : 72) * ms, "MPI_Allreduce", "mpi", "collective");
          main.argument("bytes", gradient ? 4e6 : 8.0);
          main.text_argument("communicator", "MPI_COMM_WORLD");
          main.argument("sequence", sequence++);
        }
        main.add_slice(now + 72 * ms, now + 77 * ms, "optimizer", trainer, "optimizer");
        main.pop(now + 77 * ms);
      }
    }
    return run.finish();
  }
  LayersTest() : ScheduleTest(job()) {}
};

TEST_F(LayersTest, AGradientIsReadyWhenTheBackwardOfItsLayerEnds) {
  const Readiness ready = recorded_readiness(predictor().program());
  EXPECT_TRUE(ready.layers);
  ASSERT_EQ(ready.points.size(), 3U);
  EXPECT_NEAR(ready.points[0].bytes, 0.5, 1e-9);
  EXPECT_NEAR(ready.points[0].backward, 6.0 / 30, 1e-9);
  EXPECT_NEAR(ready.points[1].bytes, 0.875, 1e-9);
  EXPECT_NEAR(ready.points[1].backward, 20.0 / 30, 1e-9);
  EXPECT_NEAR(ready.points[2].backward, 1, 1e-9);
}

// Transfers take 1 + 5 a MB. With buckets of 1.6 MB each layer is a bucket: ready at 26, 40 and 50 they end at 37, 48.5
// and 53.5. Buckets of 2.1 MB: the first has 1 MiB at most, so the first layer stays alone; the others end at 50 + 11.
TEST_F(LayersTest, ABucketTakesWholeLayers) {
  EXPECT_NEAR(predictor().step_s(), 0.077, 1e-9);
  EXPECT_NEAR(step_ms({.schedule = GradientSchedule::overlap, .bucket_bytes = 1.6e6}), 53.5 + 1 + 5, 0.01);
  EXPECT_NEAR(step_ms({.schedule = GradientSchedule::overlap, .bucket_bytes = 2.1e6}), 61 + 1 + 5, 0.01);
}

// Over TCP, the transfer of 2 MB takes 11 alone, 10.02 of a core: its bytes, and 2 % of its latency. The first bucket
// is sent at 26 and gets a core 4 later. Beside backward its CPU time takes twice as long and the rest 1.5 times: 21.51
// together, of which backward goes without 10.02. The second bucket is ready at 50.02 and sent at 51.51; the third one
// is ready at 60.02, when the second has just ended, and takes 3.5. With half a core to spare for each rank, half of
// the delays are left: the first bucket takes 2 + 16.255, beside which 5.01 are lost. The second is sent at 45.01, when
// the model has 5.745 of work left: it takes 4.631 longer, beside which 2.470 are lost, and the third follows it.
TEST_F(LayersTest, HelperThreadsTakeCpuTimeFromRanksWithoutASpareCore) {
  const Changes overlap{.schedule = GradientSchedule::overlap, .bucket_bytes = 1.6e6};
  const auto with_cpus = [&](double cpus) { return step_ms(overlap, {.machines = {{{0, 1}, cpus}}}); };
  EXPECT_NEAR(with_cpus(2), 60.02 + 3.5 + 1 + 5, 0.01);
  EXPECT_NEAR(with_cpus(3), 45.01 + 4.631 + 8.5 + 3.5 + 1 + 5, 0.01);
  EXPECT_NEAR(with_cpus(4), 53.5 + 1 + 5, 0.01);
}

// On one host, transfers are copies, which need a core all the time: beside computation they get half of it. The first
// one takes 11 from backward, which ends at 61.
TEST_F(LayersTest, CopiesOnOneHostTakeTheWholeTransferFromRanksWithoutASpareCore) {
  const Changes overlap{.schedule = GradientSchedule::overlap, .bucket_bytes = 1.6e6};
  EXPECT_NEAR(step_ms(overlap, {.machines = {{{0, 1}, 2}}, .one_host = true}), 61 + 3.5 + 1 + 5, 0.01);
  EXPECT_NEAR(step_ms(overlap, {.machines = {}, .one_host = true}), 53.5 + 1 + 5, 0.01) << "unknown CPUs take nothing";
}

// The transfer of 4 MB takes 20.02 of a core, which the computation of 55 beside it goes without.
TEST_F(LayersTest, DoubleBufferingTakesLongerOnBusyCores) {
  const Changes change{.schedule = GradientSchedule::double_buffering};
  EXPECT_NEAR(step_ms(change), 56, 0.01);
  EXPECT_NEAR(step_ms(change, {.machines = {{{0, 1}, 2}}}), 56 + 20.02, 0.01);
}

// Whether the transfer outlasts the computation, as at 100 ns a byte, or not.
TEST(DoubleBuffering, TheCostsOfSharedCoresAreFoundAgain) {
  for (const double taken : {0.3, 1.0}) {
    for (const double ns_per_byte : {8.0, 100.0}) {
      const CoreSharing cores{.taken = {0.1, taken}};
      const TransferCost alone{1e5, ns_per_byte};
      const double bytes = 1e6, work_ns = 6e7;
      const BesideWork cost = beside_work(work_ns, alone.of(bytes), cores.helper_cost(alone).of(bytes), taken);
      EXPECT_GT(cost.lost_ns, 0.2 * taken * cores.helper_cost(alone).of(bytes));
      const double longer = 1 + cost.longer_ns / alone.of(bytes);
      const BesideWork again =
          cores.recorded_beside(work_ns + cost.lost_ns, {longer * 1e5, longer * ns_per_byte}, bytes);
      EXPECT_NEAR(again.longer_ns, cost.longer_ns, 1e-4 * cost.longer_ns);
      EXPECT_NEAR(again.lost_ns, cost.lost_ns, 1e-4 * cost.lost_ns);
    }
  }
}

// One allreduce in an iteration, in a second thread: 6 of 41, for which the main thread waits. On busy cores it would
// take 3 alone, all of it of a core, as 3 of the other 35 were.
TEST(DoubleBuffering, IsTakenFromBusyCores) {
  const Trace trace = trace_of({.how = InFlight::helper, .buckets = 1, .delay_ms = 0, .busy = true});
  const RunIndex index(trace);
  const auto step_ms = [&](double cpus) {
    const Predictor predictor(index, dependency_graph(index), {.cpus = {.machines = {{{0, 1}, cpus}}}});
    EXPECT_EQ(predictor.schedule(), GradientSchedule::double_buffering);
    return 1e3 * predictor.predict({.schedule = GradientSchedule::blocking}).step_s;
  };
  EXPECT_NEAR(step_ms(2), 32 + 3, 0.1);
  EXPECT_NEAR(step_ms(4), 41, 0.1);
  for (const double cpus : {2.0, 4.0}) {
    const Predictor predictor(index, dependency_graph(index), {.cpus = {.machines = {{{0, 1}, cpus}}}});
    EXPECT_EQ(predictor.predict({.byte_time = 0.5}).error_unknown, cpus == 2)
        << "where cores are shared, runs disagree";
    EXPECT_FALSE(predictor.predict({.batch = 0.5}).error_unknown);
  }
}

// 13 buckets of 4 MB in a second thread, whose transfers take 6 together, the last one after backward. All of a
// transfer is CPU time here. Double buffering has 35 of work, beside which 6 of transfers take 12 and half of a busy
// core.
class OverlapTest : public ::testing::TestWithParam<double> {
 protected:
  OverlapTest()
      : trace_(trace_of({.how = InFlight::helper, .buckets = 13, .delay_ms = 0, .busy = true})), index_(trace_) {}
  // `bucket_bytes` is the size that the run's description states.
  double step_ms(const Changes& changes, double bucket_bytes = 4e6) const {
    const Predictor predictor(index_, dependency_graph(index_),
                              {.bucket_bytes = bucket_bytes, .cpus = {.machines = {{{0, 1}, GetParam()}}}});
    EXPECT_EQ(predictor.schedule(), GradientSchedule::overlap);
    return 1e3 * predictor.predict(changes).step_s;
  }

  static constexpr double measured_ms = 10 + 20 + 6.0 / 13 + 5;
  Trace trace_;
  RunIndex index_;
};
INSTANTIATE_TEST_SUITE_P(Cpus, OverlapTest, ::testing::Values(2, 4));

TEST_P(OverlapTest, SharesCoresWithDoubleBuffering) {
  EXPECT_NEAR(step_ms({.schedule = GradientSchedule::blocking}), 10 + 20 + 6 + 5, 0.1);
  EXPECT_NEAR(step_ms({.schedule = GradientSchedule::double_buffering}), GetParam() == 2 ? 35 + 6 : 35, 0.1);
}

// The first bucket of the model has 1 MiB, and on busy cores its buckets get a core later: not what was recorded, but
// the same for both replays.
TEST_P(OverlapTest, OtherBucketsAreComparedWithTheRecordedSizeInTheSameModel) {
  EXPECT_NEAR(step_ms({.bucket_bytes = 4e6}), measured_ms, 0.01);
  EXPECT_NEAR(step_ms({.schedule = GradientSchedule::overlap, .bucket_bytes = 4e6}), measured_ms, 0.01);
}

// Buckets of 25 MiB would end after 1 MiB, 26.2 and 24.7 MB, and the last one takes 2.86. Where the description
// states this size although 13 buckets were sent, the run is compared as it was recorded, and 16 bits leave it 13.
TEST_P(OverlapTest, BucketsOfAnotherSizeThanSaidAreNotPutTogether) {
  const Changes changes{.bucket_bytes = 26214400};
  EXPECT_NEAR(step_ms({.bytes_per_value = 2}, 26214400), measured_ms - 3.0 / 13, 0.01);
  if (GetParam() == 4) {
    EXPECT_NEAR(step_ms(changes, 26214400), 10 + 20 + 2.86 + 5, 0.1);
  } else {
    EXPECT_GT(step_ms(changes, 26214400), measured_ms + 2);
  }
}

TEST_P(OverlapTest, AStatedBucketSizeMayBeAnything) {
  for (const double bytes : {0.0, -1.0, 1e-9, std::nan("")}) {
    EXPECT_NEAR(step_ms({.schedule = GradientSchedule::blocking}, bytes), 10 + 20 + 6 + 5, 0.1) << bytes;
  }
}

// Forward and backward are phases, and the layers of backward make up 30 of 77 ms.
TEST_F(LayersTest, TheLargestKindOfLayersIsInTheList) {
  const DependencyGraph graph = dependency_graph(index_);
  const auto kinds = largest_kinds(index_.phases(), *critical_path(index_, graph));
  ASSERT_EQ(kinds.size(), 1U);
  EXPECT_EQ(kinds[0].name, "*layer*");
  const WhatIf found = all_predictions(Predictor(index_, graph, {}, kinds));
  const auto faster = std::ranges::find(found.predictions, "--faster '*layer*=2'", &Prediction::options);
  ASSERT_NE(faster, found.predictions.end());
  EXPECT_NEAR(1e3 * faster->step_s, 77 - 15, 0.01);
}

TEST_F(LayersTest, UpdatersThatSendSomethingElseAreNotRearranged) {
  const Predictor sharded(index_, dependency_graph(index_), {.other_updater = "sharded"});
  EXPECT_THAT(sharded.obstacle({.schedule = GradientSchedule::overlap}), ::testing::HasSubstr("the updater sharded"));
  EXPECT_THAT(sharded.obstacle({.bytes_per_value = 2}), ::testing::HasSubstr("the updater sharded"));
  EXPECT_EQ(sharded.obstacle({.byte_time = 2}), "");
}

// The main thread launches kernels and waits for the device.
class Device {
 public:
  Device(RankBuilder& rank) : main_(rank.add_main_thread()), nccl_(rank.add_track(TrackKind::nccl, "NCCL c")) {
    streams_ = {&rank.add_track(TrackKind::stream, "stream 7"), &rank.add_track(TrackKind::stream, "stream 8")};
  }

  void begin(std::int64_t start_ms, int number) {
    start_ = start_ms * ms;
    main_.push(start_, "iteration", trainer, "iteration");
    main_.argument("payload", number);
  }
  // A range of the main thread. From 1 ms after its start on, it launches the kernels, 1 ms each.
  struct Kernel {
    std::string name;
    std::int64_t from = 0, until = 0;
    double bytes = 0;     // of an allreduce
    double gradient = 0;  // of the layer around the launch
  };
  void range(const char* phase, std::int64_t from, std::int64_t until, const std::vector<Kernel>& kernels) {
    main_.push(start_ + from * ms, phase, trainer, phase);
    for (const Kernel& kernel : kernels) launch(++from, kernel);
    main_.pop(start_ + until * ms);
  }
  void end(std::int64_t from, std::int64_t until) {
    main_.add_slice(start_ + from * ms, start_ + until * ms, "cudaDeviceSynchronize", "cuda", "synchronization");
    main_.pop(start_ + until * ms);
  }

 private:
  void launch(std::int64_t at, const Kernel& kernel) {
    if (kernel.gradient > 0) {
      main_.push(start_ + at * ms, "layer " + kernel.name, trainer, "layer");
      main_.argument("payload", static_cast<std::int64_t>(kernel.gradient));
    }
    main_.add_slice(start_ + at * ms, start_ + (at + 1) * ms, "cudaLaunchKernel", "cuda", "runtime");
    main_.argument("correlation", ++correlation_);
    if (kernel.gradient > 0) main_.pop(start_ + (at + 1) * ms);
    TrackBuilder& stream = *streams_[kernel.bytes > 0 ? 1 : 0];
    stream.add_slice(start_ + kernel.from * ms, start_ + kernel.until * ms, kernel.name, "cuda", "kernel");
    stream.argument("correlation", correlation_);
    if (kernel.bytes == 0) return;
    nccl_.add_slice(start_ + kernel.from * ms, start_ + kernel.until * ms, "ncclAllReduce", "nccl", "collective");
    nccl_.argument("bytes", kernel.bytes);
    nccl_.text_argument("communicator", "c");
    nccl_.argument("sequence", sequence_++);
  }

  TrackBuilder& main_;
  TrackBuilder& nccl_;
  std::vector<TrackBuilder*> streams_;
  std::int64_t start_ = 0;
  int correlation_ = 0, sequence_ = 0;
};

// Stream 7 in ms: kernel f until 20 on rank 0 and until 40 on rank 1, b1 20, b2 10. Stream 8: an allreduce of 4 MB
// after b2, which ends on both ranks 21 after b2 of rank 1, at 91. Then the optimizer's kernel on stream 7, 5.
template <bool with_layers>
class BlockingStreamsTest : public ScheduleTest {
 protected:
  static Trace job() {
    TraceBuilder run;
    for (int r = 0; r < 2; ++r) {
      Device device(run.add_rank(r, 2));
      const std::int64_t f = r == 0 ? 20 : 40;
      for (int i = 0; i < iterations; ++i) {
        device.begin(i * 96, i);
        device.range("forward", 0, 10, {{"f", 1, f}});
        device.range("backward", 10, 20,
                     {{"b1", f, f + 20, 0, with_layers ? 3e6 : 0}, {"b2", f + 20, f + 30, 0, with_layers ? 1e6 : 0}});
        device.range("allreduce", 20, 22, {{"ncclDevKernel_AllReduce_Sum_f32", f + 30, 91, 4e6}});
        device.range("optimizer", 22, 24, {{"sgd", 91, 96}});
        device.end(24, 96);
      }
    }
    return run.finish();
  }
  BlockingStreamsTest() : ScheduleTest(job()) {}
};
using StreamsTest = BlockingStreamsTest<false>;
using StreamsWithLayersTest = BlockingStreamsTest<true>;

TEST_F(StreamsTest, ReplaysAnAllreduceOnAStreamOfItsOwn) {
  const Predictor unchanged = predictor();
  ASSERT_TRUE(unchanged.usable());
  EXPECT_NEAR(unchanged.step_s(), 0.096, 1e-9);
  EXPECT_NEAR(unchanged.replayed_s(), 0.096, 1e-9);
  EXPECT_EQ(unchanged.schedule(), GradientSchedule::blocking);
}

// Bytes become ready evenly over the 30 of backward, which begins at 40 on rank 1. All transfers have one size, so that
// a MB takes 5.25. Buckets of 1 MiB, 2 MB and 0.951 MB are ready at 47.86, 62.86 and 70 and end at 53.37, 73.36 and
// 78.36.
TEST_F(StreamsTest, BucketsOnAStreamRunBesideTheKernelsOfBackward) {
  EXPECT_NEAR(step_ms({.schedule = GradientSchedule::overlap, .bucket_bytes = 2e6}), 78.36 + 5, 0.01);
}

TEST_F(StreamsTest, DoubleBufferingHidesTheTransferBesideTheNextIterationsKernels) {
  EXPECT_NEAR(step_ms({.schedule = GradientSchedule::double_buffering}), 96 - 21, 0.01);
}

// The gradient of b1's layer is ready when kernel b1 ends, at 60 on rank 1, and not when it was launched: its 15.75 end
// at 75.75, and those of b2's layer 5.25 later.
TEST_F(StreamsWithLayersTest, AGradientIsReadyWhenTheKernelsOfItsLayerEnd) {
  const Readiness ready = recorded_readiness(predictor().program());
  ASSERT_EQ(ready.points.size(), 2U);
  EXPECT_NEAR(ready.points[0].bytes, 0.75, 1e-9);
  EXPECT_NEAR(ready.points[0].backward, 20.0 / 30, 1e-9);
  EXPECT_NEAR(step_ms({.schedule = GradientSchedule::overlap, .bucket_bytes = 1.5e6}), 81 + 5, 0.01);
}

// Stream 7: f 1 … 20, b1 … 40, b2 … 50. Stream 8: an allreduce of 3 MB that was launched after b1 and takes 16 from its
// end on, then one of 1 MB that takes 6, until 62. Then the optimizer's kernel, 5.
class OverlappedStreamsTest : public ScheduleTest {
 protected:
  static Trace job() {
    TraceBuilder run;
    for (int r = 0; r < 2; ++r) {
      Device device(run.add_rank(r, 2));
      for (int i = 0; i < iterations; ++i) {
        device.begin(i * 67, i);
        device.range("forward", 0, 5, {{"f", 1, 20}});
        device.range("backward", 5, 10,
                     {{"b1", 20, 40},
                      {"ncclDevKernel_AllReduce_Sum_f32", 40, 56, 3e6},
                      {"b2", 40, 50},
                      {"ncclDevKernel_AllReduce_Sum_f32", 56, 62, 1e6}});
        device.range("optimizer", 10, 12, {{"sgd", 62, 67}});
        device.end(12, 67);
      }
    }
    return run.finish();
  }
  OverlappedStreamsTest() : ScheduleTest(job()) {}
};

TEST_F(OverlappedStreamsTest, ABucketIsReadyWhenTheWorkLaunchedBeforeItEnds) {
  const Predictor unchanged = predictor();
  EXPECT_NEAR(unchanged.replayed_s(), 0.067, 1e-9);
  EXPECT_EQ(unchanged.schedule(), GradientSchedule::overlap);
  const Readiness ready = recorded_readiness(unchanged.program());
  EXPECT_FALSE(ready.layers);
  ASSERT_EQ(ready.points.size(), 2U);
  EXPECT_NEAR(ready.points[0].bytes, 0.75, 1e-9);
  EXPECT_NEAR(ready.points[0].backward, 20.0 / 30, 1e-9);
  EXPECT_NEAR(ready.points[1].backward, 1, 1e-9);
}

// Blocking: 4 MB in one transfer of 21 after the 50 of both passes. On a network of half the speed, transfers take 31
// from 40 on, then 11.
TEST_F(OverlappedStreamsTest, OtherSchedulesAndNetworksAreWorkedOutOnPaper) {
  EXPECT_NEAR(step_ms({.schedule = GradientSchedule::blocking}), 50 + 21 + 5, 0.01);
  EXPECT_NEAR(step_ms({.byte_time = 2}), 40 + 31 + 11 + 5, 0.01);
  EXPECT_NEAR(step_ms({.schedule = GradientSchedule::double_buffering}), 50 + 5, 0.01);
}

}  // namespace
}  // namespace gradient_schedule_test
}  // namespace paceline::analysis
