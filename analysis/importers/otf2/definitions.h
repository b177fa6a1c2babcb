// SPDX-License-Identifier: Apache-2.0
// The definitions of an OTF2 archive: what its events refer to by number.
#pragma once

#include <otf2/otf2.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/importers/otf2/bytes.h"

namespace paceline::analysis {

// What the anchor file says: where the archive's files stand, and the size of their chunks.
struct Otf2Files {
  std::filesystem::path definitions;  // the file of all locations' definitions
  std::filesystem::path folder;       // has the files of single locations
  std::uint64_t event_chunk_bytes = 0, definition_chunk_bytes = 0;
  std::string creator;  // the program that wrote the archive

  std::filesystem::path events_of(OTF2_LocationRef location) const;
  std::filesystem::path definitions_of(OTF2_LocationRef location) const;
};

// Throws Error, with `name` for the archive, where the anchor file is damaged or the archive is kept in a way that
// cannot be read.
Otf2Files read_otf2_anchor(const std::filesystem::path& anchor, const std::string& name);

struct Otf2Definitions {
  struct Region {
    OTF2_StringRef name = 0, description = 0;
    OTF2_RegionRole role = OTF2_REGION_ROLE_UNKNOWN;
    OTF2_Paradigm paradigm = OTF2_PARADIGM_UNKNOWN;
  };
  struct LocationGroup {
    OTF2_StringRef name = 0;
    OTF2_LocationGroupType type = OTF2_LOCATION_GROUP_TYPE_UNKNOWN;
    OTF2_SystemTreeNodeRef node = OTF2_UNDEFINED_SYSTEM_TREE_NODE;
    OTF2_LocationGroupRef creator = OTF2_UNDEFINED_LOCATION_GROUP;
  };
  struct Location {
    OTF2_LocationRef id = 0;
    OTF2_StringRef name = 0;
    OTF2_LocationType type = OTF2_LOCATION_TYPE_UNKNOWN;
    std::uint64_t events = 0;
    OTF2_LocationGroupRef group = OTF2_UNDEFINED_LOCATION_GROUP;
  };
  struct Node {
    OTF2_StringRef name = 0, class_name = 0;
    OTF2_SystemTreeNodeRef parent = OTF2_UNDEFINED_SYSTEM_TREE_NODE;
    bool shares_memory = false;
  };
  struct Group {
    OTF2_GroupType type = OTF2_GROUP_TYPE_UNKNOWN;
    OTF2_Paradigm paradigm = OTF2_PARADIGM_UNKNOWN;
    std::vector<std::uint64_t> members;
  };
  struct Communicator {
    OTF2_StringRef name = OTF2_UNDEFINED_STRING;
    OTF2_GroupRef group = OTF2_UNDEFINED_GROUP;
  };
  struct MetricMember {
    OTF2_StringRef name = 0, description = 0, unit = 0;
    OTF2_MetricMode mode = 0;
    OTF2_Base base = OTF2_BASE_DECIMAL;
    std::int64_t exponent = 0;
  };

  std::uint64_t resolution = 1'000'000'000, offset = 0;  // ticks per second; ticks of the zero
  std::optional<std::int64_t> utc_of_zero_ns;
  std::unordered_map<OTF2_StringRef, std::string> strings;
  std::unordered_map<OTF2_RegionRef, Region> regions;
  std::map<OTF2_LocationGroupRef, LocationGroup> location_groups;
  std::vector<Location> locations;
  std::unordered_map<OTF2_SystemTreeNodeRef, Node> nodes;
  std::unordered_map<OTF2_GroupRef, Group> groups;
  std::map<OTF2_CommRef, Communicator> communicators;
  std::unordered_map<OTF2_MetricMemberRef, MetricMember> metric_members;
  std::unordered_map<OTF2_MetricRef, std::vector<OTF2_MetricMemberRef>> metric_classes;
  std::unordered_map<OTF2_MetricRef, OTF2_MetricRef> metric_instances;  // to their class
  std::unordered_map<OTF2_AttributeRef, OTF2_StringRef> attributes;     // to their names
  bool complete = true;                                                 // else some could not be read
  bool own = false;  // Paceline's export wrote the archive: regions are described as "domain / category"

  const std::string& string(OTF2_StringRef id) const;
  // The name of the machine that a location group ran on, or "".
  std::string host_of(OTF2_LocationGroupRef group) const;
  // The process that a location belongs to: of a GPU's streams the one that uses the GPU.
  OTF2_LocationGroupRef process_of(const Location& location) const;
  // The MPI rank of each process; without MPI the number in its name ("MPI Rank 3", "Process 3") where all processes
  // have different ones, else its place.
  std::map<OTF2_LocationGroupRef, int> ranks() const;
  // The locations that are the ranks' main threads in MPI's own list.
  std::vector<OTF2_LocationRef> rank_locations() const;
  // Nanoseconds from the zero.
  std::int64_t time_ns(OTF2_TimeStamp ticks) const;
};

// The definitions of the archive. Throws Error where there are no locations.
Otf2Definitions read_otf2_definitions(const Otf2Files& files, const std::string& name);

// Calls visit(type, record) for each definition of a file. A record whose contents end too early sets failed(). Returns
// false where the file or some of its definitions cannot be read.
bool each_otf2_definition(const std::filesystem::path& file, std::uint64_t chunk_bytes,
                          const std::function<void(std::uint8_t, Otf2Bytes&)>& visit);

}  // namespace paceline::analysis
