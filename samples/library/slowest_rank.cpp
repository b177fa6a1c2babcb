// SPDX-License-Identifier: Apache-2.0
// Prints the rank that the other ranks of a run waited for longest.
// usage: slowest_rank RUN
#include <algorithm>
#include <cstdio>
#include <exception>

#include "analysis/load/load.h"
#include "analysis/run/run_analysis.h"

int main(int argc, char** argv) {
  using namespace paceline::analysis;
  if (argc != 2) {
    std::fprintf(stderr, "usage: slowest_rank RUN\n");
    return 2;
  }
  try {
    const RunAnalysis run = analyse_run(load_run(argv[1]), argv[1]);
    const auto slowest = std::ranges::max_element(run.waits, {}, &RankWaits::caused_ns);
    if (slowest == run.waits.end() || slowest->caused_ns == 0) {
      std::printf("%s: no rank waited for another one\n", argv[1]);
      return 0;
    }
    const RankSummary& rank = run.per_rank[static_cast<std::size_t>(slowest - run.waits.begin())];
    std::printf("%s: the slowest rank is %d: it came last to %llu collectives, and the others waited %.3f s for it\n",
                argv[1], rank.rank, static_cast<unsigned long long>(slowest->last_count),
                static_cast<double>(slowest->caused_ns) * 1e-9);
    return 0;
  } catch (const std::exception& error) {  // the message names the file and the remedy
    std::fprintf(stderr, "slowest_rank: %s\n", error.what());
    return 1;
  }
}
