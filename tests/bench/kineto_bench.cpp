// SPDX-License-Identifier: Apache-2.0
// Measures how fast Kineto's JSON is read into the model, beside simdjson's bare parse of the same bytes.
//
// usage: kineto_bench [--benchmark_…] [FILE]       FILE: a JSON file, measured as well
//        kineto_bench --write DIRECTORY RANKS EVENTS       writes the traces for hta_figures.py
#include <benchmark/benchmark.h>
#include <simdjson.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <iostream>
#include <string>

#include "analysis/load/load.h"
#include "tests/bench/kineto_events.h"

namespace paceline::kineto_bench {
namespace {

namespace fs = std::filesystem;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double memory_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return 1024 * std::stod(line.substr(key.size()));
  }
  return 0;
}

std::uint64_t bytes_of(const fs::path& run) {
  if (!fs::is_directory(run)) return fs::file_size(run);
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(run)) bytes += entry.file_size();
  return bytes;
}

void report(benchmark::State& state, std::uint64_t bytes, double cpu) {
  const double all = static_cast<double>(bytes) * static_cast<double>(state.iterations());
  state.counters["MB/s"] = benchmark::Counter(all / 1e6, benchmark::Counter::kIsRate);
  state.counters["MB/s_of_a_core"] = all / 1e6 / cpu;
}

void load(benchmark::State& state, const fs::path& run) {
  double cpu = 0, peak = 0;
  std::uint64_t slices = 0;
  for (auto _ : state) {
    const double cpu_before = cpu_seconds();
    std::ofstream("/proc/self/clear_refs") << 5;
    const double before = memory_bytes("VmRSS:");
    analysis::Trace trace = analysis::load_run(run);
    cpu += cpu_seconds() - cpu_before;
    state.PauseTiming();
    peak = memory_bytes("VmHWM:") - before;
    slices = 0;
    for (const auto& rank : trace.ranks) {
      for (const auto& track : rank.tracks) slices += track.slices.size();
    }
    trace = {};
    state.ResumeTiming();
  }
  report(state, bytes_of(run), cpu);
  state.counters["slices"] = static_cast<double>(slices);
  state.counters["peak_MiB"] = peak / (1 << 20);
}

// simdjson's own tree of the whole file, which is read before.
void parse(benchmark::State& state, const fs::path& file) {
  const simdjson::padded_string text = simdjson::padded_string::load(file.string());
  double cpu = 0;
  simdjson::dom::parser parser;
  for (auto _ : state) {
    const double cpu_before = cpu_seconds();
    simdjson::dom::element root;
    if (parser.parse(text).get(root) != simdjson::SUCCESS) state.SkipWithError("simdjson does not parse it");
    benchmark::DoNotOptimize(root);
    cpu += cpu_seconds() - cpu_before;
  }
  report(state, text.size(), cpu);
}

int run(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "--write") {
    fs::create_directories(argv[2]);
    const int ranks = std::stoi(argv[3]);
    for (int rank = 0; rank < ranks; ++rank) {
      kineto_events::write(fs::path(argv[2]) / ("rank-" + std::to_string(rank) + ".json"), rank, ranks,
                           std::stoi(argv[4]));
    }
    return 0;
  }
  benchmark::Initialize(&argc, argv);
  const fs::path directory = fs::temp_directory_path() / ("paceline-kineto-bench-" + std::to_string(::getpid()));
  fs::create_directories(directory);
  const fs::path file = directory / "rank-0.json";
  kineto_events::write(file, 0, 8, 500'000);
  const auto add = [](const char* name, auto* function, const fs::path& path) {
    benchmark::RegisterBenchmark(name, function, path)->Unit(benchmark::kMillisecond)->UseRealTime();
  };
  add("simdjson", parse, file);
  add("load", load, file);
  if (argc == 2) add("load/file", load, argv[1]);
  benchmark::RunSpecifiedBenchmarks();
  fs::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace paceline::kineto_bench

int main(int argc, char** argv) {
  try {
    return paceline::kineto_bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "kineto_bench: " << error.what() << '\n';
    return 1;
  }
}
