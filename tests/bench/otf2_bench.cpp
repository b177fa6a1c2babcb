// SPDX-License-Identifier: Apache-2.0
// usage: otf2_bench [RANKS [EVENTS]]       default: 4 ranks with 4,000,000 events each
//
// Writes an archive as an MPI program's recorder does (regions, messages, collectives, a metric), and reads it twice:
// by the C library with callbacks that do nothing, and by Paceline's reader into its model. Both read one rank on each
// core. Prints the median of the times and their ratio.
#include <otf2/otf2.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <vector>

#include "analysis/importers/reader.h"
#include "analysis/trace/parallel.h"
#include "tests/otf2_archive.h"

namespace {

namespace fs = std::filesystem;
using namespace paceline;

// One step: four nested regions, a message to each neighbour, a collective and a sample: 23 events.
fs::path write_archive(const fs::path& folder, int ranks, std::uint64_t events_of_a_rank) {
  Otf2Archive archive(folder);
  const OTF2_RegionRef step = archive.region("step"), compute = archive.region("compute"),
                       inner = archive.region("inner"),
                       send = archive.region("MPI_Send", OTF2_PARADIGM_MPI, OTF2_REGION_ROLE_POINT2POINT),
                       receive = archive.region("MPI_Recv", OTF2_PARADIGM_MPI, OTF2_REGION_ROLE_POINT2POINT),
                       reduce = archive.region("MPI_Allreduce", OTF2_PARADIGM_MPI, OTF2_REGION_ROLE_COLL_ALL2ALL);
  const OTF2_MetricRef memory = archive.metric("memory", "bytes", OTF2_METRIC_ABSOLUTE_POINT, OTF2_TYPE_UINT64);
  constexpr std::uint64_t events_of_a_step = 23;
  for (int rank = 0; rank < ranks; ++rank) {
    OTF2_EvtWriter* to = archive.location(static_cast<OTF2_LocationRef>(rank));
    OTF2_TimeStamp now = 1'000;
    const auto enter = [&](OTF2_RegionRef region) { OTF2_EvtWriter_Enter(to, nullptr, now += 90, region); };
    const auto leave = [&](OTF2_RegionRef region) { OTF2_EvtWriter_Leave(to, nullptr, now += 110, region); };
    const auto next = static_cast<std::uint32_t>((rank + 1) % ranks),
               before = static_cast<std::uint32_t>((rank + ranks - 1) % ranks);
    for (std::uint64_t i = 0; i < events_of_a_rank / events_of_a_step; ++i) {
      enter(step);
      enter(compute);
      for (int k = 0; k < 3; ++k) enter(inner), leave(inner);
      leave(compute);
      enter(send);
      OTF2_EvtWriter_MpiSend(to, nullptr, now += 5, next, 0, static_cast<std::uint32_t>(i % 16), 8 << (i % 12));
      leave(send);
      enter(receive);
      OTF2_EvtWriter_MpiRecv(to, nullptr, now += 5, before, 0, static_cast<std::uint32_t>(i % 16), 8 << (i % 12));
      leave(receive);
      enter(reduce);
      OTF2_EvtWriter_MpiCollectiveBegin(to, nullptr, now += 5);
      OTF2_EvtWriter_MpiCollectiveEnd(to, nullptr, now += 50, OTF2_COLLECTIVE_OP_ALLREDUCE, 0,
                                      OTF2_COLLECTIVE_ROOT_NONE, 4096, 4096);
      leave(reduce);
      OTF2_MetricValue value;
      value.unsigned_int = i;
      const OTF2_Type type = OTF2_TYPE_UINT64;
      OTF2_EvtWriter_Metric(to, nullptr, now += 5, memory, 1, &type, &value);
      leave(step);
    }
  }
  return archive.end({.ranks = ranks});
}

// All events of one rank, with callbacks for the events of the archive that do nothing.
void read_bare(const fs::path& anchor, OTF2_LocationRef location) {
  OTF2_Reader* reader = OTF2_Reader_Open(anchor.c_str());
  OTF2_Reader_SetSerialCollectiveCallbacks(reader);
  OTF2_Reader_SelectLocation(reader, location);
  if (OTF2_Reader_OpenDefFiles(reader) == OTF2_SUCCESS) {
    std::uint64_t read = 0;
    OTF2_DefReader* definitions = OTF2_Reader_GetDefReader(reader, location);
    if (definitions != nullptr) {
      OTF2_Reader_ReadAllLocalDefinitions(reader, definitions, &read);
      OTF2_Reader_CloseDefReader(reader, definitions);
    }
    OTF2_Reader_CloseDefFiles(reader);
  }
  OTF2_Reader_OpenEvtFiles(reader);
  OTF2_EvtReader* events = OTF2_Reader_GetEvtReader(reader, location);
  OTF2_EvtReaderCallbacks* all = OTF2_EvtReaderCallbacks_New();
  OTF2_EvtReaderCallbacks_SetEnterCallback(
      all,
      [](OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void*, OTF2_AttributeList*,
         OTF2_RegionRef) -> OTF2_CallbackCode { return OTF2_CALLBACK_SUCCESS; });
  OTF2_EvtReaderCallbacks_SetLeaveCallback(
      all,
      [](OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void*, OTF2_AttributeList*,
         OTF2_RegionRef) -> OTF2_CallbackCode { return OTF2_CALLBACK_SUCCESS; });
  const auto message = [](OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void*, OTF2_AttributeList*, std::uint32_t,
                          OTF2_CommRef, std::uint32_t,
                          std::uint64_t) -> OTF2_CallbackCode { return OTF2_CALLBACK_SUCCESS; };
  OTF2_EvtReaderCallbacks_SetMpiSendCallback(all, message);
  OTF2_EvtReaderCallbacks_SetMpiRecvCallback(all, message);
  OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(
      all,
      [](OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void*, OTF2_AttributeList*, OTF2_CollectiveOp, OTF2_CommRef,
         std::uint32_t, std::uint64_t, std::uint64_t) -> OTF2_CallbackCode { return OTF2_CALLBACK_SUCCESS; });
  OTF2_EvtReaderCallbacks_SetMetricCallback(
      all,
      [](OTF2_LocationRef, OTF2_TimeStamp, std::uint64_t, void*, OTF2_AttributeList*, OTF2_MetricRef, std::uint8_t,
         const OTF2_Type*, const OTF2_MetricValue*) -> OTF2_CallbackCode { return OTF2_CALLBACK_SUCCESS; });
  OTF2_Reader_RegisterEvtCallbacks(reader, events, all, nullptr);
  std::uint64_t read = 0;
  OTF2_Reader_ReadAllLocalEvents(reader, events, &read);
  OTF2_EvtReaderCallbacks_Delete(all);
  OTF2_Reader_CloseEvtReader(reader, events);
  OTF2_Reader_CloseEvtFiles(reader);
  OTF2_Reader_Close(reader);
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  const int ranks = count > 1 ? std::atoi(arguments[1]) : 4;
  const std::uint64_t events = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 4'000'000;
  const fs::path folder = fs::temp_directory_path() / ("paceline-otf2-bench-" + std::to_string(getpid()));
  fs::create_directories(folder);
  const fs::path anchor = write_archive(folder, ranks, events);
  const std::vector<analysis::TraceFile> files{{anchor, anchor.string()}};
  std::vector<double> bare, ours;
  std::size_t slices = 0;
  for (int round = 0; round < 5; ++round) {
    bare.push_back(seconds_of([&] {
      analysis::parallel_for(static_cast<std::size_t>(ranks), [&](std::size_t rank) { read_bare(anchor, rank); });
    }));
    ours.push_back(seconds_of([&] {
      const analysis::Trace trace = analysis::otf2_reader.read(files, {});
      slices = 0;
      for (const analysis::Rank& rank : trace.ranks) {
        for (const analysis::Track& track : rank.tracks) slices += track.slices.size();
      }
    }));
  }
  const double total = static_cast<double>(ranks) * static_cast<double>(events);
  std::printf("%.1f million events, %.1f million slices\n", total * 1e-6, static_cast<double>(slices) * 1e-6);
  std::printf("C library, empty callbacks: %.3f s, %.1f million events/s\n", median(bare), total * 1e-6 / median(bare));
  std::printf("Paceline, into the model:   %.3f s, %.1f million events/s\n", median(ours), total * 1e-6 / median(ours));
  std::printf("ratio: %.2f\n", median(ours) / median(bare));
  fs::remove_all(folder);
}
