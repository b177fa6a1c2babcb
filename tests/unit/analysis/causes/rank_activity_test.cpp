// SPDX-License-Identifier: Apache-2.0
#include "analysis/causes/rank_activity.h"

#include <gtest/gtest.h>

#include "tests/unit/analysis/causes/cause_job.h"
#include "tests/unit/analysis/causes/milliseconds.h"

namespace paceline::analysis {
namespace {

struct Example {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0, 2);
  TrackBuilder& main = rank.add_main_thread();
  Trace finish(std::int64_t end_ms) {
    Trace trace = run.finish();
    trace.ranks[0].end_ns = end_ms * ms;
    return trace;
  }
};

void expect_parts(const LossParts& parts, std::initializer_list<std::pair<LossCause, double>> expected_ms) {
  double sum = 0;
  for (const auto& [cause, value] : expected_ms) {
    EXPECT_NEAR(parts[cause] / ms, value, 1e-4) << loss_cause_key(cause);
    sum += value;
  }
  EXPECT_NEAR(parts.sum() / ms, sum, 1e-4);
}

TEST(RankActivity, PartsOfAStretchAddUpToIt) {
  Example job;
  job.main.add_slice(10 * ms, 30 * ms, "garbage collection", "torch", "gc");
  Trace trace = job.finish(100);
  StateWriter states(0);
  states.runs(20 * ms), states.waits(20 * ms), states.sleeps(30 * ms), states.runs(10 * ms);
  trace.ranks[0].tracks[0].states = states.take();
  const RankActivity activity(trace, trace.ranks[0]);
  expect_parts(activity.parts(0, 100 * ms), {{LossCause::computing, 20},
                                             {LossCause::collecting, 10},
                                             {LossCause::no_cpu, 20},
                                             {LossCause::blocked, 30},
                                             {LossCause::unknown, 20}});
  const BlockedTime blocked[] = {{.start_ns = 5 * ms, .end_ns = 45 * ms}};
  expect_parts(activity.parts_outside(blocked, 0, 50 * ms), {{LossCause::computing, 5}, {LossCause::blocked, 5}});
}

TEST(RankActivity, AnotherThreadWithoutACpuCountsWhileTheMainThreadIsBlocked) {
  Example job;
  TrackBuilder& helper = job.rank.add_track(TrackKind::thread, "thread 2", 2);
  job.main.add_slice(0, 1, "a");
  helper.add_slice(0, 1, "b");
  Trace trace = job.finish(100);
  StateWriter main(0), other(0);
  main.runs(40 * ms), main.sleeps(60 * ms);
  other.waits(50 * ms), other.runs(30 * ms), other.waits(5 * ms), other.sleeps(15 * ms);
  trace.ranks[0].tracks[0].states = main.take();
  trace.ranks[0].tracks[1].states = other.take();
  const RankActivity activity(trace, trace.ranks[0]);
  expect_parts(activity.parts(0, 100 * ms),
               {{LossCause::computing, 40}, {LossCause::no_cpu, 15}, {LossCause::blocked, 45}});
  expect_parts(activity.parts(45 * ms, 55 * ms), {{LossCause::no_cpu, 5}, {LossCause::blocked, 5}});
}

// The main thread sleeps twice and is sampled every 5 ms.
TEST(RankActivity, SamplesDivideBlockedTime) {
  Example job;
  job.main.add_slice(0, 1, "a");
  const auto call = [&](const char* name, const char* file) {
    Names& names = job.rank.names();
    return job.rank.stacks().stack(0, job.rank.stacks().frame({names.intern(name), names.intern(file), 0}));
  };
  const StackId fault = call("[page fault]", ""), read = call("[read]", "/data/x"), pipe = call("[read]", "pipe"),
                step = call("step", "train.py");
  for (int i = 1; i <= 8; ++i) job.main.add_stack_sample((5 * i - 3) * ms, i <= 6 ? fault : step);
  for (int i = 1; i <= 8; ++i) job.main.add_stack_sample((50 + 5 * i - 3) * ms, i <= 6 ? read : pipe);
  Trace trace = job.finish(100);
  StateWriter states(0);
  states.sleeps(30 * ms), states.runs(20 * ms), states.sleeps(50 * ms);
  trace.ranks[0].tracks[0].states = states.take();
  const RankActivity activity(trace, trace.ranks[0]);
  expect_parts(activity.parts(0, 50 * ms), {{LossCause::page_faults, 30}, {LossCause::computing, 20}});
  expect_parts(activity.parts(50 * ms, 90 * ms), {{LossCause::input_output, 30}, {LossCause::blocked, 10}});
  // Without a sample of its own, a stretch has the shares of its surroundings.
  expect_parts(activity.parts(90 * ms, 100 * ms), {{LossCause::page_faults, 10 * 6 / 14.},
                                                   {LossCause::input_output, 10 * 6 / 14.},
                                                   {LossCause::blocked, 10 * 2 / 14.}});
  const BlockedTime collectives[] = {{.start_ns = 0, .end_ns = 80 * ms}};
  expect_parts(RankActivity(trace, trace.ranks[0], collectives).parts(90 * ms, 100 * ms), {{LossCause::blocked, 10}});
}

// A few samples a second see some of the short waits of a thread; the other waits have the cause of the nearest ones.
TEST(RankActivity, SamplesOfFiveSecondsSpeakForWaitsThatNoneSaw) {
  Example job;
  job.main.add_slice(0, 1, "a");
  Names& names = job.rank.names();
  const FrameId fsync = job.rank.stacks().frame({names.intern("[fsync]"), names.intern("/data/x"), 0});
  job.main.add_stack_sample(20'005 * ms, job.rank.stacks().stack(0, fsync));
  Trace trace = job.finish(40'000);
  StateWriter states(0);
  for (int i = 0; i < 40; ++i) states.runs(990 * ms), states.sleeps(10 * ms);
  trace.ranks[0].tracks[0].states = states.take();
  const RankActivity activity(trace, trace.ranks[0]);
  expect_parts(activity.parts(16'000 * ms, 24'000 * ms), {{LossCause::computing, 7920}, {LossCause::input_output, 80}});
  for (const int second : {15, 24}) {  // one wait, 5 s away or less
    expect_parts(activity.parts((second * 1000 + 980) * ms, (second + 1) * 1000 * ms),
                 {{LossCause::computing, 10}, {LossCause::input_output, 10}});
  }
  expect_parts(activity.parts(30'980 * ms, 31'000 * ms), {{LossCause::computing, 10}, {LossCause::blocked, 10}});
}

// A rank of which no sample saw a wait waits for what the others wait for; one of its own counts as a fifth beside
// them.
TEST(RankActivity, SamplesOfAllRanksSpeakForTheRankThatHasFew) {
  Example job;
  RankBuilder& other_rank = job.run.add_rank(1, 2);
  TrackBuilder& other = other_rank.add_main_thread();
  const auto call = [](RankBuilder& rank, const char* name, const char* file) {
    Names& names = rank.names();
    return rank.stacks().stack(0, rank.stacks().frame({names.intern(name), names.intern(file), 0}));
  };
  const StackId fsync = call(other_rank, "[fsync]", "/data/x"), fault = call(other_rank, "[page fault]", ""),
                lock = call(other_rank, "[futex]", "");
  job.main.add_slice(0, 1, "a");
  other.add_slice(0, 1, "a");
  for (int i = 1; i <= 8; ++i) other.add_stack_sample(i * 100 * ms, i <= 4 ? fsync : i <= 6 ? fault : lock);
  job.main.add_stack_sample(9'000 * ms, call(job.rank, "[futex]", ""));
  Trace trace = job.finish(20'000);
  StateWriter states(0);
  states.sleeps(20'000 * ms);
  trace.ranks[0].tracks[0].states = states.take();
  RankActivity activity(trace, trace.ranks[0]);
  const RankActivity others(trace, trace.ranks[1]);
  const BlockedSamples* const each[] = {&activity.samples(), &others.samples()};
  const BlockedSamples of_all(each);
  expect_parts(activity.parts(0, 100 * ms), {{LossCause::blocked, 100}});
  activity.add_samples(of_all);
  expect_parts(activity.parts(0, 100 * ms),
               {{LossCause::input_output, 50}, {LossCause::page_faults, 25}, {LossCause::blocked, 25}});
  // 5 s around it are its own and four of all nine.
  expect_parts(activity.parts(5'000 * ms, 5'100 * ms), {{LossCause::input_output, 100 * 4 * 4 / 9. / 5},
                                                        {LossCause::page_faults, 100 * 4 * 2 / 9. / 5},
                                                        {LossCause::blocked, 100 * (1 + 4 * 3 / 9.) / 5}});
  expect_parts(activity.parts(8'900 * ms, 9'100 * ms), {{LossCause::blocked, 200}});
  expect_parts(activity.parts(15'000 * ms, 15'100 * ms), {{LossCause::blocked, 100}});
}

// Counters of the main thread, as schedstat gives them: µs.
TEST(RankActivity, CountersServeWhereSwitchesWereNotRecorded) {
  Example job;
  job.main.add_slice(0, 1, "a");
  TrackBuilder& running = job.rank.add_counter("CPU time", "µs", "main thread", true);
  TrackBuilder& waiting = job.rank.add_counter("waiting for a CPU", "µs", "main thread", true);
  TrackBuilder& throttled = job.rank.add_counter("CPU limit, throttled time", "µs", "cgroup", true);
  for (int i = 0; i <= 4; ++i) {
    running.add_sample(i * 50 * ms, 7e6 + 20'000 * i);
    waiting.add_sample(i * 50 * ms, 1e6 + 10'000 * i);
    throttled.add_sample(i * 50 * ms, 5'000 * i);
  }
  const Trace trace = job.finish(200);
  const RankActivity activity(trace, trace.ranks[0]);
  EXPECT_FALSE(activity.states().exact);
  expect_parts(
      activity.parts(0, 200 * ms),
      {{LossCause::computing, 80}, {LossCause::no_cpu, 20}, {LossCause::throttled, 20}, {LossCause::blocked, 80}});
  EXPECT_NEAR(activity.parts(10 * ms, 20 * ms).sum(), 10 * ms, 10);
}

}  // namespace
}  // namespace paceline::analysis
