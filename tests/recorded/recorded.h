// SPDX-License-Identifier: Apache-2.0
// What a recorded program left behind, for tests: its files read, its events with names resolved.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "profiler/format/event_table.h"
#include "profiler/format/mpi_functions.h"
#include "profiler/format/reader.h"

namespace paceline::test {

struct RecordedEvent {
  format::EventType type = format::EventType::none;
  std::uint64_t ticks = 0;  // since the file's zero
  std::uint32_t track = 0;
  std::string name;  // of ranges, marks, definitions; of MPI calls the function
  std::string domain;
  std::uint32_t category = 0;
  format::Slot head;
  format::Slot extension[2];  // as far as the type has them
  std::string bytes;          // of a payload
};

struct RecordedFile {
  format::TraceFile file;
  std::vector<RecordedEvent> events;  // track by track, in the order written; definitions included

  std::vector<RecordedEvent> of(format::EventType type) const;
  std::vector<RecordedEvent> named(format::EventType type, const std::string& name) const;
  // The value of a `setting` event; "" if there is none.
  std::string setting(const std::string& key) const;
  std::uint64_t dropped() const;
};

RecordedFile read_recorded(const std::filesystem::path& path);

// All trace files of a directory, by rank and then by name.
std::vector<RecordedFile> read_recorded_directory(const std::filesystem::path& directory);

}  // namespace paceline::test
