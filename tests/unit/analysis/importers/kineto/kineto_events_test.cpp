// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/communication/collectives.h"
#include "analysis/importers/kineto/values.h"
#include "analysis/phases/iterations.h"
#include "profiler/format/error.h"
#include "tests/unit/analysis/kineto_file.h"

namespace paceline::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KinetoEvents : public ::testing::Test {
 protected:
  Trace read(const std::string& events, const std::string& members = "") const {
    return files.read({kineto_file(events, members)});
  }
  const KinetoFiles files;
};

std::string device_event(const std::string& category, const std::string& name, const std::string& ts,
                         const std::string& dur, const std::string& args) {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "pid": 1, "tid": 20, "ts": )" + ts +
         ", \"dur\": " + dur + ", \"args\": {" + args + "}}";
}

std::string call_event(const std::string& name, const std::string& ts, const std::string& correlation) {
  return R"({"ph": "X", "cat": "cuda_runtime", "name": ")" + name + R"(", "pid": 7, "tid": 7, "ts": )" + ts +
         R"(, "dur": 2, "args": {"External id": 1, "cbid": 211, "correlation": )" + correlation + "}}";
}

TEST(KinetoTimes, AreExactToTheNanosecond) {
  using kineto::nanoseconds;
  EXPECT_EQ(nanoseconds("5213421.123"), 5213421123);
  EXPECT_EQ(nanoseconds("1682725898236567"), 1682725898236567000);
  EXPECT_EQ(nanoseconds("1682725898236567.891"), 1682725898236567891);  // a double has no room for these digits
  EXPECT_EQ(nanoseconds("0.0005"), 1);
  EXPECT_EQ(nanoseconds("0.00049999999999999999999999"), 0);
  EXPECT_EQ(nanoseconds("-2.5"), -2500);
  EXPECT_EQ(nanoseconds("68.0"), 68000);
  EXPECT_EQ(nanoseconds("1.5e3"), 1500000);
  EXPECT_EQ(nanoseconds("1.682725898236567891e15"), 1682725898236567891);
  EXPECT_EQ(nanoseconds("25e-4"), 3);
  for (const char* text :
       {"", "-", ".", "NaN", "Infinity", "1.5.2", "1e", "12 ", "18446744073709551615", "1e300", "0x10"}) {
    EXPECT_EQ(nanoseconds(text), std::nullopt) << text;
  }
}

TEST(KinetoTexts, ReplaceEscapesAndBytesThatAreNotUtf8) {
  using kineto::plain_text;
  EXPECT_EQ(plain_text(R"(a\"b\\c\/\n\u00e9\ud83d\ude00)"), "a\"b\\c/\n\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(plain_text("a\xff\xc3(\xc3\xa9"), "a\xef\xbf\xbd\xef\xbf\xbd(\xc3\xa9");
  EXPECT_EQ(plain_text(R"(\ud800x\q)"), "\xef\xbf\xbdx\\q");
  EXPECT_LT(plain_text(std::string(1 << 20, 'x')).size(), 5000U);
}

TEST_F(KinetoEvents, OperatorsAreSlicesOfTheirThread) {
  const Trace trace = read(operator_event("aten::add", "10.5", "4.25", R"(, "args": {"External id": 3, "Ev Idx": 2,
      "Input Dims": [[2, 3], []], "Sequence number": 12})") +
                           "," + operator_event("aten::empty", "11", "1"));
  const Track* main = track_of(trace, "main thread");
  ASSERT_NE(main, nullptr);
  EXPECT_TRUE(main->main);
  EXPECT_EQ(main->thread_id, 7U);
  EXPECT_THAT(names_of(trace, *main), ElementsAre("aten::add", "aten::empty"));
  EXPECT_EQ(main->slices.start_ns[0], 0);
  EXPECT_EQ(main->slices.duration_ns[0], 4250);
  EXPECT_EQ(main->slices.depth[1], 1);
  const Kind& kind = trace.kind_of(main->slices, 0);
  EXPECT_EQ(trace.names[kind.domain], "torch");
  EXPECT_EQ(trace.names[kind.category], "cpu_op");
  EXPECT_EQ(argument_of(trace, main->slices, 0, "Input Dims"), "[[2, 3], []]");
  EXPECT_EQ(argument_of(trace, main->slices, 0, "Sequence number"), "12");
  EXPECT_EQ(argument_of(trace, main->slices, 0, "External id"), "");
  EXPECT_EQ(trace.ranks[0].format, "kineto");
  EXPECT_EQ(trace.ranks[0].pid, 7);
}

TEST_F(KinetoEvents, IdsAndNumbersMayBeStrings) {
  const Trace trace = read(R"({"ph":"X","cat":"cpu_op","name":"a","pid":"7","tid":7,"ts":"10","dur":"2"},
      {"ph":"X","cat":"cpu_op","name":"b","pid":7,"tid":"7","ts":20,"dur":2})");
  ASSERT_EQ(trace.ranks[0].tracks.size(), 1U);
  EXPECT_THAT(names_of(trace, trace.ranks[0].tracks[0]), ElementsAre("a", "b"));
}

TEST_F(KinetoEvents, BeginsAndEndsArePaired) {
  const Trace trace = read(R"({"ph":"B","name":"inner","pid":1,"tid":1,"ts":20},{"ph":"E","pid":1,"tid":1,"ts":30},
      {"ph":"B","name":"outer","pid":1,"tid":1,"ts":10},{"ph":"E","pid":1,"tid":1,"ts":40,"args":{"bytes":5}},
      {"ph":"B","name":"open","pid":1,"tid":1,"ts":41},{"ph":"i","name":"last","pid":1,"tid":1,"ts":50},
      {"ph":"E","pid":1,"tid":2,"ts":42})");
  const Track& track = trace.ranks[0].tracks[0];
  EXPECT_THAT(names_of(trace, track), ElementsAre("outer", "inner", "open"));
  EXPECT_EQ(track.slices.duration_ns[0], 30000);
  EXPECT_EQ(argument_of(trace, track.slices, 0, "bytes"), "5");
  EXPECT_EQ(argument_of(trace, track.slices, 2, "unfinished"), "1");
  EXPECT_EQ(track.marks.size(), 1U);
  EXPECT_EQ(trace.ranks[0].dropped.at("damage"), 1U);  // an end without a begin
}

TEST_F(KinetoEvents, InstantsAreMarks) {
  const Trace trace = read(R"({"ph":"i","cat":"user","name":"epoch","pid":1,"tid":1,"ts":5,"s":"t","args":{"loss":0.5}},
      {"ph":"I","name":"old","pid":1,"tid":1,"ts":6})");
  const Slices& marks = trace.ranks[0].tracks.at(0).marks;
  ASSERT_EQ(marks.size(), 2U);
  EXPECT_EQ(trace.name_of(marks, 0), "epoch");
  EXPECT_EQ(argument_of(trace, marks, 0, "loss"), "0.5");
}

TEST_F(KinetoEvents, CountersAreTracksOfSamplesInTheOrderOfTime) {
  const Trace trace = read(R"({"ph":"C","name":"queue","pid":1,"ts":9,"args":{"stream 7":3,"stream 20":1}},
      {"ph":"C","name":"queue","pid":1,"ts":5,"args":{"stream 7":2}},
      {"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":1,"tid":1,"ts":6,
       "args":{"Total Reserved":1024,"Total Allocated":512,"Bytes":512,"Device Id":0,"Device Type":1,"Addr":9}})");
  const Track* queue = track_of(trace, "queue stream 7");
  ASSERT_NE(queue, nullptr);
  EXPECT_THAT(queue->samples.value, ElementsAre(2, 3));
  EXPECT_THAT(queue->samples.time_ns, ElementsAre(0, 4000));
  const Track* memory = track_of(trace, "GPU 0: memory allocated by PyTorch");
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->samples.unit, "bytes");
  EXPECT_THAT(memory->samples.value, ElementsAre(512));
}

TEST_F(KinetoEvents, NamesOfThreadsAndProcessesMayComeLast) {
  const Trace trace =
      read(R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":5,"dur":3},{"ph":"X","name":"b","pid":1,"tid":2,"ts":5,"dur":1},
      {"ph":"X","name":"c","pid":9,"tid":3,"ts":5,"dur":1},
      {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"loader"}},
      {"ph":"M","name":"process_name","pid":9,"tid":0,"args":{"name":"helper"}})");
  EXPECT_NE(track_of(trace, "main thread"), nullptr);
  EXPECT_NE(track_of(trace, "loader"), nullptr);
  EXPECT_NE(track_of(trace, "helper thread 3"), nullptr);
}

TEST_F(KinetoEvents, FlowsBetweenForwardAndBackwardAreArguments) {
  const Trace trace = read(operator_event("aten::mul", "10", "4") + "," + operator_event("MulBackward0", "30", "4") +
                           R"(,{"ph":"s","cat":"fwdbwd","name":"fwdbwd","id":5,"pid":7,"tid":7,"ts":10},
      {"ph":"f","cat":"fwdbwd","name":"fwdbwd","id":5,"pid":7,"tid":7,"ts":31,"bp":"e"},
      {"ph":"s","cat":"ac2g","name":"ac2g","id":6,"pid":7,"tid":7,"ts":31})");
  const Slices& slices = trace.ranks[0].tracks[0].slices;
  EXPECT_EQ(argument_of(trace, slices, 0, "fwdbwd"), "5");
  EXPECT_EQ(argument_of(trace, slices, 1, "fwdbwd"), "5");
  EXPECT_EQ(argument_of(trace, slices, 1, "flow"), "");
}

TEST_F(KinetoEvents, KernelsCopiesAndFillsAreOnTheirStream) {
  const Trace trace = read(
      call_event("cudaLaunchKernel", "10", "77") + "," +
      device_event("kernel", "_Z3addPf", "15.5", "3",
                   R"("External id": 1, "queued": 0, "device": 1, "context": 1, "stream": 20, "correlation": 77,
                           "registers per thread": 32, "shared memory": 1024, "grid": [24, 2, 1], "block": [128, 1, 1])") +
      "," +
      device_event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "20", "2", R"("correlation": 78, "bytes": 64)") +
      "," + device_event("gpu_memset", "Memset (Device)", "23", "1", R"("correlation": 79, "bytes": 8)") + "," +
      device_event("gpu_user_annotation", "step", "15", "9", "") + "," +
      device_event("cuda_sync", "Stream Wait Event", "15", "1", "\"stream\": 20"));
  const Track* stream = track_of(trace, "GPU 1 stream 20");
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->kind, TrackKind::stream);
  EXPECT_THAT(names_of(trace, *stream), ElementsAre("add(float*)", "Memcpy HtoD", "Memset"));
  EXPECT_EQ(argument_of(trace, stream->slices, 0, "correlation"), "77");
  EXPECT_EQ(argument_of(trace, stream->slices, 0, "grid"), "24×2×1");
  EXPECT_EQ(argument_of(trace, stream->slices, 0, "registers"), "32");
  EXPECT_EQ(argument_of(trace, stream->slices, 0, "shared"), "1024");
  EXPECT_EQ(argument_of(trace, stream->slices, 1, "bytes"), "64");
  EXPECT_EQ(argument_of(trace, stream->slices, 1, "from"), "pageable");
  EXPECT_EQ(argument_of(trace, stream->slices, 1, "to"), "GPU 1");
  EXPECT_EQ(argument_of(trace, stream->slices, 2, "to"), "GPU 1");
  const Track* annotations = track_of(trace, "GPU 1 stream 20 annotations");
  ASSERT_NE(annotations, nullptr);
  EXPECT_NE(annotations->kind, TrackKind::stream);
  EXPECT_NE(track_of(trace, "GPU 1 stream 20 waits"), nullptr);
  const Slices& calls = track_of(trace, "main thread")->slices;
  EXPECT_EQ(trace.names[trace.kind_of(calls, 0).category], "runtime");
  EXPECT_EQ(argument_of(trace, calls, 0, "correlation"), "77");
  EXPECT_EQ(trace.ranks[0].cuda_events, 3U);
}

TEST_F(KinetoEvents, CallsThatWaitAreSynchronization) {
  const Trace trace = read(call_event("cudaDeviceSynchronize", "10", "77"));
  EXPECT_EQ(trace.names[trace.kind_of(trace.ranks[0].tracks[0].slices, 0).category], "synchronization");
}

TEST_F(KinetoEvents, StepsOfTheProfilerAreIterations) {
  const Trace trace =
      read(operator_event("aten::add", "1", "1") +
           R"(,{"ph":"X","cat":"user_annotation","name":"ProfilerStep#551","pid":7,"tid":8,"ts":10,"dur":5},
      {"ph":"X","cat":"user_annotation","name":"ProfilerStep#552","pid":7,"tid":8,"ts":20,"dur":5})");
  const auto iterations = iterations_of(PhaseTable(trace), trace.ranks[0]);
  ASSERT_EQ(iterations.size(), 2U);
  EXPECT_EQ(iterations[1].number, 552);
  EXPECT_EQ(main_track(trace.ranks[0])->thread_id, 8U);  // it iterates, so it is the main thread
}

constexpr const char* four_ranks = R"("distributedInfo": {"backend": "nccl", "rank": 2, "world_size": 4, "pg_count": 2,
  "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 4, "ranks": [0, 1, 2, 3]},
                {"pg_name": "5", "pg_desc": "tensor", "pg_size": 2, "ranks": [2, 3]}]})";

std::string nccl_arguments(const std::string& name, const std::string& group, const std::string& more,
                           const std::string& size = "4") {
  return R"("correlation": 90, "Collective name": ")" + name + R"(", "In msg nelems": 100, "Out msg nelems": 400,
     "dtype": "BFloat16", "Group size": )" +
         size + R"(, "Process Group Name": ")" + group + "\"" + more;
}

TEST_F(KinetoEvents, NcclKernelsAreCollectivesWithBytesAndGroup) {
  const Trace trace = read(
      device_event("kernel", "ncclDevKernel_AllGather_RING_LL(x)", "30", "9",
                   nccl_arguments("_allgather_base", "0", R"(, "Process Group Ranks": "[0, 1, 2, 3]", "Seq": 17)")) +
          "," +
          device_event("kernel", "ncclDevKernel_SendRecv(x)", "50", "9",
                       nccl_arguments("send", "5", R"(, "Process Group Ranks": "[2, 3]", "Dst Rank": 1)", "2")),
      four_ranks);
  const Rank& rank = trace.ranks[0];
  EXPECT_EQ(rank.rank, 2);
  EXPECT_EQ(rank.world_size, 4);
  EXPECT_EQ(rank.nccl_events, 2U);
  const Track* track = track_of(trace, "NCCL default_pg (group 0)");
  ASSERT_NE(track, nullptr);
  EXPECT_EQ(track->kind, TrackKind::nccl);
  EXPECT_THAT(names_of(trace, *track), ElementsAre("ncclAllGather"));
  EXPECT_EQ(argument_of(trace, track->slices, 0, "bytes"), "800");
  EXPECT_EQ(argument_of(trace, track->slices, 0, "members"), "4");
  EXPECT_EQ(argument_of(trace, track->slices, 0, "sequence"), "17");
  const Track* tensor = track_of(trace, "NCCL tensor (group 5) of ranks 2-3");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(trace.names[trace.kind_of(tensor->slices, 0).category], "point-to-point");
  EXPECT_EQ(argument_of(trace, tensor->slices, 0, "peer"), "1");
  ASSERT_EQ(rank.communicators.size(), 2U);
  EXPECT_EQ(rank.communicator_ranks[0], 2);
  EXPECT_EQ(rank.communicator_ranks[1], 0);
  EXPECT_NE(track_of(trace, "GPU 1 stream 20"), nullptr);  // the kernels stay on their stream
}

TEST_F(KinetoEvents, CollectivesWithoutNumbersAreCountedInTheStepThatLaunchedThem) {
  const std::string ranks = R"(, "Process Group Ranks": "[0, 1, 2, 3]")";
  const auto kernel = [&](const std::string& ts, int correlation) {
    std::string text =
        device_event("kernel", "ncclDevKernel_AllReduce_Sum(x)", ts, "9", nccl_arguments("allreduce", "0", ranks));
    return text.replace(text.find("\"correlation\": 90"), 17, "\"correlation\": " + std::to_string(correlation));
  };
  const auto step = [](int number, const std::string& ts) {
    return R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)" + std::to_string(number) +
           R"(","pid":7,"tid":7,"ts":)" + ts + ",\"dur\":50}";
  };
  const Trace trace =
      read(step(5, "0") + "," + step(6, "60") + "," + call_event("cudaLaunchKernelExC", "10", "1") + "," +
               call_event("cudaLaunchKernelExC", "20", "2") + "," + call_event("cudaLaunchKernelExC", "70", "3") + "," +
               kernel("15", 1) + "," + kernel("65", 2) + "," + kernel("80", 3),
           four_ranks);
  const Slices& slices = track_of(trace, "NCCL default_pg (group 0)")->slices;
  ASSERT_EQ(slices.size(), 3U);
  EXPECT_EQ(argument_of(trace, slices, 0, "sequence"), std::to_string(std::int64_t{5} << 40));
  EXPECT_EQ(argument_of(trace, slices, 1, "sequence"),
            std::to_string((std::int64_t{5} << 40) + 1));  // launched in step 5
  EXPECT_EQ(argument_of(trace, slices, 2, "sequence"), std::to_string(std::int64_t{6} << 40));
}

TEST_F(KinetoEvents, OldNcclKernelsHaveTheNameOfTheirOperation) {
  const Trace trace = read(
      device_event("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "30", "9", "\"correlation\": 4"));
  const Track* track = track_of(trace, "NCCL stream 1");
  ASSERT_NE(track, nullptr);
  EXPECT_THAT(names_of(trace, *track), ElementsAre("ncclAllReduce"));
  EXPECT_EQ(argument_of(trace, track->slices, 0, "bytes"), "");
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_THAT(trace.notes[0], HasSubstr("1 collectives cannot be matched"));
}

std::string profiler_step(int number, const std::string& ts) {
  return R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)" + std::to_string(number) +
         R"(","pid":7,"tid":7,"ts":)" + ts + ",\"dur\":100}";
}

// An all-to-all of NCCL, which runs as sends and receives, and the call that launched it inside PyTorch's range.
std::string old_all_to_all(const std::string& ts, int correlation, const std::string& start,
                           const std::string& stream) {
  std::string kernel = device_event("kernel", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(x)", start, "9",
                                    "\"correlation\": " + std::to_string(correlation));
  kernel.replace(kernel.find("\"tid\": 20"), 9, "\"tid\": " + stream);
  return R"({"ph":"X","cat":"user_annotation","name":"nccl:all_to_all","pid":7,"tid":7,"ts":)" + ts + ",\"dur\":5}," +
         call_event("cudaLaunchKernelExC", ts + ".5", std::to_string(correlation)) + "," + kernel;
}

TEST_F(KinetoEvents, OldNcclKernelsMatchByTheirOrderOnTheirStreamInAnIteration) {
  const auto file = [](int rank, const std::string& late, const std::string& more) {
    return kineto_file(profiler_step(5, "0") + "," + profiler_step(6, "100") + "," +
                           old_all_to_all("10", 1, "20", "84") + "," + old_all_to_all("30", 2, late, "84") + "," +
                           old_all_to_all("50", 3, "60", "203") + "," + old_all_to_all("110", 4, "120", "84") + more,
                       R"("distributedInfo": {"rank": )" + std::to_string(rank) + R"(, "world_size": 2})");
  };
  // In step 6 rank 1 has one call more, so nobody knows which of its calls belong to those of rank 0.
  const Trace trace = files.read({file(0, "40", ""), file(1, "44", "," + old_all_to_all("130", 5, "140", "84"))});
  ASSERT_EQ(trace.ranks.size(), 2U);
  const Track* track = track_of(trace, "NCCL stream 1");
  ASSERT_NE(track, nullptr);
  EXPECT_THAT(names_of(trace, *track), ElementsAre("ncclAlltoAll", "ncclAlltoAll", "ncclAlltoAll"));
  EXPECT_EQ(trace.names[trace.kind_of(track->slices, 0).category], "collective");
  const Collectives matched = match_collectives(trace);
  EXPECT_EQ(matched.matched.size(), 3U);  // two on the stream 84, one on the stream 203
  EXPECT_EQ(matched.unmatched_calls, 3U);
}

TEST_F(KinetoEvents, PythonFunctionsHaveRowsOfTheirOwn) {
  const auto event = [](const char* category, const char* name, int ts, int dur) {
    return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":7,"tid":7,"ts":{},"dur":{}}})", category, name, ts,
                       dur);
  };
  const Trace trace =
      read(event("python_function", "train.py(3): step", 0, 100) + "," +
           event("python_function", "torch/autograd/profiler.py(490): __enter__", 1, 5) + "," +
           event("user_annotation", "ProfilerStep#3", 3, 90) + "," + event("user_annotation", "forward", 10, 20));
  const Track* main = main_track(trace.ranks[0]);
  ASSERT_NE(main, nullptr);
  EXPECT_THAT(names_of(trace, *main), ElementsAre("ProfilerStep#3", "forward"));
  EXPECT_THAT(main->slices.depth, ElementsAre(0, 1));
  const Track* functions = track_of(trace, "main thread Python functions");
  ASSERT_NE(functions, nullptr);
  EXPECT_EQ(functions->slices.size(), 2U);
  EXPECT_EQ(iterations_of(PhaseTable(trace), trace.ranks[0]).size(), 1U);
  EXPECT_THAT(trace.notes, testing::IsEmpty());
}

std::string work_of(int process, const char* ts) {
  return fmt::format(R"({{"ph":"X","name":"work","pid":{0},"tid":{0},"ts":{1},"dur":2}})", process, ts);
}
std::string process_name(int process, const char* name) {
  return fmt::format(R"(,{{"ph":"M","name":"process_name","pid":{},"args":{{"name":"{}"}}}})", process, name);
}

TEST_F(KinetoEvents, ProcessesWithARankInTheirNamesAreRanks) {
  const Trace trace = files.read({"[" + work_of(40, "5") + "," + work_of(41, "7") +
                                  process_name(40, "MPI Rank 1 of 2") + process_name(41, "MPI Rank 0 of 2") + "]"});
  ASSERT_EQ(trace.ranks.size(), 2U);
  EXPECT_EQ(trace.ranks[0].rank, 0);
  EXPECT_EQ(trace.ranks[1].rank, 1);
  EXPECT_EQ(trace.ranks[0].pid, 41);
  EXPECT_EQ(trace.ranks[1].pid, 40);
  ASSERT_NE(main_track(trace.ranks[0]), nullptr);
  EXPECT_THAT(main_track(trace.ranks[0])->slices.start_ns, ElementsAre(2000));
  EXPECT_THAT(trace.notes, testing::IsEmpty());
}

TEST_F(KinetoEvents, ProcessesWithoutRanksAreOneRankAndThisIsNoted) {
  const Trace trace = files.read({"[" + work_of(40, "5") + "," + work_of(41, "7") + process_name(40, "browser") +
                                  process_name(41, "renderer") + "]"});
  ASSERT_EQ(trace.ranks.size(), 1U);
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_THAT(trace.notes[0], HasSubstr("its 2 processes were read as one rank: --processes ranks"));
}

// The rows of the profiler itself ("Spans") are no process.
TEST_F(KinetoEvents, ProcessesInAFileOfPyTorchAreOneRankAndThisIsNoted) {
  const std::string of_40 = R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":40,"tid":40,"ts":5,"dur":2})",
                    of_41 = R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":41,"tid":41,"ts":6,"dur":2})",
                    spans = R"({"ph":"X","cat":"Trace","name":"Profiler","pid":"Spans","tid":"P","ts":5,"dur":9})";
  const Trace one = files.read({"[" + of_40 + "," + spans + "]"});
  EXPECT_THAT(one.notes, testing::IsEmpty());
  const Trace both = files.read({"[" + of_40 + "," + of_41 + "," + spans + "]"});
  ASSERT_EQ(both.ranks.size(), 1U);
  ASSERT_EQ(both.notes.size(), 1U);
  EXPECT_THAT(both.notes[0], HasSubstr("its 2 processes were read as one rank, as PyTorch's files have one: open the "
                                       "file of each process instead"));
}

TEST_F(KinetoEvents, ProcessesAreRanksInTheOrderOfTheirIdsWhereTheUserSaysSo) {
  const std::string counter = R"(,{"ph":"C","name":"load","pid":40,"ts":6,"args":{"value":3}})";
  const std::string text = "[" + work_of(40, "5") + "," + work_of(9, "7") + "," + work_of(40, "9") + counter +
                           process_name(40, "rank 0") + process_name(9, "loader") + "]";
  const Trace trace = files.read({text}, Processes::ranks);
  ASSERT_EQ(trace.ranks.size(), 2U);
  EXPECT_EQ(trace.ranks[0].rank, 0);
  EXPECT_EQ(trace.ranks[0].nvtx_events, 1U);
  EXPECT_EQ(trace.ranks[1].rank, 1);
  EXPECT_EQ(trace.ranks[1].nvtx_events, 2U);
  EXPECT_EQ(trace.ranks[1].counter_events, 1U);
  EXPECT_EQ(trace.ranks[0].pid, 9);
  EXPECT_EQ(trace.ranks[1].pid, 40);
  EXPECT_THAT(trace.notes, testing::IsEmpty());
}

TEST_F(KinetoEvents, ProcessesAreOneRankWhereTheUserSaysSo) {
  const std::string text =
      "[" + work_of(40, "5") + "," + work_of(41, "7") + process_name(40, "rank 1") + process_name(41, "rank 0") + "]";
  const Trace trace = files.read({text}, Processes::one_rank);
  ASSERT_EQ(trace.ranks.size(), 1U);
  EXPECT_EQ(trace.ranks[0].nvtx_events, 2U);
  EXPECT_THAT(trace.notes, testing::IsEmpty());
  EXPECT_EQ(files.read({text}, Processes::ranks).ranks[1].tracks[0].slices.start_ns[0], 0) << "by their names";
}

TEST_F(KinetoEvents, CollectivesOfGlooRunInTheThreadsOfGloo) {
  const std::string arguments = R"(, "args": {"Collective name": "allreduce", "In msg nelems": 10, "Out msg nelems": 10,
      "dtype": "Float", "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": 3})";
  const Trace trace =
      read(operator_event("record_param_comms", "10", "2", arguments) +
               R"(,{"ph":"X","cat":"user_annotation","name":"gloo:all_reduce","pid":7,"tid":9,"ts":11,"dur":40})",
           R"("distributedInfo": {"backend": "gloo", "rank": 1, "world_size": 2})");
  const Track* track = track_of(trace, "gloo group 0");
  ASSERT_NE(track, nullptr);
  EXPECT_THAT(names_of(trace, *track), ElementsAre("gloo:AllReduce"));
  EXPECT_EQ(track->slices.duration_ns[0], 40000);
  EXPECT_EQ(argument_of(trace, track->slices, 0, "bytes"), "40");
  EXPECT_EQ(collective_calls(trace, trace.ranks[0]).calls.size(), 1U);
}

TEST_F(KinetoEvents, TwoRanksAreOnTheClockOfTheirBaseTimes) {
  const auto file = [](const char* rank, const char* base, const char* ts) {
    return kineto_file(operator_event("a", ts, "1"),
                       std::string(R"("distributedInfo": {"rank": )") + rank +
                           R"(, "world_size": 2}, "displayTimeUnit": "ns", "baseTimeNanoseconds": )" + base);
  };
  const Trace trace = files.read({file("1", "1724000000000000000", "5.5"), file("0", "1724000000000001000", "3")});
  ASSERT_EQ(trace.ranks.size(), 2U);
  EXPECT_EQ(trace.ranks[0].rank, 0);
  EXPECT_EQ(trace.ranks[0].utc_of_zero_ns, 1724000000000004000);
  EXPECT_EQ(trace.ranks[1].utc_of_zero_ns, 1724000000000005500);
  EXPECT_EQ(trace.ranks[0].start_ns, 0);
  const Trace dated = files.read({kineto_file(operator_event("a", "1682725898236567", "1"))});
  EXPECT_EQ(dated.ranks[0].utc_of_zero_ns, 1682725898236567000);
  const Trace undated = files.read({kineto_file(operator_event("a", "5", "1"))});
  EXPECT_EQ(undated.ranks[0].utc_of_zero_ns, std::nullopt);
}

TEST_F(KinetoEvents, PropertiesOfDevicesAreFacts) {
  const Trace trace = read(operator_event("a", "1", "1"),
                           R"("deviceProperties": [{"id": 0, "name": "NVIDIA A100", "totalGlobalMem": 42949672960,
                              "computeMajor": 8, "computeMinor": 0, "numSms": 108}], "cuda_driver_version": 12040)");
  EXPECT_EQ(trace.ranks[0].facts.at("gpu.0"), "NVIDIA A100, 40960 MiB, 108 SMs, compute capability 8.0");
  EXPECT_EQ(trace.ranks[0].facts.at("kineto.cuda_driver_version"), "12040");
  EXPECT_EQ(trace.ranks[0].rank, unknown_rank);
}

TEST_F(KinetoEvents, MembersBehindTheEventsCount) {
  const Trace trace = files.read({R"({"traceEvents": [)" + operator_event("a", "1", "1") +
                                  R"(], "distributedInfo": {"rank": 3, "world_size": 4}})"});
  EXPECT_EQ(trace.ranks[0].rank, 3);
}

TEST_F(KinetoEvents, PlainChromeTracesMayBeArrays) {
  const std::string text = R"([
{"name":"work","cat":"app","ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"args":{"file":"a.cc","deep":{"x":[1,{"y":2}]},"id":7}},
{"name":"more","cat":"app","ph":"X","pid":1,"tid":1,"ts":5,"dur":2},)";
  EXPECT_TRUE(files.recognises(text));
  const Trace trace = files.read({text});
  EXPECT_EQ(trace.ranks[0].format, "chrome");
  const Track& track = trace.ranks[0].tracks[0];
  EXPECT_THAT(names_of(trace, track), ElementsAre("work", "more"));
  EXPECT_EQ(trace.names[trace.kind_of(track.slices, 0).category], "app");
  EXPECT_EQ(argument_of(trace, track.slices, 0, "file"), "a.cc");
  EXPECT_EQ(argument_of(trace, track.slices, 0, "id"), "7");
  EXPECT_EQ(argument_of(trace, track.slices, 0, "deep"), R"({"x":[1,{"y":2}]})");
}

TEST_F(KinetoEvents, FilesAreRecognisedByTheirContent) {
  EXPECT_TRUE(files.recognises(kineto_file(operator_event("a", "1", "1"))));
  EXPECT_TRUE(files.recognises("\xef\xbb\xbf [ {\"ph\": \"X\"} ]"));
  EXPECT_FALSE(files.recognises(""));
  EXPECT_FALSE(files.recognises("[1, 2]"));
  EXPECT_FALSE(files.recognises(R"({"nodes": []})"));
  EXPECT_FALSE(files.recognises("PACE"));
}

}  // namespace
}  // namespace paceline::analysis
