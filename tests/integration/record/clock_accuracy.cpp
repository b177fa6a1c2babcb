// SPDX-License-Identifier: Apache-2.0
// The accuracy of the alignment of four ranks' clocks: clock_accuracy RUNS [--limit-us X]
//
// Rank 3 pretends to a clock of its own, 5 ms ahead and 50 ppm fast. The program that is recorded (clock_marks.c) tells
// with each mark what the machine's one counter really showed. Rank 0 keeps the reference clock; the other ranks' marks
// must lie where its line through (counter, ns) says, within the error bound that is printed for them, and within X µs.
// Run by itself all ranks are on one machine; by two_nodes.sh on two, with a third clock.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/load/load.h"

namespace {

using namespace paceline::analysis;

struct Mark {
  double counter = 0, took = 0, ns = 0;
};

std::vector<Mark> marks_of(const Trace& trace, const Rank& rank) {
  const Track* track = main_track(rank);
  std::vector<Mark> marks;
  if (track == nullptr) return marks;
  const NameId payload = trace.names.find("payload"), counter = trace.names.find("true");
  for (std::size_t i = 0; i + 1 < track->marks.size(); ++i) {
    if (trace.kind_of(track->marks, i).name != counter) continue;
    const auto mark = static_cast<std::uint32_t>(i);
    const double before = track->marks.number(mark, payload).value_or(0);
    const double took = track->marks.number(mark + 1, payload).value_or(0);
    marks.push_back({before + took / 2, took, static_cast<double>(track->marks.start_ns[i])});
  }
  return marks;
}

// The least-squares line ns = at + slope × (counter − from).
struct Line {
  double from = 0, at = 0, slope = 0;
  double operator()(double counter) const { return at + slope * (counter - from); }
};
Line line_through(const std::vector<Mark>& marks) {
  Line line;
  for (const Mark& mark : marks) {
    line.from += mark.counter / static_cast<double>(marks.size());
    line.at += mark.ns / static_cast<double>(marks.size());
  }
  double xx = 0, xy = 0;
  for (const Mark& mark : marks) {
    xx += (mark.counter - line.from) * (mark.counter - line.from);
    xy += (mark.counter - line.from) * (mark.ns - line.at);
  }
  line.slope = xy / xx;
  return line;
}

struct Outcome {
  double worst_ns = 0, bound_ns = 0;   // of the ranks whose clocks are corrected
  double worst_at_s = 0, until_s = 0;  // when that was, and when the last mark of its rank
  std::size_t marks = 0;
  bool within_bound = true;
  std::string failure;
};

// A mark was made while it took, and is taken to be in the middle. One that took longer was interrupted: its time is
// not known well enough. So much is the test's own error, half of it in the line of rank 0.
constexpr double longest_mark_ns = 500;

Outcome judge(const Trace& trace) {
  Outcome outcome;
  if (trace.ranks.size() != 4) return {.failure = fmt::format("{} ranks instead of 4", trace.ranks.size())};
  std::vector<std::vector<Mark>> marks;
  for (const Rank& rank : trace.ranks) marks.push_back(marks_of(trace, rank));
  if (marks[0].size() < 2) return {.failure = "rank 0 has no marks"};
  const double slope = line_through(marks[0]).slope;
  for (std::vector<Mark>& of_rank : marks) {
    std::erase_if(of_rank, [&](const Mark& mark) { return mark.took * slope > longest_mark_ns; });
    if (of_rank.size() < 10) return {.failure = "a rank has fewer than 10 marks that were not interrupted"};
  }
  const Line truth = line_through(marks[0]);
  for (std::size_t r = 1; r < 4; ++r) {
    const Rank& rank = trace.ranks[r];
    if (rank.clock_source == "utc") outcome.failure = fmt::format("rank {} is aligned by UTC", r);
    outcome.bound_ns = std::max(outcome.bound_ns, rank.clock_error_ns);
    outcome.marks += marks[r].size();
    for (const Mark& mark : marks[r]) {
      const double error = std::abs(mark.ns - truth(mark.counter));
      if (error > outcome.worst_ns) {
        outcome.worst_ns = error;
        outcome.worst_at_s = mark.ns * 1e-9;
        outcome.until_s = marks[r].back().ns * 1e-9;
      }
      if (error > rank.clock_error_ns + longest_mark_ns) outcome.within_bound = false;
    }
  }
  return outcome;
}

Outcome run_once(const std::filesystem::path& directory) {
  std::filesystem::remove_all(directory);
  const std::string recorded = fmt::format(
      "env PACELINE_OUTPUT={} PACELINE_JOB=accuracy NVTX_INJECTION64_PATH={} LD_PRELOAD={} "
      "PACELINE_CLOCK_INTERVAL=0.1",
      directory.string(), RECORDER, RECORDER);
  const std::string command =
      fmt::format("timeout 60 " MPIRUN " --bind-to none -n 3 {0} " PROGRAM
                  " 0.3 : -n 1 {0} "
                  "PACELINE_TEST_CLOCK=domain=other,skew_ns=5000000,drift_ppm=50 " PROGRAM " 0.3 </dev/null",
                  recorded);
  const int status = std::system(command.c_str());
  if (status != 0) return {.failure = fmt::format("mpirun ended with status {}", status)};
  try {
    return judge(load_run(directory));
  } catch (const std::exception& error) {
    return {.failure = error.what()};
  }
}

}  // namespace

int main(int count, char** arguments) {
  const int runs = count > 1 ? std::atoi(arguments[1]) : 3;
  const bool limited = count > 3 && std::string_view(arguments[2]) == "--limit-us";
  const double limit_ns = limited ? 1e3 * std::atof(arguments[3]) : 0;
  for (const char* variable :
       {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"}) {
    setenv(variable, "1", 1);
  }
  char place[] = "/tmp/paceline-accuracy-XXXXXX";
  if (mkdtemp(place) == nullptr) return 1;
  int held = 0;
  std::size_t marks = 0;
  std::vector<double> worst, bounds;
  for (int run = 0; run < runs; ++run) {
    const Outcome outcome = run_once(std::filesystem::path(place) / "run");
    const bool good = outcome.failure.empty() && outcome.within_bound && (!limited || outcome.worst_ns <= limit_ns);
    if (good) ++held;
    if (!good) {
      fmt::print("run {} did not hold: {}\n", run,
                 !outcome.failure.empty() ? outcome.failure
                                          : fmt::format("worst error {:.2f} µs at {:.2f} s of {:.2f}, bound {:.2f} µs",
                                                        outcome.worst_ns * 1e-3, outcome.worst_at_s, outcome.until_s,
                                                        outcome.bound_ns * 1e-3));
    }
    if (!outcome.failure.empty()) continue;
    worst.push_back(outcome.worst_ns * 1e-3);
    bounds.push_back(outcome.bound_ns * 1e-3);
    marks += outcome.marks;
  }
  std::filesystem::remove_all(place);
  std::ranges::sort(worst);
  std::ranges::sort(bounds);
  if (!worst.empty()) {
    fmt::print("error, worst of each run's marks: median {:.2f} µs, worst {:.2f} µs ({} marks in all)\n",
               worst[worst.size() / 2], worst.back(), marks);
    fmt::print("printed bound: median {:.2f} µs, least {:.2f} µs, most {:.2f} µs\n", bounds[bounds.size() / 2],
               bounds.front(), bounds.back());
  }
  fmt::print("{} of {} runs held their bound{}\n", held, runs,
             limited ? fmt::format(" and {:.1f} µs", limit_ns * 1e-3) : "");
  return held == runs && runs > 0 ? 0 : 1;
}
