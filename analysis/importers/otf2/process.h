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
    bool mpi = false, cuda = false;
    bool skipped = false;  // a stream's idle time, which is not work
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

  const NameId bytes, communicator_key, members, root, peer, tag, request;

 private:
  Kind make_kind(OTF2_RegionRef region, bool on_stream);
  void add_communicators();

  RankBuilder& rank_;
  const Otf2Definitions& definitions_;
  std::vector<Kind> kinds_[2];                               // by region, for small numbers; 0: not made yet
  std::unordered_map<OTF2_RegionRef, Kind> large_kinds_[2];  // for other regions
  std::unordered_map<OTF2_CommRef, Communicator> communicators_;
  std::map<std::pair<OTF2_MetricRef, OTF2_LocationRef>, std::vector<Counter>> counters_;
};

// Reads the events of the locations of a process, which `reader` was opened for, onto tracks. Returns what went wrong,
// one line for each location; the events before it count. `event_folder` has the files of events.
std::vector<std::string> read_otf2_process(OTF2_Reader* reader, Otf2Process& process,
                                           const std::vector<const Otf2Definitions::Location*>& locations,
                                           OTF2_LocationRef main_location, const std::filesystem::path& event_folder);

}  // namespace paceline::analysis
