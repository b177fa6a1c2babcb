// SPDX-License-Identifier: Apache-2.0
// How long the dependency graph, the critical path and the predictions of a large run take.
// usage: graph_bench [RANKS] [SLICES of each rank]        default: 8 1000000
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "analysis/graph/critical_path.h"
#include "analysis/graph/what_if.h"
#include "analysis/trace/builder.h"
#include "analysis/trace/parallel.h"

using namespace paceline::analysis;

namespace {

// Iterations of 100 layers forward and backward, and 4 allreduces; the ranks take turns at being the slowest.
void add_rank(RankBuilder& rank, int number, int slices) {
  TrackBuilder& main = rank.add_main_thread();
  const std::string trainer = "paceline.trainer";
  std::vector<KindId> layers;
  for (int i = 0; i < 100; ++i) layers.push_back(rank.kind("layer" + std::to_string(i), trainer, "layer"));
  std::int64_t now = 0;
  int sequence = 0, made = 0;
  for (int iteration = 0; made < slices; ++iteration) {
    main.push(now, "iteration", trainer, "iteration");
    main.argument("payload", iteration);
    const std::int64_t slower = iteration % 8 == number ? 10'000 : 0;
    for (const char* phase : {"forward", "backward"}) {
      main.push(now, phase, trainer, phase);
      for (const KindId layer : layers) {
        main.add_slice(now, now + 1000 + slower / 100, layer);
        now += 1000 + slower / 100;
      }
      main.pop(now);
    }
    const std::int64_t end = 200'000L + 20'000 + 5'000 + iteration * 250'000L;
    for (int k = 0; k < 4; ++k) {
      const std::int64_t until = end + (k + 1) * 1000;
      main.add_slice(now, until, "MPI_Allreduce", "mpi", "collective");
      main.argument("bytes", 1e6);
      main.text_argument("communicator", "MPI_COMM_WORLD");
      main.argument("sequence", sequence++);
      now = until;
    }
    now = (iteration + 1) * 250'000L;
    main.pop(now);
    made += 207;
  }
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
}

template <class Work>
void measure(const char* what, Work&& work) {
  const double cpu = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  work();
  std::printf("%-18s %6.2f s, %6.2f s of CPU time\n", what,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), cpu_seconds() - cpu);
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 8, slices = argc > 2 ? std::atoi(argv[2]) : 1'000'000;
  TraceBuilder run;
  std::vector<RankBuilder*> builders;
  for (int r = 0; r < ranks; ++r) builders.push_back(&run.add_rank(r, ranks));
  parallel_for(builders.size(), [&](std::size_t r) { add_rank(*builders[r], static_cast<int>(r), slices); });
  const Trace trace = run.finish();
  const RunIndex index(trace);
  DependencyGraph graph;
  measure("dependency graph", [&] { graph = dependency_graph(index); });
  measure("critical path", [&] {
    const auto path = critical_path(index, graph);
    if (!path || path->phase_ns(Phase::forward) == 0) std::exit(1);
  });
  measure("all predictions", [&] {
    const Predictor predictor(index, graph, {});
    if (all_predictions(predictor).predictions.empty()) std::exit(1);
  });
}
