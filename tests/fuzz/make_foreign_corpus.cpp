// SPDX-License-Identifier: Apache-2.0
// usage: make_foreign_corpus FOLDER: the first inputs of fuzz_foreign's corpus (tests/data/fuzz-foreign).
#include <sqlite3.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/otf2_archive.h"

namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void store_database(const fs::path& path, const std::string& statements) {
  fs::remove(path);
  sqlite3* database = nullptr;
  sqlite3_open(path.c_str(), &database);
  char* error = nullptr;
  sqlite3_exec(database, ("PRAGMA page_size = 512;" + statements).c_str(), nullptr, nullptr, &error);
  if (error != nullptr) std::fprintf(stderr, "%s\n", error);
  sqlite3_close(database);
  const std::string bytes = bytes_of(path);
  std::ofstream(path, std::ios::binary) << '\0' << bytes;
}

std::string two_bytes(std::size_t number) { return {static_cast<char>(number & 0xff), static_cast<char>(number >> 8)}; }

}  // namespace

int main(int, char** arguments) {
  const fs::path folder = arguments[1];
  fs::create_directories(folder);
  store_database(folder / "nsys", R"(
    CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
    INSERT INTO StringIds VALUES (1, 'k(float *)'), (2, 'cudaLaunchKernel_v7000'), (3, 'MPI_Isend'), (4, 'MPI_Waitall'),
      (5, 'ncclDevKernel_AllReduce');
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId, globalPid,
      demangledName, gridX);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (20, 30, 0, 1, 7, 1, 16777216, 1, 1), (40, 50, 0, 1, 7, 2, 16777216, 5,
      1);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, correlationId, nameId, returnValue);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 12, 0, 16777217, 1, 2, 0), (14, 16, 0, 16777217, 2, 2, 0);
    CREATE TABLE MPI_P2P_EVENTS (start, end, globalTid, textId, commHandle, tag, remoteRank, size, requestHandle);
    INSERT INTO MPI_P2P_EVENTS VALUES (60, 61, 16777217, 3, 1140850688, 1, 1, 8, 5);
    CREATE TABLE MPI_START_WAIT_EVENTS (start, end, globalTid, textId, requestHandle);
    INSERT INTO MPI_START_WAIT_EVENTS VALUES (62, 63, 16777217, 4, 5);
    CREATE TABLE NVTX_EVENTS (start, end, eventType, category, text, globalTid, textId, domainId, jsonText);
    INSERT INTO NVTX_EVENTS VALUES (1, NULL, 75, NULL, 'NCCL', 16777217, NULL, 2, NULL),
      (13, 17, 59, 0, 'ncclAllReduce', 16777217, NULL, 2, '{"NCCL communicator ID":7,"Message size [bytes]":64}'),
      (5, 45, 60, 0, 'range', 16777217, NULL, 0, NULL), (6, NULL, 34, 0, 'mark', 16777217, NULL, 0, NULL);)");
  store_database(folder / "nvprof", R"(
    CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY, value TEXT NOT NULL);
    INSERT INTO StringTable VALUES (1, '_Z1kPf'), (2, 'range');
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (cbid, start, end, processId, threadId, correlationId, returnValue);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (211, 10, 12, 7, 8, 1, 0);
    CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (start, end, deviceId, contextId, streamId, correlationId, name);
    INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES (15, 20, 0, 1, 7, 1, 1);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER (flags, timestamp, id, objectKind, objectId, name, domain);
    INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (2, 5, 1, 2, x'070000000800000000000000', 2, 0),
      (4, 25, 1, 2, x'070000000800000000000000', 0, 0);)");
  const fs::path scratch = folder / "scratch";
  fs::create_directories(scratch);
  paceline::Otf2Archive archive(scratch);
  const OTF2_RegionRef work = archive.region("work"), isend = archive.region("MPI_Isend", OTF2_PARADIGM_MPI),
                       reduce = archive.region("MPI_Reduce", OTF2_PARADIGM_MPI);
  OTF2_EvtWriter* to = archive.location(0);
  OTF2_EvtWriter_Enter(to, nullptr, 10, work);
  OTF2_EvtWriter_Enter(to, nullptr, 11, isend);
  OTF2_EvtWriter_MpiIsend(to, nullptr, 12, 0, 0, 5, 32, 2);
  OTF2_EvtWriter_Leave(to, nullptr, 13, isend);
  OTF2_EvtWriter_Enter(to, nullptr, 14, reduce);
  OTF2_EvtWriter_MpiCollectiveEnd(to, nullptr, 15, OTF2_COLLECTIVE_OP_REDUCE, 0, 0, 64, 64);
  OTF2_EvtWriter_MpiIsendComplete(to, nullptr, 16, 2);
  OTF2_EvtWriter_Leave(to, nullptr, 17, reduce);
  OTF2_MetricValue value;
  value.unsigned_int = 1;
  const OTF2_Type type = OTF2_TYPE_UINT64;
  OTF2_EvtWriter_Metric(to, nullptr, 18, archive.metric("m", "#", OTF2_METRIC_ABSOLUTE_POINT, type), 1, &type, &value);
  OTF2_EvtWriter_Leave(to, nullptr, 20, work);
  const std::string anchor = bytes_of(archive.end({})), definitions = bytes_of(scratch / "traces.def");
  std::ofstream(folder / "otf2", std::ios::binary) << '\1' << two_bytes(anchor.size()) << two_bytes(definitions.size())
                                                   << anchor << definitions << bytes_of(scratch / "traces/0.evt");
  fs::remove_all(scratch);
}
