// SPDX-License-Identifier: Apache-2.0
// An OTF2 archive, the format of Score-P, Vampir and Scalasca: a directory with traces.otf2. A location group for each
// rank, a location for each track, a region for each kind (described as "domain / category"), the arguments as
// attributes of the enter events, marks as markers, counters as metrics. MPI's blocking sends, receives and collectives
// have their communication events where all members of the communicator are exported.
//
// Timestamps are ns and unsigned: where a run has times before its zero, all times are moved so that the earliest one
// is 0.
#include <otf2/otf2.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "analysis/exporters/exporter.h"
#include "analysis/exporters/json_arguments.h"
#include "analysis/importers/own_exports.h"
#include "analysis/text/text_output.h"

namespace paceline::analysis {
namespace otf2_writer {

void check(OTF2_ErrorCode code) {
  if (code != OTF2_SUCCESS) {
    throw Error(fmt::format("the export could not be written: {}", OTF2_Error_GetDescription(code)));
  }
}

// The library would print errors to standard error.
OTF2_ErrorCode keep_quiet(void*, const char*, std::uint64_t, const char*, OTF2_ErrorCode code, const char*, va_list) {
  return code;
}

struct MpiCollective {
  std::string_view name;
  OTF2_CollectiveOp operation;
  OTF2_RegionRole role;
};
constexpr MpiCollective mpi_collectives[] = {
    {"MPI_Barrier", OTF2_COLLECTIVE_OP_BARRIER, OTF2_REGION_ROLE_BARRIER},
    {"MPI_Bcast", OTF2_COLLECTIVE_OP_BCAST, OTF2_REGION_ROLE_COLL_ONE2ALL},
    {"MPI_Gather", OTF2_COLLECTIVE_OP_GATHER, OTF2_REGION_ROLE_COLL_ALL2ONE},
    {"MPI_Gatherv", OTF2_COLLECTIVE_OP_GATHERV, OTF2_REGION_ROLE_COLL_ALL2ONE},
    {"MPI_Scatter", OTF2_COLLECTIVE_OP_SCATTER, OTF2_REGION_ROLE_COLL_ONE2ALL},
    {"MPI_Scatterv", OTF2_COLLECTIVE_OP_SCATTERV, OTF2_REGION_ROLE_COLL_ONE2ALL},
    {"MPI_Allgather", OTF2_COLLECTIVE_OP_ALLGATHER, OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"MPI_Allgatherv", OTF2_COLLECTIVE_OP_ALLGATHERV, OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"MPI_Alltoall", OTF2_COLLECTIVE_OP_ALLTOALL, OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"MPI_Alltoallv", OTF2_COLLECTIVE_OP_ALLTOALLV, OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"MPI_Alltoallw", OTF2_COLLECTIVE_OP_ALLTOALLW, OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"MPI_Allreduce", OTF2_COLLECTIVE_OP_ALLREDUCE, OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"MPI_Reduce", OTF2_COLLECTIVE_OP_REDUCE, OTF2_REGION_ROLE_COLL_ALL2ONE},
    {"MPI_Reduce_scatter", OTF2_COLLECTIVE_OP_REDUCE_SCATTER, OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"MPI_Reduce_scatter_block", OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK, OTF2_REGION_ROLE_COLL_ALL2ALL},
    {"MPI_Scan", OTF2_COLLECTIVE_OP_SCAN, OTF2_REGION_ROLE_COLL_OTHER},
    {"MPI_Exscan", OTF2_COLLECTIVE_OP_EXSCAN, OTF2_REGION_ROLE_COLL_OTHER}};

constexpr std::string_view mpi_sends[] = {"MPI_Send", "MPI_Bsend", "MPI_Ssend", "MPI_Rsend"};

struct RoleOfCategory {
  std::string_view domain, category;
  OTF2_RegionRole role;
};
constexpr RoleOfCategory roles[] = {
    {"mpi", "collective", OTF2_REGION_ROLE_COLL_OTHER},  {"mpi", "point-to-point", OTF2_REGION_ROLE_POINT2POINT},
    {"mpi", "wait", OTF2_REGION_ROLE_POINT2POINT},       {"mpi", "one-sided", OTF2_REGION_ROLE_RMA},
    {"mpi", "file", OTF2_REGION_ROLE_FILE_IO},           {"cuda", "memcpy", OTF2_REGION_ROLE_DATA_TRANSFER},
    {"nccl", "collective", OTF2_REGION_ROLE_COLL_OTHER}, {"nccl", "point-to-point", OTF2_REGION_ROLE_POINT2POINT}};

// What the events of one kind become.
struct Region {
  OTF2_RegionRef number = OTF2_UNDEFINED_REGION;  // in the order of first use: readers expect no gaps
  const MpiCollective* collective = nullptr;
  bool send = false, receive = false;  // MPI's blocking ones
  OTF2_StringRef description = 0;
};

// Values of an attribute have one type, so a key has an attribute for each type that occurs.
using AttributeKey = std::pair<NameId, OTF2_Type>;

class Otf2Writer {
 public:
  Otf2Writer(const ExportJob& job, const std::filesystem::path& folder)
      : job_(job),
        texts_(job.trace()),
        regions_(job.trace().kinds.size()),
        shift_ns_(-std::min<std::int64_t>(job.earliest_ns(), 0)),
        next_string_(static_cast<OTF2_StringRef>(job.trace().names.size())) {
    OTF2_Error_RegisterCallback(keep_quiet, nullptr);
    constexpr std::uint64_t chunk = 1 << 20, definitions_chunk = 4 << 20;
    archive_ = OTF2_Archive_Open(folder.c_str(), "traces", OTF2_FILEMODE_WRITE, chunk, definitions_chunk,
                                 OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (archive_ == nullptr) throw Error("an OTF2 archive could not be made; check the directory and its permissions");
    attributes_ = OTF2_AttributeList_New();
    for (std::size_t k = 0; k < regions_.size(); ++k) classify(static_cast<KindId>(k));
  }
  ~Otf2Writer() {
    OTF2_AttributeList_Delete(attributes_);
    if (archive_ != nullptr) OTF2_Archive_Close(archive_);
  }
  Otf2Writer(const Otf2Writer&) = delete;
  Otf2Writer& operator=(const Otf2Writer&) = delete;

  void write() {
    static constexpr OTF2_FlushCallbacks flush{.otf2_pre_flush = [](void*, OTF2_FileType, OTF2_LocationRef, void*,
                                                                    bool) -> OTF2_FlushType { return OTF2_FLUSH; },
                                               .otf2_post_flush = nullptr};
    check(OTF2_Archive_SetFlushCallbacks(archive_, &flush, nullptr));
    check(OTF2_Archive_SetSerialCollectiveCallbacks(archive_));
    check(OTF2_Archive_SetCreator(archive_, otf2_creator.data()));
    find_communicators();
    check(OTF2_Archive_OpenEvtFiles(archive_));
    each_location([&](const Rank& rank, const Track& track, std::uint64_t location) { events(rank, track, location); });
    check(OTF2_Archive_CloseEvtFiles(archive_));
    local_definitions();
    definitions();
    markers();
    OTF2_Archive* const archive = std::exchange(archive_, nullptr);
    check(OTF2_Archive_Close(archive));
  }

 private:
  void classify(KindId id) {
    const Trace& trace = job_.trace();
    const Kind& kind = trace.kinds[id];
    if (trace.names[kind.domain] != "mpi") return;
    const std::string& name = trace.names[kind.name];
    const auto* known = std::ranges::find(mpi_collectives, name, &MpiCollective::name);
    if (known != std::end(mpi_collectives)) regions_[id].collective = known;
    regions_[id].send = std::ranges::find(mpi_sends, name) != std::end(mpi_sends);
    regions_[id].receive = name == "MPI_Recv";
  }

  // The number of a location is that of the track.
  template <class Visit>
  void each_location(Visit&& visit) const {
    for (const Rank* rank : job_.ranks()) {
      for (const Track& track : rank->tracks) {
        visit(*rank, track, job_.first_track(*rank) + static_cast<std::uint64_t>(&track - rank->tracks.data()));
      }
    }
  }

  std::uint64_t time(std::int64_t ns) const { return static_cast<std::uint64_t>(ns + shift_ns_); }

  // Those of which every member is exported: OTF2 names members by their place in the communicator.
  void find_communicators() {
    std::map<NameId, std::map<std::int32_t, std::uint64_t>> members;  // location by rank in the communicator
    for (std::uint64_t r = 0; r < job_.ranks().size(); ++r) {
      const Rank& rank = *job_.ranks()[r];
      for (std::size_t c = 0; c < rank.communicators.size(); ++c) {
        members[rank.communicators[c]].try_emplace(rank.communicator_ranks[c], r);
      }
    }
    for (const auto& [text, of] : members) {
      const Communicator* known = job_.trace().communicators.find(text);
      const bool complete = known != nullptr && known->members == of.size() && of.begin()->first == 0 &&
                            of.rbegin()->first == static_cast<std::int32_t>(of.size()) - 1;
      if (!complete) continue;
      std::vector<std::uint64_t>& list = communicators_[text];
      for (const auto& [own, location] : of) list.push_back(location);
    }
  }

  void events(const Rank&, const Track& track, std::uint64_t location) {
    OTF2_EvtWriter* writer = OTF2_Archive_GetEvtWriter(archive_, location);
    if (writer == nullptr) throw Error("the export could not be written: a file could not be made");
    if (track.kind == TrackKind::counter) {
      samples(writer, track.samples);
    } else {
      slices(writer, track.slices);
    }
    check(OTF2_EvtWriter_GetNumberOfEvents(writer, &event_counts_[location]));
    check(OTF2_Archive_CloseEvtWriter(archive_, writer));
  }

  // Metrics are numbered in the order of the locations.
  void samples(OTF2_EvtWriter* writer, const Samples& samples) {
    const OTF2_MetricRef metric = metrics_++;
    const auto [first, last] = job_.selection().samples(samples.time_ns);
    for (std::size_t i = first; i < last; ++i) {
      const OTF2_Type type = OTF2_TYPE_DOUBLE;
      OTF2_MetricValue value{};
      value.floating_point = samples.value[i];
      check(OTF2_EvtWriter_Metric(writer, nullptr, time(samples.time_ns[i]), metric, 1, &type, &value));
    }
  }

  void slices(OTF2_EvtWriter* writer, const Slices& slices) {
    std::vector<SelectedSlice> open;
    const auto leave = [&] {
      const SelectedSlice& slice = open.back();
      end(writer, slices, slice);
      check(OTF2_EvtWriter_Leave(writer, nullptr, time(slice.end_ns()), regions_[slices.kind[slice.index]].number));
      open.pop_back();
    };
    job_.each(slices, [&](const SelectedSlice& slice) {
      while (!open.empty() && open.back().end_ns() <= slice.start_ns) leave();
      Region& region = regions_[slices.kind[slice.index]];
      if (region.number == OTF2_UNDEFINED_REGION) {
        region.number = static_cast<OTF2_RegionRef>(used_.size());
        used_.push_back(slices.kind[slice.index]);
      }
      add_attributes(slices, slice);
      check(OTF2_EvtWriter_Enter(writer, attributes_, time(slice.start_ns), region.number));
      begin(writer, slices, slice);
      open.push_back(slice);
    });
    while (!open.empty()) leave();
  }

  // Where the communication of a call is told: its communicator's number, partner or root, and size.
  struct Communication {
    OTF2_CommRef communicator = 0;
    std::uint32_t partner = OTF2_UNDEFINED_UINT32, tag = 0;
    std::uint64_t bytes = 0;
    bool known = false;
  };
  Communication communication(const Slices& slices, const SelectedSlice& slice, std::string_view partner) const {
    const Names& names = job_.trace().names;
    Communication found;
    const auto communicator = communicators_.find(slices.text(slice.index, names.find("communicator")));
    if (communicator == communicators_.end()) return found;
    const auto number = [&](std::string_view key) -> std::int64_t {
      const auto argument = slices.argument(slice.index, names.find(key));
      return argument ? static_cast<std::int64_t>(argument->bits) : -1;
    };
    found.communicator = static_cast<OTF2_CommRef>(std::distance(communicators_.begin(), communicator));
    const std::int64_t other = number(partner), tag = number("tag"), bytes = number("bytes");
    const bool has_partner = other >= 0 && other < static_cast<std::int64_t>(communicator->second.size());
    if (has_partner) found.partner = static_cast<std::uint32_t>(other);
    found.tag = static_cast<std::uint32_t>(std::max<std::int64_t>(tag, 0));
    found.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0));
    found.known = has_partner || partner == "root";
    return found;
  }

  // The communication events behind an enter event and before a leave event. A clipped call has none at its cut end.
  void begin(OTF2_EvtWriter* writer, const Slices& slices, const SelectedSlice& slice) const {
    const Region& region = regions_[slices.kind[slice.index]];
    if (slice.clipped != Clipped::no || (region.collective == nullptr && !region.send)) return;
    const Communication with = communication(slices, slice, region.send ? "peer" : "root");
    if (!with.known) return;
    check(region.send ? OTF2_EvtWriter_MpiSend(writer, nullptr, time(slice.start_ns), with.partner, with.communicator,
                                               with.tag, with.bytes)
                      : OTF2_EvtWriter_MpiCollectiveBegin(writer, nullptr, time(slice.start_ns)));
  }
  void end(OTF2_EvtWriter* writer, const Slices& slices, const SelectedSlice& slice) const {
    const Region& region = regions_[slices.kind[slice.index]];
    if (slice.clipped != Clipped::no || (region.collective == nullptr && !region.receive)) return;
    const Communication with = communication(slices, slice, region.receive ? "peer" : "root");
    if (!with.known) return;
    check(region.receive
              ? OTF2_EvtWriter_MpiRecv(writer, nullptr, time(slice.end_ns()), with.partner, with.communicator, with.tag,
                                       with.bytes)
              : OTF2_EvtWriter_MpiCollectiveEnd(writer, nullptr, time(slice.end_ns()), region.collective->operation,
                                                with.communicator, with.partner, with.bytes, with.bytes));
  }

  void add_attributes(const Slices& slices, const SelectedSlice& slice) {
    slices.each_argument(slice.index, [&](const Argument& argument) {
      OTF2_Type type = OTF2_TYPE_UINT64;
      OTF2_AttributeValue value{};
      value.uint64 = argument.bits;  // of a number of any type
      if (argument.type == ValueType::signed_integer) type = OTF2_TYPE_INT64;
      if (argument.type == ValueType::real) type = OTF2_TYPE_DOUBLE;
      if (argument.type == ValueType::text) {
        type = OTF2_TYPE_STRING;
        value.stringRef = argument.text();
      }
      const OTF2_AttributeRef id = attribute(argument.key, type);
      // OTF2 takes each once. A call that completed its own request has it twice.
      if (!OTF2_AttributeList_TestAttributeByID(attributes_, id)) {
        check(OTF2_AttributeList_AddAttribute(attributes_, id, type, value));
      }
    });
    if (slice.clipped != Clipped::no) {
      const auto edge = static_cast<std::size_t>(slice.clipped) - 1;
      if (clipped_texts_[edge] == 0) clipped_texts_[edge] = string(clipped_text(slice.clipped));
      check(OTF2_AttributeList_AddStringRef(attributes_, clipped_attribute, clipped_texts_[edge]));
    }
  }

  OTF2_AttributeRef attribute(NameId key, OTF2_Type type) {
    return attribute_ids_
        .try_emplace({key, type}, first_attribute + static_cast<OTF2_AttributeRef>(attribute_ids_.size()))
        .first->second;
  }

  // A string that is not one of the trace's names. It is defined with them at the end.
  OTF2_StringRef string(std::string_view text) {
    const auto [found, fresh] = strings_.try_emplace(std::string(text), next_string_);
    if (fresh) ++next_string_;
    return found->second;
  }

  // Readers expect a file of local definitions for each location; there are none to write.
  void local_definitions() {
    check(OTF2_Archive_OpenDefFiles(archive_));
    each_location([&](const Rank&, const Track&, std::uint64_t location) {
      OTF2_DefWriter* writer = OTF2_Archive_GetDefWriter(archive_, location);
      if (writer == nullptr) throw Error("the export could not be written: a file could not be made");
      check(OTF2_Archive_CloseDefWriter(archive_, writer));
    });
    check(OTF2_Archive_CloseDefFiles(archive_));
  }

  void definitions() {
    OTF2_GlobalDefWriter* const to = OTF2_Archive_GetGlobalDefWriter(archive_);
    if (to == nullptr) throw Error("the export could not be written: a file could not be made");
    const Trace& trace = job_.trace();
    const std::int64_t earliest_ns = job_.earliest_ns();
    const auto utc = job_.utc_of_zero_ns();
    check(OTF2_GlobalDefWriter_WriteClockProperties(
        to, 1'000'000'000, time(earliest_ns),
        static_cast<std::uint64_t>(std::max<std::int64_t>(trace.span_ns() - earliest_ns, 0)),
        utc ? static_cast<std::uint64_t>(*utc + earliest_ns) : OTF2_UNDEFINED_TIMESTAMP));
    system_tree();
    const OTF2_StringRef mpi = string("MPI"), cuda = string("CUDA"), user = string("user");
    const OTF2_StringRef clipped = string("clipped");
    for (const KindId id : used_) {
      const Kind& kind = trace.kinds[id];
      regions_[id].description = string(fmt::format("{} / {}", texts_[kind.domain], texts_[kind.category]));
    }
    for (NameId name = 0; name < trace.names.size(); ++name) {
      check(OTF2_GlobalDefWriter_WriteString(to, name, texts_[name].c_str()));
    }
    for (const auto& [text, id] : strings_) check(OTF2_GlobalDefWriter_WriteString(to, id, text.c_str()));
    check(OTF2_GlobalDefWriter_WriteParadigm(to, OTF2_PARADIGM_MPI, mpi, OTF2_PARADIGM_CLASS_PROCESS));
    check(OTF2_GlobalDefWriter_WriteParadigm(to, OTF2_PARADIGM_CUDA, cuda, OTF2_PARADIGM_CLASS_ACCELERATOR));
    check(OTF2_GlobalDefWriter_WriteParadigm(to, OTF2_PARADIGM_USER, user, OTF2_PARADIGM_CLASS_PROCESS));
    check(OTF2_GlobalDefWriter_WriteAttribute(to, clipped_attribute, clipped, 0, OTF2_TYPE_STRING));
    for (const auto& [key, id] : attribute_ids_) {
      check(OTF2_GlobalDefWriter_WriteAttribute(to, id, key.first, 0, key.second));
    }
    for (const auto& write : tree_) write(to);
    for (const KindId id : used_) region(to, id);
    communicators(to);
    check(OTF2_Archive_CloseGlobalDefWriter(archive_, to));
  }

  // Hosts, ranks, tracks and counters. Their texts become strings, which have to be defined before they are used.
  void system_tree() {
    const OTF2_StringRef machine = string("machine"), node = string("node"), job = string("job");
    tree_.push_back([=](OTF2_GlobalDefWriter* to) {
      check(OTF2_GlobalDefWriter_WriteSystemTreeNode(to, 0, job, machine, OTF2_UNDEFINED_SYSTEM_TREE_NODE));
    });
    std::map<std::string, OTF2_SystemTreeNodeRef> hosts;
    for (OTF2_LocationGroupRef r = 0; r < job_.ranks().size(); ++r) {
      const Rank& rank = *job_.ranks()[r];
      const auto [host, fresh] = hosts.try_emplace(rank.host, static_cast<OTF2_SystemTreeNodeRef>(hosts.size() + 1));
      const OTF2_SystemTreeNodeRef on = host->second;
      if (fresh) {
        const OTF2_StringRef name = string(valid_utf8(rank.host));
        tree_.push_back(
            [=](OTF2_GlobalDefWriter* to) { check(OTF2_GlobalDefWriter_WriteSystemTreeNode(to, on, name, node, 0)); });
      }
      const OTF2_StringRef name = string(fmt::format("MPI Rank {}", rank.rank));
      tree_.push_back([=](OTF2_GlobalDefWriter* to) {
        check(OTF2_GlobalDefWriter_WriteLocationGroup(to, r, name, OTF2_LOCATION_GROUP_TYPE_PROCESS, on,
                                                      OTF2_UNDEFINED_LOCATION_GROUP));
      });
    }
    OTF2_LocationGroupRef group = 0;
    OTF2_MetricRef metrics = 0;
    const Rank* previous = nullptr;
    each_location([&](const Rank& rank, const Track& track, std::uint64_t location) {
      if (previous != nullptr && previous != &rank) ++group;
      previous = &rank;
      const OTF2_StringRef name = string(valid_utf8(track.label));
      const OTF2_LocationType type = track.kind == TrackKind::counter  ? OTF2_LOCATION_TYPE_METRIC
                                     : track.kind == TrackKind::thread ? OTF2_LOCATION_TYPE_CPU_THREAD
                                                                       : OTF2_LOCATION_TYPE_ACCELERATOR_STREAM;
      const std::uint64_t events = event_counts_[location];
      tree_.push_back([=, own_group = group](OTF2_GlobalDefWriter* to) {
        check(OTF2_GlobalDefWriter_WriteLocation(to, location, name, type, events, own_group));
      });
      if (track.kind == TrackKind::counter) metric(track.samples, metrics++);
    });
  }

  void metric(const Samples& samples, OTF2_MetricRef metric) {
    const OTF2_StringRef name = string(valid_utf8(samples.name)), device = string(valid_utf8(samples.device)),
                         unit = string(valid_utf8(samples.unit));
    const OTF2_MetricMode mode = samples.is_sum ? OTF2_METRIC_ACCUMULATED_START : OTF2_METRIC_ABSOLUTE_POINT;
    tree_.push_back([=](OTF2_GlobalDefWriter* to) {
      check(OTF2_GlobalDefWriter_WriteMetricMember(to, metric, name, device, OTF2_METRIC_TYPE_OTHER, mode,
                                                   OTF2_TYPE_DOUBLE, OTF2_BASE_DECIMAL, 0, unit));
      check(OTF2_GlobalDefWriter_WriteMetricClass(to, metric, 1, &metric, OTF2_METRIC_ASYNCHRONOUS,
                                                  OTF2_RECORDER_KIND_ABSTRACT));
    });
  }

  void region(OTF2_GlobalDefWriter* to, KindId id) {
    const Trace& trace = job_.trace();
    const Kind& kind = trace.kinds[id];
    const std::string &domain = trace.names[kind.domain], &category = trace.names[kind.category];
    OTF2_RegionRole role = OTF2_REGION_ROLE_FUNCTION;
    for (const RoleOfCategory& known : roles) {
      if (known.domain == domain && known.category == category) role = known.role;
    }
    if (regions_[id].collective != nullptr) role = regions_[id].collective->role;
    const OTF2_Paradigm paradigm = domain == "mpi"                        ? OTF2_PARADIGM_MPI
                                   : domain == "cuda" || domain == "nccl" ? OTF2_PARADIGM_CUDA
                                                                          : OTF2_PARADIGM_USER;
    check(OTF2_GlobalDefWriter_WriteRegion(to, regions_[id].number, kind.name, kind.name, regions_[id].description,
                                           role, paradigm, OTF2_REGION_FLAG_NONE, OTF2_UNDEFINED_STRING, 0, 0));
  }

  // The ranks' main threads are the members, by their place among the exported ranks.
  void communicators(OTF2_GlobalDefWriter* to) {
    if (communicators_.empty()) return;
    std::vector<std::uint64_t> locations;
    for (const Rank* rank : job_.ranks()) {
      const Track* main = main_track(*rank);
      const auto track = main == nullptr ? 0 : static_cast<std::uint64_t>(main - rank->tracks.data());
      locations.push_back(job_.first_track(*rank) + track);
    }
    check(OTF2_GlobalDefWriter_WriteGroup(to, 0, 0, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
                                          OTF2_GROUP_FLAG_NONE, static_cast<std::uint32_t>(locations.size()),
                                          locations.data()));
    OTF2_CommRef number = 0;
    for (const auto& [text, members] : communicators_) {
      check(OTF2_GlobalDefWriter_WriteGroup(to, number + 1, text, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI,
                                            OTF2_GROUP_FLAG_NONE, static_cast<std::uint32_t>(members.size()),
                                            members.data()));
      check(OTF2_GlobalDefWriter_WriteComm(to, number, text, number + 1, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE));
      ++number;
    }
  }

  // A definition for each kind, with the domain as the group; the text is the name with its arguments.
  void markers() {
    OTF2_MarkerWriter* const to = OTF2_Archive_GetMarkerWriter(archive_);
    if (to == nullptr) throw Error("the export could not be written: a file could not be made");
    std::vector<bool> defined(regions_.size());
    JsonArguments arguments(job_.trace());
    each_location([&](const Rank&, const Track& track, std::uint64_t location) {
      job_.each(track.marks, [&](const SelectedSlice& mark) {
        const KindId id = track.marks.kind[mark.index];
        const Kind& kind = job_.trace().kinds[id];
        if (!defined[id]) {
          defined[id] = true;
          check(OTF2_MarkerWriter_WriteDefMarker(to, id, texts_[kind.domain].c_str(), texts_[kind.category].c_str(),
                                                 OTF2_SEVERITY_NONE));
        }
        const std::string& of = arguments(track.marks, mark);
        const std::string text = track.marks.record[mark.index] == 0 ? texts_[kind.name] : texts_[kind.name] + ' ' + of;
        check(OTF2_MarkerWriter_WriteMarker(to, time(mark.start_ns), 0, id, OTF2_MARKER_SCOPE_LOCATION, location,
                                            text.c_str()));
      });
    });
    check(OTF2_Archive_CloseMarkerWriter(archive_, to));
  }

  static constexpr OTF2_AttributeRef clipped_attribute = 0, first_attribute = 1;
  const ExportJob& job_;
  CleanNames texts_;
  std::vector<Region> regions_;  // by kind
  std::vector<KindId> used_;     // by the region's number
  const std::int64_t shift_ns_;
  OTF2_Archive* archive_ = nullptr;
  OTF2_AttributeList* attributes_ = nullptr;
  std::map<NameId, std::vector<std::uint64_t>> communicators_;  // members: places among the exported ranks
  std::map<std::uint64_t, std::uint64_t> event_counts_;         // by location
  std::map<AttributeKey, OTF2_AttributeRef> attribute_ids_;
  std::map<std::string, OTF2_StringRef> strings_;  // those that are not the trace's names
  OTF2_StringRef next_string_;
  OTF2_MetricRef metrics_ = 0;
  OTF2_StringRef clipped_texts_[3] = {};
  std::vector<std::function<void(OTF2_GlobalDefWriter*)>> tree_;
};

}  // namespace otf2_writer

constexpr Exporter otf2_exporter{.name = "otf2",
                                 .what = "a directory for Vampir and Scalasca",
                                 .target = Exporter::Target::folder,
                                 .make = [](const ExportJob& job, const std::filesystem::path& path) {
                                   otf2_writer::Otf2Writer(job, path).write();
                                 }};

}  // namespace paceline::analysis
