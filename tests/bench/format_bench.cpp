// SPDX-License-Identifier: Apache-2.0
// How fast events become blocks and blocks become events.
//
//   format_bench [TRACE.pace] [OPTION of Google Benchmark]…   # the last lines are the ratios
//
// drain: from a full chunk to a block in a file and a cleared chunk, as the recorder's drain does; target: 45 million
// events a second and core. decode: from a block in memory to its slots; target: 100 million events a second and core.
// Beside them, in the same run: a copy of the same slots, and zstd alone on the same columns.
//
// The events are tight NVTX ranges, calls of a program that polls MPI (as HPC Challenge does), and those of TRACE.pace,
// of which every 40th block is taken. All times are the thread's own CPU time, and the best of several repetitions
// counts, so that a busy machine shows less.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "profiler/format/block.h"
#include "profiler/format/error.h"
#include "profiler/format/trace_file_reader.h"

namespace {

using namespace paceline::format;

struct EncodedBlock {
  BlockHeader header{};
  std::vector<std::byte> payload, columns;  // compressed, and not
};

struct Stream {
  std::string name;
  std::vector<std::vector<Slot>> chunks;
  std::vector<EncodedBlock> blocks;
  std::int64_t events = 0;

  void encode() {
    BlockEncoder encoder;
    for (const std::vector<Slot>& chunk : chunks) {
      const std::span<const std::byte> bytes = encoder.encode({}, chunk.data(), chunk.size());
      EncodedBlock block;
      std::memcpy(&block.header, bytes.data(), sizeof block.header);
      block.payload.assign(bytes.begin() + sizeof block.header, bytes.end());
      block.columns.resize(block.header.raw_bytes);
      ZSTD_decompress(block.columns.data(), block.columns.size(), block.payload.data(), block.payload.size());
      blocks.push_back(std::move(block));
      for_each_event(chunk, [&](const Slot&, const Slot*) { ++events; });
    }
  }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const EncodedBlock& block : blocks) sum += sizeof block.header + block.payload.size();
    return sum;
  }
};

// Pairs of events, 20 to 150 ns apart with noise, and sometimes interrupted for some µs.
Stream pairs(std::string name, const Slot& begin, const Slot& end) {
  std::mt19937_64 random(1);
  Stream stream;
  stream.name = std::move(name);
  std::uint64_t ticks = 1'000'000;
  const auto at = [&](const Slot& event) {
    ticks += 50 + random() % 300 + (random() % 200 == 0 ? 8000 : 0);
    return Slot{pack_high(ticks, type_of(event)), event.low};
  };
  for (int chunk = 0; chunk < 100; ++chunk) {
    stream.chunks.emplace_back();
    while (stream.chunks.back().size() + 2 <= slots_per_chunk) {
      stream.chunks.back().push_back(at(begin));
      stream.chunks.back().push_back(at(end));
    }
  }
  stream.encode();
  return stream;
}

Stream of_trace(const char* path) {
  const TraceFileReader reader(path);
  BlockCursor cursor(reader);
  Stream stream;
  stream.name = "trace";
  for (std::size_t i = 0; i < reader.blocks().size(); i += 40) {
    const std::span<const Slot> slots = cursor.slots(reader.blocks()[i]);
    if (!slots.empty()) stream.chunks.emplace_back(slots.begin(), slots.end());
  }
  stream.encode();
  return stream;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void drain(benchmark::State& state, const Stream& stream) {
  BlockEncoder encoder;
  std::vector<Slot> chunk(slots_per_chunk);
  char path[] = "/tmp/paceline-format-bench-XXXXXX";
  const int file = mkstemp(path);
  unlink(path);
  for (auto _ : state) {
    double seconds = 0;
    off_t end = 0;
    for (const std::vector<Slot>& slots : stream.chunks) {
      std::ranges::copy(slots, chunk.begin());
      const double start = cpu_seconds();
      const std::span<const std::byte> block = encoder.encode({}, chunk.data(), slots.size());
      if (pwrite(file, block.data(), block.size(), end) < 0) state.SkipWithError("the file cannot be written");
      std::fill_n(chunk.begin(), slots.size(), Slot{});
      benchmark::ClobberMemory();
      seconds += cpu_seconds() - start;
      end += static_cast<off_t>(block.size());
    }
    state.SetIterationTime(seconds);
  }
  close(file);
}

void copy(benchmark::State& state, const Stream& stream) {
  std::vector<Slot> chunk(slots_per_chunk);
  for (auto _ : state) {
    const double start = cpu_seconds();
    for (const std::vector<Slot>& slots : stream.chunks) {
      std::ranges::copy(slots, chunk.begin());
      benchmark::ClobberMemory();
    }
    state.SetIterationTime(cpu_seconds() - start);
  }
}

void compress(benchmark::State& state, const Stream& stream) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  std::vector<std::byte> out(ZSTD_compressBound(max_raw_bytes));
  for (auto _ : state) {
    const double start = cpu_seconds();
    for (const EncodedBlock& block : stream.blocks) {
      benchmark::DoNotOptimize(ZSTD_compressCCtx(context, out.data(), out.size(), block.columns.data(),
                                                 block.columns.size(), ZSTD_defaultCLevel()));
    }
    state.SetIterationTime(cpu_seconds() - start);
  }
  ZSTD_freeCCtx(context);
}

void decode(benchmark::State& state, const Stream& stream) {
  BlockDecoder decoder;
  std::vector<Slot> slots(slots_per_chunk);
  for (auto _ : state) {
    const double start = cpu_seconds();
    for (const EncodedBlock& block : stream.blocks) {
      if (decoder.decode(block.header, block.payload, std::span(slots)) != nullptr) state.SkipWithError("broken");
      benchmark::ClobberMemory();
    }
    state.SetIterationTime(cpu_seconds() - start);
  }
}

void decompress(benchmark::State& state, const Stream& stream) {
  ZSTD_DCtx* const context = ZSTD_createDCtx();
  std::vector<std::byte> out(max_raw_bytes);
  for (auto _ : state) {
    const double start = cpu_seconds();
    for (const EncodedBlock& block : stream.blocks) {
      benchmark::DoNotOptimize(
          ZSTD_decompressDCtx(context, out.data(), out.size(), block.payload.data(), block.payload.size()));
    }
    state.SetIterationTime(cpu_seconds() - start);
  }
  ZSTD_freeDCtx(context);
}

class Ratios : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      double& best = seconds_[run.run_name.function_name];
      const double seconds = run.real_accumulated_time / static_cast<double>(run.iterations);
      best = best == 0 ? seconds : std::min(best, seconds);
    }
  }
  void print(const Stream& stream) {
    const auto rate = [&](const char* of) {
      return static_cast<double>(stream.events) * 1e-6 / seconds_[of + (" " + stream.name)];
    };
    std::printf(
        "%-8s %.2f bytes an event; drain %.1f million events/s = %.2f of zstd alone; decode %.1f million "
        "events/s = %.2f of zstd alone; copy %.0f million events/s\n",
        stream.name.c_str(), static_cast<double>(stream.bytes()) / static_cast<double>(stream.events), rate("drain"),
        rate("drain") / rate("compress"), rate("decode"), rate("decode") / rate("decompress"), rate("copy"));
  }

 private:
  std::map<std::string, double> seconds_;
};

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::vector<Stream> streams;
  streams.push_back(
      pairs("nvtx", {pack_high(0, EventType::push), pack_scope(7, 3, 1)}, {pack_high(0, EventType::pop), 1}));
  streams.push_back(pairs("mpi", {pack_high(0, EventType::mpi_begin), 134}, {pack_high(0, EventType::mpi_end), 134}));
  try {
    if (argc > 1) streams.push_back(of_trace(argv[1]));
  } catch (const paceline::Error& error) {
    std::fprintf(stderr, "format_bench: %s\n", error.what());
    return 1;
  }
  constexpr std::pair<const char*, void (*)(benchmark::State&, const Stream&)> measured[] = {
      {"drain", drain}, {"compress", compress}, {"decode", decode}, {"decompress", decompress}, {"copy", copy}};
  for (const Stream& stream : streams) {
    for (const auto& [name, function] : measured) {
      benchmark::RegisterBenchmark((name + (" " + stream.name)).c_str(), function, std::cref(stream))
          ->UseManualTime()
          ->MinTime(0.1)
          ->Repetitions(5)
          ->Unit(benchmark::kMillisecond);
    }
  }
  Ratios ratios;
  benchmark::RunSpecifiedBenchmarks(&ratios);
  for (const Stream& stream : streams) ratios.print(stream);
  return 0;
}
