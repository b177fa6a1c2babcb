// SPDX-License-Identifier: Apache-2.0
// Helpers for tests of recorded MPI calls.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/recorded/recorded.h"

namespace paceline::test {

struct Communicator {
  std::uint64_t identity = 0;
  std::uint32_t size = 0;
  std::string name;
};

struct CollectiveCall {
  int rank = 0;
  std::string function, communicator;
  std::uint64_t bytes = 0;
  std::uint32_t size = 0;  // of the communicator
  int root = 0;
};

using Collectives = std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<CollectiveCall>>;

inline std::int32_t upper(std::uint64_t word) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(word >> 32));
}
inline std::uint32_t lower(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
inline std::int32_t second_field(const RecordedEvent& event) {  // root, tag, target, file
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(event.head.low >> 16));
}

// Calls by identity and sequence, as an analysis matches them. Starts of persistent requests are left out.
inline Collectives collectives_of(const std::vector<RecordedFile>& ranks) {
  using format::EventType;
  Collectives all;
  for (const RecordedFile& file : ranks) {
    std::map<std::uint32_t, Communicator> communicators;
    for (const RecordedEvent& event : file.of(EventType::communicator)) {
      communicators[lower(event.head.low)] = {event.extension[0].high, lower(event.head.low >> 32), event.name};
    }
    for (const RecordedEvent& event : file.of(EventType::mpi_begin_coll)) {
      if (event.name == "MPI_Start") continue;
      const Communicator& of = communicators.at(lower(event.extension[0].low));
      all[{of.identity, lower(event.extension[0].low >> 32)}].push_back(
          {file.file.header.rank, event.name, of.name, event.extension[0].high, of.size, second_field(event)});
    }
  }
  return all;
}

inline std::set<std::uint64_t> requests_of(const RecordedFile& file, format::EventType type) {
  std::set<std::uint64_t> numbers;
  for (const RecordedEvent& event : file.of(type)) numbers.insert(event.head.low);
  return numbers;
}

}  // namespace paceline::test
