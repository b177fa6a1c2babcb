// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/otf2/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "analysis/importers/cuda_names.h"
#include "analysis/importers/mpi_names.h"

namespace paceline::analysis {
namespace otf2_process {

constexpr std::size_t small_regions = std::size_t{1} << 20;

std::string_view domain_of(OTF2_Paradigm paradigm) {
  switch (paradigm) {
    case OTF2_PARADIGM_MPI:
      return "mpi";
    case OTF2_PARADIGM_CUDA:
      return "cuda";
    case OTF2_PARADIGM_OPENMP:
      return "openmp";
    case OTF2_PARADIGM_OPENACC:
      return "openacc";
    case OTF2_PARADIGM_OPENCL:
      return "opencl";
    case OTF2_PARADIGM_HIP:
      return "hip";
    case OTF2_PARADIGM_KOKKOS:
      return "kokkos";
    case OTF2_PARADIGM_PTHREAD:
      return "pthread";
    case OTF2_PARADIGM_SHMEM:
      return "shmem";
    case OTF2_PARADIGM_GASPI:
      return "gaspi";
    case OTF2_PARADIGM_MEASUREMENT_SYSTEM:
      return "measurement";
    default:
      return "";  // of the program
  }
}

std::string_view mpi_category_of(std::string_view name, OTF2_RegionRole role) {
  const std::string_view category = mpi_category(name);
  if (!category.empty()) return category;
  switch (role) {
    case OTF2_REGION_ROLE_BARRIER:
    case OTF2_REGION_ROLE_COLL_ONE2ALL:
    case OTF2_REGION_ROLE_COLL_ALL2ONE:
    case OTF2_REGION_ROLE_COLL_ALL2ALL:
    case OTF2_REGION_ROLE_COLL_OTHER:
      return "collective";
    case OTF2_REGION_ROLE_POINT2POINT:
      return "point-to-point";
    case OTF2_REGION_ROLE_RMA:
      return "one-sided";
    case OTF2_REGION_ROLE_FILE_IO:
    case OTF2_REGION_ROLE_FILE_IO_METADATA:
      return "file";
    default:
      return "";
  }
}

std::string_view cuda_category(std::string_view function) {
  if (waits(function)) return "synchronization";
  return function.starts_with("cu") && !function.starts_with("cuda") ? "driver" : "runtime";
}

// Recorders name copies after the call that made them: "cuMemcpyHtoDAsync_v2", "memcpy_h2d".
std::string_view stream_category(std::string_view name, OTF2_RegionRole role) {
  const auto contains = [&](std::string_view first, std::string_view second) {
    return name.find(first) != name.npos || name.find(second) != name.npos;
  };
  if (contains("memset", "Memset")) return "memset";
  return role == OTF2_REGION_ROLE_DATA_TRANSFER || contains("memcpy", "Memcpy") ? "memcpy" : "kernel";
}

// Where the calls of a domain are counted.
std::uint64_t Rank::*count_of(std::string_view domain) {
  if (domain == "mpi") return &Rank::mpi_events;
  if (domain == "cuda") return &Rank::cuda_events;
  return domain == "nccl" ? &Rank::nccl_events : nullptr;
}

}  // namespace otf2_process

Otf2Process::Otf2Process(RankBuilder& rank, const Otf2Definitions& definitions)
    : bytes(rank.names().intern("bytes")),
      communicator_key(rank.names().intern("communicator")),
      members(rank.names().intern("members")),
      root(rank.names().intern("root")),
      peer(rank.names().intern("peer")),
      tag(rank.names().intern("tag")),
      request(rank.names().intern("request")),
      unfinished(rank.names().intern("unfinished")),
      rank_(rank),
      definitions_(definitions) {
  add_communicators();
}

const Otf2Process::Kind& Otf2Process::kind(OTF2_RegionRef region, bool on_stream) {
  if (region >= otf2_process::small_regions) {
    const auto [found, fresh] = large_kinds_[on_stream].try_emplace(region);
    if (fresh) found->second = make_kind(region, on_stream);
    return found->second;
  }
  std::vector<Kind>& kinds = kinds_[on_stream];
  if (kinds.size() <= region) kinds.resize(region + 1);
  if (kinds[region].kind == 0 && !kinds[region].skipped) kinds[region] = make_kind(region, on_stream);
  return kinds[region];
}

Otf2Process::Kind Otf2Process::make_kind(OTF2_RegionRef id, bool on_stream) {
  const auto found = definitions_.regions.find(id);
  if (found == definitions_.regions.end()) return {rank_.kind(fmt::format("region {}", id)), nullptr, false};
  const Otf2Definitions::Region& region = found->second;
  if (definitions_.own) return own_kind(region);
  std::string name = definitions_.string(region.name);
  if (name.empty()) name = fmt::format("region {}", id);
  if (on_stream) {
    if (region.role == OTF2_REGION_ROLE_ARTIFICIAL) return {0, nullptr, true};
    const std::string_view category = otf2_process::stream_category(name, region.role);
    return {rank_.kind(demangled(name), "cuda", category), &Rank::cuda_events, false};
  }
  const std::string_view domain = otf2_process::domain_of(region.paradigm);
  const std::string_view category = domain == "mpi"    ? otf2_process::mpi_category_of(name, region.role)
                                    : domain == "cuda" ? otf2_process::cuda_category(name)
                                                       : "";
  return {rank_.kind(name, domain, category), otf2_process::count_of(domain), false};
}

// Paceline's export describes regions as "domain / category".
Otf2Process::Kind Otf2Process::own_kind(const Otf2Definitions::Region& region) {
  const std::string_view description = definitions_.string(region.description);
  const std::size_t slash = std::min(description.find(" / "), description.size());
  const std::string_view domain = description.substr(0, slash);
  const std::string_view category = description.substr(std::min(slash + 3, description.size()));
  return {rank_.kind(definitions_.string(region.name), domain, category), otf2_process::count_of(domain), false};
}

NameId Otf2Process::attribute(OTF2_AttributeRef id) {
  const auto [found, fresh] = attributes_.try_emplace(id);
  const auto defined = definitions_.attributes.find(id);
  if (fresh && defined != definitions_.attributes.end()) found->second = text(defined->second);
  return found->second;
}

NameId Otf2Process::text(OTF2_StringRef id) {
  const auto [found, fresh] = texts_.try_emplace(id);
  if (fresh) found->second = rank_.names().intern(definitions_.string(id));
  return found->second;
}

// All processes of the archive refer to a communicator by one number, and its text is the same in all of them.
void Otf2Process::add_communicators() {
  std::map<std::string, OTF2_CommRef> first_with_name;
  for (const auto& [id, communicator] : definitions_.communicators) {
    first_with_name.try_emplace(definitions_.string(communicator.name), id);
  }
  const std::vector<OTF2_LocationRef> ranks = definitions_.rank_locations();
  const int own_rank = rank_.info().rank;
  for (const auto& [id, communicator] : definitions_.communicators) {
    const std::string& name = definitions_.string(communicator.name);
    std::string text = name.empty()                  ? fmt::format("communicator {}", id)
                       : first_with_name[name] == id ? name
                                                     : fmt::format("{} {}", name, id);
    Communicator made;
    std::int32_t own = -1;
    const auto group = definitions_.groups.find(communicator.group);
    if (group != definitions_.groups.end()) {
      if (group->second.type == OTF2_GROUP_TYPE_COMM_SELF) {
        made.members = 1;
        own = 0;
        text += fmt::format(" of rank {}", own_rank);
      } else {
        // The members are places in the list of all ranks' locations.
        const std::vector<std::uint64_t>& all = group->second.members;
        made.members = static_cast<std::uint32_t>(all.size());
        const auto at = std::ranges::find(all, static_cast<std::uint64_t>(own_rank));
        if (at != all.end()) own = static_cast<std::int32_t>(at - all.begin());
      }
    }
    made.text = rank_.names().intern(text);
    communicators_[id] = made;
    if (own >= 0) rank_.add_communicator({made.text, name_identity(text), made.members}, own);
  }
}

const Otf2Process::Communicator& Otf2Process::communicator(OTF2_CommRef id) {
  const auto [found, fresh] = communicators_.try_emplace(id);
  if (fresh) found->second.text = rank_.names().intern(fmt::format("communicator {}", id));
  return found->second;
}

std::vector<Otf2Process::Counter>& Otf2Process::counters(OTF2_MetricRef metric,
                                                         const Otf2Definitions::Location& location) {
  const auto [found, fresh] = counters_.try_emplace({metric, location.id});
  if (!fresh) return found->second;
  const auto instance = definitions_.metric_instances.find(metric);
  const auto of_class =
      definitions_.metric_classes.find(instance != definitions_.metric_instances.end() ? instance->second : metric);
  if (of_class == definitions_.metric_classes.end()) return found->second;
  for (const OTF2_MetricMemberRef id : of_class->second) {
    Counter counter;
    const auto member = definitions_.metric_members.find(id);
    if (member != definitions_.metric_members.end()) {
      const Otf2Definitions::MetricMember& of = member->second;
      counter.factor = std::pow(of.base == OTF2_BASE_BINARY ? 2.0 : 10.0, static_cast<double>(of.exponent));
      if (!std::isfinite(counter.factor)) counter.factor = 1;
      const std::string& unit = definitions_.string(of.unit);
      const bool is_sum = (of.mode & OTF2_METRIC_VALUE_MASK) == OTF2_METRIC_VALUE_ACCUMULATED;
      const OTF2_StringRef device = definitions_.own ? of.description : location.name;
      counter.track = &rank_.add_counter(definitions_.string(of.name), unit == "#" ? "" : unit,
                                         definitions_.string(device), is_sum);
    }
    found->second.push_back(counter);
  }
  return found->second;
}

}  // namespace paceline::analysis
