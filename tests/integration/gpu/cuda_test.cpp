// SPDX-License-Identifier: Apache-2.0
// libpaceline-cupti.so, loaded as the CUDA driver does, with a stand-in in CUPTI's place (stand_in_cupti.c) or the real
// one without a GPU; what comes out is read by the analysis.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/device/gpu.h"
#include "analysis/index/correlations.h"
#include "analysis/load/load.h"
#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using analysis::Rank;
using analysis::Trace;
using analysis::Track;
using ::testing::HasSubstr;

class CudaTest : public RecordTest {
 protected:
  // The host program under `paceline record`, with the stand-in's folder in front.
  Ended record(const std::string& behaviour, const std::string& way = "", const std::string& options = "") {
    return run("env STAND_IN=" + behaviour + " LD_LIBRARY_PATH=" STAND_IN_FOLDER " " PACELINE " record -o run " +
               options + " -- " CUDA_HOST " " + way);
  }
  const Track& stream_of(const Rank& rank) {
    const auto found = std::ranges::find(rank.tracks, analysis::TrackKind::stream, &Track::kind);
    if (found == rank.tracks.end()) throw std::runtime_error("no stream");
    return *found;
  }
};

TEST_F(CudaTest, CallsAndKernelsComeOutOnThreadAndStream) {
  const Ended ended = record("works");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.err, "");
  const Trace trace = analysis::load_run(directory / "run");
  ASSERT_EQ(trace.ranks.size(), 1U);
  const Rank& rank = trace.ranks[0];
  EXPECT_EQ(rank.cuda_events, 3U * 2003);  // cudaGetDevice is left out
  EXPECT_TRUE(rank.dropped.empty());
  const Track& stream = stream_of(rank);
  EXPECT_EQ(stream.label, "GPU 0 stream 7");
  ASSERT_EQ(stream.slices.size(), 3000U);
  EXPECT_EQ(trace.name_of(stream.slices, 0), "square(float*, int)");
  EXPECT_EQ(trace.name_of(stream.slices, 1), "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  const auto text = [&](const char* key) { return trace.names[stream.slices.text(0, trace.names.find(key))]; };
  EXPECT_EQ(text("grid"), "64×2×1");
  EXPECT_EQ(text("block"), "256×1×1");
  EXPECT_EQ(stream.slices.number(0, trace.names.find("registers")), 32.0);
  EXPECT_EQ(stream.slices.number(0, trace.names.find("shared")), 4096.0);

  // CUPTI's times are on the recorder's clock to some µs (the test's machine may be busy): durations, and where in the
  // process's life.
  for (std::size_t i = 0; i < stream.slices.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(stream.slices.duration_ns[i]), 10'000, 500);
    EXPECT_GE(stream.slices.start_ns[i], rank.start_ns);
  }
  const analysis::Correlations correlations(trace, rank);
  const Track* main = analysis::main_track(rank);
  ASSERT_NE(main, nullptr);
  for (const std::uint32_t correlation : {1U, 500U, 100'001U, 200'999U}) {
    ASSERT_EQ(correlations.calls(correlation).size(), 1U) << correlation;
    ASSERT_EQ(correlations.started_by(correlation).size(), 1U);
    const auto call = correlations.calls(correlation)[0], kernel = correlations.started_by(correlation)[0];
    EXPECT_EQ(&rank.tracks[call.track], main);
    EXPECT_EQ(trace.name_of(main->slices, call.slice), "cudaLaunchKernel");
    EXPECT_NEAR(static_cast<double>(rank.tracks[kernel.track].slices.start_ns[kernel.slice] -
                                    main->slices.start_ns[call.slice]),
                5'000, 500);
  }
  int waits = 0;
  for (std::size_t i = 0; i < main->slices.size(); ++i) {
    const auto& of = trace.kind_of(main->slices, i);
    if (trace.names[of.category] != "synchronization") continue;
    ++waits;
    EXPECT_EQ(trace.name_of(main->slices, i), "cuCtxSynchronize");
  }
  EXPECT_EQ(waits, 3);
}

TEST_F(CudaTest, ACopySaysFromWhereToWhere) {
  ASSERT_TRUE(record("works").by_itself(0));
  const Trace trace = analysis::load_run(directory / "run");
  const auto& tracks = trace.ranks[0].tracks;
  const auto copies = std::ranges::find(tracks, "GPU 0 stream 13", &Track::label);
  ASSERT_NE(copies, tracks.end());
  ASSERT_EQ(copies->slices.size(), 6U);
  const auto text = [&](std::uint32_t slice, const char* key) {
    return trace.names[copies->slices.text(slice, trace.names.find(key))];
  };
  for (std::uint32_t i = 0; i < 6; i += 2) {
    EXPECT_EQ(trace.name_of(copies->slices, i), "Memcpy HtoD");
    EXPECT_EQ(text(i, "from") + " to " + text(i, "to"), "pinned to GPU 0");
    EXPECT_EQ(trace.name_of(copies->slices, i + 1), "Memcpy PtoP");
    EXPECT_EQ(text(i + 1, "from") + " to " + text(i + 1, "to"), "GPU 0 to GPU 1");
    EXPECT_EQ(copies->slices.number(i + 1, trace.names.find("bytes")), 2097152.0);
  }
}

TEST_F(CudaTest, StreamsAndContextsHaveTheNamesThatNvtxGaveThem) {
  ASSERT_TRUE(record("works", "named").by_itself(0));
  const Trace trace = analysis::load_run(directory / "run");
  std::vector<std::string> labels;
  for (const Track& track : trace.ranks[0].tracks) {
    if (track.kind == analysis::TrackKind::stream) labels.push_back(track.label);
  }
  EXPECT_THAT(labels, ::testing::UnorderedElementsAre("GPU 0 stream 7 context main (compute)",
                                                      "GPU 0 stream 13 context main (copies)"));
}

TEST_F(CudaTest, AGraphIsOneRecordOrOneForEachNodeWhereThatIsAskedFor) {
  ASSERT_TRUE(record("works", "graphs").by_itself(0));
  EXPECT_EQ(files().at(0).of(format::EventType::cuda_graph).size(), 10U);
  EXPECT_EQ(files().at(0).of(format::EventType::cuda_kernel_run).size(), 0U);
  std::filesystem::remove_all(directory / "run");
  ASSERT_TRUE(record("works", "graphs", "--cuda-graph-nodes").by_itself(0));
  EXPECT_EQ(files().at(0).of(format::EventType::cuda_graph).size(), 0U);
  const auto nodes = files().at(0).of(format::EventType::cuda_kernel_run);
  ASSERT_EQ(nodes.size(), 50U);
  for (const RecordedEvent& node : nodes) EXPECT_EQ(node.extension[0].low >> 32, 3U) << "the graph's number";
}

// The stand-in's clock is CLOCK_REALTIME, which the clock pairs have, too.
TEST_F(CudaTest, ThePairsThatTimesWereConvertedByAreInTheFile) {
  ASSERT_TRUE(record("works", "kill").status != 0);
  const RecordedFile file = files().at(0);
  const auto readings = file.of(format::EventType::cuda_clock);
  const auto pairs = file.of(format::EventType::clock_pair);
  ASSERT_GE(readings.size(), 4U);
  ASSERT_GE(pairs.size(), 1U);
  for (const RecordedEvent& reading : readings) {
    const auto since = static_cast<double>(reading.ticks) - static_cast<double>(pairs[0].ticks);
    const double ns = since / file.file.header.ticks_per_second * 1e9;
    EXPECT_NEAR(static_cast<double>(static_cast<std::int64_t>(reading.head.low - pairs[0].head.low)), ns, 1e6);
  }
}

TEST_F(CudaTest, TheThreadSleeps) {
  const Ended ended = record("works", "idle");
  const std::size_t at = ended.out.find("paceline-cupti ");
  ASSERT_NE(at, std::string::npos) << ended.out;
  const long ns = std::stol(ended.out.substr(at + 15));
  EXPECT_GT(ns, 0);
  EXPECT_LT(ns, 20'000'000) << "of a second, for ten flushes";
}

TEST_F(CudaTest, InfoAndReportTellOfTheDevice) {
  ASSERT_TRUE(record("works").by_itself(0));
  const Ended info = run(PACELINE " info --format json run");
  EXPECT_EQ(nlohmann::json::parse(info.out)["traces"][0]["events"]["cuda"], 6009);
  const Ended report = run(PACELINE " report --format json run");
  const auto rank = nlohmann::json::parse(report.out)["runs"][0]["per_rank"][0];
  const auto gpu = rank["gpu"];
  EXPECT_EQ(gpu["idle_ns"].get<std::int64_t>() + gpu["compute_ns"].get<std::int64_t>() +
                gpu["noncompute_ns"].get<std::int64_t>(),
            gpu["span_ns"].get<std::int64_t>());
  // Of each round's 1000 kernels of 10 µs in a row, every other one computes.
  EXPECT_NEAR(gpu["compute_ns"].get<double>(), 15e6, 1e6);
  EXPECT_NEAR(gpu["noncompute_ns"].get<double>(), 15e6, 1e6);
  EXPECT_NEAR(rank["overlap"]["communication_ns"].get<double>(), 15e6, 1e6);
  EXPECT_LT(rank["overlap"]["hidden_ns"].get<double>(), 1e6);
  EXPECT_NEAR(rank["phases"]["launch"].get<double>(), 6e6, 1e6);
}

TEST_F(CudaTest, MoreThanABufferIsWrittenWhileTheProgramRuns) {
  const Ended ended = record("works", "many");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  const Trace trace = analysis::load_run(directory / "run");
  std::uint64_t told = trace.ranks[0].cuda_events;
  for (const auto& [cause, count] : trace.ranks[0].dropped) {
    EXPECT_EQ(cause, "no_free_chunk");  // a busy machine may not write so much so fast
    told += count;
  }
  EXPECT_EQ(told, 3U * 120'003);
}

TEST_F(CudaTest, AProgramThatIsKilledLongAfterItsWorkLosesNothing) {
  const Ended ended = record("works", "kill");
  EXPECT_TRUE(WIFSIGNALED(ended.status) || WEXITSTATUS(ended.status) == 128 + SIGKILL);
  const Trace trace = analysis::load_run(directory / "run");
  EXPECT_EQ(trace.ranks[0].cuda_events, 3U * 2003);  // half a second lay in between
}

// The device is asked ten times a second, and each reading of its clock stands right before. So what was launched
// before the last but one is there, whenever the program is killed.
TEST_F(CudaTest, AProgramThatIsKilledAtWorkLosesOnlyWhatItsDeviceDidSinceItWasAsked) {
  const Ended ended = record("works", "kill-busy");
  EXPECT_TRUE(WIFSIGNALED(ended.status) || WEXITSTATUS(ended.status) == 128 + SIGKILL);
  const RecordedFile file = files().at(0);
  auto readings = file.of(format::EventType::cuda_clock);
  ASSERT_GE(readings.size(), 3U);
  const std::uint64_t asked = readings[readings.size() - 2].ticks;
  const auto marks = file.named(format::EventType::mark, "launched");
  ASSERT_EQ(marks.size(), 500U);
  const auto before = std::ranges::count_if(marks, [&](const RecordedEvent& mark) { return mark.ticks < asked; });
  EXPECT_GT(before, 50);
  EXPECT_GE(static_cast<std::ptrdiff_t>(file.of(format::EventType::cuda_kernel_run).size()), before);
}

// CUPTI keeps a buffer back while any of its kernels is in the queue. What is lost is at most the buffer that was being
// filled and what was launched since CUPTI was asked, not megabytes.
TEST_F(CudaTest, AKilledProgramWhoseDeviceIsNeverIdleLosesOneSmallBuffer) {
  const Ended ended = record("queued", "kill-queued");
  EXPECT_TRUE(WIFSIGNALED(ended.status) || WEXITSTATUS(ended.status) == 128 + SIGKILL);
  const RecordedFile file = files().at(0);
  const auto readings = file.of(format::EventType::cuda_clock);
  ASSERT_GE(readings.size(), 4U);
  const std::uint64_t asked = readings[readings.size() - 2].ticks;
  const auto queue = static_cast<std::uint64_t>(0.05 * file.file.header.ticks_per_second);
  const auto marks = file.named(format::EventType::mark, "launched");
  ASSERT_EQ(marks.size(), 6000U);
  const auto ready =
      std::ranges::count_if(marks, [&](const RecordedEvent& mark) { return mark.ticks + queue < asked; });
  EXPECT_GT(ready, 1500);
  constexpr std::ptrdiff_t launches_of_a_buffer = 1000;  // of 128 KiB; a launch takes about 270 bytes
  const auto kernels = static_cast<std::ptrdiff_t>(file.of(format::EventType::cuda_kernel_run).size());
  EXPECT_GE(kernels, ready - launches_of_a_buffer);
}

// _exit, as Python's os._exit, runs no exit handlers.
TEST_F(CudaTest, AProgramThatExitsAtOnceLosesNothing) {
  const Ended ended = record("works", "exit-at-once");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  const Trace trace = analysis::load_run(directory / "run");
  EXPECT_EQ(trace.ranks[0].cuda_events, 3U * 2003);
  EXPECT_TRUE(trace.ranks[0].dropped.empty());
}

TEST_F(CudaTest, ACuptiThatRefusesTheDriverIsReplacedByAnOlderOne) {
  const Ended ended = record("old-driver");
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.recorder_lines(), 1);
  EXPECT_THAT(ended.err, HasSubstr("calls of the runtime and the driver are not recorded: CUPTI before CUDA 12.5"));
  const RecordedFile file = files().at(0);
  EXPECT_EQ(file.of(format::EventType::cuda_kernel_run).size(), 3000U);
  EXPECT_EQ(file.of(format::EventType::cuda_call).size(), 0U);
}

TEST_F(CudaTest, BuffersThatDoNotComeBackAreCountedAsLosses) {
  const Ended ended = record("starved", "many");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  const Trace trace = analysis::load_run(directory / "run");
  ASSERT_TRUE(trace.ranks[0].dropped.contains("device"));
  EXPECT_GT(trace.ranks[0].dropped.at("device"), 10'000U);  // 46 MB of records, 32 MB of buffers
  EXPECT_EQ(ended.recorder_lines(), 1);
  EXPECT_THAT(ended.err, HasSubstr(std::to_string(trace.ranks[0].dropped.at("device")) + ": CUDA, left out by CUPTI"));
}

TEST_F(CudaTest, AnotherSubscriberIsSaidOnceAndAllElseIsRecorded) {
  const Ended ended = record("conflict");
  EXPECT_TRUE(ended.by_itself(0));
  EXPECT_EQ(ended.out, "done\n");
  EXPECT_EQ(ended.recorder_lines(), 1);
  EXPECT_THAT(ended.err, HasSubstr("CUDA is not recorded: another tool"));
  ASSERT_EQ(files().size(), 1U);
  EXPECT_EQ(files()[0].file.header.closed, 1U);
  EXPECT_GE(files()[0].of(format::EventType::clock_pair).size(), 2U);
}

// What PyTorch's profiler does: it must see its kernels, and the recorder what is launched before, between and after.
TEST_F(CudaTest, AProgramThatUsesCuptiItselfHasItAlone) {
  const Ended ended = record("works CUPTI_USER=" CUPTI_USER, "profiles");
  ASSERT_TRUE(ended.by_itself(0)) << ended.err;
  const std::string profile = "subscribed 0, registered 0, 100 kernels, 0 buffers of others\n";
  EXPECT_EQ(ended.out, profile + profile + "done\n");
  EXPECT_EQ(ended.recorder_lines(), 1);
  EXPECT_THAT(ended.err, HasSubstr("CUDA is not recorded while the program uses CUPTI itself"));
  const Trace trace = analysis::load_run(directory / "run");
  EXPECT_EQ(stream_of(trace.ranks[0]).slices.size(), 1000U + 3 * 1000U);
}

TEST_F(CudaTest, AnUnknownVersionIsSaidOnce) {
  const Ended ended = record("unknown");
  EXPECT_TRUE(ended.by_itself(0));
  EXPECT_EQ(ended.recorder_lines(), 1);
  EXPECT_THAT(ended.err, HasSubstr("CUPTI's version 990000 is not known here"));
}

TEST_F(CudaTest, WithoutCuptiOneLineSaysSo) {
  const Ended ended = run("env PACELINE_CUPTI=/nonexistent/libcupti.so " PACELINE " record -o run -- " CUDA_HOST);
  EXPECT_TRUE(ended.by_itself(0));
  EXPECT_EQ(ended.out, "done\n");
  EXPECT_EQ(ended.recorder_lines(), 1);
  EXPECT_THAT(
      ended.err,
      HasSubstr("CUDA is not recorded: /nonexistent/libcupti.so, which PACELINE_CUPTI names, cannot be loaded"));
}

// The real CUPTI: with a driver it starts, without one it refuses; either way the program does not notice.
TEST_F(CudaTest, TheRealCuptiLeavesTheProgramAlone) {
  const Ended ended = run("env LD_LIBRARY_PATH=" CUPTI_FOLDER " " PACELINE " record -o run -- " CUDA_HOST);
  EXPECT_TRUE(ended.by_itself(0)) << ended.err;
  EXPECT_EQ(ended.out, "done\n");
  EXPECT_LE(ended.recorder_lines(), 1) << ended.err;
}

TEST_F(CudaTest, AUsersOwnInjectionIsKeptAndThatIsSaid) {
  const Ended ended =
      run("env CUDA_INJECTION64_PATH=/other.so " PACELINE " record -o run -- sh -c \"echo \\$CUDA_INJECTION64_PATH\"");
  EXPECT_EQ(ended.out, "/other.so\n");
  EXPECT_THAT(ended.err, HasSubstr("CUDA_INJECTION64_PATH=/other.so is kept, so CUDA is not recorded"));
}

}  // namespace
}  // namespace paceline::test
