// SPDX-License-Identifier: Apache-2.0
// Writes the .pace files of a simulated run, for pictures, for trying the viewer and for viewer_bench.
//
// usage: make_viewer_run DIRECTORY [RANKS [HOSTS [ITERATIONS [HELPERS [STATES]]]]]
//
// With at least 9 ranks one of them is slow, and one iteration takes twice as long. HELPERS is the number of threads
// that each rank has beside its main thread and its loader; each of them is a row of the timeline. An iteration has
// about 122 slices on each rank, and 2 more for each helper. STATES is how long each thread runs, waits for a CPU and
// is blocked in turn, in ms; with it, each main thread also has a sample of its stack every 10 ms.
#include <cstdlib>
#include <iostream>

#include "tests/unit/analysis/rank_file.h"
#include "tests/unit/viewer/simulated_run.h"

int main(int argc, char** argv) {
  if (argc < 2 || argc > 7) {
    std::cerr << "usage: make_viewer_run DIRECTORY [RANKS [HOSTS [ITERATIONS [HELPERS [STATES]]]]]\n";
    return 2;
  }
  const auto number = [&](int at, int otherwise) { return argc > at ? std::atoi(argv[at]) : otherwise; };
  const int ranks = number(2, 64), iterations = number(4, 40);
  const bool many = ranks >= 9;
  const paceline::viewer::SimulatedRun what{.ranks = ranks,
                                            .iterations = iterations,
                                            .hosts = number(3, many ? ranks / 8 : 1),
                                            .slow_rank = many ? ranks * 37 / 64 : 1,
                                            .slowness = many ? 1.3 : 1.08,
                                            .slow_iteration = iterations * 23 / 40,
                                            .helper_threads = number(5, 0),
                                            .switch_ns = std::int64_t{1'000'000} * number(6, 0)};
  try {
    paceline::analysis::Trace trace = paceline::viewer::simulate(what);
    trace.ranks.front().clock_error_ns = 1'900;  // of every host's UTC, which the files hold
    constexpr std::int64_t period_ns = 10'000'000;
    const auto function_at = [](int, std::int64_t time_ns) {
      return time_ns / period_ns % 7 % 3 == 0 ? "load" : "compute";
    };
    if (what.switch_ns > 0) paceline::viewer::add_samples(trace, period_ns, function_at);
    paceline::analysis::write_run(trace, argv[1]);
  } catch (const std::exception& error) {
    std::cerr << "make_viewer_run: " << error.what() << '\n';
    return 1;
  }
}
