// SPDX-License-Identifier: Apache-2.0
// Perfetto's protobuf files, with packets made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

#include "analysis/exporters/protobuf.h"
#include "analysis/importers/reader.h"
#include "profiler/format/error.h"
#include "tests/unit/analysis/kineto_file.h"

namespace paceline::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

enum Type : std::uint64_t { slice_begin = 1, slice_end = 2, instant = 3, counter = 4 };

ProtoMessage message(std::initializer_list<std::pair<std::uint32_t, std::uint64_t>> integers,
                     std::initializer_list<std::pair<std::uint32_t, std::string>> texts = {}) {
  ProtoMessage made;
  for (const auto& [field, value] : integers) made.integer(field, value);
  for (const auto& [field, value] : texts) made.text(field, value);
  return made;
}
std::string bytes(const ProtoMessage& of) { return std::string(of.bytes()); }

// A text or a number as a debug annotation with the name in full.
std::string note(const std::string& key, const std::string& text) { return bytes(message({}, {{10, key}, {6, text}})); }
std::string note(const std::string& key, std::uint64_t number) { return bytes(message({{4, number}}, {{10, key}})); }

class PerfettoFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void packet(std::initializer_list<std::pair<std::uint32_t, std::uint64_t>> integers,
              std::initializer_list<std::pair<std::uint32_t, std::string>> texts) {
    ProtoMessage file;
    file.message(1, message(integers, texts));
    file_ += file.bytes();
  }
  void track(const ProtoMessage& descriptor) { packet({}, {{60, bytes(descriptor)}}); }
  void process(std::uint64_t uuid, std::uint64_t pid, const std::string& name) {
    track(message({{1, uuid}}, {{3, bytes(message({{1, pid}}, {{6, name}}))}}));
  }
  void thread(std::uint64_t uuid, std::uint64_t pid, std::uint64_t tid, const std::string& name) {
    track(message({{1, uuid}}, {{4, bytes(message({{1, pid}, {2, tid}}, {{5, name}}))}}));
  }
  void event(std::uint64_t time_ns, const ProtoMessage& of) { packet({{8, time_ns}}, {{11, bytes(of)}}); }
  void begin(std::uint64_t time_ns, std::uint64_t uuid, const std::string& name, const std::string& category = "",
             std::initializer_list<std::string> notes = {}) {
    ProtoMessage of = message({{9, slice_begin}, {11, uuid}}, {{22, category}, {23, name}});
    for (const std::string& text : notes) of.text(4, text);
    event(time_ns, of);
  }
  void end(std::uint64_t time_ns, std::uint64_t uuid) { event(time_ns, message({{9, slice_end}, {11, uuid}})); }

  TraceFile write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    const TraceFile file{folder_ / name, name};
    EXPECT_TRUE(perfetto_reader.recognises(file));
    return file;
  }
  Trace read(Processes processes = Processes::automatic) const {
    TraceFile file = write("a.pftrace", file_);
    file.processes = processes;
    return perfetto_reader.read(std::span(&file, 1), {});
  }

  std::string file_;
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("paceline-perfetto-" + std::to_string(::getpid()));
};

// The slices of a track, one behind the other: "name start+duration".
std::vector<std::string> slices_of(const Trace& trace, const std::string& label, std::size_t rank = 0) {
  std::vector<std::string> lines;
  const Track* const track = track_of(trace, label, rank);
  if (track == nullptr) return {"no track " + label};
  for (std::size_t i = 0; i < track->slices.size(); ++i) {
    lines.push_back(trace.name_of(track->slices, i) + " " + std::to_string(track->slices.start_ns[i]) + "+" +
                    std::to_string(track->slices.duration_ns[i]));
  }
  return lines;
}

TEST_F(PerfettoFile, SlicesMarksAndCountersAreOnTheirTracks) {
  process(1, 7, "train");
  thread(2, 7, 7, "python");
  track(message({{1, 3}, {5, 1}}, {{2, "loss"}, {8, bytes(message({{3, 3}, {4, 10}}))}}));
  begin(1000, 2, "step", "user");
  begin(1100, 2, "forward", "user", {note("batch", 32), note("shape", "8x8")});
  end(1300, 2);
  event(1350, message({{9, instant}, {11, 2}}, {{23, "saved"}}));
  event(1360, message({{9, counter}, {11, 3}, {30, 4}}));
  end(1500, 2);
  const Trace trace = read();
  EXPECT_THAT(slices_of(trace, "main thread"), ElementsAre("step 0+500", "forward 100+200"));
  const Track& main = *track_of(trace, "main thread");
  EXPECT_EQ(argument_of(trace, main.slices, 1, "batch"), "32");
  EXPECT_EQ(argument_of(trace, main.slices, 1, "shape"), "8x8");
  EXPECT_EQ(trace.names[trace.kind_of(main.slices, 0).category], "user");
  ASSERT_EQ(main.marks.size(), 1U);
  EXPECT_EQ(main.marks.start_ns[0], 350);
  const Track* loss = track_of(trace, "loss");
  ASSERT_NE(loss, nullptr);
  EXPECT_THAT(loss->samples.value, ElementsAre(40));
  EXPECT_EQ(loss->samples.unit, "bytes");
  EXPECT_EQ(trace.ranks[0].pid, 7);
  EXPECT_TRUE(trace.notes.empty());
}

TEST_F(PerfettoFile, ADescriptorMayComeAfterTheEvents) {
  begin(10, 2, "early");
  end(20, 2);
  thread(2, 7, 9, "worker");
  EXPECT_EQ(read().ranks[0].tracks[0].thread_id, 9U);
}

TEST_F(PerfettoFile, InternedTextsAndDefaultsAreThoseOfTheSequence) {
  thread(2, 7, 7, "a");
  thread(3, 7, 8, "b");
  const auto names = [](const std::string& text) {
    return bytes(message({}, {{2, bytes(message({{1, 1}}, {{2, text}}))}}));
  };
  const auto defaults = [](std::uint64_t uuid) { return bytes(message({}, {{11, bytes(message({{11, uuid}}))}})); };
  const std::string first = bytes(message({{9, slice_begin}, {10, 1}})), last = bytes(message({{9, slice_end}}));
  packet({{10, 5}, {13, 1}}, {{12, names("one")}, {59, defaults(2)}});
  packet({{10, 6}, {13, 1}}, {{12, names("two")}, {59, defaults(3)}});
  packet({{8, 100}, {10, 5}, {13, 2}}, {{11, first}});
  packet({{8, 100}, {10, 6}, {13, 2}}, {{11, first}});
  packet({{8, 200}, {10, 5}, {13, 2}}, {{11, last}});
  packet({{8, 300}, {10, 6}, {13, 2}}, {{11, last}});
  packet({{10, 5}, {13, 1}}, {{59, defaults(2)}});  // the texts are forgotten
  packet({{8, 400}, {10, 5}, {13, 2}}, {{11, first}});
  packet({{8, 500}, {10, 5}, {13, 2}}, {{11, last}});
  packet({{8, 600}, {10, 9}, {13, 2}}, {{11, first}});  // of a sequence whose state is not in the file
  const Trace trace = read();
  EXPECT_THAT(slices_of(trace, "main thread"), ElementsAre("one 0+100", " 300+100"));
  EXPECT_THAT(slices_of(trace, "b"), ElementsAre("two 0+200"));
  EXPECT_THAT(trace.notes, ElementsAre(HasSubstr("1 events were left out: their names were lost")));
}

TEST_F(PerfettoFile, EventsOfTheSameBytesAreAllRead) {
  thread(2, 7, 7, "a");
  track(message({{1, 3}, {5, 1}}, {{2, "loss"}, {8, bytes(message({}))}}));
  const ProtoMessage first = message({{9, slice_begin}, {11, 2}, {31, 3}, {12, 4}}, {{23, "x"}});
  const ProtoMessage last = message({{9, slice_end}, {11, 2}}, {{4, note("result", 5)}});
  for (const std::uint64_t time_ns : {100U, 300U}) {
    event(time_ns, first);
    event(time_ns + 100, last);
  }
  for (const char* name : {"one", "two", "two"}) {  // a number may mean another text later
    packet({}, {{12, bytes(message({}, {{2, bytes(message({{1, 1}}, {{2, name}}))}}))}});
    event(500, message({{9, slice_begin}, {10, 1}, {11, 2}}));
    end(500, 2);
  }
  const Trace trace = read();
  EXPECT_THAT(slices_of(trace, "main thread"),
              ElementsAre("x 0+100", "x 200+100", "one 400+0", "two 400+0", "two 400+0"));
  const Track& main = *track_of(trace, "main thread");
  EXPECT_EQ(argument_of(trace, main.slices, 0, "result"), "5");
  EXPECT_EQ(argument_of(trace, main.slices, 1, "result"), "5");
  EXPECT_THAT(track_of(trace, "loss")->samples.value, ElementsAre(4, 4));
}

TEST_F(PerfettoFile, PackedListsMayBeEmpty) {
  thread(2, 7, 7, "python");
  for (const std::string& flows : {std::string(), std::string("\5\0\0\0\0\0\0\0", 8)}) {
    event(flows.empty() ? 10 : 30, message({{9, slice_begin}, {11, 2}}, {{23, "step"}, {46, ""}, {47, flows}}));
    end(flows.empty() ? 20 : 40, 2);
  }
  const Trace trace = read();
  EXPECT_THAT(slices_of(trace, "main thread"), ElementsAre("step 0+10", "step 20+10"));
  EXPECT_EQ(argument_of(trace, track_of(trace, "main thread")->slices, 1, "flow"), "5");
}

TEST_F(PerfettoFile, TimesOfOtherClocksAreConverted) {
  thread(2, 7, 7, "a");
  const auto clock = [](std::initializer_list<std::pair<std::uint32_t, std::uint64_t>> fields) {
    return bytes(message(fields));
  };
  // Boot time 1000 is 500 of the clock 3, 8 µs of the sequence's incremental clock 64, and UTC.
  packet({{10, 5}}, {{6, bytes(message({}, {{1, clock({{1, 6}, {2, 1000}})},
                                            {1, clock({{1, 3}, {2, 500}})},
                                            {1, clock({{1, 64}, {2, 8}, {3, 1}, {4, 1000}})},
                                            {1, clock({{1, 1}, {2, 1'700'000'000'000'001'000}})}}))}});
  const std::string first = bytes(message({{9, slice_begin}, {11, 2}}, {{23, "x"}}));
  const std::string last = bytes(message({{9, slice_end}, {11, 2}}));
  packet({{8, 600}, {10, 9}, {58, 3}}, {{11, first}});    // 1100
  packet({{8, 700}, {10, 9}, {58, 3}}, {{11, last}});     // 1200
  packet({{8, 1}, {10, 5}, {58, 64}}, {{11, first}});     // 2000
  packet({{8, 2}, {10, 5}, {58, 64}}, {{11, last}});      // 4000
  packet({{8, 5000}, {10, 9}, {58, 77}}, {{11, first}});  // of a clock that nothing relates
  packet({{8, 5001}, {10, 9}, {58, 77}}, {{11, last}});
  const Trace trace = read();
  EXPECT_THAT(slices_of(trace, "main thread"), ElementsAre("x 0+100", "x 900+2000", "x 3900+1"));
  EXPECT_EQ(trace.ranks[0].utc_of_zero_ns, 1'700'000'000'000'001'100);
  EXPECT_THAT(trace.notes, ElementsAre(HasSubstr("2 times are on the clock 77")));
}

TEST_F(PerfettoFile, PyTorchsEventsMeanWhatTheyMeanInItsJson) {
  process(1, 4711, "python");
  process(10, 0, "python");  // the GPU
  track(message({{1, 2}, {5, 1}}, {{2, "thread 4711 (python)"}}));
  for (const std::uint64_t uuid : {11U, 12U}) {  // two tracks of one stream
    track(message({{1, uuid}, {5, 10}, {15, 3}}, {{2, "stream 7"}, {16, "0:7"}}));
  }
  begin(100, 2, "ProfilerStep#3", "user_annotation");
  begin(110, 2, "aten::mm", "cpu_op", {note("External id", 5), note("Sequence number", 8)});
  begin(120, 2, "cudaLaunchKernel", "cuda_runtime", {note("correlation", 17)});
  end(130, 2);
  end(140, 2);
  end(900, 2);
  begin(200, 11, "_Z6kernelPf", "kernel",
        {note("device", 0), note("stream", 7), note("correlation", 17), note("registers per thread", 24),
         bytes(message({}, {{10, "grid"}, {9, "[2, 3, 1]"}}))});
  end(300, 11);
  begin(400, 12, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", {note("bytes", 64)});
  end(410, 12);
  const Trace trace = read();
  EXPECT_THAT(slices_of(trace, "main thread"),
              ElementsAre("ProfilerStep#3 0+800", "aten::mm 10+30", "cudaLaunchKernel 20+10"));
  EXPECT_THAT(slices_of(trace, "GPU 0 stream 7"), ElementsAre("kernel(float*) 100+100", "Memcpy HtoD 300+10"));
  const Track& stream = *track_of(trace, "GPU 0 stream 7");
  EXPECT_EQ(stream.kind, TrackKind::stream);
  EXPECT_EQ(trace.names[trace.kind_of(stream.slices, 0).category], "kernel");
  EXPECT_EQ(argument_of(trace, stream.slices, 0, "correlation"), "17");
  EXPECT_EQ(argument_of(trace, stream.slices, 0, "registers"), "24");
  EXPECT_EQ(argument_of(trace, stream.slices, 0, "grid"), "2×3×1");
  EXPECT_EQ(argument_of(trace, stream.slices, 1, "to"), "GPU 0");
  const Track& main = *track_of(trace, "main thread");
  EXPECT_EQ(argument_of(trace, main.slices, 1, "External id"), "");
  EXPECT_EQ(argument_of(trace, main.slices, 2, "correlation"), "17");
  EXPECT_EQ(trace.ranks[0].cuda_events, 2U);
  EXPECT_EQ(trace.ranks[0].pid, 4711);
}

TEST_F(PerfettoFile, EventsOfRocmAreThoseOfAGpu) {
  track(message({{1, 2}}, {{2, "THREAD 1 (12)"}}));
  track(message({{1, 3}}, {{2, "COMPUTE AGENT [4] STREAM [1] (GPU)"}}));
  track(message({{1, 4}}, {{2, "GPU Memory Copy to Agent [4] Thread 0"}}));
  begin(100, 2, "hipLaunchKernel", "hip_api", {note("begin_ns", 100), note("corr_id", 7)});
  end(120, 2);
  begin(200, 3, "_Z6kernelPf", "kernel_dispatch", {note("corr_id", 7), note("queue", 2)});
  end(300, 3);
  begin(400, 4, "MEMORY_COPY_HOST_TO_DEVICE", "rocm_memory_copy", {note("copy_bytes", 64)});
  end(410, 4);
  const Trace trace = read();
  EXPECT_THAT(slices_of(trace, "main thread"), ElementsAre("hipLaunchKernel 0+20"));
  const Track& stream = *track_of(trace, "COMPUTE AGENT [4] STREAM [1] (GPU)");
  EXPECT_EQ(stream.kind, TrackKind::stream);
  EXPECT_THAT(slices_of(trace, stream.label), ElementsAre("kernel(float*) 100+100"));
  EXPECT_EQ(trace.names[trace.kind_of(stream.slices, 0).category], "kernel");
  EXPECT_EQ(argument_of(trace, stream.slices, 0, "correlation"), "7");
  const Track& main = *track_of(trace, "main thread");
  EXPECT_EQ(trace.names[trace.kind_of(main.slices, 0).category], "runtime");
  EXPECT_EQ(argument_of(trace, main.slices, 0, "correlation"), "7");
  EXPECT_EQ(argument_of(trace, main.slices, 0, "begin_ns"), "");
  const Track& copies = *track_of(trace, "GPU Memory Copy to Agent [4] Thread 0");
  EXPECT_EQ(trace.names[trace.kind_of(copies.slices, 0).category], "memcpy");
  EXPECT_EQ(argument_of(trace, copies.slices, 0, "bytes"), "64");
}

TEST_F(PerfettoFile, AManifestRelatesTheClocksOfFiles) {
  thread(2, 7, 7, "a");
  begin(1000, 2, "work");
  end(1100, 2);
  std::vector<TraceFile> files{write("a.pftrace", file_), write("b.pftrace", file_), write("c.pftrace", file_)};
  const auto start_of = [&](const std::string& entries, std::size_t file) -> std::int64_t {
    std::vector<TraceFile> with = files;
    with.push_back(write("manifest", "{\n \"perfetto_manifest\": {\"version\": 1, \"files\": [" + entries + "]}}"));
    const Trace trace = perfetto_reader.read(with, {});
    const bool used = std::ranges::all_of(trace.ranks, [](const Rank& rank) { return rank.clock_source == "file"; });
    EXPECT_EQ(trace.notes.empty(), used);
    return used ? trace.ranks[file].tracks[0].slices.start_ns[0] : -1;
  };
  const std::string a = R"({"path": "a.pftrace", "machine": {"name": "one"}},)";
  const std::string b = R"({"path": "b.pftrace", "clocks": {"clock": "BOOTTIME", "offset_ns": 50,
                            "sync_to": {"file": "a.pftrace", "clock": "BOOTTIME"}}},)";
  const auto c = [](const std::string& reference, const std::string& clock) {
    return R"({"path": "c.pftrace", "clocks": {"offset_ns": -70, "sync_to": {"file": ")" + reference +
           R"(", "clock": ")" + clock + "\"}}}";
  };
  EXPECT_EQ(start_of(a + b + c("b.pftrace", "BOOTTIME"), 0), 20) << "c is 20 ns earlier than a";
  EXPECT_EQ(start_of(a + b + c("b.pftrace", "BOOTTIME"), 1), 70);
  EXPECT_EQ(start_of(a + b + c("b.pftrace", "BOOTTIME"), 2), 0);
  EXPECT_EQ(start_of(a + b + c("b.pftrace", "MONOTONIC"), 0), -1);
  EXPECT_EQ(start_of(a + b + c("c.pftrace", "BOOTTIME"), 0), -1) << "it refers to itself";
  EXPECT_EQ(start_of(a + b + R"({"path": "c.pftrace"})", 0), -1) << "of another machine";
  EXPECT_EQ(start_of(a + b + R"({"path": "c.pftrace", "machine": {"name": "one"}})", 2), 0);
  files.clear();
  EXPECT_THROW(start_of("", 0), Error);
}

TEST_F(PerfettoFile, ProcessesWithTheNumberOfARankAreRanks) {
  for (const std::uint64_t rank : {0U, 2U}) {
    process(10 + rank, 100 + rank, "rank " + std::to_string(rank));
    thread(20 + rank, 100 + rank, 100 + rank, "main");
    begin(1000 + rank, 20 + rank, "work");
    end(2000, 20 + rank);
  }
  const Trace trace = read();
  ASSERT_EQ(trace.ranks.size(), 2U);
  EXPECT_EQ(trace.ranks[1].rank, 2);
  EXPECT_EQ(trace.ranks[1].world_size, 3);
  EXPECT_THAT(slices_of(trace, "main thread", 1), ElementsAre("work 2+998"));
}

TEST_F(PerfettoFile, OtherProcessesAreOneRankAndANoteSaysSo) {
  for (const std::uint64_t number : {1U, 2U}) {
    process(10 + number, 100 + number, "worker");
    thread(20 + number, 100 + number, 200 + number, "main");
    begin(1000, 20 + number, "work");
    end(1000 + number, 20 + number);
  }
  const Trace trace = read();
  ASSERT_EQ(trace.ranks.size(), 1U);
  EXPECT_THAT(trace.notes, ElementsAre(HasSubstr("its 2 processes were read as one rank: --processes ranks")));

  process(13, 100, "without events");
  const Trace ranks = read(Processes::ranks);
  ASSERT_EQ(ranks.ranks.size(), 2U);
  EXPECT_EQ(ranks.ranks[0].pid, 101U);
  EXPECT_EQ(ranks.ranks[1].pid, 102U);
  EXPECT_THAT(slices_of(ranks, "main thread", 1), ElementsAre("work 0+2"));
  EXPECT_THAT(ranks.notes, ElementsAre());
}

TEST_F(PerfettoFile, RanksAreOneWhereTheUserSaysSo) {
  for (const std::uint64_t rank : {0U, 1U}) {
    process(10 + rank, 100 + rank, "rank " + std::to_string(1 - rank));
    thread(20 + rank, 100 + rank, 100 + rank, "main");
    begin(1000, 20 + rank, "work");
    end(2000, 20 + rank);
  }
  const Trace trace = read(Processes::one_rank);
  ASSERT_EQ(trace.ranks.size(), 1U);
  EXPECT_EQ(trace.ranks[0].nvtx_events, 2U);
  EXPECT_THAT(trace.notes, ElementsAre());
  EXPECT_EQ(read(Processes::ranks).ranks[0].pid, 101U) << "by their names";
}

TEST_F(PerfettoFile, WhatCannotBeReadIsCounted) {
  track(message({{1, 2}, {5, 3}}, {{2, "a"}}));  // two tracks that are each other's parents
  track(message({{1, 3}, {5, 2}}, {{2, "b"}}));
  end(50, 2);
  begin(100, 2, "backward");
  end(90, 2);
  begin(200, 2, "open");
  event(300, message({{9, 77}, {11, 2}}));
  packet({{8, std::uint64_t{1} << 63}}, {{11, bytes(message({{9, slice_begin}, {11, 2}}))}});
  packet({}, {{1, "ftrace"}});
  packet({{8, 300}}, {{11, "\x0a\x7fshort"}});
  const Trace trace = read();
  EXPECT_THAT(trace.notes, testing::UnorderedElementsAre(
                               HasSubstr("1 ends of slices were left out"), HasSubstr("1 slices end before"),
                               HasSubstr("1 events were left out: Chrome"), HasSubstr("1 packets of the system")));
  EXPECT_EQ(trace.ranks[0].dropped.at("damage"), 2U);
  EXPECT_THAT(slices_of(trace, "main thread"), ElementsAre("backward 0+0", "open 100+0"));
}

TEST_F(PerfettoFile, ATruncatedFileIsReadUpToItsLastWholePacket) {
  thread(2, 7, 7, "a");
  begin(100, 2, "one");
  end(200, 2);
  const std::size_t whole = file_.size();
  begin(300, 2, "two");
  file_.resize(file_.size() - 1);
  const Trace trace = read();
  EXPECT_THAT(slices_of(trace, "main thread"), ElementsAre("one 0+100"));
  EXPECT_EQ(trace.ranks[0].damage, "the file ends inside a packet at byte " + std::to_string(whole));
  EXPECT_FALSE(trace.ranks[0].ended);
}

TEST_F(PerfettoFile, AFileWithoutEventsIsRefused) {
  thread(2, 7, 7, "a");
  try {
    read();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a.pftrace: it has no slices, marks or counters: record track events");
  }
}

TEST_F(PerfettoFile, OtherFilesAreNotRecognised) {
  for (const std::string text :
       {"", "\n", "\nText that begins with an empty line.\n", "{\"traceEvents\": []}", "\x0a\x02\x08"}) {
    const std::filesystem::path path = folder_ / "other";
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_FALSE(perfetto_reader.recognises({path, "other"})) << text;
  }
}

}  // namespace
}  // namespace paceline::analysis
