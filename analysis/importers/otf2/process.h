// SPDX-License-Identifier: Apache-2.0
// One process of an OTF2 archive as a rank: its locations (threads and the streams of its GPUs) become tracks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/importers/otf2/definitions.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {

class Otf2Process {
 public:
  Otf2Process(RankBuilder& rank, const Otf2Definitions& definitions);

  RankBuilder& rank() { return rank_; }
  const Otf2Definitions& definitions() const { return definitions_; }

  // What a region is on a thread or on a stream.
  struct Kind {
    KindId kind = 0;
    std::uint64_t Rank::*count = nullptr;  // of calls of MPI, CUDA or NCCL, or nullptr
    bool skipped = false;                  // a stream's idle time, which is not work
  };
  const Kind& kind(OTF2_RegionRef region, bool on_stream);

  struct Communicator {
    NameId text = 0;
    std::uint32_t members = 0;  // 0: not known
  };
  const Communicator& communicator(OTF2_CommRef id);

  // The counter of one member of a metric, recorded at one location.
  struct Counter {
    TrackBuilder* track = nullptr;
    double factor = 1;
  };
  std::vector<Counter>& counters(OTF2_MetricRef metric, const Otf2Definitions::Location& location);

  // The name of an attribute, or 0 where the archive has none with this number.
  NameId attribute(OTF2_AttributeRef id);
  // One of the archive's strings as one of the rank's names.
  NameId text(OTF2_StringRef id);

  const NameId bytes, communicator_key, members, root, peer, tag, request, unfinished;

 private:
  Kind make_kind(OTF2_RegionRef region, bool on_stream);
  Kind own_kind(const Otf2Definitions::Region& region);
  void add_communicators();

  RankBuilder& rank_;
  const Otf2Definitions& definitions_;
  std::vector<Kind> kinds_[2];                               // by region, for small numbers; 0: not made yet
  std::unordered_map<OTF2_RegionRef, Kind> large_kinds_[2];  // for other regions
  std::unordered_map<OTF2_CommRef, Communicator> communicators_;
  std::unordered_map<OTF2_AttributeRef, NameId> attributes_;
  std::unordered_map<OTF2_StringRef, NameId> texts_;
  std::map<std::pair<OTF2_MetricRef, OTF2_LocationRef>, std::vector<Counter>> counters_;
};

// Reads the events of the locations of a process onto tracks. Returns what went wrong, one line for each location; all
// events that can be read count.
std::vector<std::string> read_otf2_process(const Otf2Files& files, Otf2Process& process,
                                           const std::vector<const Otf2Definitions::Location*>& locations,
                                           OTF2_LocationRef main_location);

}  // namespace paceline::analysis
