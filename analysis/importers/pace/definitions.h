// SPDX-License-Identifier: Apache-2.0
// The definitions that the events of a .pace file refer to: names, domains, communicators, clocks. They are read before
// the ranges, because a definition and its use may be on different tracks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/clocks/alignment.h"
#include "analysis/importers/pace/events.h"
#include "analysis/importers/pace/nvtx_payloads.h"

namespace paceline::analysis {

struct PaceDefinitions {
  struct RecordingState {  // from these ticks on; 0 reasons: it is on
    std::uint64_t ticks = 0, reasons = 0;
  };
  struct TriggerEvent : format::events::Trigger {
    std::uint64_t ticks = 0;
  };

  std::vector<std::string> names;                                            // by the file's id; lost ones are empty
  std::vector<std::uint32_t> domains;                                        // name id, by domain
  std::vector<std::unordered_map<std::uint32_t, std::uint32_t>> categories;  // by domain: category to name id
  std::unordered_map<std::uint64_t, std::uint32_t> thread_names;
  // By their numbers in the file, as the file has them.
  std::unordered_map<std::uint32_t, format::events::Communicator> communicators;
  std::unordered_map<std::uint32_t, format::events::MpiFile> mpi_files;
  std::map<std::uint32_t, format::events::Counter> counters;
  std::map<std::string, std::string> settings;
  PayloadSchemas payloads;
  // Name ids of NVTX resources (CUDA streams, mutexes, …) by NVTX's type of the resource and its identifier.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> resources;
  std::vector<ClockPairReading> pairs;
  std::vector<ClockExchangeReading> exchanges;
  std::vector<RecordingState> recording;  // by time
  std::vector<TriggerEvent> triggers;     // by time
  std::uint64_t last_ticks = 0;           // of any event, relative

  std::string_view name(std::uint32_t id) const { return id < names.size() ? std::string_view(names[id]) : ""; }

  // Takes an event of the file; what is no definition only moves last_ticks.
  void take(const format::Slot& head, std::uint64_t start_ticks);
  // To be called after the last of them, and again where more came. Cost: n log n in the settings and schemas.
  void finish();

 private:
  std::vector<std::pair<std::uint32_t, std::uint32_t>> setting_names_;  // resolved when all names are known
};

// Cost: linear in the file's definitions; in all events where the file does not say which blocks hold them.
PaceDefinitions definitions_of(const PaceEvents& events);

}  // namespace paceline::analysis
