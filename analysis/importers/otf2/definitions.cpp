// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/otf2/definitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "analysis/importers/own_exports.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace otf2_definitions {

// The types of the records, and their fields in order. Fields behind a check of left() came with a later version.
enum Type : std::uint8_t {
  clock_properties = 5,
  string = 10,
  attribute = 11,
  node = 12,
  location_group = 13,
  location = 14,
  region = 15,
  group = 18,
  metric_member = 19,
  metric_class = 20,
  metric_instance = 21,
  communicator = 22,
  node_domain = 27,
  inter_communicator = 43
};

void add_clock(Otf2Bytes& from, Otf2Definitions& to) {
  const std::uint64_t resolution = from.number();
  if (resolution > 0) to.resolution = resolution;
  to.offset = from.number();
  from.number();  // the trace's length
  const std::uint64_t utc = from.left() > 0 ? from.number() : 0;
  constexpr std::uint64_t latest_ns = 4'000'000'000'000'000'000;
  if (utc > 0 && utc < latest_ns) to.utc_of_zero_ns = static_cast<std::int64_t>(utc);
}

void add_region(Otf2Bytes& from, Otf2Definitions& to) {
  const OTF2_RegionRef id = from.number32();
  Otf2Definitions::Region made;
  made.name = from.number32();
  made.description = from.number32();
  const std::uint8_t old_type = from.byte();
  for (int i = 0; i < 3; ++i) from.number32();  // the source file and the lines
  if (from.left() > 0) {
    from.number32();  // the name as the linker has it
    made.role = from.byte();
    made.paradigm = from.byte();
  } else if (old_type >= 22 && old_type <= 26) {  // before version 1.1: collectives of MPI
    made.role = OTF2_REGION_ROLE_COLL_OTHER;
    made.paradigm = OTF2_PARADIGM_MPI;
  }
  if (!from.failed()) to.regions[id] = made;
}

void add_group(Otf2Bytes& from, Otf2Definitions& to) {
  const OTF2_GroupRef id = from.number32();
  from.number32();  // its name
  const std::uint8_t old_type = from.byte();
  Otf2Definitions::Group made;
  const std::uint32_t count = from.number32();
  for (std::uint32_t i = 0; i < count && !from.failed(); ++i) made.members.push_back(from.number());
  if (from.left() > 0) {
    made.type = from.byte();
    made.paradigm = from.byte();
  } else if (old_type >= 4 && old_type <= 6) {  // before version 1.2: groups of MPI
    constexpr OTF2_GroupType types[] = {OTF2_GROUP_TYPE_COMM_GROUP, OTF2_GROUP_TYPE_COMM_SELF,
                                        OTF2_GROUP_TYPE_COMM_LOCATIONS};
    made.type = types[old_type - 4];
    made.paradigm = OTF2_PARADIGM_MPI;
  }
  if (!from.failed()) to.groups[id] = std::move(made);
}

void add_metric_member(Otf2Bytes& from, Otf2Definitions& to) {
  const OTF2_MetricMemberRef id = from.number32();
  Otf2Definitions::MetricMember made;
  made.name = from.number32();
  made.description = from.number32();
  from.byte();  // where the metric comes from
  made.mode = from.byte();
  from.byte();  // the type, which each sample repeats
  made.base = from.byte();
  made.exponent = static_cast<std::int64_t>(from.number());
  made.unit = from.number32();
  if (!from.failed()) to.metric_members[id] = made;
}

void add(std::uint8_t type, Otf2Bytes& from, Otf2Definitions& to) {
  if (type == clock_properties) return add_clock(from, to);
  if (type == region) return add_region(from, to);
  if (type == group) return add_group(from, to);
  if (type == metric_member) return add_metric_member(from, to);
  constexpr Type others[] = {string,       attribute,       node,         location_group, location,
                             metric_class, metric_instance, communicator, node_domain,    inter_communicator};
  if (std::ranges::find(others, type) == std::end(others)) return;
  const std::uint64_t id = from.number();
  const auto id32 = static_cast<std::uint32_t>(id);
  if (type == string) {
    to.strings[id32] = from.text();
  } else if (type == attribute) {
    to.attributes[id32] = from.number32();
  } else if (type == node) {
    Otf2Definitions::Node made;
    made.name = from.number32();
    made.class_name = from.number32();
    made.parent = from.number32();
    if (!from.failed()) to.nodes[id32] = made;
  } else if (type == node_domain) {
    if (from.byte() == OTF2_SYSTEM_TREE_DOMAIN_SHARED_MEMORY) to.nodes[id32].shares_memory = true;
  } else if (type == location_group) {
    Otf2Definitions::LocationGroup made;
    made.name = from.number32();
    made.type = from.byte();
    made.node = from.number32();
    if (from.left() > 0) made.creator = from.number32();
    if (!from.failed()) to.location_groups[id32] = made;
  } else if (type == location) {
    Otf2Definitions::Location made;
    made.id = id;
    made.name = from.number32();
    made.type = from.byte();
    made.events = from.number();
    made.group = from.number32();
    if (!from.failed()) to.locations.push_back(made);
  } else if (type == communicator || type == inter_communicator) {
    Otf2Definitions::Communicator made;
    made.name = from.number32();
    if (type == communicator) made.group = from.number32();
    if (!from.failed()) to.communicators[id32] = made;
  } else if (type == metric_class) {
    const std::uint8_t count = from.byte();
    std::vector<OTF2_MetricMemberRef> members;
    for (std::uint8_t i = 0; i < count && !from.failed(); ++i) members.push_back(from.number32());
    if (!from.failed()) to.metric_classes[id32] = std::move(members);
  } else if (type == metric_instance) {
    to.metric_instances[id32] = from.number32();
  }
}

std::optional<int> number_at_end(const std::string& name) {
  const std::size_t first = name.find_last_not_of("0123456789") + 1;
  int number = 0;
  const auto [end, error] = std::from_chars(name.data() + first, name.data() + name.size(), number);
  if (first == name.size() || error != std::errc()) return std::nullopt;
  return number;
}

}  // namespace otf2_definitions

std::filesystem::path Otf2Files::events_of(OTF2_LocationRef location) const {
  return folder / fmt::format("{}.evt", location);
}
std::filesystem::path Otf2Files::definitions_of(OTF2_LocationRef location) const {
  return folder / fmt::format("{}.def", location);
}

// The anchor file is one chunk without numbers of events.
Otf2Files read_otf2_anchor(const std::filesystem::path& anchor, const std::string& name) {
  constexpr std::size_t most_bytes = 1 << 20;  // what stands behind the creator may be long
  std::vector<std::uint8_t> bytes(most_bytes);
  std::ifstream file(anchor, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), most_bytes);
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  Otf2Bytes from(bytes, bytes.size() > 1 && bytes[1] == 'L');
  from.fixed(2);
  from.text();    // "OTF2"
  from.fixed(5);  // versions of the anchor file, of the format and of the library
  Otf2Files files;
  files.event_chunk_bytes = from.fixed(8);
  files.definition_chunk_bytes = from.fixed(8);
  const std::uint8_t substrate = from.byte();
  from.byte();    // the compression, which no version of the library has
  from.fixed(8);  // how many locations
  from.fixed(8);  // how many definitions
  from.text();    // the machine
  files.creator = from.text();
  if (from.failed()) throw Error(fmt::format("{}: the anchor file is damaged: give an archive that was closed", name));
  if (substrate != OTF2_SUBSTRATE_POSIX) {
    throw Error(fmt::format("{}: the archive is not in plain files: record it again without SIONlib", name));
  }
  files.folder = files.definitions = anchor;
  files.folder.replace_extension();  // "traces" beside "traces.otf2"
  files.definitions.replace_extension(".def");
  return files;
}

bool each_otf2_definition(const std::filesystem::path& file, std::uint64_t chunk_bytes,
                          const std::function<void(std::uint8_t, Otf2Bytes&)>& visit) {
  Otf2Chunks chunks(file, chunk_bytes);
  bool complete = true, ended = false;
  while (!ended && chunks.next()) {
    Otf2Bytes& from = chunks.bytes();
    while (true) {
      const std::uint8_t type = from.byte();
      if (type == static_cast<std::uint8_t>(Otf2Mark::end_of_chunk)) break;
      ended = type == static_cast<std::uint8_t>(Otf2Mark::end_of_file);
      if (ended) break;
      Otf2Bytes record = from.record();
      if (from.failed()) break;
      visit(type, record);
      complete = complete && !record.failed();
    }
    complete = complete && !from.failed();
  }
  return complete && ended && chunks.bad_heads() == 0;
}

Otf2Definitions read_otf2_definitions(const Otf2Files& files, const std::string& name) {
  std::error_code error;
  if (!std::filesystem::exists(files.definitions, error)) {
    throw Error(fmt::format("{}: there is no file of definitions: keep {} beside the anchor file", name,
                            files.definitions.filename().string()));
  }
  Otf2Definitions definitions;
  definitions.own = files.creator == otf2_creator;
  definitions.complete =
      each_otf2_definition(files.definitions, files.definition_chunk_bytes,
                           [&](std::uint8_t type, Otf2Bytes& from) { otf2_definitions::add(type, from, definitions); });
  if (definitions.locations.empty()) {
    throw Error(fmt::format("{}: the archive has no locations{}: record the trace again", name,
                            definitions.complete ? "" : " (its definitions are damaged)"));
  }
  return definitions;
}

const std::string& Otf2Definitions::string(OTF2_StringRef id) const {
  static const std::string none;
  const auto found = strings.find(id);
  return found != strings.end() ? found->second : none;
}

std::string Otf2Definitions::host_of(OTF2_LocationGroupRef group) const {
  const auto of = location_groups.find(group);
  if (of == location_groups.end()) return "";
  OTF2_SystemTreeNodeRef at = of->second.node;
  std::string nearest;
  for (std::size_t steps = 0; steps <= nodes.size(); ++steps) {  // parents may form a circle
    const auto node = nodes.find(at);
    if (node == nodes.end()) break;
    if (nearest.empty()) nearest = string(node->second.name);
    if (node->second.shares_memory || string(node->second.class_name) == "node") return string(node->second.name);
    at = node->second.parent;
  }
  return nearest;
}

OTF2_LocationGroupRef Otf2Definitions::process_of(const Location& location) const {
  const auto group = location_groups.find(location.group);
  if (group == location_groups.end() || group->second.type != OTF2_LOCATION_GROUP_TYPE_ACCELERATOR) {
    return location.group;
  }
  return location_groups.contains(group->second.creator) ? group->second.creator : location.group;
}

std::vector<OTF2_LocationRef> Otf2Definitions::rank_locations() const {
  for (const auto& [id, group] : groups) {
    if (group.type == OTF2_GROUP_TYPE_COMM_LOCATIONS && group.paradigm == OTF2_PARADIGM_MPI) return group.members;
  }
  return {};
}

std::map<OTF2_LocationGroupRef, int> Otf2Definitions::ranks() const {
  std::set<OTF2_LocationGroupRef> processes;
  std::unordered_map<OTF2_LocationRef, OTF2_LocationGroupRef> process_of_location;
  for (const Location& location : locations) {
    const OTF2_LocationGroupRef process = process_of(location);
    processes.insert(process);
    process_of_location[location.id] = process;
  }
  std::map<OTF2_LocationGroupRef, int> ranks;
  std::set<int> taken;
  const std::vector<OTF2_LocationRef> main_threads = rank_locations();
  for (std::size_t rank = 0; rank < main_threads.size(); ++rank) {
    const auto process = process_of_location.find(main_threads[rank]);
    if (process == process_of_location.end()) continue;
    if (ranks.try_emplace(process->second, static_cast<int>(rank)).second) taken.insert(static_cast<int>(rank));
  }
  if (ranks.empty()) {
    bool all_named = true;
    for (const OTF2_LocationGroupRef process : processes) {
      const auto group = location_groups.find(process);
      const auto number =
          group == location_groups.end() ? std::nullopt : otf2_definitions::number_at_end(string(group->second.name));
      all_named = all_named && number && taken.insert(*number).second;
      if (all_named) ranks[process] = *number;
    }
    if (!all_named) ranks.clear(), taken.clear();
  }
  int next = 0;
  for (const OTF2_LocationGroupRef process : processes) {
    if (ranks.contains(process)) continue;
    while (taken.contains(next)) ++next;
    ranks[process] = next;
    taken.insert(next);
  }
  return ranks;
}

}  // namespace paceline::analysis
