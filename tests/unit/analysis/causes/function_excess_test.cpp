// SPDX-License-Identifier: Apache-2.0
#include "analysis/causes/function_excess.h"

#include <gtest/gtest.h>

#include <random>

#include <fmt/format.h>

#include "analysis/run/run_analysis.h"
#include "tests/unit/analysis/causes/cause_job.h"
#include "tests/unit/analysis/causes/causes_add_up.h"
#include "tests/unit/analysis/causes/milliseconds.h"

namespace paceline::analysis {
namespace {

constexpr std::int64_t period = 2 * ms;

// Samples every main thread every 2 ms: in `load`, called by main, while it is in the range preprocess, longer_in(rank)
// says in which function for the delay; else in `train`. Every rank is in another line of that function now and then.
// Times have noise.
struct Sampled {
  Trace trace;
  FrameId main, train, load, slow, last_line, sleep;

  explicit Sampled(const CauseJob& job) : trace(trace_of(job)) {
    const auto frame = [&](const char* function, const char* file, std::uint32_t line) {
      return trace.stacks.frame({trace.names.intern(function), trace.names.intern(file), line});
    };
    main = frame("main", "train.py", 90);
    train = frame("train", "train.py", 50);
    load = frame("load", "data.py", 20);
    slow = frame("slow", "data.py", 41);
    last_line = frame("slow", "data.py", 99);
    sleep = frame("clock_nanosleep", "libc.so.6", 0);
  }

  void sample(bool with_slow) {
    std::mt19937 random(7);
    const StackId in_main = trace.stacks.stack(0, main), in_train = trace.stacks.stack(in_main, train),
                  in_load = trace.stacks.stack(in_main, load), in_last_line = trace.stacks.stack(in_load, last_line),
                  in_sleep = trace.stacks.stack(trace.stacks.stack(in_load, slow), sleep);
    for (Rank& rank : trace.ranks) {
      Track& track = rank.tracks[0];
      track.stacks.period_ns = period;
      for (std::int64_t t = period / 2; t < rank.end_ns; t += period) {
        const CpuTimes state = cpu_times(track.states, t, t + 1);
        const bool delayed = with_slow && state.blocked_ns > 0;
        track.stacks.time_ns.push_back(t + static_cast<std::int64_t>(random() % (ms / 2)));
        const bool in_load_now = random() % 4 == 0, in_last_now = track.stacks.time_ns.size() % 16 == 0;
        track.stacks.stack.push_back(delayed       ? in_sleep
                                     : in_last_now ? in_last_line
                                     : in_load_now ? in_load
                                                   : in_train);
      }
    }
  }
};

RunAnalysis analysed(const Trace& trace) {
  RunAnalysis run = analyse_run(RunIndex(trace), "run");
  expect_causes_add_up(run);
  return run;
}

TEST(FunctionExcess, NamesTheFunctionOfALateRank) {
  Sampled job({.iterations = 60, .delay = [](int rank, int) { return Delay{.sleeps_ms = rank == 1 ? 30 : 0}; }});
  job.sample(true);
  const RunAnalysis run = analysed(job.trace);
  const auto& function = run.causes->ranks[1].function;
  ASSERT_TRUE(function);
  EXPECT_EQ(function->function, "slow");
  EXPECT_EQ(function->file, "data.py");
  EXPECT_EQ(function->line, 41u);
  EXPECT_EQ(function->innermost, "clock_nanosleep");
  EXPECT_NEAR(function->share, 1, 0.1);
  EXPECT_LE(function->p, 0.05);
  EXPECT_FALSE(run.causes->ranks[0].function);
}

TEST(FunctionExcess, NamesTheFunctionOfSlowIterations) {
  Sampled job({.iterations = 60, .delay = [](int, int i) { return Delay{.sleeps_ms = i % 10 == 9 ? 60 : 0}; }});
  job.sample(true);
  const RunAnalysis run = analysed(job.trace);
  ASSERT_TRUE(run.causes->slow);
  EXPECT_EQ(run.causes->slow->numbers.size(), 6u);
  ASSERT_TRUE(run.causes->slow->function);
  EXPECT_EQ(run.causes->slow->function->function, "slow");
  EXPECT_NEAR(run.causes->slow->function->share, 1, 0.15);
}

// In every second delay, another file of the directory: the directory is named where no file has most of the time.
TEST(FunctionExcess, NamesTheFileOfASystemCall) {
  for (const bool one_file : {true, false}) {
    Sampled job({.iterations = 60, .delay = [](int rank, int) { return Delay{.sleeps_ms = rank == 1 ? 30 : 0}; }});
    job.sample(true);
    Trace& trace = job.trace;
    const NameId read = trace.names.intern("[read]");
    std::size_t number = 0;
    for (StackId& stack : trace.ranks[1].tracks[0].stacks.stack) {
      if (stack == 0 || trace.stacks.innermost(stack) != job.sleep) continue;
      const NameId file = trace.names.intern(fmt::format("/data/{}.jpg", one_file ? 0 : ++number % 7));
      stack = trace.stacks.stack(trace.stacks.caller(stack), trace.stacks.frame({read, file, 0}));
    }
    const RunAnalysis run = analysed(trace);
    EXPECT_GT(run.causes->ranks[1].caused[LossCause::input_output], 0.9 * run.causes->ranks[1].caused.sum());
    const auto& function = run.causes->ranks[1].function;
    ASSERT_TRUE(function);
    EXPECT_EQ(function->function, "slow");
    EXPECT_EQ(function->innermost, "[read]");
    EXPECT_EQ(function->call_file, one_file ? "/data/0.jpg" : "/data/");
  }
}

// All ranks spend much time in main(), which makes the call here: main() does not stand out, and is named as the
// caller.
TEST(FunctionExcess, NamesTheCallerOfASystemCall) {
  Sampled job({.iterations = 60, .delay = [](int rank, int) { return Delay{.sleeps_ms = rank == 1 ? 30 : 0}; }});
  job.sample(true);
  Trace& trace = job.trace;
  const FrameId call = trace.stacks.frame({trace.names.intern("[clock_nanosleep]"), 0, 0});
  const FrameId line = trace.stacks.frame({trace.names.intern("main"), trace.names.intern("train.py"), 84});
  const StackId asleep = trace.stacks.stack(trace.stacks.stack(0, line), call);
  std::size_t number = 0;
  for (StackId& stack : trace.ranks[1].tracks[0].stacks.stack) {
    if (stack != 0 && trace.stacks.innermost(stack) == job.sleep) {
      stack = asleep;
    } else if (++number % 2 == 0) {
      stack = 0;
    }
  }
  const auto function = analysed(trace).causes->ranks[1].function;
  ASSERT_TRUE(function);
  EXPECT_EQ(function->function, "main");
  EXPECT_EQ(function->file, "train.py");
  EXPECT_EQ(function->line, 84u);
  EXPECT_EQ(function->innermost, "[clock_nanosleep]");
}

// An fsync also computes, where no sample sees the call. It is named if it is a large part of the function, or if the
// function makes no other call.
TEST(FunctionExcess, NamesASystemCallThatIsAPartOfAFunction) {
  for (const auto& [one_of, reads] : {std::pair{2, true}, {8, true}, {8, false}}) {
    Sampled job({.iterations = 60, .delay = [](int, int i) { return Delay{.sleeps_ms = i % 10 == 9 ? 60 : 0}; }});
    job.sample(true);
    Trace& trace = job.trace;
    const FrameId fsync = trace.stacks.frame({trace.names.intern("[fsync]"), trace.names.intern("/data/0.bin"), 0});
    const FrameId read = trace.stacks.frame({trace.names.intern("[read]"), trace.names.intern("/data/1.bin"), 0});
    int number = 0;
    for (Rank& rank : trace.ranks) {
      for (StackId& stack : rank.tracks[0].stacks.stack) {
        if (stack == 0 || trace.stacks.innermost(stack) != job.sleep) continue;
        stack = trace.stacks.caller(stack);
        ++number;
        if (number % one_of == 0)
          stack = trace.stacks.stack(stack, fsync);
        else if (reads && number % 9 == 1)
          stack = trace.stacks.stack(stack, read);
      }
    }
    const RunAnalysis run = analysed(trace);
    ASSERT_TRUE(run.causes->slow && run.causes->slow->function);
    EXPECT_EQ(run.causes->slow->function->function, "slow");
    const bool named = one_of == 2 || !reads;
    EXPECT_EQ(run.causes->slow->function->innermost, named ? "[fsync]" : "");
    EXPECT_EQ(run.causes->slow->function->call_file, named ? "/data/0.bin" : "");
  }
}

// The delay is there, but samples are the same mixture everywhere.
TEST(FunctionExcess, ChanceNamesSeldom) {
  int named = 0;
  for (int seed = 0; seed < 40; ++seed) {
    Sampled job(
        {.iterations = 40, .delay = [&](int rank, int i) { return Delay{.runs_ms = (i * 7 + rank * 3 + seed) % 5}; }});
    job.sample(false);
    const RunAnalysis run = analysed(job.trace);
    for (const RankCauses& rank : run.causes->ranks) named += rank.function.has_value() ? 1 : 0;
  }
  EXPECT_LE(named, 8);  // of 80
}

}  // namespace
}  // namespace paceline::analysis
