// SPDX-License-Identifier: Apache-2.0
// Thread states of real programs, compared with what the system counted for their threads.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "analysis/load/load.h"
#include "analysis/report/build.h"
#include "analysis/statistics/counters.h"
#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using analysis::CpuTimes;
using analysis::Rank;
using analysis::Track;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double millisecond = 1e6;

struct Counted {
  double running_ns = 0, waiting_ns = 0;
};

class RecordScheduler : public RecordTest {
 protected:
  analysis::Trace load() const { return analysis::load_run(directory / "run"); }
  std::string only_one_cpu() const {
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &allowed)) ++cpu;
    return fmt::format("taskset -c {} ", cpu);
  }
};

// The lines of the program; of parts with one name, the first.
std::map<std::string, Counted> counted(const std::string& out) {
  std::map<std::string, Counted> parts;
  std::istringstream lines(out);
  std::string name;
  Counted of;
  while (lines >> name >> of.running_ns >> of.waiting_ns) parts.emplace(name, of);
  return parts;
}

// The thread's times within a range of the track.
CpuTimes times_in(const analysis::Trace& trace, const Track& track, const std::string& range) {
  for (std::size_t i = 0; i < track.slices.size(); ++i) {
    if (trace.name_of(track.slices, i) == range) {
      return cpu_times(track.states, track.slices.start_ns[i], track.slices.end_ns(i));
    }
  }
  ADD_FAILURE() << "no range " << range;
  return {};
}

const Track& main_of(const Rank& rank) {
  const Track* track = analysis::main_track(rank);
  if (track == nullptr) throw std::runtime_error("no main thread");
  return *track;
}

void expect_near(const CpuTimes& times, const Counted& system, double tolerance_ns) {
  EXPECT_NEAR(times.running_ns, system.running_ns, tolerance_ns + 0.02 * system.running_ns);
  EXPECT_NEAR(times.waiting_ns, system.waiting_ns, tolerance_ns + 0.02 * system.waiting_ns);
}

// A machine may refuse the switches. Then the sums are what there is.
bool has_switches(const RecordedFile& file) { return file.setting("scheduler") == "switches"; }

TEST_F(RecordScheduler, EachSwitchIsRecordedAndTheSumsAreTheSystems) {
  // Without the yields, which on a busy machine are more switches than the recorder records. The second spin
  // separates the sleep from the waits of the recorder's own end.
  const Ended ended = run(recorded() + SCHEDULED " naps spin sleep spin");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  if (!has_switches(only_file())) GTEST_SKIP() << only_file().setting("scheduler");
  const analysis::Trace trace = load();
  const Track& main = main_of(trace.ranks.at(0));
  EXPECT_TRUE(main.states.exact);
  auto system = counted(ended.out);
  ASSERT_EQ(system.size(), 3u);
  // Whoever computes and does not run has no CPU, also where the host of a virtual machine took it, which the system
  // does not count as a wait.
  const CpuTimes spin = times_in(trace, main, "spin");
  EXPECT_GE(spin.known_ns, 400 * millisecond);
  system.at("spin").waiting_ns = spin.known_ns - system.at("spin").running_ns;
  // The thread's first milliseconds are over before the recorder finds it.
  for (const char* part : {"spin", "sleep"}) {
    SCOPED_TRACE(part);
    expect_near(times_in(trace, main, part), system.at(part), 2 * millisecond);
  }
  EXPECT_LT(spin.blocked_ns, 5 * millisecond);
  EXPECT_GT(times_in(trace, main, "sleep").blocked_ns, 250 * millisecond);
}

TEST_F(RecordScheduler, SumsAloneHaveTheAccuracyOfTheirReadings) {
  const Ended ended = run(recorded("PACELINE_SCHEDULER=sums") + SCHEDULED " naps spin sleep yields");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(only_file().setting("scheduler"), "sums: asked for");
  EXPECT_EQ(ended.recorder_lines(), 0);
  const analysis::Trace trace = load();
  const Track& main = main_of(trace.ranks.at(0));
  EXPECT_FALSE(main.states.exact);
  const auto system = counted(ended.out);
  // At both ends of a range the place in the stretch between two readings is not known.
  double longest_ns = 0;
  for (std::size_t i = 1; i < main.states.size(); ++i) {
    longest_ns = std::max(longest_ns, static_cast<double>(main.states.time_ns[i] - main.states.time_ns[i - 1]));
  }
  for (const char* part : {"spin", "sleep", "yields"}) {
    SCOPED_TRACE(part);
    expect_near(times_in(trace, main, part), system.at(part), std::max(2 * longest_ns, 40 * millisecond));
  }
  const auto& states = main.states;
  const CpuTimes all = cpu_times(states, states.time_ns.front(), states.time_ns.back());
  double running = 0;
  for (const auto& [part, of] : system) running += of.running_ns;
  EXPECT_GE(all.running_ns, running - system.at("naps").running_ns - 2 * millisecond);
}

// The drain reads seldom while a thread sleeps. The iteration's own readings say what was in it.
TEST_F(RecordScheduler, TheSumsOfAnIterationAreItsOwn) {
  const Ended ended = run(recorded("PACELINE_SCHEDULER=sums") + SCHEDULED " naps sleep iteration sleep");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  const analysis::Trace trace = load();
  const Track& main = main_of(trace.ranks.at(0));
  expect_near(times_in(trace, main, "iteration"), counted(ended.out).at("iteration"), 10 * millisecond);
}

TEST_F(RecordScheduler, TwoProgramsOnOneCpuWaitForIt) {
  const std::string busy = SCHEDULED " naps spin spin spin";
  const Ended ended = run(only_one_cpu() + recorded() + busy + " & " + only_one_cpu() + busy + " > other; wait");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  const analysis::Trace trace = load();
  const Track& main = main_of(trace.ranks.at(0));
  const auto& times = main.states.time_ns;
  ASSERT_FALSE(times.empty());
  double spun = 0, waited = 0;
  for (std::size_t i = 0; i < main.slices.size(); ++i) {
    if (trace.name_of(main.slices, i) != "spin") continue;
    const CpuTimes of = cpu_times(main.states, main.slices.start_ns[i], main.slices.end_ns(i));
    spun += of.known_ns;
    waited += of.waiting_ns;
  }
  // One half, and more where further programs use the CPU.
  EXPECT_GT(waited / spun, 0.35);
}

// Copies of the shell compute all the time, in sessions of their own, and where the system allows it before all other
// programs of a busy machine: one on the program's CPU, and one on another CPU, which takes nothing from the program.
TEST_F(RecordScheduler, TheProgramThatTookTheCpuIsNamed) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int another = CPU_SETSIZE - 1;
  while (!CPU_ISSET(another, &allowed)) --another;
  const auto script = [&](const std::string& name, const std::string& on_cpu) {
    std::ofstream(directory / (name + ".sh"))
        << "cp $(command -v sh) " << name << "\necho -10 > /proc/self/autogroup\nexec nice -n -10 " << on_cpu
        << "timeout 50 ./" << name << " -c 'while :; do :; done'\n";
    return "setsid sh " + name + ".sh 2>" + name + ".txt & ";
  };
  const bool has_another = CPU_COUNT(&allowed) > 1;
  std::string command = script("hungry", only_one_cpu()) + "hungry=$!; ";
  if (has_another) command += script("elsewhere", fmt::format("taskset -c {} ", another)) + "elsewhere=$!; ";
  command += only_one_cpu() + recorded() + SCHEDULED + " naps";
  for (int i = 0; i < 12; ++i) command += " iteration";
  const Ended ended = run(command + "; kill $hungry $elsewhere");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  const analysis::Trace trace = load();
  EXPECT_EQ(analysis::find_counter(trace.ranks.at(0), "CPUs used by another program", "elsewhere"), nullptr);
  const auto report = analysis::build_report({analysis::analyse_run(trace, "run")});
  EXPECT_THAT(report.verdict.state, StartsWith("Threads that had no CPU cost a rank "));
  EXPECT_THAT(report.verdict.state, HasSubstr("while the program hungry used "));
  EXPECT_THAT(report.verdict.change, HasSubstr("CPUs that hungry does not use"));
}

// A process of the job computes on the same CPU, and one that its environment shows as a stranger.
TEST_F(RecordScheduler, AProcessOfTheJobIsNoOtherProgram) {
  std::ofstream(directory / "job.sh") << "for name in sibling stranger; do cp $(command -v sh) $name; done\n"
                                         "./sibling -c 'while :; do :; done' & a=$!\n"
                                         "env -u PACELINE_OUTPUT ./stranger -c 'while :; do :; done' & b=$!\n"
                                      << SCHEDULED
                                      << " naps iteration iteration iteration iteration iteration iteration\n"
                                      << "status=$?; kill $a $b; exit $status\n";
  const Ended ended = run(only_one_cpu() + recorded() + "timeout 50 sh job.sh");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  const analysis::Trace trace = load();
  EXPECT_EQ(analysis::find_counter(trace.ranks.at(0), "CPUs used by another program", "sibling"), nullptr);
  EXPECT_NE(analysis::find_counter(trace.ranks.at(0), "CPUs used by another program", "stranger"), nullptr);
}

TEST_F(RecordScheduler, ThreadsComeAndGo) {
  const Ended ended = run(recorded() + SCHEDULED " naps threads");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.recorder_lines(), 0) << ended.err;
  const RecordedFile file = only_file();
  const analysis::Trace trace = load();
  std::size_t with_states = 0;
  for (const Track& track : trace.ranks.at(0).tracks) {
    if (track.kind != analysis::TrackKind::thread || track.main || track.states.empty()) continue;
    ++with_states;
    EXPECT_EQ(track.slices.size(), 0u) << track.label;
    const CpuTimes all = cpu_times(track.states, track.states.time_ns.front(), track.states.time_ns.back());
    EXPECT_LT(all.running_ns, 0.9 * all.known_ns) << track.label;
  }
  // A number may be given again, and a thread may end before it is seen.
  EXPECT_GE(with_states, 60u);
  EXPECT_LE(with_states, 100u);
}

TEST_F(RecordScheduler, AForkedChildAndTheNextProgramHaveStatesOfTheirOwn) {
  const Ended ended = run(recorded() + SCHEDULED " naps fork exec");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  const auto all = files();
  ASSERT_EQ(all.size(), 3u);
  for (const RecordedFile& file : all) EXPECT_FALSE(file.setting("scheduler").empty());
  const analysis::Trace trace = load();
  std::size_t with_naps = 0;
  for (const Track& track : trace.ranks.at(0).tracks) {
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      if (trace.name_of(track.slices, i) != "naps") continue;
      ++with_naps;
      // The first moments of a process are not known.
      const CpuTimes times = cpu_times(track.states, track.slices.start_ns[i], track.slices.end_ns(i));
      EXPECT_GT(times.running_ns, 50 * millisecond);
      EXPECT_GT(times.blocked_ns, 100 * millisecond);
    }
  }
  EXPECT_EQ(with_naps, 3u);
}

TEST_F(RecordScheduler, ManySwitchesAreRecordedAsSums) {
  const Ended ended = run(recorded() + SCHEDULED " naps pipe sleep");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  if (!has_switches(only_file())) GTEST_SKIP() << only_file().setting("scheduler");
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("switch more than 2000 times a second"));
  const analysis::Trace trace = load();
  const Track& main = main_of(trace.ranks.at(0));
  EXPECT_FALSE(main.states.exact);
  const auto system = counted(ended.out);
  expect_near(times_in(trace, main, "pipe"), system.at("pipe"), 100 * millisecond);
  EXPECT_GT(times_in(trace, main, "sleep").blocked_ns, 200 * millisecond);
}

TEST_F(RecordScheduler, ManySwitchesOfOtherThreadsLeaveTheMainThreadsOwn) {
  const Ended ended = run(recorded() + SCHEDULED " talkers naps sleep");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  if (!has_switches(only_file())) GTEST_SKIP() << only_file().setting("scheduler");
  EXPECT_THAT(ended.err, HasSubstr("recorded as sums, without each switch but the main thread's"));
  const analysis::Trace trace = load();
  const Track& main = main_of(trace.ranks.at(0));
  EXPECT_TRUE(main.states.exact);
  std::size_t inexact = 0;
  for (const Track& track : trace.ranks.at(0).tracks) inexact += track.states.empty() || track.states.exact ? 0 : 1;
  EXPECT_EQ(inexact, 2u);
  expect_near(times_in(trace, main, "naps"), counted(ended.out).at("naps"), 20 * millisecond);
  EXPECT_GT(times_in(trace, main, "sleep").blocked_ns, 290 * millisecond);
}

// The filter ends a program that makes a system call which it does not list.
TEST_F(RecordScheduler, UnderASeccompFilterTheSumsAreRead) {
  if (std::string(DENIED).empty()) GTEST_SKIP() << "no libseccomp";
  const Ended ended = run(recorded() + DENIED " KILL " SCHEDULED " naps spin sleep");
  if (ended.by_itself(77)) GTEST_SKIP() << ended.err;
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_THAT(only_file().setting("scheduler"), StartsWith("sums: a seccomp filter"));
  EXPECT_EQ(ended.recorder_lines(), 1) << ended.err;
  const analysis::Trace trace = load();
  const auto system = counted(ended.out);
  expect_near(times_in(trace, main_of(trace.ranks.at(0)), "spin"), system.at("spin"), 100 * millisecond);
}

TEST_F(RecordScheduler, IsOffOnDemand) {
  const Ended ended = run(recorded("PACELINE_SCHEDULER=0") + SCHEDULED " naps");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(only_file().setting("scheduler"), "");
  EXPECT_TRUE(main_of(load().ranks.at(0)).states.empty());
}

}  // namespace
}  // namespace paceline::test
