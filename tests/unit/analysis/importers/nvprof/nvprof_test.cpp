// SPDX-License-Identifier: Apache-2.0
// Databases of nvprof, made here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "profiler/format/error.h"
#include "tests/unit/analysis/sqlite_file.h"

namespace paceline::analysis {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::SizeIs;

const std::string tables = R"(
  CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE);
  INSERT INTO StringTable VALUES (0, '-- null --'), (1, 'python train.py'), (2, 'Tesla V100'), (3, '_Z6squarePf'),
    (4, 'forward'), (5, 'model');
  CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (_id_ INTEGER PRIMARY KEY, cbid, start, end, processId, threadId,
    correlationId, returnValue);
  CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER (_id_ INTEGER PRIMARY KEY, flags, timestamp, id, objectKind, objectId BLOB,
    name, domain);
)";

TEST(Nvprof, ReadsCallsKernelsCopiesAndMarkers) {
  const SqliteFile made(tables + R"(
    INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES
      (1, 211, 1600000000000000100, 1600000000000000120, 77, 5, 9, 0),
      (2, 131, 1600000000000000130, 1600000000000000300, 77, 5, 10, 0),
      (3, 9999, 1600000000000000400, 1600000000000000410, 77, 5, 11, 1);
    CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL (_id_ INTEGER PRIMARY KEY, registersPerThread, start, end,
      deviceId, contextId, streamId, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory,
      dynamicSharedMemory, correlationId, name, graphNodeId);
    INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES
      (1, 24, 1600000000000000150, 1600000000000000250, 0, 1, 16, 4, 1, 1, 256, 1, 1, 100, 28, 9, 3, 0);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (_id_ INTEGER PRIMARY KEY, copyKind, srcKind, dstKind, bytes, start, end,
      deviceId, contextId, streamId, correlationId);
    INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES
      (1, 2, 3, 1, 64, 1600000000000000260, 1600000000000000270, 0, 1, 7, 10);
    CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (_id_ INTEGER PRIMARY KEY, type, start, end, correlationId,
      contextId, streamId, cudaEventId);
    INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (1, 3, 0, 0, 10, 1, 16, 0), (2, 1, 0, 0, 9, 1, -1, 0);
    CREATE TABLE CUPTI_ACTIVITY_KIND_DEVICE (_id_ INTEGER PRIMARY KEY, id, name);
    INSERT INTO CUPTI_ACTIVITY_KIND_DEVICE VALUES (1, 0, 2);
    CREATE TABLE CUPTI_ACTIVITY_KIND_NAME (_id_ INTEGER PRIMARY KEY, objectKind, objectId BLOB, name);
    INSERT INTO CUPTI_ACTIVITY_KIND_NAME VALUES (1, 1, x'4d0000000000000054494f4e', 1);
    CREATE TABLE CUPTI_ACTIVITY_KIND_OVERHEAD (_id_ INTEGER PRIMARY KEY, overheadKind, objectKind, objectId BLOB, start,
      end);
    INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD VALUES
      (1, 65536, 2, x'4d0000000500000000000000', 1600000000000000500, 1600000000000000600);
    INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES
      (1, 2, 1600000000000000090, 1, 2, x'4d0000000500000000000000', 4, 5),
      (2, 1, 1600000000000000095, 2, 2, x'4d0000000500000000000000', 4, 0),
      (3, 4, 1600000000000000350, 1, 2, x'4d0000000500000000000000', 0, 5),
      (4, 4, 1600000000000000360, 99, 2, x'4d0000000500000000000000', 0, 5),
      (5, 2, 1600000000000000590, 3, 2, x'4d0000000500000000000000', 4, 0);)");
  ASSERT_TRUE(nvprof_reader.recognises(made.file()));
  EXPECT_FALSE(nsys_reader.recognises(made.file()));
  const Trace trace = read_with(nvprof_reader, made.file());
  ASSERT_THAT(trace.ranks, SizeIs(1));
  const Rank& rank = trace.ranks[0];
  EXPECT_EQ(rank.format, "nvprof");
  EXPECT_EQ(rank.pid, 77);
  EXPECT_EQ(rank.rank, unknown_rank);
  EXPECT_THAT(rank.command, ElementsAre("python train.py"));
  EXPECT_EQ(rank.facts.at("gpu.0"), "Tesla V100");
  EXPECT_EQ(rank.utc_of_zero_ns, 1'600'000'000'000'000'090);
  EXPECT_EQ(rank.cuda_events, 5U);
  EXPECT_EQ(rank.nvtx_events, 3U);
  const Track* main = find_track(rank, "main thread");
  // Without CUPTI's headers the build knows the functions' numbers only.
  EXPECT_THAT(slices_of(trace, main),
              ElementsAre("model//forward at 0 for 260",
                          AnyOf("cuda/runtime/cudaLaunchKernel at 10 for 20",
                                "cuda/runtime/CUDA runtime call 211 at 10 for 20"),
                          AnyOf("cuda/synchronization/cudaStreamSynchronize at 40 for 170",
                                "cuda/runtime/CUDA runtime call 131 at 40 for 170"),
                          "cuda/runtime/CUDA runtime call 9999 at 310 for 10", "//forward at 500 for 10"));
  EXPECT_EQ(arguments_of(trace, main, 1), "correlation=9");
  EXPECT_EQ(arguments_of(trace, main, 2), "correlation=10 stream=16");
  EXPECT_EQ(arguments_of(trace, main, 3), "correlation=11 result=1");
  EXPECT_EQ(arguments_of(trace, main, 4), "unfinished=1");
  EXPECT_EQ(main->marks.size(), 1U);
  const Track* stream = find_track(rank, "GPU 0 stream 16");
  EXPECT_THAT(slices_of(trace, stream), ElementsAre("cuda/kernel/square(float*) at 60 for 100"));
  EXPECT_EQ(arguments_of(trace, stream, 0), "correlation=9 grid=4×1×1 block=256×1×1 registers=24 shared=128");
  const Track* copies = find_track(rank, "GPU 0 stream 7");
  EXPECT_EQ(arguments_of(trace, copies, 0), "correlation=10 bytes=64 from=GPU 0 to=pageable");
  EXPECT_THAT(slices_of(trace, find_track(rank, "CUPTI overhead")),
              ElementsAre("cuda/overhead/CUPTI buffer flush at 410 for 100"));
  EXPECT_THAT(trace.notes, ElementsAre("name of the trace: 1 ends of NVTX ranges are left out: the trace has no start "
                                       "of their ranges"));
}

TEST(Nvprof, ADatabaseWithoutEventsIsAnErrorThatNamesIt) {
  const SqliteFile made(tables);
  ASSERT_TRUE(nvprof_reader.recognises(made.file()));
  EXPECT_THROW(
      {
        try {
          read_with(nvprof_reader, made.file());
        } catch (const Error& error) {
          EXPECT_THAT(error.what(), testing::HasSubstr("name of the trace: the database has no events"));
          throw;
        }
      },
      Error);
}

}  // namespace
}  // namespace paceline::analysis
