// SPDX-License-Identifier: Apache-2.0
// Small .pace files whose job, host, clock and damage are known, for tests of merges.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "profiler/format/mpi_functions.h"
#include "profiler/format/writer.h"

namespace paceline::analysis {

struct RecordedFile {
  int rank = 0;
  std::uint64_t recording = 1;  // copies of one recording have the same number
  std::string job = "7", host = "node0";
  std::int64_t clock_ns = 0;  // how far the host's UTC is ahead
  int steps = 40;
};

// Each step takes 10 ms: forward to 4 ms + one for each rank, then an all-reduce that all ranks leave at 8 ms.
inline void write_recorded(const std::filesystem::path& path, const RecordedFile& what) {
  using format::EventType;
  constexpr auto allreduce = static_cast<std::uint64_t>(format::MpiId::Allreduce);
  format::HeaderFacts facts;
  facts.file_id = what.recording;
  facts.pid = 100 + static_cast<std::uint32_t>(what.rank);
  facts.ticks_per_second = 1e9;
  facts.start_ticks = 5'000'000;
  facts.start_utc_ns = 1'700'000'000'000'000'000 + what.clock_ns;
  facts.rank = what.rank;
  facts.world_size = 2;
  facts.host = what.host.c_str();
  facts.boot_id = what.host.c_str();
  facts.job = what.job.c_str();
  facts.utc_error_us = 10'000;
  format::TraceWriter writer(facts);
  for (int step = 0; step < what.steps; ++step) {
    const std::uint64_t begin = static_cast<std::uint64_t>(step) * 10'000'000;
    writer.add(0, begin, EventType::push, writer.scope("forward", "trainer", "forward"));
    const std::uint64_t entered = begin + 4'000'000 + static_cast<std::uint64_t>(what.rank) * 1'000'000;
    writer.add(0, entered, EventType::pop, writer.domain("trainer"));
    writer.add(0, entered, EventType::mpi_begin_coll, allreduce | std::uint64_t{0xffffffff} << 16,
               {{4096, static_cast<std::uint64_t>(step) << 32}});
    writer.add(0, begin + 8'000'000, EventType::mpi_end, allreduce);
  }
  writer.write(path);
}

// Overwrites bytes of a file's events, which follow the header, so that a checksum does not fit.
inline void damage_file(const std::filesystem::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  constexpr std::uintmax_t header = 4096;
  const std::uintmax_t size = std::filesystem::file_size(path);
  file.seekp(static_cast<std::streamoff>(header + (size - header) / 2));
  file << std::string(64, '\xa5');
}

}  // namespace paceline::analysis
