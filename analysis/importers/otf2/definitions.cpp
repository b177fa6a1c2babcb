#include "analysis/importers/otf2/definitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

#include "profiler/format/error.h"

namespace paceline::analysis {
namespace otf2_definitions {

thread_local std::string last_error;

OTF2_ErrorCode remember_error(void*, const char*, std::uint64_t, const char*, OTF2_ErrorCode code, const char* format,
                              va_list values) {
  char text[512] = {};
  if (format != nullptr) std::vsnprintf(text, sizeof text, format, values);
  last_error = *text != '\0' ? fmt::format("{}: {}", OTF2_Error_GetDescription(code), text)
                             : std::string(OTF2_Error_GetDescription(code));
  return code;
}

Otf2Definitions& of(void* user) { return *static_cast<Otf2Definitions*>(user); }

OTF2_CallbackCode clock(void* user, std::uint64_t resolution, std::uint64_t offset, std::uint64_t, std::uint64_t utc) {
  Otf2Definitions& definitions = of(user);
  if (resolution > 0) definitions.resolution = resolution;
  definitions.offset = offset;
  constexpr std::uint64_t latest_ns = 4'000'000'000'000'000'000;
  if (utc != OTF2_UNDEFINED_TIMESTAMP && utc > 0 && utc < latest_ns) {
    definitions.utc_of_zero_ns = static_cast<std::int64_t>(utc);
  }
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode string(void* user, OTF2_StringRef id, const char* text) {
  of(user).strings[id] = text != nullptr ? text : "";
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode region(void* user, OTF2_RegionRef id, OTF2_StringRef name, OTF2_StringRef, OTF2_StringRef,
                         OTF2_RegionRole role, OTF2_Paradigm paradigm, OTF2_RegionFlag, OTF2_StringRef, std::uint32_t,
                         std::uint32_t) {
  of(user).regions[id] = {name, role, paradigm};
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode location_group(void* user, OTF2_LocationGroupRef id, OTF2_StringRef name, OTF2_LocationGroupType type,
                                 OTF2_SystemTreeNodeRef node, OTF2_LocationGroupRef creator) {
  of(user).location_groups[id] = {name, type, node, creator};
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode location(void* user, OTF2_LocationRef id, OTF2_StringRef name, OTF2_LocationType type,
                           std::uint64_t events, OTF2_LocationGroupRef group) {
  of(user).locations.push_back({id, name, type, events, group});
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode node(void* user, OTF2_SystemTreeNodeRef id, OTF2_StringRef name, OTF2_StringRef class_name,
                       OTF2_SystemTreeNodeRef parent) {
  of(user).nodes[id] = {name, class_name, parent, false};
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode node_domain(void* user, OTF2_SystemTreeNodeRef id, OTF2_SystemTreeDomain domain) {
  if (domain == OTF2_SYSTEM_TREE_DOMAIN_SHARED_MEMORY) of(user).nodes[id].shares_memory = true;
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode group(void* user, OTF2_GroupRef id, OTF2_StringRef, OTF2_GroupType type, OTF2_Paradigm paradigm,
                        OTF2_GroupFlag, std::uint32_t count, const std::uint64_t* members) {
  of(user).groups[id] = {type, paradigm, {members, members + count}};
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode communicator(void* user, OTF2_CommRef id, OTF2_StringRef name, OTF2_GroupRef group, OTF2_CommRef,
                               OTF2_CommFlag) {
  of(user).communicators[id] = {name, group};
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode inter_communicator(void* user, OTF2_CommRef id, OTF2_StringRef name, OTF2_GroupRef, OTF2_GroupRef,
                                     OTF2_CommRef, OTF2_CommFlag) {
  of(user).communicators[id] = {name, OTF2_UNDEFINED_GROUP};
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode metric_member(void* user, OTF2_MetricMemberRef id, OTF2_StringRef name, OTF2_StringRef,
                                OTF2_MetricType, OTF2_MetricMode mode, OTF2_Type, OTF2_Base base, std::int64_t exponent,
                                OTF2_StringRef unit) {
  of(user).metric_members[id] = {name, unit, mode, base, exponent};
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode metric_class(void* user, OTF2_MetricRef id, std::uint8_t count, const OTF2_MetricMemberRef* members,
                               OTF2_MetricOccurrence, OTF2_RecorderKind) {
  of(user).metric_classes[id] = {members, members + count};
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode metric_instance(void* user, OTF2_MetricRef id, OTF2_MetricRef of_class, OTF2_LocationRef,
                                  OTF2_MetricScope, std::uint64_t) {
  of(user).metric_instances[id] = of_class;
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode attribute(void* user, OTF2_AttributeRef id, OTF2_StringRef name, OTF2_StringRef, OTF2_Type) {
  of(user).attributes[id] = name;
  return OTF2_CALLBACK_SUCCESS;
}

std::optional<int> number_at_end(const std::string& name) {
  const std::size_t first = name.find_last_not_of("0123456789") + 1;
  int number = 0;
  const auto [end, error] = std::from_chars(name.data() + first, name.data() + name.size(), number);
  if (first == name.size() || error != std::errc()) return std::nullopt;
  return number;
}

}  // namespace otf2_definitions

void Otf2Close::operator()(OTF2_Reader* reader) const { OTF2_Reader_Close(reader); }

Otf2Reader open_otf2(const std::filesystem::path& anchor) {
  static std::once_flag once;
  std::call_once(once, [] { OTF2_Error_RegisterCallback(otf2_definitions::remember_error, nullptr); });
  Otf2Reader reader(OTF2_Reader_Open(anchor.c_str()));
  if (reader != nullptr) OTF2_Reader_SetSerialCollectiveCallbacks(reader.get());
  return reader;
}

std::string take_otf2_error() { return std::exchange(otf2_definitions::last_error, {}); }

Otf2Definitions read_otf2_definitions(OTF2_Reader* reader, const std::string& name) {
  Otf2Definitions definitions;
  take_otf2_error();
  OTF2_GlobalDefReader* global = OTF2_Reader_GetGlobalDefReader(reader);
  if (global == nullptr) {
    throw Error(fmt::format("{}: the definitions cannot be read ({}): keep the .def file beside the anchor file", name,
                            take_otf2_error()));
  }
  const std::unique_ptr<OTF2_GlobalDefReaderCallbacks, void (*)(OTF2_GlobalDefReaderCallbacks*)> callbacks(
      OTF2_GlobalDefReaderCallbacks_New(), OTF2_GlobalDefReaderCallbacks_Delete);
  OTF2_GlobalDefReaderCallbacks* all = callbacks.get();
  OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(all, otf2_definitions::clock);
  OTF2_GlobalDefReaderCallbacks_SetStringCallback(all, otf2_definitions::string);
  OTF2_GlobalDefReaderCallbacks_SetRegionCallback(all, otf2_definitions::region);
  OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(all, otf2_definitions::location_group);
  OTF2_GlobalDefReaderCallbacks_SetLocationCallback(all, otf2_definitions::location);
  OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(all, otf2_definitions::node);
  OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeDomainCallback(all, otf2_definitions::node_domain);
  OTF2_GlobalDefReaderCallbacks_SetGroupCallback(all, otf2_definitions::group);
  OTF2_GlobalDefReaderCallbacks_SetCommCallback(all, otf2_definitions::communicator);
  OTF2_GlobalDefReaderCallbacks_SetInterCommCallback(all, otf2_definitions::inter_communicator);
  OTF2_GlobalDefReaderCallbacks_SetMetricMemberCallback(all, otf2_definitions::metric_member);
  OTF2_GlobalDefReaderCallbacks_SetMetricClassCallback(all, otf2_definitions::metric_class);
  OTF2_GlobalDefReaderCallbacks_SetMetricInstanceCallback(all, otf2_definitions::metric_instance);
  OTF2_GlobalDefReaderCallbacks_SetAttributeCallback(all, otf2_definitions::attribute);
  OTF2_Reader_RegisterGlobalDefCallbacks(reader, global, all, &definitions);
  std::uint64_t read = 0;
  const OTF2_ErrorCode result = OTF2_Reader_ReadAllGlobalDefinitions(reader, global, &read);
  definitions.complete = result == OTF2_SUCCESS;
  if (definitions.locations.empty()) {
    const std::string reason = take_otf2_error();
    throw Error(fmt::format("{}: the archive has no locations{}: record the trace again", name,
                            reason.empty() ? "" : fmt::format(" ({})", reason)));
  }
  OTF2_Reader_CloseGlobalDefReader(reader, global);
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
