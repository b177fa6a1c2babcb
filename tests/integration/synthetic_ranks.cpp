// SPDX-License-Identifier: Apache-2.0
// usage: synthetic_ranks DIRECTORY RANKS STEPS [RANGES [ALLREDUCES [LATE_RANK]]]
// Writes the .pace files of a data-parallel job that never ran: STEPS steps of about 10 ms, each with RANGES short
// ranges in forward and backward and ALLREDUCES allreduces. LATE_RANK comes 1 ms late to each of them. Every rank has
// noise of its own.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "profiler/format/mpi_functions.h"
#include "profiler/format/writer.h"

namespace {

using paceline::format::EventType;

int argument(int argc, char** argv, int index, int otherwise) {
  return argc > index ? std::atoi(argv[index]) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: synthetic_ranks DIRECTORY RANKS STEPS [RANGES [ALLREDUCES [LATE_RANK]]]\n");
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  const int ranks = std::atoi(argv[2]), steps = std::atoi(argv[3]);
  const int ranges = argument(argc, argv, 4, 10), allreduces = argument(argc, argv, 5, 2),
            late = argument(argc, argv, 6, -1);
  std::filesystem::create_directories(directory);
  constexpr auto function = static_cast<std::uint64_t>(paceline::format::MpiId::Allreduce);
  const std::string job = directory.filename().string();
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string host = "node" + std::to_string(rank / 8);
    paceline::format::HeaderFacts facts;
    facts.file_id = 1000 + static_cast<std::uint64_t>(rank);
    facts.pid = 100 + static_cast<std::uint32_t>(rank);
    facts.ticks_per_second = 1e9;
    facts.start_ticks = 5'000'000;
    facts.start_utc_ns = 1'700'000'000'000'000'000;
    facts.process_start_utc_ns = facts.start_utc_ns - 50'000'000;
    facts.rank = rank;
    facts.world_size = ranks;
    facts.local_rank = rank % 8;
    facts.host = host.c_str();
    facts.boot_id = "one boot";
    facts.job = job.c_str();
    paceline::format::TraceWriter writer(facts);
    writer.thread(0, facts.pid, "main thread");
    writer.add(0, 10, EventType::communicator, 1 | static_cast<std::uint64_t>(ranks) << 32,
               {{4711, static_cast<std::uint64_t>(rank) | std::uint64_t{writer.name("MPI_COMM_WORLD")} << 32}});
    std::mt19937 noise(static_cast<unsigned>(rank) + 1);
    const auto push = [&](std::uint64_t at, const char* name, const char* category) {
      writer.add(0, at, EventType::push, writer.scope(name, "paceline.trainer", category));
    };
    const auto pop = [&](std::uint64_t at) { writer.add(0, at, EventType::pop, writer.domain("paceline.trainer")); };
    std::uint64_t at = 1'000'000, sequence = 0;
    for (int step = 0; step < steps; ++step) {
      const std::uint64_t begin = at;
      writer.add(0, at, EventType::push_payload, writer.scope("iteration", "paceline.trainer", "iteration"),
                 {{static_cast<std::uint64_t>(paceline::format::PayloadType::signed_integer),
                   static_cast<std::uint64_t>(step)}});
      for (const char* phase : {"forward", "backward"}) {
        push(at += 1000, phase, phase);
        for (int i = 0; i < ranges; ++i) {
          push(at += 500, i % 2 == 0 ? "conv" : "norm", "layer");
          pop(at += 2'000'000 / static_cast<std::uint64_t>(ranges) + noise() % 1000);
        }
        pop(at += 1000);
      }
      if (rank == late) at += 1'000'000;
      for (int i = 0; i < allreduces; ++i) {
        writer.add(0, at += 1000, EventType::mpi_begin_coll, function | std::uint64_t{0xffffffff} << 16,
                   {{4096, 1 | sequence++ << 32}});
        // All leave it at one time.
        at = begin + 6'500'000 + static_cast<std::uint64_t>(i) * 2'000'000 / static_cast<std::uint64_t>(allreduces) +
             noise() % 100;
        writer.add(0, at, EventType::mpi_end, function);
      }
      push(at += 1000, "optimizer", "optimizer");
      pop(at += 300'000);
      pop(at = begin + 10'000'000);
      at += 100'000;
    }
    writer.write(directory / (host + "-r" + std::to_string(rank) + ".pace"));
  }
  return 0;
}
