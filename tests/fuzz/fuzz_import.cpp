// SPDX-License-Identifier: Apache-2.0
// Feeds hostile bytes (hostile_file.h) to the import of .pace files and checks the model that it makes. With clang it
// is a libFuzzer program (fuzz_import), with any compiler it replays the corpus (replay_fuzz_import).
//
// An input whose first byte is 128 or more is two files of one run: the halves of the rest.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/importers/pace/import.h"
#include "profiler/format/error.h"
#include "tests/fuzz/check_model.h"
#include "tests/fuzz/hostile_file.h"

namespace {

using namespace paceline::analysis;
using namespace paceline::fuzz;

// A file with the events of one block on one track.
PaceEvents block_of(std::vector<Slot> slots, int rank) {
  TraceFile file;
  file.path = "fuzz.pace";
  file.host = "h";
  file.header.rank = rank;
  file.header.pid = 1 + static_cast<std::uint32_t>(rank);
  file.header.clock_source = ClockSource::tsc;
  file.header.ticks_per_second = 1e9;
  file.tracks.push_back({0, file.header.pid, std::move(slots)});
  return PaceEvents(std::move(file));
}

std::optional<PaceEvents> open(InputKind kind, std::span<const std::uint8_t> bytes, int rank) {
  static MemoryFile files[2];
  if (kind == InputKind::columns) return block_of(slots_of_columns(bytes), rank);
  std::vector<std::uint8_t> content(bytes.begin(), bytes.end());
  if (kind == InputKind::file_with_checksums) put_checksums_right(content);
  try {
    return PaceEvents(TraceFileReader(files[rank].write(content)));
  } catch (const paceline::Error&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const InputKind kind = kind_of(data[0]);
  const std::span<const std::uint8_t> rest(data + 1, size - 1);
  const std::size_t first = data[0] < 128 ? rest.size() : rest.size() / 2;
  std::vector<PaceEvents> files;
  for (const auto& [bytes, rank] : {std::pair(rest.first(first), 0), std::pair(rest.subspan(first), 1)}) {
    if (bytes.empty()) continue;
    if (std::optional<PaceEvents> file = open(kind, bytes, rank)) files.push_back(std::move(*file));
  }
  if (files.empty()) return 0;
  try {
    check(import_pace(std::move(files)));
  } catch (const paceline::Error&) {
  }
  return 0;
}
