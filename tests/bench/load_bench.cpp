// SPDX-License-Identifier: Apache-2.0
// Measures how fast .pace files are decoded and built into the model, and how much memory a slice needs. Each load
// stands beside a bare decompression and decoding of the same blocks.
//
// usage: load_bench [--benchmark_…] [TRACE]       TRACE: a directory of rank files or one file, measured as well
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "analysis/load/load.h"
#include "profiler/format/events.h"
#include "profiler/format/mpi_functions.h"
#include "profiler/format/trace_file_reader.h"
#include "profiler/format/writer.h"

namespace paceline::load_bench {
namespace {

namespace fs = std::filesystem;
namespace events = format::events;
using format::MpiId;

constexpr int slices_of_a_rank = 1'000'000;

class TemporaryDirectory {
 public:
  TemporaryDirectory() { fs::create_directories(path); }
  ~TemporaryDirectory() { fs::remove_all(path); }
  const fs::path path = fs::temp_directory_path() / ("paceline-load-bench-" + std::to_string(::getpid()));
};

template <class Event>
void add(format::TraceWriter& writer, std::uint64_t ticks, const Event& event) {
  const auto slots = format::pack(ticks, event);
  if constexpr (slots.size() == 1) {
    writer.add(0, ticks, Event::type, slots[0].low);
  } else {
    writer.add(0, ticks, Event::type, slots[0].low, {slots[1]});
  }
}

// Ranges of some 100 ns, two levels deep, with 16 names.
void add_ranges(format::TraceWriter& writer, int slices) {
  std::uint64_t scopes[16];
  for (int i = 0; i < 16; ++i) scopes[i] = writer.scope("range " + std::to_string(i), "bench");
  const events::Pop pop{writer.domain("bench")};
  std::uint64_t ticks = 1000;
  for (int i = 0; i < slices; i += 4) {
    add(writer, ticks += 60, events::Push{scopes[i % 5]});
    for (int inner = 1; inner < 4; ++inner) {
      add(writer, ticks += 40, events::Push{scopes[5 + (i + inner) % 11]});
      add(writer, ticks += 90 + static_cast<std::uint64_t>(i % 7), pop);
    }
    add(writer, ticks += 50, pop);
  }
}

// Calls as HPC Challenge makes them: it polls with MPI_Test and MPI_Testany, and every 6000th call is an MPI_Irecv or
// an MPI_Isend.
void add_mpi(format::TraceWriter& writer, int slices, int rank) {
  add(writer, 0,
      events::Communicator{.communicator = 1, .size = 2, .identity = 42, .rank = static_cast<std::uint32_t>(rank)});
  std::uint64_t ticks = 1000;
  for (int i = 0; i < slices; ++i) {
    auto function = static_cast<std::uint16_t>(i % 3 == 0 ? MpiId::Test : MpiId::Testany);
    if (i % 3000 == 0) {
      function = static_cast<std::uint16_t>(i % 6000 == 0 ? MpiId::Irecv : MpiId::Isend);
      add(writer, ticks += 70,
          events::MpiBeginPeer{.function = function, .tag = 3, .bytes = 8192, .communicator = 1, .peer = 1 - rank % 2});
      add(writer, ticks + 20, events::MpiPosted{static_cast<std::uint64_t>(i)});
    } else {
      add(writer, ticks += 70, events::MpiBegin{function});
    }
    add(writer, ticks += 110 + static_cast<std::uint64_t>(i % 13), events::MpiEnd{function});
  }
}

enum class Kind { ranges, mpi };

fs::path write_run(const fs::path& directory, Kind kind, int ranks) {
  fs::create_directories(directory);
  for (int rank = 0; rank < ranks; ++rank) {
    format::HeaderFacts facts;
    facts.pid = 1000 + static_cast<std::uint32_t>(rank);
    facts.ticks_per_second = 1e9;
    facts.rank = rank;
    facts.world_size = ranks;
    facts.host = "node";
    format::TraceWriter writer(facts);
    if (kind == Kind::ranges) add_ranges(writer, slices_of_a_rank);
    if (kind == Kind::mpi) add_mpi(writer, slices_of_a_rank, rank);
    writer.write(directory / ("r" + std::to_string(rank) + ".pace"));
  }
  return directory;
}

double memory_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return 1024 * std::stod(line.substr(key.size()));
  }
  return 0;
}

void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::size_t slices_of(const analysis::Trace& trace) {
  std::size_t slices = 0;
  for (const analysis::Rank& rank : trace.ranks) {
    for (const analysis::Track& track : rank.tracks) slices += track.slices.size();
  }
  return slices;
}

std::size_t bytes_of(const analysis::Trace& trace) {
  std::size_t bytes = 0;
  for (const analysis::Rank& rank : trace.ranks) {
    for (const analysis::Track& track : rank.tracks) bytes += track.slices.bytes();
  }
  return bytes;
}

// One core. The rate counts the run's ranges, marks and calls, so that it compares with that of the load.
void decode(benchmark::State& state, const fs::path& run) {
  std::uint64_t slices = 0;
  for (auto _ : state) {
    for (const analysis::TraceFile& file : analysis::find_run_files(run).files) {
      const format::TraceFileReader reader(file.path);
      format::BlockCursor cursor(reader);
      for (const format::BlockEntry& block : reader.blocks()) {
        benchmark::DoNotOptimize(cursor.slots(block).data());
        slices += std::uint64_t{block.header.count[static_cast<std::size_t>(format::Family::nvtx)]} +
                  block.header.count[static_cast<std::size_t>(format::Family::mpi)];
      }
    }
  }
  state.counters["slices/s"] = benchmark::Counter(static_cast<double>(slices), benchmark::Counter::kIsRate);
}

// All cores, as the command line loads a run.
void load(benchmark::State& state, const fs::path& run) {
  std::size_t slices = 0, bytes = 0;
  double peak = 0, cpu = 0, wall = 0;
  for (auto _ : state) {
    reset_peak();
    const double before = memory_bytes("VmRSS:"), cpu_before = cpu_seconds();
    const auto begin = std::chrono::steady_clock::now();
    analysis::Trace trace = analysis::load_run(run);
    wall += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    cpu += cpu_seconds() - cpu_before;
    state.PauseTiming();
    peak = memory_bytes("VmHWM:") - before;
    slices += slices_of(trace);
    bytes += bytes_of(trace);
    trace = {};
    state.ResumeTiming();
  }
  const auto all = static_cast<double>(slices);
  state.counters["slices/s"] = benchmark::Counter(all, benchmark::Counter::kIsRate);
  state.counters["cpu_ns/slice"] = 1e9 * cpu / all;
  state.counters["cores"] = cpu / wall;
  state.counters["bytes/slice"] = static_cast<double>(bytes) / all;
  state.counters["peak/slice"] = peak * static_cast<double>(state.iterations()) / all;
}

void add_benchmarks(const std::string& name, const fs::path& run) {
  const auto set_up = [](benchmark::internal::Benchmark* made) { made->Unit(benchmark::kMillisecond)->UseRealTime(); };
  set_up(benchmark::RegisterBenchmark(("decode/" + name).c_str(), decode, run));
  set_up(benchmark::RegisterBenchmark(("load/" + name).c_str(), load, run));
}

}  // namespace
}  // namespace paceline::load_bench

int main(int argc, char** argv) {
  using namespace paceline::load_bench;
  benchmark::Initialize(&argc, argv);
  if (argc > 2) {
    std::cerr << "load_bench: expected at most one trace, got " << argc - 1 << " arguments\n";
    return 2;
  }
  const TemporaryDirectory directory;
  try {
    add_benchmarks("ranges", write_run(directory.path / "ranges", Kind::ranges, 1));
    add_benchmarks("mpi", write_run(directory.path / "mpi", Kind::mpi, 2));
    add_benchmarks("mpi_32_ranks", write_run(directory.path / "ranks", Kind::mpi, 32));
    if (argc == 2) add_benchmarks("trace", argv[1]);
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::cerr << "load_bench: " << error.what() << '\n';
    return 1;
  }
}
