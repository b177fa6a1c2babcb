// SPDX-License-Identifier: Apache-2.0
// Exports are, byte for byte, what is written here.
#include "analysis/exporters/exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

Trace small_run() {
  TraceBuilder run;
  Rank info;
  info.rank = 1;
  info.host = "node,7";
  info.pid = 4711;
  TrackBuilder& main = run.add_rank(std::move(info)).add_main_thread();
  main.push(1'234'567, "iteration", "paceline.trainer", "iteration");
  main.argument("payload", 3);
  main.push(1'234'600, "MPI_Allreduce", "mpi", "collective");
  main.argument("bytes", 44'700'000);
  main.text_argument("communicator", "MPI_COMM_WORLD");
  main.pop(1'300'000);
  main.pop(2'000'001);
  main.mark_argument(main.add_mark(5, "a \"mark\"\n"), "payload", 0.5);
  return run.finish();
}

std::string exported(const Exporter& format, const Trace& trace, const Selection& selection = {}) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* file = open_memstream(&text, &size);
  format.write(ExportJob(trace, selection), file);
  std::fclose(file);
  std::string result(text, size);
  std::free(text);
  return result;
}

TEST(ExportChrome, IsTheTextWrittenHere) {
  const char* expected = R"json({"displayTimeUnit":"ns","distributedInfo": {"rank": 1, "world_size": 1},"traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"rank 1 (node,7)"}},
{"ph":"M","pid":1,"tid":0,"name":"process_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"main thread"}},
{"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},
{"ph":"X","pid":1,"tid":1,"ts":1234.567,"dur":765.434,"name":"iteration","cat":"iteration","args":{"domain":"paceline.trainer","payload":3}},
{"ph":"X","pid":1,"tid":1,"ts":1234.600,"dur":65.400,"name":"MPI_Allreduce","cat":"collective","args":{"domain":"mpi","bytes":44700000,"communicator":"MPI_COMM_WORLD"}},
{"ph":"i","s":"t","pid":1,"tid":1,"ts":0.005,"name":"a \"mark\"\n","cat":"","args":{"payload":0.5}}
]}
)json";
  EXPECT_EQ(exported(chrome_exporter, small_run()), expected);
}

TEST(ExportChrome, IsJsonEvenWithBytesThatAreNotUtf8AndNumbersThatAreNotFinite) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.add_slice(0, 1, "bad \xff\xfe bytes");
  main.argument("payload", 1.0 / 0.0);
  const auto document = nlohmann::json::parse(exported(chrome_exporter, run.finish()));
  EXPECT_EQ(document["traceEvents"].back()["name"], "bad \xEF\xBF\xBD\xEF\xBF\xBD bytes");
  EXPECT_TRUE(document["traceEvents"].back()["args"]["payload"].is_null());
}

TEST(Exporters, NameAProcessWithAndWithoutItsHost) {
  Rank rank;
  rank.rank = 3;
  EXPECT_EQ(process_name(rank), "rank 3");
  rank.host = "node17";
  EXPECT_EQ(process_name(rank), "rank 3 (node17)");
}

TEST(ExportCsv, IsTheTextWrittenHere) {
  EXPECT_EQ(exported(csv_exporter, small_run()),
            "rank,host,pid,track,kind,name,category,start_ns,duration_ns,depth,args\n"
            "1,\"node,7\",4711,,process,,,5,1999996,0,\"{\"\"main\"\":\"\"main thread\"\",\"\"ended\"\":1}\"\n"
            "1,\"node,7\",4711,main thread,slice,iteration,iteration,1234567,765434,0,"
            "\"{\"\"domain\"\":\"\"paceline.trainer\"\",\"\"payload\"\":3}\"\n"
            "1,\"node,7\",4711,main thread,slice,MPI_Allreduce,collective,1234600,65400,1,"
            "\"{\"\"domain\"\":\"\"mpi\"\",\"\"bytes\"\":44700000,\"\"communicator\"\":\"\"MPI_COMM_WORLD\"\"}\"\n"
            "1,\"node,7\",4711,main thread,mark,\"a \"\"mark\"\"\n\",,5,0,0,\"{\"\"payload\"\":0.5}\"\n");
}

TEST(ExportCsv, HasTheStretchesThatWereNotRecordedOrLost) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().end_ns = 1000;
  rank.info().ended = false;
  rank.info().gaps.push_back({100, 200, "outside --iterations"});
  rank.add_main_thread().add_lost(400, 450, 12);
  EXPECT_EQ(exported(csv_exporter, run.finish()),
            "rank,host,pid,track,kind,name,category,start_ns,duration_ns,depth,args\n"
            "0,localhost,0,,process,,,0,1000,0,\"{\"\"main\"\":\"\"main thread\"\",\"\"ended\"\":0}\"\n"
            "0,localhost,0,,gap,outside --iterations,paused,100,100,0,\n"
            "0,localhost,0,,gap,events lost: the buffers were full,lost,400,50,0,\n"
            "0,localhost,0,main thread,lost,no_free_chunk,,400,50,0,\"{\"\"events\"\":12}\"\n");
}

// A rise of 300 bytes in 2 ms is 150,000 bytes a second until the next sample; the value at the end stays.
Trace run_with_counters() {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.add_main_thread().add_slice(0, 3'000'000, "step");
  TrackBuilder& sent = rank.add_counter("bytes sent", "bytes", "eth0", true);
  sent.add_sample(1'000'000, 0);
  sent.add_sample(3'000'000, 300);
  rank.add_counter("power", "mW", "GPU 0", false).add_sample(2'500'000, 350'000);
  return run.finish();
}

TEST(ExportChrome, CountersAreCounterEvents) {
  const auto events = nlohmann::json::parse(exported(chrome_exporter, run_with_counters()))["traceEvents"];
  ASSERT_EQ(events.size(), 8U);  // names and order of process and thread, a slice, three counter events
  EXPECT_EQ(events[5], nlohmann::json::parse(R"({"ph":"C","pid":0,"tid":0,"name":"eth0: bytes sent","ts":1000.0,
                                                 "args":{"bytes/s":150000.0}})"));
  EXPECT_EQ(events[6]["ts"], 3000);
  EXPECT_EQ(events[6]["args"]["bytes/s"], 150'000);
  EXPECT_EQ(events[7], nlohmann::json::parse(R"({"ph":"C","pid":0,"tid":0,"name":"GPU 0: power","ts":2500.0,
                                                 "args":{"mW":350000.0}})"));
}

// A launch at 100 ns started a kernel at 300 ns, and one at 150 ns a copy that the window leaves out.
Trace run_with_a_gpu() {
  TraceBuilder run;
  Rank info;
  info.rank = 2;
  info.world_size = 4;
  RankBuilder& rank = run.add_rank(std::move(info));
  TrackBuilder& main = rank.add_main_thread();
  main.add_slice(100, 120, "cudaLaunchKernel", "cuda", "runtime");
  main.argument("correlation", 7);
  main.add_slice(150, 160, "cuMemcpyAsync", "cuda", "driver");
  main.argument("correlation", 8);
  TrackBuilder& stream = rank.add_track(TrackKind::stream, "GPU 1 stream 13");
  stream.add_slice(300, 400, "gemm", "cuda", "kernel");
  stream.argument("correlation", 7);
  stream.add_slice(500, 600, "Memcpy HtoD", "cuda", "memcpy");
  stream.argument("correlation", 8);
  return run.finish();
}

TEST(ExportChrome, CudaEventsAreThoseOfPytorchsProfilerWithAnArrowFromCallToKernel) {
  const auto document =
      nlohmann::json::parse(exported(chrome_exporter, run_with_a_gpu(), Selection({.from_ns = 0, .until_ns = 450})));
  EXPECT_EQ(document["distributedInfo"], nlohmann::json::parse(R"({"rank":2,"world_size":4})"));
  std::vector<nlohmann::json> events;
  for (const auto& event : document["traceEvents"]) {
    if (event["ph"] != "M") events.push_back(event);
  }
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[0]["cat"], "cuda_runtime");
  EXPECT_EQ(events[1]["cat"], "cuda_driver");
  EXPECT_EQ(events[2], nlohmann::json::parse(R"({"ph":"X","pid":2,"tid":2,"ts":0.3,"dur":0.1,"name":"gemm",
    "cat":"kernel","args":{"domain":"cuda","correlation":7,"device":1,"stream":13}})"));
  EXPECT_EQ(events[3],
            nlohmann::json::parse(R"({"ph":"s","id":1,"pid":2,"tid":1,"ts":0.1,"cat":"ac2g","name":"ac2g"})"));
  EXPECT_EQ(events[4],
            nlohmann::json::parse(R"({"ph":"f","bp":"e","id":1,"pid":2,"tid":2,"ts":0.3,"cat":"ac2g","name":"ac2g"})"));
}

TEST(ExportCsv, SlicesAcrossTheEdgesOfTheWindowAreClippedAndMarked) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().end_ns = 1000;
  rank.info().gaps.push_back({150, 250, "switched off"});
  TrackBuilder& main = rank.add_main_thread();
  main.push(0, "outer");
  main.add_slice(100, 200, "before");
  main.add_slice(180, 220, "at the start");
  main.add_slice(300, 400, "inside");
  main.argument("bytes", 4);
  main.add_slice(450, 600, "at the end");
  main.add_slice(600, 700, "after");
  main.pop(1000);
  main.add_mark(199, "early");
  main.add_mark(200, "first");
  main.add_mark(500, "late");
  EXPECT_EQ(exported(csv_exporter, run.finish(), Selection({.from_ns = 200, .until_ns = 500})),
            "rank,host,pid,track,kind,name,category,start_ns,duration_ns,depth,args\n"
            "0,localhost,0,,process,,,200,300,0,\"{\"\"main\"\":\"\"main thread\"\",\"\"ended\"\":1}\"\n"
            "0,localhost,0,,gap,switched off,paused,200,50,0,\n"
            "0,localhost,0,main thread,slice,outer,,200,300,0,\"{\"\"clipped\"\":\"\"both\"\"}\"\n"
            "0,localhost,0,main thread,slice,inside,,300,100,1,\"{\"\"bytes\"\":4}\"\n"
            "0,localhost,0,main thread,slice,at the end,,450,50,1,\"{\"\"clipped\"\":\"\"end\"\"}\"\n"
            "0,localhost,0,main thread,mark,first,,200,0,0,{}\n"
            "0,localhost,0,main thread (2),slice,at the start,,200,20,0,\"{\"\"clipped\"\":\"\"start\"\"}\"\n");
}

TEST(ExportJob, StopsWhereTheProgressIsAnsweredWithNo) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  for (int i = 0; i < 200'000; ++i) main.add_slice(i, i + 1, "step");
  const Trace trace = run.finish();
  double latest = 0;
  const ExportJob job(trace, {}, [&](double share) {
    latest = share;
    return share < 0.5;
  });
  std::FILE* nowhere = std::fopen("/dev/null", "w");
  EXPECT_THROW(csv_exporter.write(job, nowhere), Error);
  std::fclose(nowhere);
  EXPECT_GE(latest, 0.5);
  EXPECT_LT(latest, 1);
}

TEST(ExportCsv, SamplesAreLines) {
  const std::string text = exported(csv_exporter, run_with_counters());
  const std::string samples = text.substr(text.find("0,localhost,0,eth0"));
  EXPECT_EQ(samples,
            "0,localhost,0,eth0: bytes sent,counter,bytes sent,,1000000,0,0,"
            "\"{\"\"value\"\":0,\"\"unit\"\":\"\"bytes\"\",\"\"sum\"\":true}\"\n"
            "0,localhost,0,eth0: bytes sent,counter,bytes sent,,3000000,0,0,"
            "\"{\"\"value\"\":300,\"\"unit\"\":\"\"bytes\"\",\"\"sum\"\":true}\"\n"
            "0,localhost,0,GPU 0: power,counter,power,,2500000,0,0,"
            "\"{\"\"value\"\":350000,\"\"unit\"\":\"\"mW\"\",\"\"sum\"\":false}\"\n");
}

Trace sampled_run() {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(3, 4);
  rank.info().host = "";
  TrackBuilder& main = rank.add_main_thread();
  const auto frame = [&](const char* function, std::uint32_t line) {
    return rank.stacks().frame({rank.names().intern(function), rank.names().intern("train.py"), line});
  };
  const StackId train = rank.stacks().stack(0, frame("train", 3));
  const StackId forward = rank.stacks().stack(train, frame("forward", 9));
  std::int64_t time_ns = 0;
  for (const StackId stack : {train, forward, forward, StackId{0}}) main.add_stack_sample(time_ns += 10, stack);
  main.set_sample_period(10);
  return run.finish();
}

TEST(ExportSpeedscope, HasAProfileForEachThread) {
  const auto document = nlohmann::json::parse(exported(speedscope_exporter, sampled_run()));
  EXPECT_EQ(document["shared"]["frames"], nlohmann::json::parse(R"([{"name": "train", "file": "train.py"},
                                                                    {"name": "forward", "file": "train.py"}])"));
  ASSERT_EQ(document["profiles"].size(), 1U);
  const auto& profile = document["profiles"][0];
  EXPECT_EQ(profile["name"], "rank 3, main thread");
  EXPECT_EQ(profile["type"], "sampled");
  EXPECT_EQ(profile["samples"], nlohmann::json::parse("[[0], [0, 1], [0, 1], []]"));
  EXPECT_EQ(profile["weights"], nlohmann::json::parse("[10, 10, 10, 10]"));
  EXPECT_EQ(profile["endValue"], 40);
  const auto empty = nlohmann::json::parse(exported(speedscope_exporter, small_run()));
  EXPECT_TRUE(empty["profiles"].empty());
}

TEST(ExportTalp, HasTheEfficienciesOfPop) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    rank.info().host = r == 0 ? "node1" : "node2";
    TrackBuilder& main = rank.add_main_thread();
    main.add_slice(0, 1000, "step");
    main.add_slice(0, r == 0 ? 100 : 200, "cudaLaunchKernel", "cuda", "runtime");
    main.add_slice(r == 0 ? 600 : 800, 1000, "MPI_Allreduce", "mpi", "collective");
    if (r == 0) {
      TrackBuilder& stream = rank.add_track(TrackKind::stream, "GPU 0 stream 7");
      stream.add_slice(200, 500, "gemm", "cuda", "kernel");
      stream.add_slice(500, 600, "copy", "cuda", "memcpy");
    }
  }
  const auto document = nlohmann::json::parse(exported(talp_exporter, run.finish()));
  EXPECT_TRUE(document["dlbVersion"].get<std::string>().starts_with("3.6")) << "talp-pages refuses unknown versions";
  EXPECT_EQ(document["resources"]["numNodes"], 2);
  const auto& global = document["Application"]["Global"];
  EXPECT_EQ(global["numMpiRanks"], 2);
  EXPECT_EQ(global["numGpus"], 1);
  EXPECT_EQ(global["elapsedTime"], 1000);
  EXPECT_EQ(global["mpiTime"], 400 + 200);
  EXPECT_EQ(global["gpuRuntimeTime"], 100 + 200);
  EXPECT_EQ(global["usefulTime"], 500 + 600);
  EXPECT_EQ(global["numMpiCalls"], 2);
  EXPECT_EQ(global["parallelEfficiency"], 0.55);
  EXPECT_EQ(global["mpiParallelEfficiency"], 0.7);
  EXPECT_EQ(global["mpiCommunicationEfficiency"], 0.8);
  EXPECT_EQ(global["mpiLoadBalance"], 0.88) << "1400 of 1600";
  EXPECT_EQ(global["mpiLoadBalanceIn"], 1);
  EXPECT_EQ(global["mpiLoadBalanceOut"], 0.88);
  EXPECT_EQ(global["deviceOffloadEfficiency"], 0.79) << "1100 of 1400";
  EXPECT_EQ(global["gpuUsefulTime"], 300);
  EXPECT_EQ(global["gpuCommunicationTime"], 100);
  EXPECT_EQ(global["gpuParallelEfficiency"], 0.3);
  EXPECT_EQ(global["gpuCommunicationEfficiency"], 0.75);
  EXPECT_EQ(global["gpuOrchestrationEfficiency"], 0.4);
}

// The fields of a message of protobuf: number, and value or bytes.
std::vector<std::pair<std::uint64_t, std::string>> fields_of(std::string_view bytes) {
  std::vector<std::pair<std::uint64_t, std::string>> fields;
  const auto varint = [&] {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return value;
    }
  };
  while (!bytes.empty()) {
    const std::uint64_t tag = varint(), value = varint();
    if (tag % 8 == 0) {
      fields.emplace_back(tag / 8, std::to_string(value));
    } else {
      fields.emplace_back(tag / 8, bytes.substr(0, value));
      bytes.remove_prefix(value);
    }
  }
  return fields;
}

TEST(ExportTalp, TakesPyTorchsCommunicationForMpi) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.add_slice(0, 1000, "step", "torch", "iteration");
  main.add_slice(100, 200, "gloo:all_reduce", "torch", "collective");
  main.add_slice(300, 450, "wait", "torch", "wait");
  main.add_slice(500, 900, "forward", "torch", "forward");
  const auto document = nlohmann::json::parse(exported(talp_exporter, run.finish()));
  EXPECT_EQ(document["Application"]["Global"]["mpiTime"], 100 + 150);
  EXPECT_EQ(document["Application"]["Global"]["usefulTime"], 750);
}

TEST(ExportPprof, AddsUpEqualStacks) {
  const std::string profile = exported(pprof_exporter, sampled_run());
  std::vector<std::string> texts, samples;
  for (const auto& [field, bytes] : fields_of(profile)) {
    constexpr std::uint64_t sample = 2, text = 6, location = 1, value = 2;
    if (field == text) texts.push_back(bytes);
    if (field != sample) continue;
    std::string& line = samples.emplace_back();
    for (const auto& [of, number] : fields_of(bytes)) {
      if (of == location) line += "at " + number + " ";
      if (of == value) line += number + " ";
    }
  }
  EXPECT_THAT(texts, ::testing::IsSupersetOf({"train", "forward", "train.py", "main thread"}));
  EXPECT_EQ(texts.at(0), "");
  // The number of samples and their time; of no function, of `train`, and of `forward` called by it.
  EXPECT_THAT(samples, ::testing::ElementsAre("1 10 ", "at 1 1 10 ", "at 2 at 1 2 20 "));
}

}  // namespace
}  // namespace paceline::analysis
