// SPDX-License-Identifier: Apache-2.0
// OTF2 archives, written here with the C library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "analysis/importers/otf2/local_definitions.h"
#include "profiler/format/error.h"
#include "tests/otf2_archive.h"
#include "tests/unit/analysis/sqlite_file.h"

// OTF2's library does not free what it had allocated when it refuses an archive.
extern "C" const char* __lsan_default_suppressions() { return "leak:libopen-trace-format2\n"; }

namespace paceline::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Otf2 : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("paceline-otf2-" + std::to_string(getpid()) + "-" + std::to_string(++number_));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static Trace read(const std::filesystem::path& anchor) { return read_with(otf2_reader, {anchor, "an archive"}); }

  // One rank with `count` regions on its thread.
  std::filesystem::path simple(OTF2_TimeStamp count) {
    Otf2Archive archive(folder_);
    const OTF2_RegionRef work = archive.region("work");
    for (OTF2_TimeStamp i = 0; i < count; ++i) {
      OTF2_EvtWriter_Enter(archive.location(0), nullptr, 10 * i, work);
      OTF2_EvtWriter_Leave(archive.location(0), nullptr, 10 * i + 5, work);
    }
    return archive.end({});
  }

  std::filesystem::path folder_;
  static inline int number_ = 0;
};

TEST_F(Otf2, ReadsRegionsMessagesAndCollectives) {
  Otf2Archive archive(folder_, "any-name");
  const OTF2_RegionRef step = archive.region("step"),
                       send = archive.region("MPI_Send", OTF2_PARADIGM_MPI, OTF2_REGION_ROLE_POINT2POINT),
                       recv = archive.region("MPI_Recv", OTF2_PARADIGM_MPI, OTF2_REGION_ROLE_POINT2POINT),
                       reduce = archive.region("MPI_Reduce", OTF2_PARADIGM_MPI, OTF2_REGION_ROLE_COLL_ALL2ONE);
  for (const OTF2_LocationRef rank : {0, 1}) {
    OTF2_EvtWriter* to = archive.location(rank);
    OTF2_AttributeList* pid = OTF2_AttributeList_New();
    OTF2_AttributeList_AddUint64(pid, 0, 500 + rank);
    const OTF2_StringRef argument = archive.string("--fast");
    OTF2_EvtWriter_ProgramBegin(to, pid, 1000, archive.string("solver"), 1, &argument);
    OTF2_AttributeList_Delete(pid);
    OTF2_EvtWriter_Enter(to, nullptr, 1000, step);
    OTF2_EvtWriter_Enter(to, nullptr, 1010, rank == 0 ? send : recv);
    if (rank == 0) {
      OTF2_EvtWriter_MpiSend(to, nullptr, 1015, 1, 0, 7, 4096);
    } else {
      OTF2_EvtWriter_MpiRecv(to, nullptr, 1015, 0, 0, 7, 4096);
    }
    OTF2_EvtWriter_Leave(to, nullptr, 1020, rank == 0 ? send : recv);
    OTF2_EvtWriter_Enter(to, nullptr, 1030, reduce);
    OTF2_EvtWriter_MpiCollectiveBegin(to, nullptr, 1031);
    OTF2_EvtWriter_MpiCollectiveEnd(to, nullptr, 1039, OTF2_COLLECTIVE_OP_REDUCE, 0, 1, 64, rank == 1 ? 128 : 0);
    OTF2_EvtWriter_Leave(to, nullptr, 1040, reduce);
    OTF2_EvtWriter_Leave(to, nullptr, 1050, step);
  }
  const auto anchor = archive.end({.ranks = 2, .offset = 1000, .utc = 1'700'000'000'000'000'000});
  ASSERT_TRUE(otf2_reader.recognises({anchor, ""}));
  EXPECT_FALSE(otf2_reader.recognises({folder_ / "any-name.def", ""}));
  const Trace trace = read(anchor);
  ASSERT_THAT(trace.ranks, SizeIs(2));
  const Rank& rank = trace.ranks[1];
  EXPECT_EQ(rank.rank, 1);
  EXPECT_EQ(rank.world_size, 2);
  EXPECT_EQ(rank.host, "node17");
  EXPECT_EQ(rank.format, "otf2");
  EXPECT_EQ(rank.path, "an archive");
  EXPECT_EQ(rank.pid, 501);
  EXPECT_THAT(rank.command, ElementsAre("solver", "--fast"));
  EXPECT_EQ(rank.utc_of_zero_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(rank.mpi_events, 2U);
  EXPECT_FALSE(rank.damaged) << rank.damage;
  const Track* main = find_track(rank, "main thread");
  EXPECT_THAT(slices_of(trace, main), ElementsAre("//step at 0 for 50", "mpi/point-to-point/MPI_Recv at 10 for 10",
                                                  "mpi/collective/MPI_Reduce at 30 for 10"));
  EXPECT_EQ(arguments_of(trace, main, 1), "bytes=4096 communicator=MPI_COMM_WORLD peer=0 tag=7");
  EXPECT_EQ(arguments_of(trace, main, 2), "bytes=64 communicator=MPI_COMM_WORLD members=2 root=1");
  EXPECT_TRUE(main->main);
  ASSERT_NE(trace.communicators.find(trace.names.find("MPI_COMM_WORLD")), nullptr);
  EXPECT_EQ(trace.communicators.find(trace.names.find("MPI_COMM_WORLD"))->members, 2U);
}

TEST_F(Otf2, JoinsRequestsWithTheCallThatPostedThem) {
  Otf2Archive archive(folder_);
  const OTF2_RegionRef isend = archive.region("MPI_Isend", OTF2_PARADIGM_MPI),
                       irecv = archive.region("MPI_Irecv", OTF2_PARADIGM_MPI),
                       wait = archive.region("MPI_Waitall", OTF2_PARADIGM_MPI);
  OTF2_EvtWriter* to = archive.location(0);
  OTF2_EvtWriter_Enter(to, nullptr, 10, irecv);
  OTF2_EvtWriter_MpiIrecvRequest(to, nullptr, 11, 1);
  OTF2_EvtWriter_Leave(to, nullptr, 12, irecv);
  OTF2_EvtWriter_Enter(to, nullptr, 20, isend);
  OTF2_EvtWriter_MpiIsend(to, nullptr, 21, 0, 0, 5, 32, 2);
  OTF2_EvtWriter_Leave(to, nullptr, 22, isend);
  OTF2_EvtWriter_Enter(to, nullptr, 30, wait);
  OTF2_EvtWriter_MpiIrecv(to, nullptr, 31, 0, 0, 5, 32, 1);
  OTF2_EvtWriter_MpiIsendComplete(to, nullptr, 32, 2);
  OTF2_EvtWriter_Leave(to, nullptr, 40, wait);
  const Trace trace = read(archive.end({}));
  const Track* main = find_track(trace.ranks[0], "main thread");
  EXPECT_EQ(arguments_of(trace, main, 0), "request=1 bytes=32 communicator=MPI_COMM_WORLD peer=0 tag=5");
  EXPECT_EQ(arguments_of(trace, main, 1), "bytes=32 communicator=MPI_COMM_WORLD peer=0 tag=5 request=2");
  EXPECT_EQ(arguments_of(trace, main, 2), "request=1 request=2");
}

TEST_F(Otf2, StreamsHaveKernelsAndCopiesButNoIdleTime) {
  Otf2Archive archive(folder_);
  const OTF2_RegionRef launch = archive.region("cudaLaunchKernel", OTF2_PARADIGM_CUDA),
                       wait = archive.region("cudaDeviceSynchronize", OTF2_PARADIGM_CUDA),
                       idle = archive.region("COMPUTE IDLE", OTF2_PARADIGM_CUDA, OTF2_REGION_ROLE_ARTIFICIAL),
                       kernel = archive.region("_Z6squarePf", OTF2_PARADIGM_CUDA),
                       copy = archive.region("cuMemcpyHtoD_v2", OTF2_PARADIGM_CUDA);
  const auto on = [&](OTF2_LocationRef location, int begin, int end, OTF2_RegionRef region) {
    OTF2_EvtWriter_Enter(archive.location(location), nullptr, static_cast<OTF2_TimeStamp>(begin), region);
    OTF2_EvtWriter_Leave(archive.location(location), nullptr, static_cast<OTF2_TimeStamp>(end), region);
  };
  on(0, 10, 12, launch);
  on(0, 20, 90, wait);
  on(2, 5, 30, idle);
  on(2, 30, 50, kernel);
  on(2, 60, 65, copy);
  on(1, 1, 2, archive.region("background"));
  const Trace trace = read(archive.end({.threads = 2, .gpu_stream = true}));
  const Rank& rank = trace.ranks[0];
  EXPECT_THAT(slices_of(trace, find_track(rank, "main thread")),
              ElementsAre("cuda/runtime/cudaLaunchKernel at 10 for 2",
                          "cuda/synchronization/cudaDeviceSynchronize at 20 for 70"));
  EXPECT_THAT(slices_of(trace, find_track(rank, "worker")), ElementsAre("//background at 1 for 1"));
  const Track* stream = find_track(rank, "CUDA[0:7]");
  EXPECT_THAT(slices_of(trace, stream),
              ElementsAre("cuda/kernel/square(float*) at 30 for 20", "cuda/memcpy/cuMemcpyHtoD_v2 at 60 for 5"));
  EXPECT_EQ(stream->kind, TrackKind::stream);
  EXPECT_EQ(rank.cuda_events, 4U);
}

TEST_F(Otf2, ReadsMetricsTicksAndPauses) {
  Otf2Archive archive(folder_);
  const OTF2_MetricRef memory = archive.metric("memory", "bytes", OTF2_METRIC_ABSOLUTE_POINT, OTF2_TYPE_DOUBLE);
  const OTF2_MetricRef sum = archive.metric("instructions", "#", OTF2_METRIC_ACCUMULATED_START, OTF2_TYPE_UINT64);
  OTF2_EvtWriter* to = archive.location(0);
  const OTF2_RegionRef work = archive.region("work");
  OTF2_EvtWriter_Enter(to, nullptr, 2'000, work);
  const OTF2_Type real = OTF2_TYPE_DOUBLE, whole = OTF2_TYPE_UINT64;
  OTF2_MetricValue value;
  value.floating_point = 1.5;
  OTF2_EvtWriter_Metric(to, nullptr, 2'002, memory, 1, &real, &value);
  value.unsigned_int = 77;
  OTF2_EvtWriter_Metric(to, nullptr, 2'004, sum, 1, &whole, &value);
  OTF2_EvtWriter_MeasurementOnOff(to, nullptr, 2'010, OTF2_MEASUREMENT_OFF);
  OTF2_EvtWriter_MeasurementOnOff(to, nullptr, 2'020, OTF2_MEASUREMENT_ON);
  OTF2_EvtWriter_Leave(to, nullptr, 2'030, work);
  const Trace trace = read(archive.end({.resolution = 1'000'000, .offset = 2'000}));  // microseconds
  const Rank& rank = trace.ranks[0];
  EXPECT_THAT(slices_of(trace, find_track(rank, "main thread")), ElementsAre("//work at 0 for 30000"));
  const Track* counter = find_track(rank, "Master thread: memory");
  ASSERT_NE(counter, nullptr);
  EXPECT_EQ(counter->samples.unit, "bytes");
  EXPECT_FALSE(counter->samples.is_sum);
  EXPECT_THAT(counter->samples.time_ns, ElementsAre(2'000));
  EXPECT_THAT(counter->samples.value, ElementsAre(1.5));
  const Track* other = find_track(rank, "Master thread: instructions");
  ASSERT_NE(other, nullptr);
  EXPECT_TRUE(other->samples.is_sum);
  EXPECT_EQ(other->samples.unit, "");
  EXPECT_EQ(rank.counter_events, 2U);
  ASSERT_THAT(rank.gaps, SizeIs(1));
  EXPECT_EQ(rank.gaps[0].start_ns, 10'000);
  EXPECT_EQ(rank.gaps[0].end_ns, 20'000);
  EXPECT_EQ(rank.gaps[0].reason, "measurement off");
}

TEST_F(Otf2, SurvivesLeavesThatDoNotMatch) {
  Otf2Archive archive(folder_);
  const OTF2_RegionRef outer = archive.region("outer"), inner = archive.region("inner");
  OTF2_EvtWriter* to = archive.location(0);
  OTF2_EvtWriter_Leave(to, nullptr, 5, inner);
  OTF2_EvtWriter_Enter(to, nullptr, 10, outer);
  OTF2_EvtWriter_Enter(to, nullptr, 20, inner);
  OTF2_EvtWriter_Leave(to, nullptr, 30, outer);
  OTF2_EvtWriter_Enter(to, nullptr, 40, outer);
  OTF2_EvtWriter_Enter(to, nullptr, 50, 12345);  // not defined
  const Trace trace = read(archive.end({}));
  const Track* main = find_track(trace.ranks[0], "main thread");
  EXPECT_THAT(slices_of(trace, main), ElementsAre("//outer at 10 for 20", "//inner at 20 for 10",
                                                  "//outer at 40 for 10", "//region 12345 at 50 for 0"));
  EXPECT_EQ(arguments_of(trace, main, 2), "unfinished=1");
}

TEST_F(Otf2, NumbersRanksByNameWithoutMpi) {
  Otf2Archive archive(folder_);
  const OTF2_RegionRef work = archive.region("work");
  for (const OTF2_LocationRef location : {0, 1}) {
    OTF2_EvtWriter_Enter(archive.location(location), nullptr, 1, work);
    OTF2_EvtWriter_Leave(archive.location(location), nullptr, 2, work);
  }
  const Trace trace = read(archive.end({.ranks = 2, .group_name = "Process 1", .mpi = false}));  // Process 10, 11
  ASSERT_THAT(trace.ranks, SizeIs(2));
  EXPECT_EQ(trace.ranks[0].rank, 10);
  EXPECT_EQ(trace.ranks[1].rank, 11);
}

TEST_F(Otf2, AFileOfEventsThatIsCutKeepsItsFirstEvents) {
  const auto anchor = simple(200'000);
  const auto events = folder_ / "traces" / "0.evt";
  std::filesystem::resize_file(events, std::filesystem::file_size(events) / 2);
  testing::internal::CaptureStderr();
  const Trace trace = read(anchor);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
  EXPECT_TRUE(trace.ranks[0].damaged);
  EXPECT_THAT(trace.ranks[0].damage, HasSubstr("location 0 after "));
  const Track* main = find_track(trace.ranks[0], "main thread");
  ASSERT_NE(main, nullptr);
  EXPECT_GT(main->slices.size(), 10'000U);
  EXPECT_LT(main->slices.size(), 200'000U);
}

TEST_F(Otf2, ADamagedChunkLosesOnlyItself) {
  constexpr int regions = 200'000;
  constexpr std::streamoff chunk_bytes = 1 << 20;
  const auto anchor = simple(regions);
  {
    std::fstream events(folder_ / "traces" / "0.evt", std::ios::binary | std::ios::in | std::ios::out);
    events.seekp(chunk_bytes) << "no head";
    events.seekp(3 * chunk_bytes + 5'000) << std::string(100, '\7');  // no event has this type
  }
  const Trace trace = read(anchor);
  const Rank& rank = trace.ranks[0];
  const Track* main = find_track(rank, "main thread");
  ASSERT_NE(main, nullptr);
  // Each region has two events of eleven bytes.
  const std::uint64_t lost = rank.dropped.at("damage");
  EXPECT_NEAR(static_cast<double>(lost), 2.0 * chunk_bytes / 11, 1'000);
  EXPECT_NEAR(static_cast<double>(main->slices.size()), regions - static_cast<double>(lost) / 2, 3);
  EXPECT_EQ(rank.damage, "location 0 after " + std::to_string(2 * regions - lost) + " events: " + std::to_string(lost) +
                             " could not be read");
  ASSERT_THAT(main->lost, SizeIs(2));
  EXPECT_EQ(main->lost[0].cause, "damage");
  EXPECT_EQ(main->lost[0].events + main->lost[1].events, lost);
  EXPECT_NEAR(static_cast<double>(main->lost[0].start_ns), 10.0 * chunk_bytes / 22, 100);
  EXPECT_NEAR(static_cast<double>(main->lost[0].end_ns), 20.0 * chunk_bytes / 22, 100);
}

TEST(Otf2Bytes, ReadsBothByteOrdersAndStopsAtTheEnd) {
  const std::vector<std::uint8_t> bytes{2, 0x12, 0x34, 0, 0xff, 0x01, 0x02, 'a', 'b', 0, 3, 9, 9, 9, 4, 7};
  for (const bool big_endian : {false, true}) {
    Otf2Bytes from(bytes, big_endian);
    EXPECT_EQ(from.number(), big_endian ? 0x1234U : 0x3412U);
    EXPECT_EQ(from.number(), 0U);
    EXPECT_EQ(from.number32(), OTF2_UNDEFINED_UINT32);
    EXPECT_EQ(from.fixed(2), big_endian ? 0x0102U : 0x0201U);
    EXPECT_EQ(from.text(), "ab");
    Otf2Bytes record = from.record();
    EXPECT_EQ(record.left(), 3U);
    EXPECT_FALSE(from.failed());
    EXPECT_EQ(from.record().left(), 0U);  // it would reach past the end
    EXPECT_TRUE(from.failed());
    EXPECT_EQ(from.left(), 0U);
    EXPECT_EQ(record.number(), 0U);  // more bytes than a number has
    EXPECT_TRUE(record.failed());
  }
}

TEST_F(Otf2, NumbersAndTimesOfALocationBecomeThoseOfTheArchive) {
  const auto file = folder_ / "0.def";
  const std::string head("\3B\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 18);
  const std::string dense("\5\7\3\1\2\0\1\11\0", 9);      // regions 0 and 1 are 9 and 0
  const std::string sparse("\5\10\6\1\1\1\1\4\1\5", 10);  // communicator 4 is 5
  std::string offsets;                                    // at 100 by 10 ticks, at 200 by 20
  for (const char step : {'\1', '\2'}) {
    offsets += std::string("\6\22", 2) + static_cast<char>(100 * step) + std::string(7, '\0') + '\1' +
               static_cast<char>(10 * step) + std::string(8, '\0');
  }
  std::ofstream(file, std::ios::binary) << head << dense << sparse << offsets << "\2\1";
  Otf2LocalDefinitions local(file, 1 << 20);
  EXPECT_TRUE(local.complete());
  EXPECT_EQ(local.global(OTF2_MAPPING_REGION, 0), 9U);
  EXPECT_EQ(local.global(OTF2_MAPPING_REGION, 1), 0U);
  EXPECT_EQ(local.global(OTF2_MAPPING_REGION, 2), 2U);
  EXPECT_EQ(local.global(OTF2_MAPPING_COMM, 4), 5U);
  EXPECT_EQ(local.global(OTF2_MAPPING_COMM, 3), 3U);
  EXPECT_EQ(local.time(90), 99U);
  EXPECT_EQ(local.time(150), 165U);
  EXPECT_EQ(local.time(300), 330U);
  EXPECT_TRUE(Otf2LocalDefinitions(folder_ / "absent.def", 1 << 20).complete());
  std::ofstream(file, std::ios::binary) << head << dense.substr(0, 5);
  EXPECT_FALSE(Otf2LocalDefinitions(file, 1 << 20).complete());
}

TEST_F(Otf2, WithoutDefinitionsOrEventsThereIsOneClearError) {
  const auto anchor = simple(10);
  std::filesystem::rename(folder_ / "traces", folder_ / "elsewhere");
  testing::internal::CaptureStderr();
  const Trace without_events = read(anchor);
  EXPECT_TRUE(without_events.ranks[0].damaged);
  std::filesystem::remove(folder_ / "traces.def");
  try {
    read(anchor);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("an archive: "));
  }
  std::ofstream(anchor) << "\3BOTF2 but nothing else";
  EXPECT_THROW(read(anchor), Error);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
}

}  // namespace
}  // namespace paceline::analysis
