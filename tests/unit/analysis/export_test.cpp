// Exports are, byte for byte, what is written here.
#include "analysis/exporters/export.h"

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

template <typename Export>
std::string exported(Export&& write, const Trace& trace) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* file = open_memstream(&text, &size);
  write(trace, file);
  std::fclose(file);
  std::string result(text, size);
  std::free(text);
  return result;
}

TEST(ExportChrome, IsTheTextWrittenHere) {
  const char* expected = R"json({"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"rank 1 (node,7)"}},
{"ph":"M","pid":1,"tid":0,"name":"process_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"main thread"}},
{"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},
{"ph":"X","pid":1,"tid":1,"ts":1234.567,"dur":765.434,"name":"iteration","cat":"iteration","args":{"domain":"paceline.trainer","payload":3}},
{"ph":"X","pid":1,"tid":1,"ts":1234.600,"dur":65.400,"name":"MPI_Allreduce","cat":"collective","args":{"domain":"mpi","bytes":44700000,"communicator":"MPI_COMM_WORLD"}},
{"ph":"i","s":"t","pid":1,"tid":1,"ts":0.005,"name":"a \"mark\"\n","cat":"","args":{"payload":0.5}}
]}
)json";
  EXPECT_EQ(exported(export_chrome, small_run()), expected);
}

TEST(ExportChrome, IsJsonEvenWithBytesThatAreNotUtf8AndNumbersThatAreNotFinite) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.add_slice(0, 1, "bad \xff\xfe bytes");
  main.argument("payload", 1.0 / 0.0);
  const auto document = nlohmann::json::parse(exported(export_chrome, run.finish()));
  EXPECT_EQ(document["traceEvents"].back()["name"], "bad \xEF\xBF\xBD\xEF\xBF\xBD bytes");
  EXPECT_TRUE(document["traceEvents"].back()["args"]["payload"].is_null());
}

TEST(ExportCsv, IsTheTextWrittenHere) {
  EXPECT_EQ(exported(export_csv, small_run()),
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
  EXPECT_EQ(exported(export_csv, run.finish()),
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
  const auto events = nlohmann::json::parse(exported(export_chrome, run_with_counters()))["traceEvents"];
  ASSERT_EQ(events.size(), 8U);  // names and order of process and thread, a slice, three counter events
  EXPECT_EQ(events[5], nlohmann::json::parse(R"({"ph":"C","pid":0,"tid":0,"name":"eth0: bytes sent","ts":1000.0,
                                                 "args":{"bytes/s":150000.0}})"));
  EXPECT_EQ(events[6]["ts"], 3000);
  EXPECT_EQ(events[6]["args"]["bytes/s"], 150'000);
  EXPECT_EQ(events[7], nlohmann::json::parse(R"({"ph":"C","pid":0,"tid":0,"name":"GPU 0: power","ts":2500.0,
                                                 "args":{"mW":350000.0}})"));
}

TEST(ExportCsv, SamplesAreLines) {
  const std::string text = exported(export_csv, run_with_counters());
  const std::string samples = text.substr(text.find("0,localhost,0,eth0"));
  EXPECT_EQ(samples,
            "0,localhost,0,eth0: bytes sent,counter,bytes sent,,1000000,0,0,"
            "\"{\"\"value\"\":0,\"\"unit\"\":\"\"bytes\"\",\"\"sum\"\":true}\"\n"
            "0,localhost,0,eth0: bytes sent,counter,bytes sent,,3000000,0,0,"
            "\"{\"\"value\"\":300,\"\"unit\"\":\"\"bytes\"\",\"\"sum\"\":true}\"\n"
            "0,localhost,0,GPU 0: power,counter,power,,2500000,0,0,"
            "\"{\"\"value\"\":350000,\"\"unit\"\":\"\"mW\"\",\"\"sum\"\":false}\"\n");
}

}  // namespace
}  // namespace paceline::analysis
