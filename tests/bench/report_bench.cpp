// SPDX-License-Identifier: Apache-2.0
// How long the parts of `paceline report` take: loading, the analysis of the run, the report about it, its renderings.
// usage: report_bench RUN        for example: make_viewer_run RUN 8 1 8200, 8 ranks of one million slices each
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <exception>

#include "analysis/load/load.h"
#include "analysis/report/build.h"
#include "analysis/report/render.h"

using namespace paceline::analysis;

namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// Prints the time of the work and returns its result.
template <class Work>
auto measured(const char* what, Work&& work) {
  const double cpu = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  auto result = work();
  std::printf("%-10s %6.2f s, %6.2f s of CPU time\n", what,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), cpu_seconds() - cpu);
  return result;
}

void measure(const char* path) {
  const Trace trace = measured("load", [&] { return load_run(path); });
  RunAnalysis run = measured("analysis", [&] { return analyse_run(trace, path); });
  const Report report = measured("report", [&] { return build_report({std::move(run)}); });
  std::size_t bytes = measured("html", [&] { return render_html(report); }).size();
  bytes += measured("text", [&] { return render_text(report); }).size();
  bytes += measured("json", [&] { return render_json(report); }).size();
  std::printf("%zu ranks, %.2f s of CPU time in all, %.1f MB written\n", trace.ranks.size(), cpu_seconds(),
              1e-6 * static_cast<double>(bytes));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: report_bench RUN\n");
    return 2;
  }
  try {
    measure(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "report_bench: %s\n", error.what());
    return 1;
  }
}
