// SPDX-License-Identifier: Apache-2.0
// Exports of Nsight Systems, made here: both generations of the schema, and what may be missing or wrong in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "analysis/importers/sqlite/process_tracks.h"
#include "profiler/format/error.h"
#include "tests/unit/analysis/sqlite_file.h"

namespace paceline::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::int64_t pid = 4711;

// The number of a thread as Nsight Systems packs it, for the process 4711 or another one.
std::string thread(std::int64_t tid, std::int64_t process = pid) { return std::to_string(process << 24 | tid); }

const std::string strings = R"(
  CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
  INSERT INTO StringIds VALUES (1, 'saxpy(float *, int)'), (2, 'saxpy'), (3, 'cudaLaunchKernel_v7000'),
    (4, 'cudaStreamSynchronize_v3020'), (5, 'MPI_Send'), (6, 'MPI_Isend'), (7, 'MPI_Waitall'), (8, 'MPI_Allreduce'),
    (9, 'step'), (10, 'cuMemcpyHtoDAsync_v2'), (11, 'MPI Rank 3'), (12, 'cudaLaunchKernel');
)";

const std::string kernel_table = R"(
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER,
    contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,
    shortName INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER,
    blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER);
)";

const std::string runtime_table = R"(
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
)";

const std::string nvtx_table = R"(
  CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, category INTEGER,
    text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, int64Value INTEGER,
    doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonText TEXT);
)";

std::string kernel(int start, int end, int correlation, std::int64_t process = pid, int name = 1) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + std::to_string(start) + "," + std::to_string(end) +
         ",0,1,7," + std::to_string(correlation) + "," + thread(0, process) + "," + std::to_string(name) +
         ",2,16,1,2,3,128,1,1,0,64,NULL);";
}

std::string push_pop(int start, int end, const std::string& text, const std::string& global_thread) {
  return "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId) VALUES (" + std::to_string(start) +
         "," + std::to_string(end) + ",59,'" + text + "'," + global_thread + ",0);";
}

TEST(Nsys, ReadsKernelsCopiesAndCalls) {
  const SqliteFile made(strings + kernel_table + runtime_table + kernel(120, 200, 5) + R"(
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, streamId, correlationId, globalPid, bytes,
      copyKind, srcKind, dstKind);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (210, 230, 0, 1, 7, 6, )" +
                        thread(0) + R"(, 4096, 1, 0, 2);
    CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, end, globalPid, correlationId, streamId, syncType);
    INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (130, 240, )" +
                        thread(0) + R"(, 7, 7, 3);
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100, 110, 0, )" +
                        thread(pid) + R"(, 5, 3, 0),
      (112, 118, 1, )" + thread(pid) +
                        R"(, 6, 10, 0), (125, 250, 0, )" + thread(pid) + ", 7, 4, 0);");
  ASSERT_TRUE(nsys_reader.recognises(made.file()));
  const Trace trace = read_with(nsys_reader, made.file());
  ASSERT_THAT(trace.ranks, SizeIs(1));
  const Rank& rank = trace.ranks[0];
  EXPECT_EQ(rank.format, "nsys");
  EXPECT_EQ(rank.path, "name of the trace");
  EXPECT_EQ(rank.pid, pid);
  EXPECT_EQ(rank.rank, unknown_rank);
  EXPECT_EQ(rank.cuda_events, 5U);
  const Track* stream = find_track(rank, "GPU 0 stream 7");
  EXPECT_THAT(slices_of(trace, stream),
              ElementsAre("cuda/kernel/saxpy(float *, int) at 120 for 80", "cuda/memcpy/Memcpy HtoD at 210 for 20"));
  EXPECT_EQ(arguments_of(trace, stream, 0), "correlation=5 grid=1×2×3 block=128×1×1 registers=16 shared=64");
  EXPECT_EQ(arguments_of(trace, stream, 1), "correlation=6 bytes=4096 from=pageable to=GPU 0");
  const Track* main = find_track(rank, "main thread");
  EXPECT_THAT(slices_of(trace, main),
              ElementsAre("cuda/runtime/cudaLaunchKernel at 100 for 10", "cuda/driver/cuMemcpyHtoDAsync at 112 for 6",
                          "cuda/synchronization/cudaStreamSynchronize at 125 for 125"));
  EXPECT_EQ(arguments_of(trace, main, 2), "correlation=7 stream=7");
}

TEST(Nsys, KeepsOneOfTheTwoRowsOfACallWithACallChain) {
  const SqliteFile made(strings + runtime_table + "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 30, 67, " +
                        thread(pid) + ", 5, 12, 0), (12, 28, 0, " + thread(pid) + ", 5, 3, 0), (40, 50, 67, " +
                        thread(pid) + ", 6, 12, 0);");
  const Trace trace = read_with(nsys_reader, made.file());
  EXPECT_THAT(slices_of(trace, find_track(trace.ranks[0], "main thread")),
              ElementsAre("cuda/runtime/cudaLaunchKernel at 12 for 16", "cuda/runtime/cudaLaunchKernel at 40 for 10"));
}

TEST(Nsys, ReadsRangesMarksDomainsAndCategories) {
  const std::string of = thread(pid);
  const SqliteFile made(strings + nvtx_table + R"(INSERT INTO NVTX_EVENTS VALUES
    (1, NULL, 75, NULL, 'solver', )" +
                        of + R"(, NULL, 5, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (2, NULL, 33, 9, 'phase', )" +
                        of + R"(, NULL, 5, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (10, 90, 59, 9, 'solve', )" +
                        of + R"(, NULL, 5, 42, NULL, NULL, NULL, NULL, NULL, NULL),
    (20, 30, 59, NULL, NULL, )" +
                        of + R"(, 9, 0, NULL, NULL, 0.5, NULL, NULL, NULL, NULL),
    (25, NULL, 34, NULL, 'here', )" +
                        of + R"(, NULL, 0, NULL, -1, NULL, NULL, NULL, NULL, NULL),
    (95, NULL, 59, NULL, 'open', )" +
                        of + R"(, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (98, 99, 59, NULL, 'last', )" +
                        of + R"(, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL);)");
  const Trace trace = read_with(nsys_reader, made.file());
  const Rank& rank = trace.ranks[0];
  const Track* main = find_track(rank, "main thread");
  EXPECT_THAT(slices_of(trace, main), ElementsAre("solver/phase/solve at 10 for 80", "//step at 20 for 10",
                                                  "//open at 95 for 4", "//last at 98 for 1"));
  EXPECT_EQ(arguments_of(trace, main, 0), "payload=42");
  EXPECT_EQ(arguments_of(trace, main, 1), "payload=0.5");
  EXPECT_EQ(arguments_of(trace, main, 2), "unfinished=1");
  ASSERT_EQ(main->marks.size(), 1U);
  EXPECT_EQ(trace.name_of(main->marks, 0), "here");
  EXPECT_EQ(rank.nvtx_events, 5U);
  EXPECT_EQ(rank.mpi_events, 0U);
}

TEST(Nsys, PlacesRangesThatCrossOthersOnATrackOfTheirOwn) {
  const std::string of = thread(pid);
  const auto start_end = [&](int start, int end, const char* text) {
    return "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId) VALUES (" +
           std::to_string(start) + "," + std::to_string(end) + ",60,'" + text + "'," + of + ",0);";
  };
  const SqliteFile made(strings + nvtx_table + push_pop(10, 30, "a", of) + push_pop(40, 60, "b", of) +
                        start_end(5, 70, "around") + start_end(12, 28, "inside") + start_end(20, 50, "across") +
                        start_end(60, 80, "after b, crosses around"));
  const Trace trace = read_with(nsys_reader, made.file());
  EXPECT_THAT(slices_of(trace, find_track(trace.ranks[0], "main thread")),
              ElementsAre("//around at 5 for 65", "//a at 10 for 20", "//inside at 12 for 16", "//b at 40 for 20"));
  EXPECT_THAT(slices_of(trace, find_track(trace.ranks[0], "thread 4711, ranges")),
              ElementsAre("//across at 20 for 30", "//after b, crosses around at 60 for 20"));
}

TEST(Nsys, NumbersThatEmitNvtxAddsAreNotPartOfAName) {
  const std::string of = thread(pid);
  const SqliteFile made(strings + nvtx_table + push_pop(10, 20, "aten::add, seq = 7, op_id = 12", of) +
                        push_pop(30, 40, "aten::add, op_id = 13, sizes = [[2]]", of));
  const Trace trace = read_with(nsys_reader, made.file());
  EXPECT_THAT(slices_of(trace, find_track(trace.ranks[0], "main thread")),
              ElementsAre("//aten::add at 10 for 10", "//aten::add, sizes = [[2]] at 30 for 10"));
}

TEST(Nsys, SystemCallsHaveRowsBesideTheThreadAndItsStatesAndSamplesAreItsOwn) {
  const std::string of = thread(pid);
  const SqliteFile made(strings + nvtx_table + push_pop(10, 100, "a", of) + R"(
    INSERT INTO StringIds VALUES (20, 'poll'), (21, 'memcpy_avx');
    CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);
    INSERT INTO OSRT_API VALUES (5, 20, )" +
                        of + R"(, 20);
    CREATE TABLE SCHED_EVENTS (start INTEGER, cpu INTEGER, isSchedIn INTEGER, globalTid INTEGER);
    INSERT INTO SCHED_EVENTS VALUES (1, 3, 0, )" +
                        of + "), (12, 3, 1, " + of + "), (30, 3, 0, " + of + "), (40, 2, 1, " + of + R"();
    CREATE TABLE COMPOSITE_EVENTS (id INTEGER, start INTEGER, cpu INTEGER, globalTid INTEGER);
    INSERT INTO COMPOSITE_EVENTS VALUES (1, 15, 3, )" +
                        of + "), (2, 16, NULL, " + of + R"();
    CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth INTEGER);
    INSERT INTO StringIds VALUES (22, 'libc.so.6');
    INSERT INTO SAMPLING_CALLCHAINS VALUES (1, 21, 22, 0), (1, 20, NULL, 1);)");
  const Trace trace = read_with(nsys_reader, made.file());
  const Rank& rank = trace.ranks[0];
  EXPECT_THAT(slices_of(trace, find_track(rank, "main thread")), ElementsAre("//a at 10 for 90"));
  EXPECT_THAT(slices_of(trace, find_track(rank, "thread 4711, system calls")), ElementsAre("os/call/poll at 5 for 15"));
  const ThreadStates& states = find_track(rank, "main thread")->states;
  EXPECT_THAT(states.time_ns, ElementsAre(1, 12, 30, 40));
  EXPECT_THAT(states.running_ns, ElementsAre(0, 0, 18, 18));
  EXPECT_THAT(states.waiting_ns, ElementsAre(0, 0, 0, 0));
  EXPECT_TRUE(states.exact);
  const StackSamples& samples = find_track(rank, "main thread")->stacks;
  EXPECT_THAT(samples.time_ns, ElementsAre(15, 16));
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples.stack[1], 0U);
  const Stacks& stacks = trace.stacks;
  const Frame& innermost = stacks[stacks.innermost(samples.stack[0])];
  EXPECT_EQ(trace.names[innermost.function], "memcpy_avx");
  EXPECT_EQ(trace.names[innermost.file], "libc.so.6");
  const Frame& caller = stacks[stacks.innermost(stacks.caller(samples.stack[0]))];
  EXPECT_EQ(trace.names[caller.function], "poll");
  EXPECT_THAT(trace.notes, IsEmpty());
}

TEST(Nsys, RangesOfTheDomainMpiAreMpiCalls) {
  const std::string of = thread(pid);
  const SqliteFile made(strings + nvtx_table + R"(
    CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER);
    INSERT INTO ThreadNames VALUES (11, 0, )" +
                        of + R"();
    INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, textId, domainId) VALUES
      (1, NULL, 75, 'MPI', )" +
                        of + R"(, NULL, 1), (10, 20, 59, NULL, )" + of + R"(, 5, 1),
      (30, 50, 59, NULL, )" +
                        of + ", 8, 1);");
  const Trace trace = read_with(nsys_reader, made.file());
  EXPECT_EQ(trace.ranks[0].rank, 3);
  EXPECT_EQ(trace.ranks[0].mpi_events, 2U);
  EXPECT_EQ(trace.ranks[0].nvtx_events, 0U);
  EXPECT_THAT(slices_of(trace, find_track(trace.ranks[0], "main thread")),
              ElementsAre("mpi/point-to-point/MPI_Send at 10 for 10", "mpi/collective/MPI_Allreduce at 30 for 20"));
}

TEST(Nsys, ReadsTheTablesOfMpi) {
  const std::string of = thread(pid);
  const SqliteFile made(strings + R"(
    CREATE TABLE MPI_RANKS (globalTid INTEGER NOT NULL, rank INTEGER NOT NULL);
    INSERT INTO MPI_RANKS VALUES ()" +
                        of + R"(, 2);
    CREATE TABLE MPI_P2P_EVENTS (start, end, globalTid, textId, commHandle, tag, remoteRank, size, requestHandle);
    INSERT INTO MPI_P2P_EVENTS VALUES (10, 20, )" +
                        of + R"(, 5, 1140850688, 17, 1, 800, NULL),
      (30, 31, )" + of + R"(, 6, 1140850688, 18, 3, 8, 900), (32, 33, )" +
                        of + R"(, 6, 1140850688, 18, 0, 8, 901),
      (80, 81, )" + of + R"(, 6, 1140850688, 18, 3, 8, 900);
    CREATE TABLE MPI_START_WAIT_EVENTS (start, end, globalTid, textId, requestHandle);
    INSERT INTO MPI_START_WAIT_EVENTS VALUES (40, 60, )" +
                        of + R"(, 7, 900), (40, 60, )" + of + R"(, 7, 901),
      (90, 95, )" + of + R"(, 7, 900);
    CREATE TABLE MPI_COLLECTIVES_EVENTS (start, end, globalTid, textId, commHandle, rootRank, size, recvSize,
      requestHandle);
    INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (100, NULL, )" +
                        of + ", 8, 1140850688, NULL, 64, 64, NULL);");
  const Trace trace = read_with(nsys_reader, made.file());
  const Rank& rank = trace.ranks[0];
  EXPECT_EQ(rank.rank, 2);
  EXPECT_EQ(rank.world_size, 3);
  EXPECT_EQ(rank.mpi_events, 7U);
  const Track* main = find_track(rank, "main thread");
  ASSERT_THAT(slices_of(trace, main), SizeIs(7));
  EXPECT_EQ(arguments_of(trace, main, 0), "bytes=800 communicator=MPI_COMM_WORLD peer=1 tag=17");
  EXPECT_EQ(arguments_of(trace, main, 1), "bytes=8 communicator=MPI_COMM_WORLD peer=3 tag=18 request=1");
  EXPECT_EQ(arguments_of(trace, main, 3), "request=1 request=2");
  EXPECT_EQ(arguments_of(trace, main, 4), "bytes=8 communicator=MPI_COMM_WORLD peer=3 tag=18 request=3");
  EXPECT_EQ(arguments_of(trace, main, 5), "request=3");
  EXPECT_EQ(arguments_of(trace, main, 6), "bytes=64 communicator=MPI_COMM_WORLD unfinished=1");
}

// Handles of other libraries are addresses, which name a communicator in one process only.
TEST(Nsys, DoesNotMatchCommunicatorsByAddress) {
  const auto calls = [](const std::string& handles) {
    return strings + "CREATE TABLE MPI_COLLECTIVES_EVENTS (start, end, globalTid, textId, commHandle, size);" + handles;
  };
  const std::string of = thread(pid);
  const SqliteFile one(calls("INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (1, 2, " + of + ", 8, 93824992, 8);"));
  const Trace with_one = read_with(nsys_reader, one.file());
  EXPECT_EQ(arguments_of(with_one, find_track(with_one.ranks[0], "main thread"), 0), "bytes=8");
  const SqliteFile two(calls("INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (1, 2, " + of + ", 8, 93824992, 8), (3, 4, " +
                             of + ", 8, 93825000, 8);"));
  const Trace with_two = read_with(nsys_reader, two.file());
  EXPECT_THAT(arguments_of(with_two, find_track(with_two.ranks[0], "main thread"), 0),
              HasSubstr("communicator=communicator 597a7e0 of "));
}

TEST(Nsys, ReadsTheThirdSchemaWithItsOwnTables) {
  const std::string of = thread(pid);
  const SqliteFile made(strings + kernel_table + kernel(10, 20, 1) + R"(
    CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
    INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2025.1.1');
    CREATE TABLE META_DATA_CAPTURE (name TEXT NOT NULL, value TEXT);
    INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_ENVIRONMENT', 'PATH=/bin LOCAL_RANK=1 RANK=5 WORLD_SIZE=8');
    CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
    INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000, '', '');
    CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);
    INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', 'node17');
    CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);
    INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100');
    CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
    INSERT INTO PROCESSES VALUES ()" +
                        thread(0) + R"(, 4711, 'python');
    CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER, name TEXT, label TEXT);
    INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (11, 'CUDA_MEMCPY_KIND_UVM_HTOD', 'Unified Host-to-Device');
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, contextId, greenContextId, streamId, correlationId,
      globalPid, bytes, copyKind);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (30, 40, 0, 1, NULL, 7, 2, )" +
                        thread(0) + R"(, 16, 11);
    CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, contextId, streamId, correlationId, globalPid,
      graphId, graphExecId);
    INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (50, 60, 0, 1, 7, 3, )" +
                        thread(0) + R"(, 21, 22);
    CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, metricId INTEGER, metricName TEXT);
    INSERT INTO TARGET_INFO_GPU_METRICS VALUES (256, 4, 'SMs Active [Throughput %]');
    CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER);
    INSERT INTO GPU_METRICS VALUES (55, 256, 4, 90), (15, 256, 4, 30);
    CREATE TABLE SYSCALL (start, end, globalTid, nameId);
    INSERT INTO SYSCALL VALUES (1, 2, )" +
                        of + ", 9);");
  ASSERT_TRUE(nsys_reader.recognises(made.file()));
  const Trace trace = read_with(nsys_reader, made.file());
  const Rank& rank = trace.ranks[0];
  EXPECT_EQ(rank.rank, 5);
  EXPECT_EQ(rank.world_size, 8);
  EXPECT_EQ(rank.host, "node17");
  EXPECT_THAT(rank.command, ElementsAre("python"));
  EXPECT_EQ(rank.utc_of_zero_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(rank.facts.at("gpu.0"), "NVIDIA H100");
  EXPECT_EQ(rank.facts.at("recorded_by"), "NVIDIA Nsight Systems 2025.1.1");
  EXPECT_THAT(
      slices_of(trace, find_track(rank, "GPU 0 stream 7")),
      ElementsAre("cuda/kernel/saxpy(float *, int) at 10 for 10",
                  "cuda/memcpy/Memcpy Unified Host-to-Device at 30 for 10", "cuda/graph/graph 21 at 50 for 10"));
  const Track* counter = find_track(rank, "GPU 0: SMs Active");
  ASSERT_NE(counter, nullptr);
  EXPECT_EQ(counter->samples.unit, "%");
  EXPECT_THAT(counter->samples.time_ns, ElementsAre(15, 55));
  EXPECT_THAT(counter->samples.value, ElementsAre(30, 90));
  EXPECT_THAT(trace.notes, ElementsAre("name of the trace: tables that are not read: SYSCALL"));
}

TEST(Nsys, ReadsOperationsOfNcclFromTheirRangesAndKernels) {
  const std::string of = thread(pid);
  const std::string payload =
      R"({"NCCL communicator ID": 51966, "Message size [bytes]": 1024, "No. of ranks": 4, "Reduction operation": "Sum"})";
  const SqliteFile made(strings + kernel_table + runtime_table + nvtx_table +
                        "INSERT INTO StringIds VALUES (20, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL');" +
                        kernel(120, 180, 5, pid, 20) + "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (105, 108, 0, " +
                        of + ", 5, 3, 0);" +
                        "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, domainId, jsonText) VALUES" +
                        "(1, NULL, 75, 'NCCL', " + of + ", 2, NULL), (100, 110, 59, 'ncclAllReduce', " + of + ", 2, '" +
                        payload + "'), (200, 210, 59, 'ncclAllGather', " + of + ", 2, '" + payload + "');");
  const Trace trace = read_with(nsys_reader, made.file());
  const Rank& rank = trace.ranks[0];
  const Track* nccl = find_track(rank, "NCCL 000000000000cafe");
  EXPECT_THAT(slices_of(trace, nccl),
              ElementsAre("nccl/collective/ncclAllReduce at 120 for 60", "nccl/enqueue/ncclAllGather at 200 for 10"));
  EXPECT_EQ(arguments_of(trace, nccl, 0),
            "bytes=1024 communicator=000000000000cafe members=4 sequence=0 enqueued_before=20");
  EXPECT_EQ(arguments_of(trace, nccl, 1), "bytes=4096 communicator=000000000000cafe members=4 sequence=0");
  EXPECT_EQ(nccl->kind, TrackKind::nccl);
  EXPECT_EQ(rank.nccl_events, 2U);
}

TEST(Nsys, EachProcessOnAGpuIsARank) {
  const SqliteFile made(strings + kernel_table + nvtx_table + kernel(10, 20, 1, 100) + kernel(10, 20, 1, 200) +
                        push_pop(1, 2, "worker", thread(300, 300)));
  const Trace trace = read_with(nsys_reader, made.file());
  ASSERT_THAT(trace.ranks, SizeIs(2));
  EXPECT_EQ(trace.ranks[0].pid, 100);
  EXPECT_EQ(trace.ranks[1].pid, 200);
  EXPECT_THAT(trace.notes, ElementsAre("name of the trace: 1 events of process 300 are left out: the trace names no "
                                       "rank for it"));
}

TEST(Nsys, AProcessWithoutARankHelpsTheOnlyRank) {
  const SqliteFile made(strings + kernel_table + nvtx_table + kernel(10, 20, 1) +
                        push_pop(1, 2, "load", thread(301, 300)));
  const Trace trace = read_with(nsys_reader, made.file());
  ASSERT_THAT(trace.ranks, SizeIs(1));
  EXPECT_EQ(trace.ranks[0].pid, pid);
  EXPECT_NE(find_track(trace.ranks[0], "GPU 0 stream 7"), nullptr);
  bool found = false;
  for (const Track& track : trace.ranks[0].tracks) found = found || track.thread_id == 301;
  EXPECT_TRUE(found);
}

TEST(Nsys, LeavesOutRowsWhoseTimesCannotBeUsed) {
  const SqliteFile made(strings + nvtx_table + push_pop(10, 20, "good", thread(pid)) +
                        push_pop(30, 25, "ends before it begins", thread(pid)) +
                        "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) VALUES "
                        "(9223372036854775807, 9223372036854775807, 59, 'far', " +
                        thread(pid) + ");");
  const Trace trace = read_with(nsys_reader, made.file());
  EXPECT_THAT(slices_of(trace, find_track(trace.ranks[0], "main thread")), ElementsAre("//good at 10 for 10"));
  EXPECT_THAT(trace.notes, ElementsAre("name of the trace: 2 rows of NVTX_EVENTS are left out: their times cannot be "
                                       "used"));
}

TEST(Nsys, CountsRowsThatNameNoThread) {
  const SqliteFile made(strings + nvtx_table + push_pop(10, 20, "good", thread(pid)) + R"(
    CREATE TABLE OSRT_API (start, end, globalTid, nameId);
    INSERT INTO OSRT_API VALUES (1, 2, NULL, 8), (3, 4, )" +
                        thread(pid) + R"(, 8), (5, 6, NULL, 8), (9, 7, NULL, 8);
    CREATE TABLE SCHED_EVENTS (start, cpu, isSchedIn, globalTid);
    INSERT INTO SCHED_EVENTS VALUES (1, 0, 1, NULL);
    CREATE TABLE COMPOSITE_EVENTS (id, start, globalTid);
    INSERT INTO COMPOSITE_EVENTS VALUES (1, 5, NULL);)");
  const Trace trace = read_with(nsys_reader, made.file());
  EXPECT_THAT(trace.notes,
              ElementsAre("name of the trace: 1 rows of OSRT_API are left out: their times cannot be used",
                          "name of the trace: 1 rows of COMPOSITE_EVENTS are left out: they name no thread",
                          "name of the trace: 2 rows of OSRT_API are left out: they name no thread",
                          "name of the trace: 1 rows of SCHED_EVENTS are left out: they name no thread"));
}

TEST(Nsys, KeepsAnyBytesAndAnyTypesInTheCells) {
  const SqliteFile made(strings + nvtx_table + R"(
    INSERT INTO StringIds VALUES (30, ''), (31, '"; DROP TABLE StringIds; --');
    INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, textId, domainId) VALUES
      (10, 20, 59, CAST(x'ff00fe' AS TEXT), )" +
                        thread(pid) + R"(, NULL, 0), (30, 40, 59, NULL, )" + thread(pid) +
                        R"(, 31, 0), (50, 60, 59, NULL, )" + thread(pid) + R"(, 999, 'text'), ('7', '8', '59', 5.5, )" +
                        thread(pid) + ", NULL, NULL);");
  const Trace trace = read_with(nsys_reader, made.file());
  const Track* main = find_track(trace.ranks[0], "main thread");
  ASSERT_EQ(main->slices.size(), 4U);
  EXPECT_EQ(trace.name_of(main->slices, 0), "5.5");
  EXPECT_EQ(trace.name_of(main->slices, 2), "\"; DROP TABLE StringIds; --");
  EXPECT_EQ(trace.name_of(main->slices, 3), "");
}

// A view or a trigger with the name of a table could do anything when it is read.
TEST(Nsys, ExecutesNothingFromTheFile) {
  const SqliteFile made(strings + nvtx_table + push_pop(10, 20, "good", thread(pid)) + R"(
    CREATE TABLE hidden (start, end);
    INSERT INTO hidden VALUES (1, 2);
    CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT start, end, load_extension('x') AS deviceId FROM hidden;)");
  const Trace trace = read_with(nsys_reader, made.file());
  ASSERT_THAT(trace.ranks, SizeIs(1));
  EXPECT_EQ(trace.ranks[0].cuda_events, 0U);
  EXPECT_EQ(trace.ranks[0].nvtx_events, 1U);
}

std::string many_ranges(int count) {
  std::string statements = "BEGIN;";
  for (int i = 0; i < count; ++i) statements += push_pop(10 * i, 10 * i + 5, "range " + std::to_string(i), thread(pid));
  return statements + "COMMIT;";
}

TEST(Nsys, KeepsWhatStandsBeforeADamagedPage) {
  const SqliteFile made(strings + nvtx_table + many_ranges(2000));
  const auto size = std::filesystem::file_size(made.path());
  {
    std::fstream file(made.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size / 2 / 4096 * 4096));
    file << std::string(4096, '\x7f');
  }
  const Trace trace = read_with(nsys_reader, made.file());
  ASSERT_THAT(trace.ranks, SizeIs(1));
  EXPECT_TRUE(trace.ranks[0].damaged);
  EXPECT_THAT(trace.ranks[0].damage, HasSubstr("NVTX_EVENTS after "));
  EXPECT_THAT(trace.ranks[0].damage, HasSubstr("malformed"));
  EXPECT_GT(trace.ranks[0].nvtx_events, 100U);
  EXPECT_LT(trace.ranks[0].nvtx_events, 2000U);
}

TEST(Nsys, ATruncatedFileIsReadOrRefusedWithItsName) {
  const SqliteFile made(strings + nvtx_table + many_ranges(500));
  const auto size = std::filesystem::file_size(made.path());
  for (std::uintmax_t left = size - 1; left > 0; left = left * 3 / 4) {
    std::filesystem::resize_file(made.path(), left);
    try {
      const Trace trace = read_with(nsys_reader, made.file());
      for (const Rank& rank : trace.ranks) EXPECT_TRUE(rank.damaged) << left;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("name of the trace: "));
    }
  }
}

TEST(Nsys, DoesNotRecogniseOtherFiles) {
  const SqliteFile other("CREATE TABLE StringIds (id, value); CREATE TABLE cats (name);");
  EXPECT_FALSE(nsys_reader.recognises(other.file()));
  EXPECT_FALSE(nvprof_reader.recognises(other.file()));
  EXPECT_FALSE(nsys_reader.recognises({"/dev/null", "nothing"}));
  EXPECT_FALSE(nsys_reader.recognises({"/no/such/file", "nothing"}));
  const SqliteFile empty("CREATE TABLE StringIds (id, value); CREATE TABLE NVTX_EVENTS (start);");
  ASSERT_TRUE(nsys_reader.recognises(empty.file()));
  EXPECT_THROW(read_with(nsys_reader, empty.file()), Error);
}

TEST(EnvironmentValue, IsThatOfTheWholeName) {
  EXPECT_EQ(environment_value("LOCAL_RANK=1 RANK=5", "RANK"), "5");
  EXPECT_EQ(environment_value("A=1\nRANK=\nB=2", "RANK"), "");
  EXPECT_EQ(environment_value("RANKS=1", "RANK"), std::nullopt);
  EXPECT_EQ(environment_value("RANK", "RANK"), std::nullopt);
}

}  // namespace
}  // namespace paceline::analysis
