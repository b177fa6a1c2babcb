// SPDX-License-Identifier: Apache-2.0
// Writes small OTF2 archives with the C library, for tests and benchmarks.
//
//   Otf2Archive archive(folder);
//   OTF2_EvtWriter* events = archive.location(0);
//   … OTF2_EvtWriter_Enter(events, nullptr, 10, archive.region("main")) …
//   archive.end({.ranks = 2});
#pragma once

#include <otf2/otf2.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace paceline {

class Otf2Archive {
 public:
  explicit Otf2Archive(const std::filesystem::path& folder, const std::string& name = "traces") {
    archive_ = OTF2_Archive_Open(folder.c_str(), name.c_str(), OTF2_FILEMODE_WRITE, 1 << 20, 4 << 20,
                                 OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (archive_ == nullptr) throw std::runtime_error("no OTF2 archive can be written in " + folder.string());
    static const OTF2_FlushCallbacks flush = {
        [](void*, OTF2_FileType, OTF2_LocationRef, void*, bool) -> OTF2_FlushType { return OTF2_FLUSH; },
        [](void*, OTF2_FileType, OTF2_LocationRef) { return OTF2_TimeStamp{0}; }};
    OTF2_Archive_SetFlushCallbacks(archive_, &flush, nullptr);
    OTF2_Archive_SetSerialCollectiveCallbacks(archive_);
    OTF2_Archive_OpenEvtFiles(archive_);
    anchor_ = folder / (name + ".otf2");
    string("");
  }
  Otf2Archive(const Otf2Archive&) = delete;
  ~Otf2Archive() {
    if (archive_ != nullptr) OTF2_Archive_Close(archive_);
  }

  // The writer of a location's events. They are numbered rank by rank, thread by thread.
  OTF2_EvtWriter* location(OTF2_LocationRef id) {
    OTF2_EvtWriter*& writer = writers_[id];
    if (writer == nullptr) writer = OTF2_Archive_GetEvtWriter(archive_, id);
    return writer;
  }

  OTF2_StringRef string(const std::string& text) {
    return strings_.try_emplace(text, static_cast<OTF2_StringRef>(strings_.size())).first->second;
  }

  OTF2_RegionRef region(const std::string& name, OTF2_Paradigm paradigm = OTF2_PARADIGM_USER,
                        OTF2_RegionRole role = OTF2_REGION_ROLE_FUNCTION) {
    const auto [found, fresh] =
        regions_.try_emplace(name, Region{static_cast<OTF2_RegionRef>(regions_.size()), string(name), paradigm, role});
    return found->second.id;
  }

  // A metric with one member.
  OTF2_MetricRef metric(const std::string& name, const std::string& unit, OTF2_MetricMode mode, OTF2_Type type) {
    metrics_.push_back({string(name), string(unit), mode, type});
    return static_cast<OTF2_MetricRef>(metrics_.size() - 1);
  }

  struct Shape {
    int ranks = 1, threads = 1;  // of each rank
    bool gpu_stream = false;     // one more location for each rank
    std::uint64_t resolution = 1'000'000'000, offset = 0, length = 0, utc = OTF2_UNDEFINED_TIMESTAMP;
    std::string group_name = "MPI Rank ";
    bool mpi = true;  // the list of ranks, and MPI_COMM_WORLD as communicator 0
    std::string location_name = "Master thread";
  };

  // Writes the definitions and closes the archive. Returns the anchor file.
  std::filesystem::path end(const Shape& shape) {
    for (auto& [id, writer] : writers_) OTF2_Archive_CloseEvtWriter(archive_, std::exchange(writer, nullptr));
    OTF2_Archive_CloseEvtFiles(archive_);
    OTF2_Archive_OpenDefFiles(archive_);
    for (const auto& [id, writer] : writers_) {
      OTF2_Archive_CloseDefWriter(archive_, OTF2_Archive_GetDefWriter(archive_, id));
    }
    OTF2_Archive_CloseDefFiles(archive_);
    write_definitions(shape);
    OTF2_Archive_Close(std::exchange(archive_, nullptr));
    return anchor_;
  }

 private:
  struct Region {
    OTF2_RegionRef id = 0;
    OTF2_StringRef name = 0;
    OTF2_Paradigm paradigm = OTF2_PARADIGM_USER;
    OTF2_RegionRole role = OTF2_REGION_ROLE_FUNCTION;
  };
  struct Metric {
    OTF2_StringRef name = 0, unit = 0;
    OTF2_MetricMode mode = 0;
    OTF2_Type type = OTF2_TYPE_UINT64;
  };

  void write_definitions(const Shape& shape) {
    OTF2_GlobalDefWriter* to = OTF2_Archive_GetGlobalDefWriter(archive_);
    const OTF2_StringRef none = string(""), host = string("node17"), node = string("node"),
                         thread = string(shape.location_name), worker = string("worker"), gpu = string("CUDA[0:7]"),
                         world = string("MPI_COMM_WORLD"), pid_name = string("ProcessId");
    std::vector<OTF2_StringRef> groups;
    for (int rank = 0; rank < shape.ranks; ++rank) groups.push_back(string(shape.group_name + std::to_string(rank)));
    OTF2_GlobalDefWriter_WriteClockProperties(to, shape.resolution, shape.offset, shape.length, shape.utc);
    for (const auto& [text, id] : strings_) OTF2_GlobalDefWriter_WriteString(to, id, text.c_str());
    OTF2_GlobalDefWriter_WriteAttribute(to, 0, pid_name, none, OTF2_TYPE_UINT64);
    OTF2_GlobalDefWriter_WriteSystemTreeNode(to, 0, host, node, OTF2_UNDEFINED_SYSTEM_TREE_NODE);
    OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain(to, 0, OTF2_SYSTEM_TREE_DOMAIN_SHARED_MEMORY);
    for (const auto& [name, region] : regions_) {
      OTF2_GlobalDefWriter_WriteRegion(to, region.id, region.name, region.name, none, region.role, region.paradigm,
                                       OTF2_REGION_FLAG_NONE, none, 0, 0);
    }
    std::vector<std::uint64_t> first_locations, all_ranks;
    OTF2_LocationRef next = 0;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      const auto group = static_cast<OTF2_LocationGroupRef>(rank);
      OTF2_GlobalDefWriter_WriteLocationGroup(to, group, groups[group], OTF2_LOCATION_GROUP_TYPE_PROCESS, 0,
                                              OTF2_UNDEFINED_LOCATION_GROUP);
      first_locations.push_back(next);
      all_ranks.push_back(group);
      for (int i = 0; i < shape.threads; ++i) {
        OTF2_GlobalDefWriter_WriteLocation(to, next++, i == 0 ? thread : worker, OTF2_LOCATION_TYPE_CPU_THREAD, 1'000,
                                           group);
      }
      if (shape.gpu_stream) {
        OTF2_GlobalDefWriter_WriteLocation(to, next++, gpu, OTF2_LOCATION_TYPE_ACCELERATOR_STREAM, 1'000, group);
      }
    }
    if (shape.mpi) {
      const auto count = static_cast<std::uint32_t>(shape.ranks);
      OTF2_GlobalDefWriter_WriteGroup(to, 0, none, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
                                      OTF2_GROUP_FLAG_NONE, count, first_locations.data());
      OTF2_GlobalDefWriter_WriteGroup(to, 1, none, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                      count, all_ranks.data());
      OTF2_GlobalDefWriter_WriteComm(to, 0, world, 1, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE);
    }
    for (std::uint32_t i = 0; i < metrics_.size(); ++i) {
      const Metric& metric = metrics_[i];
      OTF2_GlobalDefWriter_WriteMetricMember(to, i, metric.name, none, OTF2_METRIC_TYPE_USER, metric.mode, metric.type,
                                             OTF2_BASE_DECIMAL, 0, metric.unit);
      OTF2_GlobalDefWriter_WriteMetricClass(to, i, 1, &i, OTF2_METRIC_ASYNCHRONOUS, OTF2_RECORDER_KIND_CPU);
    }
    OTF2_Archive_CloseGlobalDefWriter(archive_, to);
  }

  OTF2_Archive* archive_ = nullptr;
  std::filesystem::path anchor_;
  std::map<OTF2_LocationRef, OTF2_EvtWriter*> writers_;
  std::map<std::string, OTF2_StringRef> strings_;
  std::map<std::string, Region> regions_;
  std::vector<Metric> metrics_;
};

}  // namespace paceline
