// SPDX-License-Identifier: Apache-2.0
// What the report says about why time was lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "analysis/report/build.h"
#include "analysis/report/cause_text.h"
#include "analysis/report/render.h"
#include "analysis/report/section.h"
#include "tests/unit/analysis/causes/cause_job.h"
#include "tests/unit/analysis/checked_report.h"
#include "tests/unit/analysis/report_job.h"

namespace paceline::analysis {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Report report_of(const CauseJob& job) {
  const Trace trace = trace_of(job);
  std::vector<RunAnalysis> runs;
  runs.push_back(analyse_run(RunIndex(trace), "run"));
  Report report = build_report(std::move(runs));
  checked_text(report);
  return report;
}

const Finding* finding(const Report& report, std::string_view kind) {
  const auto found = std::ranges::find(report.findings, kind, &Finding::kind);
  return found == report.findings.end() ? nullptr : &*found;
}

// Both ranks are off the CPU in turn inside the allreduce of six iterations, while the partner polls.
Report starved() {
  return report_of({.iterations = 60, .delay = [](int rank, int i) {
                      return Delay{.held_up_ms = i >= 15 && i < 21 && (i + rank) % 2 == 0 ? 190 : 0};
                    }});
}

TEST(ReportCauses, AStarvedRunIsToldToFindCpus) {
  const Report report = starved();
  EXPECT_THAT(report.verdict.state, ::testing::StartsWith("Threads that had no CPU cost a rank 1.14 s"));
  EXPECT_THAT(report.verdict.change, HasSubstr("CPUs that no other program uses"));
  EXPECT_THAT(report.verdict.change, Not(HasSubstr("buffering")));
  EXPECT_THAT(report.verdict.change, Not(HasSubstr("fp16")));
  const Finding* cpu = finding(report, "no CPU");
  ASSERT_NE(cpu, nullptr);
  EXPECT_THAT(cpu->text, HasSubstr("in iterations 15 to 20; the network was not the limit."));
  EXPECT_NEAR(*cpu->cost_s, 1.14, 0.005);
}

const Chart& iterations_by_cause(const std::vector<Chart>& charts) {
  return *std::ranges::find_if(charts, [](const Chart& of) { return of.title.find("by cause") != std::string::npos; });
}

TEST(ReportCauses, TheWarmUpDoesNotSetTheScaleOfTheChart) {
  const auto chart_of = [](std::int64_t first_ms, std::int64_t later_ms) {
    const Report report = report_of({.delay = [=](int, int i) {
      return Delay{.runs_ms = i == 0 ? first_ms : i == 20 ? later_ms : 0};
    }});
    return iterations_by_cause(run_charts(report.runs.front()));
  };
  const Chart cut = chart_of(900, 40);
  EXPECT_NEAR(cut.data["end"].get<double>(), 1.05 * 100, 0.01);
  EXPECT_THAT(cut.title, ::testing::EndsWith("; the warm-up, up to 960 ms, is cut"));
  EXPECT_FALSE(chart_of(80, 40).data.contains("end")) << "140 ms beside 100 ms";
  EXPECT_FALSE(chart_of(0, 900).data.contains("end")) << "a slow iteration is not cut";
}

// Of 2 ranks beside 1, the transfers of rank 1 have no CPU.
TEST(ReportCauses, AScalingReportOfAStarvedRunIsToldToFindCpus) {
  constexpr std::int64_t millisecond = 1'000'000;
  const Trace one = make_trace({.ranks = 1});
  Trace two = make_trace({.ranks = 2});
  for (std::size_t r = 0; r < 2; ++r) {
    StateWriter states(0);
    states.runs(1000 * millisecond);
    for (int i = 0; i < 4; ++i) {
      states.runs(95 * millisecond);
      if (r == 1) states.waits(10 * millisecond);
      states.runs((r == 1 ? 15 : 25) * millisecond);
    }
    states.runs(125 * millisecond);
    two.ranks[r].tracks[0].states = states.take();
  }
  std::vector<RunAnalysis> runs;
  runs.push_back(analyse_run(RunIndex(one), "ranks-1"));
  runs.push_back(analyse_run(RunIndex(two), "ranks-2"));
  const Report report = build_report(std::move(runs));
  checked_text(report);
  EXPECT_THAT(report.verdict.state, ::testing::StartsWith("Threads that had no CPU cost a rank 40.0 ms"));
  const Finding* cpu = finding(report, "no CPU");
  ASSERT_NE(cpu, nullptr);
  EXPECT_THAT(cpu->text, HasSubstr("the network was not the limit. "));
  EXPECT_THAT(report.verdict.change, ::testing::StartsWith("Change first: CPUs that no other program uses"));
}

TEST(ReportCauses, TheProgramThatHadTheCpusIsNamed) {
  const auto delay = [](int, int i) { return Delay{.waits_ms = i % 2 == 0 ? 20 : 30}; };
  const Report report = report_of({.iterations = 60, .delay = delay, .other_program = "cc1plus"});
  EXPECT_THAT(report.verdict.state, HasSubstr("while the program cc1plus used "));
  EXPECT_THAT(report.verdict.change, HasSubstr("CPUs that cc1plus does not use"));
  EXPECT_THAT(report_of({.iterations = 60, .delay = delay}).verdict.state, Not(HasSubstr("program")));
  const Report two = report_of({.iterations = 60, .delay = delay, .other_program = "cc1plus", .further_cpus = 0.5});
  EXPECT_THAT(two.verdict.state, HasSubstr("while the program cc1plus and others used "));
  EXPECT_THAT(two.verdict.change, HasSubstr("CPUs that cc1plus and others do not use"));
}

// Rank 1 lacks CPUs for longer. Where rank 0 lacks them too, that is how the scheduler divided them.
TEST(ReportCauses, ALateRankOfAStarvedRunIsNamedWhereTheOthersHaveCpus) {
  for (const int shared : {10, 0}) {
    const Report report = report_of({.iterations = 60, .delay = [shared](int rank, int i) {
                                       return Delay{.waits_ms = shared + (rank == 1 ? 30 : 0) + (i * 7 + rank * 3) % 3};
                                     }});
    EXPECT_THAT(report.verdict.state, ::testing::StartsWith("Threads that had no CPU cost a rank"));
    const auto named = HasSubstr("; rank 1 on alice holds the others up");
    if (shared == 0) {
      EXPECT_THAT(report.verdict.state, named);
    } else {
      EXPECT_THAT(report.verdict.state, Not(named));
    }
    EXPECT_NE(finding(report, "slow rank"), nullptr);
  }
}

// What the other threads of a rank lack counts for the run, and little of it may fall on the main threads: as others is
// then a third of what the late rank lacks.
TEST(ReportCauses, ALateRankOfAStarvedRunLacksCpusAsOthersDo) {
  const auto delay = [](int rank, int i) { return Delay{.waits_ms = (rank == 1 ? 30 : 0) + (i * 7 + rank * 3) % 3}; };
  const Report report = report_of({.iterations = 60, .delay = delay});
  RunAnalysis run = report.runs.front();
  ASSERT_TRUE(is_starved(run));
  for (const auto& [of_late, of_other] : {std::pair{0.03, 0.01}, {0.06, 0.01}, {0.06, 0.03}}) {
    const auto wall_ns = static_cast<double>(run.wall_ns);
    run.causes->ranks[0].own[LossCause::no_cpu] = of_other * wall_ns;
    run.causes->ranks[1].own[LossCause::no_cpu] = of_late * wall_ns;
    EXPECT_EQ(is_starved_as_others(run, 1), of_other > 0.3 * of_late);
  }
}

// Where CPUs are shared, a rank that computes a little longer is no second reason in the verdict, but a finding; one
// that computes much longer is.
TEST(ReportCauses, ARankOfAStarvedRunThatComputesALittleLongerIsAFinding) {
  for (const int longer_ms : {3, 20}) {
    const Report report =
        report_of({.iterations = 60, .delay = [longer_ms](int rank, int i) {
                     return Delay{.runs_ms = rank == 1 ? longer_ms : 0, .waits_ms = 22 + (i * 7 + rank * 3) % 3};
                   }});
    EXPECT_THAT(report.verdict.state, ::testing::StartsWith("Threads that had no CPU cost a rank"));
    const bool named = report.verdict.state.find("; rank 1 on alice holds the others up") != std::string::npos;
    EXPECT_EQ(named, longer_ms == 20) << report.verdict.state;
    EXPECT_NE(finding(report, "slow rank"), nullptr);
  }
}

// Of steps of 62 ms that lack CPUs for 22 ms or more, half is fixed costs: the threads that wait for them need the
// CPUs.
TEST(ReportCauses, SmallCollectivesThatCostMoreThanMissingCpusComeFirst) {
  const Report starved = report_of(
      {.iterations = 60, .delay = [](int rank, int i) { return Delay{.waits_ms = 22 + (i * 7 + rank * 3) % 3}; }});
  std::vector<RunAnalysis> runs = starved.runs;
  for (const double share : {0.1, 0.5}) {
    runs[0].small_collectives = SmallCollectives{
        .operation = "allreduce", .calls = 60, .fixed_ns = 500'000, .share_of_step = share, .exposed_share = share};
    const Report report = build_report(std::vector<RunAnalysis>(runs));
    EXPECT_EQ(report.verdict.state.starts_with("Threads that had no CPU"), share == 0.1) << report.verdict.state;
    EXPECT_EQ(report.verdict.change.starts_with("First send larger buckets: each of the 60 calls"), share == 0.5)
        << report.verdict.change;
  }
}

// Where the words are too many, the program goes, which the change names as well, and the rank stays.
TEST(ReportCauses, ALateRankOfAStarvedRunIsNamedBeforeTheProgram) {
  const auto delay = [](int rank, int i) { return Delay{.waits_ms = (rank == 1 ? 30 : 0) + (i * 7 + rank * 3) % 3}; };
  const Report report = report_of({.iterations = 60, .delay = delay, .other_program = "cc1plus", .further_cpus = 0.5});
  EXPECT_THAT(report.verdict.state, ::testing::StartsWith("Threads that had no CPU cost a rank"));
  EXPECT_THAT(report.verdict.state, ::testing::EndsWith("; rank 1 holds the others up."));
  EXPECT_THAT(report.verdict.change, HasSubstr("CPUs that cc1plus and others do not use"));
}

// Two ranks that may run on two CPUs and kept 1.6 of them busy.
TEST(ReportCauses, RanksWhoseOwnThreadsTakeTheCpusAreToldToUseMore) {
  Trace trace =
      trace_of({.iterations = 60, .delay = [](int, int i) { return Delay{.waits_ms = i % 2 == 0 ? 20 : 30}; }});
  const std::int64_t end_ns = trace.ranks[0].end_ns;
  for (const double cores : {0.8, 0.2}) {
    for (Rank& rank : trace.ranks) {
      rank.facts["cpus_allowed"] = "0-1";
      Track counter;
      counter.kind = TrackKind::counter;
      counter.samples.name = "CPU time";
      counter.samples.time_ns = {0, end_ns};
      counter.samples.value = {0, 1e-3 * cores * static_cast<double>(end_ns)};
      rank.tracks.push_back(std::move(counter));
    }
    std::vector<RunAnalysis> runs;
    runs.push_back(analyse_run(RunIndex(trace), "run"));
    const Report report = build_report(std::move(runs));
    EXPECT_THAT(report.verdict.change,
                HasSubstr(cores > 0.5 ? "Change first: more CPUs for the ranks, whose own threads "
                                        "used 80.0 % of theirs"
                                      : "Change first: CPUs that no other program uses"));
    for (Rank& rank : trace.ranks) rank.tracks.pop_back();
  }
}

TEST(ReportCauses, SlowIterationsAreAFindingWithTheirCause) {
  const Report report = starved();
  const Finding* slow = finding(report, "slow iterations");
  ASSERT_NE(slow, nullptr);
  EXPECT_THAT(slow->text,
              ::testing::StartsWith("Iterations 15 to 20 took 1.14 s longer in all, for 100.0 % of that the "
                                    "ranks had no CPU: 1.14 s no CPU, mean over the ranks."));
  ASSERT_EQ(slow->places.size(), 6u);
  EXPECT_EQ(slow->places[0].iteration, 15);
  EXPECT_NEAR(*slow->cost_s, 1.14, 0.005);
}

// Sentences about what is no cause of a lateness: how much of the communication is waiting, where unnamed time lies,
// and what makes collectives larger.
TEST(ReportCauses, WaitingUnnamedTimeAndSmallCollectivesAreToldApart) {
  const auto text_with = [](const Report& report, const std::string& part) {
    const auto found = std::ranges::find_if(report.findings,
                                            [&](const Finding& of) { return of.text.find(part) != std::string::npos; });
    return found == report.findings.end() ? "" : found->text;
  };
  for (const int late_ms : {30, 2}) {
    Trace trace = trace_of(
        {.iterations = 60, .delay = [late_ms](int rank, int) { return Delay{.sleeps_ms = rank == 1 ? late_ms : 0}; }});
    for (Rank& rank : trace.ranks) rank.end_ns += 2'000'000'000;
    std::vector<RunAnalysis> runs;
    runs.push_back(analyse_run(RunIndex(trace), "run"));
    runs[0].small_collectives =
        SmallCollectives{.operation = late_ms == 30 ? "gloo:all_reduce" : "gloo:reduce_scatter", .calls = 9};
    const Report report = build_report(std::move(runs));
    // Rank 0 waits for 30 of its 40 ms in the allreduce, rank 1 for none of its 10.
    const std::string waiting = " 60.0 % of the time in collectives is waiting for the last rank to arrive.";
    EXPECT_EQ(
        text_with(report, "Allreduce and other").find(late_ms == 30 ? waiting : "is waiting") != std::string::npos,
        late_ms == 30);
    EXPECT_THAT(text_with(report, "no known phase"),
                HasSubstr("no known phase, 2.00 s of it outside of the iterations."));
    EXPECT_THAT(
        text_with(report, "The collectives are too small"),
        HasSubstr(late_ms == 30 ? "Send larger buckets" : "Join them to fewer and larger calls; with FSDP, shard"));
  }
}

TEST(ReportCauses, ALateRankHasACauseInTheVerdict) {
  const Report report = report_of({.iterations = 60, .delay = [](int rank, int i) {
                                     return Delay{.runs_ms = (i * 7 + rank * 3) % 3, .sleeps_ms = rank == 1 ? 30 : 0};
                                   }});
  EXPECT_THAT(report.verdict.state, HasSubstr("rank 1 on alice holds the others up"));
  EXPECT_THAT(report.verdict.state, HasSubstr(" late in each step, mostly blocked in the range preprocess."));
  const Finding* waiting = finding(report, "slow rank");
  ASSERT_NE(waiting, nullptr);
  EXPECT_THAT(waiting->text, HasSubstr(" Its preprocess takes "));
  EXPECT_THAT(waiting->text, HasSubstr("of that it was blocked, in the range preprocess"));
  // Where the place is known, the phase that takes longer is not needed as well.
  std::vector<RunAnalysis> runs = report.runs;
  runs[0].causes->ranks[1].place->after = true;
  EXPECT_THAT(build_report(std::move(runs)).verdict.state,
              HasSubstr(" late in each step, mostly blocked after the range preprocess."));
}

TEST(ReportCauses, WhoeverHoldsPythonsLockIsNamedAndNotWhoWaitsForIt) {
  const Trace trace = trace_of({.iterations = 60, .delay = [](int rank, int i) {
                                  return Delay{.runs_ms = (i * 7 + rank * 3) % 3, .sleeps_ms = rank == 1 ? 30 : 0};
                                }});
  std::vector<RunAnalysis> runs;
  runs.push_back(analyse_run(RunIndex(trace), "run"));
  runs[0].causes->ranks[1].function = {.function = "main",
                                       .file = "train.py",
                                       .line = 7,
                                       .innermost = "[futex]",
                                       .call_file = "Python's lock, held by load",
                                       .share = 0.9};
  const Report report = build_report(std::move(runs));
  EXPECT_THAT(report.verdict.state, HasSubstr(", mostly blocked on Python's lock, held by load."));
  EXPECT_THAT(finding(report, "slow rank")->text,
              HasSubstr("it was blocked on Python's lock, held by load, in the function main (train.py:7)"));
}

// A function may explain a loss of which no cause explains half, such as an fsync, which also computes.
TEST(ReportCauses, TheFunctionOfSlowIterationsIsNamedWhereNoCauseExplainsMost) {
  const Trace trace = trace_of({.iterations = 60, .delay = [](int, int i) {
                                  const int ms = i % 10 == 9 ? 50 : 0;
                                  return Delay{.runs_ms = ms, .waits_ms = ms, .sleeps_ms = ms + ms / 5};
                                }});
  std::vector<RunAnalysis> runs;
  runs.push_back(analyse_run(RunIndex(trace), "run"));
  runs[0].causes->slow->place.reset();
  EXPECT_THAT(build_report(runs).verdict.state,
              ::testing::EndsWith(" took 960 ms longer in all; no rank is late beyond chance."));
  EXPECT_THAT(build_report(runs).verdict.change, HasSubstr("Change first: a loader that is twice as fast"));
  runs[0].causes->slow->function = {
      .function = "save", .file = "train.py", .line = 7, .innermost = "", .call_file = "", .share = 0.9};
  EXPECT_THAT(build_report(runs).verdict.state, HasSubstr(" longer in all, mostly in the function save (train.py:7)"));
  // A call is named with what was slept in it, and not with what the function computed.
  auto& slow = *runs[0].causes->slow;
  slow.function->innermost = "[fsync]";
  EXPECT_THAT(finding(build_report(runs), "slow iterations")->text,
              HasSubstr("(train.py:7), which called [fsync], and"));
  slow.parts[LossCause::computing] += slow.parts.sum();
  EXPECT_THAT(finding(build_report(runs), "slow iterations")->text, Not(HasSubstr("fsync")));
  slow.function->share = 0.4;
  EXPECT_THAT(build_report(runs).verdict.state, Not(HasSubstr("save")));
}

// Five ninths of the time are blocked, nearly all of that in one function, which is less than half of the whole.
TEST(ReportCauses, TheFunctionOfMostOfTheMainCauseIsNamed) {
  const Trace trace = trace_of({.iterations = 60, .delay = [](int, int i) {
                                  return Delay{.runs_ms = i % 10 == 9 ? 40 : 0, .sleeps_ms = i % 10 == 9 ? 50 : 0};
                                }});
  std::vector<RunAnalysis> runs;
  runs.push_back(analyse_run(RunIndex(trace), "run"));
  runs[0].causes->slow->place.reset();
  auto& function = runs[0].causes->slow->function;
  function = {
      .function = "save", .file = "train.py", .line = 7, .innermost = "[fsync]", .call_file = "", .share = 0.45};
  EXPECT_THAT(build_report(runs).verdict.state, HasSubstr(", mostly blocked in the function save (train.py:7)"));
  EXPECT_THAT(finding(build_report(runs), "slow iterations")->text,
              HasSubstr("the ranks were blocked, in the function save (train.py:7), which called [fsync]: "));
  function->share = 0.3;
  EXPECT_THAT(build_report(runs).verdict.state, Not(HasSubstr("save")));
}

// The other rank loses 30 ms for it, which is less in the mean of two ranks than the 20 ms that both lose.
TEST(ReportCauses, ALateRankComesBeforeCpusWhereItCostsAStepMore) {
  const Report report = report_of({.iterations = 60, .delay = [](int rank, int i) {
                                     return Delay{.waits_ms = 20 + i % 2, .sleeps_ms = rank == 1 ? 30 : 0};
                                   }});
  EXPECT_THAT(report.verdict.state, Not(::testing::StartsWith("Threads that had no CPU")));
  EXPECT_THAT(report.verdict.state, HasSubstr("rank 1 on alice holds the others up"));
}

// All ranks lack CPUs in each of 60 iterations, for 930 ms in all, and sleep and compute longer in six of them.
TEST(ReportCauses, SlowIterationsWithOtherCausesComeBeforeCpusWhereTheyCostMore) {
  for (const int longer_ms : {100, 20}) {
    const Report report = report_of({.iterations = 60, .delay = [longer_ms](int, int i) {
                                       const int ms = i % 10 == 9 ? longer_ms : 0;
                                       return Delay{.runs_ms = ms, .waits_ms = 15 + i % 2, .sleeps_ms = ms};
                                     }});
    const std::string cpus = "hreads that had no CPU cost a rank 930 ms";
    if (longer_ms == 100) {
      EXPECT_THAT(report.verdict.state, HasSubstr(" took 1.20 s longer in all"));
      EXPECT_THAT(report.verdict.state, HasSubstr("; t" + cpus));
      EXPECT_THAT(report.verdict.change, Not(HasSubstr("CPUs")));
    } else {
      EXPECT_THAT(report.verdict.state, ::testing::StartsWith("T" + cpus));
      EXPECT_THAT(report.verdict.change, HasSubstr("CPUs"));
    }
  }
}

// Rank 0 evaluates for 200 ms before every 20th iteration, of 100.
TEST(ReportCauses, AnEvaluationOfOneRankIsNamedWithWhatItCosts) {
  const Report report =
      report_of({.iterations = 100, .delay = [](int rank, int i) {
                   return Delay{.runs_ms = (i * 7 + rank * 3) % 3, .evaluates_ms = rank == 0 && i % 20 == 19 ? 200 : 0};
                 }});
  const Finding* alone = finding(report, "interlude");
  ASSERT_NE(alone, nullptr);
  EXPECT_THAT(alone->text, ::testing::StartsWith("Rank 0 alone evaluates (5 times), and the other rank waits "));
  EXPECT_NEAR(*alone->cost_s, 1 - 5 * 0.04, 0.02);  // rank 1 first computes for 40 ms
  EXPECT_EQ(alone->places.at(0).rank, 0U);
  EXPECT_THAT(report.verdict.state,
              HasSubstr(" late on average (5 of 90 steps), mostly computing longer in the range evaluate."));
  const Finding* slow = finding(report, "slow iterations");
  ASSERT_NE(slow, nullptr);
  EXPECT_THAT(slow->text, HasSubstr(", in the range evaluate: "));
}

// Two evaluations are too few for the test of lateness.
TEST(ReportCauses, ARareEvaluationOfOneRankIsInTheVerdict) {
  const Report report =
      report_of({.iterations = 100, .delay = [](int rank, int i) {
                   return Delay{.runs_ms = (i * 7 + rank * 3) % 3, .evaluates_ms = rank == 0 && i % 40 == 39 ? 400 : 0};
                 }});
  EXPECT_THAT(report.verdict.state, HasSubstr("; rank 0 evaluates alone, for which the other rank waits "));
}

TEST(ReportCauses, AnEvaluationOfAllRanksIsNoLoss) {
  const Report report =
      report_of({.iterations = 100, .delay = [](int, int i) { return Delay{.evaluates_ms = i % 20 == 19 ? 200 : 0}; }});
  EXPECT_EQ(finding(report, "interlude"), nullptr);
}

TEST(ReportCauses, ASoundRunIsToldNothing) {
  const Report report =
      report_of({.iterations = 60, .delay = [](int rank, int i) { return Delay{.runs_ms = (i * 7 + rank * 3) % 3}; }});
  EXPECT_EQ(finding(report, "no CPU"), nullptr);
  EXPECT_EQ(finding(report, "slow iterations"), nullptr);
  EXPECT_THAT(report.verdict.state, Not(HasSubstr("CPU")));
}

TEST(ReportCauses, TablesHaveTheCausesThatThereAre) {
  const std::string text = render_text(starved());
  EXPECT_THAT(text, HasSubstr("rank  lost in   no CPU  bytes moving    lost\n"));
  EXPECT_THAT(text, HasSubstr("iterations  against         no CPU    lost\n"));
}

// Ranks sleep in the iterations 15 to 20, collect garbage in 30, have no CPU in every 7th, and rank 1 computes longer.
TEST(ReportCauses, TheBarsOfTheIterationsAddUpToTheTablesOfCauses) {
  const RunAnalysis run = report_of({.iterations = 60,
                                     .delay =
                                         [](int rank, int i) {
                                           return Delay{.runs_ms = 4 * rank,
                                                        .waits_ms = i % 7 == 0 ? 5 : 0,
                                                        .sleeps_ms = i >= 15 && i < 21 ? 80 : 0,
                                                        .collects_ms = i == 30 ? 20 : 0};
                                         }})
                              .runs[0];
  const std::vector<Chart> charts = run_charts(run);
  const Chart* const chart = &iterations_by_cause(charts);
  EXPECT_TRUE(chart->picture);
  std::map<std::string, std::vector<double>> ms;
  for (const nlohmann::json& part : chart->data["phases"]) ms[part["name"]] = part["ms"].get<std::vector<double>>();
  // The bars are as high as the iterations are long.
  const RunIterations& it = run.iterations;
  ASSERT_EQ(chart->data["numbers"].size(), it.count);
  for (std::size_t i = 0; i < it.count; ++i) {
    double sum = 0;
    for (const auto& [name, values] : ms) sum += values[i];
    EXPECT_NEAR(sum, 1e3 * it.seconds[i], 0.01) << i;
  }
  // "Why time was lost", mean over the ranks. Own computation is not lost.
  const LossParts lost = run.causes->mean();
  const auto total = [&](const char* name) { return std::reduce(ms[name].begin(), ms[name].end()); };
  EXPECT_NEAR(total("no CPU"), 1e-6 * lost[LossCause::no_cpu], 0.1);
  EXPECT_NEAR(total("bytes moving"), 1e-6 * lost[LossCause::moving_bytes], 0.1);
  EXPECT_NEAR(total("computing longer"), 1e-6 * lost[LossCause::computing], 0.1);
  EXPECT_GT(lost[LossCause::no_cpu], 0);
  EXPECT_NEAR(total("computing longer"), 60 * 4 / 2, 0.1);
  EXPECT_NEAR(total("garbage collection"), 20, 0.1);
  // "Why iterations took longer": the bars of 15 to 20 above the mean of the others after the warm-up of 6.
  ASSERT_TRUE(run.causes->slow);
  ASSERT_EQ(run.causes->slow->numbers, (std::vector<std::int64_t>{15, 16, 17, 18, 19, 20}));
  LossParts slow, usual;
  for (const auto& [name, values] : ms) {
    std::size_t cause = 0;
    while (name != "computing longer" && name != cause_name(static_cast<LossCause>(cause))) ++cause;
    if (name == "computing longer") cause = static_cast<std::size_t>(LossCause::computing);
    for (std::size_t i = 6; i < 60; ++i) {
      const bool is_slow = i >= 15 && i < 21;
      (is_slow ? slow : usual).ns[cause] += 1e6 * values[i] / (is_slow ? 6 : 48);
    }
  }
  const LossParts& table = run.causes->slow->parts;
  const LossParts longer = excess_parts(slow, usual, slow.sum() - usual.sum());
  for (std::size_t i = 0; i < loss_cause_count; ++i) EXPECT_NEAR(6e-6 * longer.ns[i], 1e-6 * table.ns[i], 0.1) << i;
  EXPECT_GT(table[LossCause::blocked], 0.9 * table.sum());
}

TEST(ReportCauses, SlowIterationsOfOneRankNameIt) {
  const Report report =
      report_of({.iterations = 60, .delay = [](int rank, int i) {
                   return Delay{.runs_ms = (i * 7 + rank * 3) % 3, .sleeps_ms = rank == 1 && i % 15 == 14 ? 200 : 0};
                 }});
  EXPECT_THAT(report.verdict.state, HasSubstr("longer in all, mostly blocked in the range preprocess on rank 1"));
  const Finding* slow = finding(report, "slow iterations");
  ASSERT_NE(slow, nullptr);
  EXPECT_THAT(slow->text, HasSubstr(" of that rank 1 was blocked"));
  EXPECT_EQ(Json::parse(render_json(report))["runs"][0]["causes"]["slow_iterations"]["rank"], 1);
}

TEST(ReportCauses, JsonHasTheParts) {
  const Json json = Json::parse(render_json(starved()));
  const Json& run = json["runs"][0];
  EXPECT_EQ(run["causes"]["main"], "no_cpu");
  EXPECT_EQ(run["causes"]["exact"], true);
  EXPECT_EQ(run["causes"]["slow_iterations"]["iterations"], Json::array({15, 16, 17, 18, 19, 20}));
  EXPECT_EQ(run["per_rank"][0]["causes"]["transfer_ns"]["no_cpu"], 1'140'000'000);
  EXPECT_EQ(run["per_rank"][0]["causes"]["transfer_ns"]["moving_bytes"], 600'000'000);
}

}  // namespace
}  // namespace paceline::analysis
