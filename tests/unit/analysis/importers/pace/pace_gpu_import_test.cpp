// SPDX-License-Identifier: Apache-2.0
// What CUDA's and NCCL's events of a .pace file become in the model, and in the figures.
#include <gmock/gmock.h>

#include <span>

#include "analysis/communication/collectives.h"
#include "analysis/device/gpu.h"
#include "analysis/device/overlap.h"
#include "analysis/importers/pace/import.h"
#include "analysis/index/correlations.h"
#include "analysis/phases/phases.h"
#include "tests/unit/analysis/imported.h"
#include "tests/unit/analysis/rank_phases.h"

namespace paceline::analysis {
namespace {

using format::NcclCall;
using format::pack_scope;
using ::testing::ElementsAre;
using testing::EventType;
using testing::import;
using testing::names_of;
using testing::PaceFile;
using testing::track_labelled;

constexpr std::uint64_t pair(std::uint64_t low, std::uint64_t high) { return low | high << 32; }

// A file with CUDA's and NCCL's definitions. Ticks are nanoseconds. All events come on the track that is in use, as
// from CUPTI's thread; calls say whose they are.
struct GpuFile : PaceFile {
  explicit GpuFile(int rank = 0, int ranks = 1) : PaceFile(rank, ranks), main(file.header.pid) {
    function(0, 1, "cudaLaunchKernel");
    function(0, 2, "cudaStreamSynchronize");
    function(0, 3, "cudaMemcpyAsync");
    function(1, 1, "cuLaunchKernel");
    kernel_shape(1, "_Z6squarePfi");
    kernel_shape(2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    add(0, EventType::cuda_stream, pair(1, 0));
    extension(pair(0, 1), 7);
    add(0, EventType::cuda_stream, pair(2, name("side")));
    extension(pair(0, 1), 13);
    operation = name("AllReduce ncclFloat32 RING SIMPLE 2 16");
  }
  void function(std::uint64_t api, std::uint64_t number, std::string_view text) {
    add(0, EventType::cuda_function, number | api << 16 | std::uint64_t{name(text)} << 32);
  }
  void kernel_shape(std::uint64_t number, std::string_view text) {
    add(0, EventType::cuda_kernel, pair(number, name(text)));
    extension(64 | 1ULL << 32 | 1ULL << 48, 128 | 1ULL << 16 | 1ULL << 32 | 40ULL << 48);
    extension(pair(16, 32), 0);
  }
  void call(std::uint64_t at, std::uint64_t duration, std::uint64_t number, std::uint64_t correlation,
            std::uint64_t api = 0) {
    add(at, EventType::cuda_call, number | api << 16 | main << 32);
    extension(duration, correlation);
  }
  void kernel(std::uint64_t at, std::uint64_t duration, std::uint64_t number, std::uint64_t stream,
              std::uint64_t correlation, std::uint64_t graph = 0) {
    add(at, EventType::cuda_kernel_run, pair(number, stream));
    extension(duration, pair(correlation, graph));
  }
  void collective(std::uint64_t at, std::uint64_t sequence, std::uint64_t id, std::uint64_t group) {
    add(at, EventType::nccl_collective, pair(operation, 9));
    extension(4000, pair(sequence, 0));
    extension(id, group);
    add(at + 1, EventType::nccl_end, id);
  }

  // NCCL's NVTX domain, with payloads of communicator and size, or of size alone.
  void nccl_domain(bool says_communicator = true) {
    constexpr std::uint64_t uint64 = 18;
    domain(1, "NCCL");
    add(0, EventType::schema, says);
    extension(1 | 1ULL << 16, 0);
    extension(0, 0);
    if (says_communicator) schema_entry(says, 0, "NCCL communicator ID", uint64, 0, 1);
    schema_entry(says, says_communicator ? 1 : 0, "Message size [bytes]", uint64, 0, 1);
    for (const char* text : {"ncclAllReduce", "ncclGroupStart", "ncclGroupEnd"}) functions.push_back(name(text));
  }
  // A range of one of these functions; of the first with a payload.
  void nccl_range(std::uint64_t from, std::uint64_t to, std::size_t function_number = 0,
                  std::initializer_list<std::uint64_t> words = {0xabc, 4000}) {
    if (function_number == 0) payload(from, says, words);
    push(from, pack_scope(functions[function_number], 0, 1));
    pop(to, 1);
  }

  std::uint64_t main;
  std::uint32_t operation = 0;
  static constexpr std::uint32_t says = 1U << 24;
  std::vector<std::uint32_t> functions;
};

std::int64_t in(const RankPhases& phases, Phase phase) { return phases.total_ns[static_cast<std::size_t>(phase)]; }

TEST(PaceGpuImport, PutsCallsOnTheirThreadAndKernelsOnTheirStream) {
  GpuFile file;
  file.push(100, pack_scope(file.name("forward"), 0, 0));
  file.pop(1000);
  file.use_thread(999);  // CUPTI's
  file.call(200, 50, 1, 5);
  file.call(210, 30, 1, 5, 1);
  file.kernel(300, 100, 1, 1, 5);
  file.kernel(350, 100, 2, 2, 6);
  const Trace trace = import(file);
  const Rank& rank = trace.ranks[0];
  EXPECT_EQ(rank.cuda_events, 4U);
  const Track& main = *main_track(rank);
  EXPECT_THAT(names_of(trace, main), ElementsAre("forward", "cudaLaunchKernel", "cuLaunchKernel"));
  EXPECT_THAT(main.slices.depth, ElementsAre(0, 1, 2));
  EXPECT_THAT(names_of(trace, track_labelled(rank, "GPU 0 stream 7")), ElementsAre("square(float*, int)"));
  EXPECT_THAT(track_labelled(rank, "GPU 0 stream 13 (side)").slices.start_ns, ElementsAre(350));
  const Correlations correlations(trace, rank);
  ASSERT_EQ(correlations.calls(5).size(), 2U);
  EXPECT_EQ(correlations.calls(5)[0].slice, 1U);  // the runtime's, around the driver's
  ASSERT_EQ(correlations.started_by(5).size(), 1U);
  EXPECT_TRUE(correlations.started_by(77).empty());
}

TEST(PaceGpuImport, ACallThatSeemsToCrossARangesEdgeByTheClocksErrorIsCutThere) {
  GpuFile file;
  file.push(1000, pack_scope(file.name("forward"), 0, 0));
  file.pop(9000);
  file.push(9100, pack_scope(file.name("backward"), 0, 0));
  file.pop(20'000);
  file.use_thread(999);
  file.call(900, 2000, 1, 1);   // begins 100 too early
  file.call(8000, 1050, 1, 2);  // ends 50 too late
  file.call(12'000, 1000, 1, 3);
  const Trace trace = import(file);
  ASSERT_EQ(trace.ranks[0].tracks.size(), 1U);
  const Track& main = trace.ranks[0].tracks[0];
  EXPECT_THAT(main.slices.start_ns, ElementsAre(1000, 1000, 8000, 9100, 12'000));
  EXPECT_THAT(main.slices.duration_ns, ElementsAre(8000, 1900, 1000, 10'900, 1000));
  EXPECT_THAT(main.slices.depth, ElementsAre(0, 1, 1, 0, 1));
}

TEST(PaceGpuImport, KernelsThatOverlapBySomeNanosecondsStayOnTheirStream) {
  GpuFile file;
  file.push(0, pack_scope(file.name("step"), 0, 0));
  file.pop(50'000);
  file.use_thread(999);
  file.kernel(10'000, 5'003, 1, 1, 1);
  file.kernel(15'000, 5'000, 1, 1, 2);
  const Trace trace = import(file);
  ASSERT_EQ(trace.ranks[0].tracks.size(), 2U);
  const Track& stream = trace.ranks[0].tracks[1];
  EXPECT_EQ(stream.kind, TrackKind::stream);
  EXPECT_THAT(stream.slices.start_ns, ElementsAre(10'000, 15'000));
  EXPECT_THAT(stream.slices.duration_ns, ElementsAre(5'000, 5'000));
  EXPECT_THAT(trace.notes, ElementsAre(::testing::StartsWith("1 slice was cut")));
}

TEST(PaceGpuImport, FiguresOfTheDeviceFollowHolisticTraceAnalysis) {
  GpuFile file;
  file.push(0, pack_scope(file.name("step"), 0, 0));
  file.pop(200'000);
  file.use_thread(999);
  file.kernel(10'000, 20'000, 1, 1, 1);  // compute 10–30 µs
  file.kernel(25'000, 15'000, 1, 2, 2);  // compute 25–40 µs
  file.kernel(35'000, 25'000, 2, 2, 3);  // NCCL 35–60 µs, hidden until 40 µs
  file.kernel(90'000, 10'000, 1, 1, 4);  // compute 90–100 µs
  const Trace trace = import(file);
  const Rank& rank = trace.ranks[0];
  const auto usage = gpu_usage(gpu_activity(trace, rank));
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->span_ns, 90'000);
  EXPECT_EQ(usage->compute_ns, 40'000);
  EXPECT_EQ(usage->idle_ns, 30'000);
  EXPECT_EQ(usage->noncompute_ns, 20'000);
  const auto overlap = overlap_of(trace, rank, phases_of(trace, rank));
  ASSERT_TRUE(overlap);
  EXPECT_EQ(overlap->communication_ns, 25'000);
  EXPECT_EQ(overlap->hidden_ns, 5'000);
}

TEST(PaceGpuImport, PhasesOfCudaCallsAndOfWaitingForExposedCommunication) {
  GpuFile file;
  file.push(0, pack_scope(file.name("iteration"), 0, 0));
  file.push(100, pack_scope(file.name("forward"), 0, 0));
  file.pop(1000);
  file.push(1000, pack_scope(file.name("allreduce"), 0, 0));
  file.pop(1500);
  file.pop(5000);
  file.use_thread(999);
  file.call(200, 300, 1, 1);         // launch, in forward
  file.call(600, 100, 3, 2);         // copy
  file.call(1100, 200, 1, 3);        // a launch for communication
  file.call(2000, 2500, 2, 4);       // waits for the device
  file.kernel(700, 2000, 1, 1, 1);   // compute to 2700
  file.kernel(1400, 2800, 2, 2, 3);  // NCCL to 4200: exposed from 2700
  const Trace trace = import(file);
  const RankPhases phases = phases_of(trace, trace.ranks[0]);
  EXPECT_EQ(in(phases, Phase::forward), 500);
  EXPECT_EQ(in(phases, Phase::launch), 300);
  EXPECT_EQ(in(phases, Phase::copy), 100);
  EXPECT_EQ(in(phases, Phase::communication), 500 + 1500);
  EXPECT_EQ(in(phases, Phase::idle), 700 + 300);
  std::int64_t sum = 0;
  for (const std::int64_t ns : phases.total_ns) sum += ns;
  EXPECT_EQ(sum, trace.ranks[0].end_ns - trace.ranks[0].start_ns);
  for (std::size_t i = 1; i < phases.intervals.size(); ++i) {
    EXPECT_EQ(phases.intervals[i].start_ns, phases.intervals[i - 1].end_ns);
  }
}

// The kernel of a plan is the one that the same thread launched just before the plan was enqueued.
GpuFile nccl_rank(int rank, std::uint64_t late) {
  GpuFile file(rank, 2);
  file.communicator(9, 2, 0xabc, static_cast<std::uint32_t>(rank), "");
  const std::uint64_t base = 100'000 * static_cast<std::uint64_t>(rank + 1);
  for (std::uint64_t i = 0; i < 3; ++i) {
    file.collective(10'000 * i + 5000, i, base + 10 * i, base + 10 * i + 1);
    file.use_thread(999);
    file.call(10'000 * i + 4000, 300, 1, 50 + i);
    file.kernel(10'000 * i + 6000 + late, 2000 - late, 2, 2, 50 + i);
    file.use_thread(file.main);
  }
  file.collective(40'000, 3, base + 40, base + 41);  // its kernel was not seen
  return file;
}

TEST(PaceGpuImport, ACollectiveRunsWhenItsKernelDoesAndIsMatchedAcrossRanksByHashAndSequence) {
  GpuFile first = nccl_rank(0, 0), second = nccl_rank(1, 500);
  const Trace trace = import(first, second);
  EXPECT_EQ(trace.ranks[0].nccl_events, 4U);
  const Collectives collectives = match_collectives(trace);
  ASSERT_EQ(collectives.matched.size(), 4U);
  EXPECT_EQ(collectives.unmatched_calls, 0U);
  EXPECT_EQ(collectives.rows[0].timed, 3U);
  for (const Collective& collective : std::span(collectives.matched).first(3)) {
    EXPECT_EQ(collectives.operations[collective.operation], "ncclAllReduce");
    EXPECT_EQ(collective.members, 2U);
    EXPECT_EQ(collective.bytes, 4000U);
    EXPECT_EQ(collective.wait_ns(collective.calls[0]), 500);
    EXPECT_EQ(collective.wait_ns(collective.calls[1]), 0);
    EXPECT_EQ(collective.transfer_ns, 1500);
  }
  const Track& track = track_labelled(trace.ranks[0], "NCCL 0000000000000abc");
  EXPECT_EQ(track.kind, TrackKind::nccl);
  EXPECT_THAT(track.slices.start_ns, ElementsAre(6000, 16'000, 26'000, 40'000));
  EXPECT_EQ(trace.names[trace.kind_of(track.slices, 3).category], "enqueue");
}

// A plan with one collective that a callback on CUDA's thread enqueues. With `launch_at` NCCL also tells of the launch
// of its kernel, on the main thread.
void plan_in_callback(GpuFile& file, std::uint64_t at, std::uint64_t sequence, std::uint64_t id,
                      std::uint64_t launch_at = 0) {
  const auto call = [&](std::uint64_t from, std::uint64_t to, NcclCall kind, std::uint64_t number) {
    file.add(from, EventType::nccl_call, pair(file.operation, 9));
    file.extension(0, pair(static_cast<std::uint64_t>(kind), 0));
    file.extension(number, 0);
    file.add(to, EventType::nccl_end, number);
  };
  if (launch_at != 0) call(launch_at, launch_at + 400, NcclCall::kernel_launch, id);
  file.use_thread(888);
  call(at, at + 10, NcclCall::group, id + 1);
  file.collective(at + 1, sequence, id + 2, id + 1);
  file.use_thread(file.main);
}

std::vector<std::int64_t> begins_of_collectives(const Trace& trace) {
  const Track& track = track_labelled(trace.ranks[0], "NCCL 0000000000000abc");
  std::vector<std::int64_t> begins;
  for (std::size_t i = 0; i < track.slices.size(); ++i) {
    if (trace.names[trace.kind_of(track.slices, i).category] == "collective")
      begins.push_back(track.slices.start_ns[i]);
  }
  return begins;
}

TEST(PaceGpuImport, APlanThatACallbackEnqueuedRunsWithTheLaunchOfItsPlaceInTheCommunicator) {
  GpuFile file;
  file.communicator(9, 1, 0xabc, 0, "");
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::uint64_t at = 10'000 * i;
    plan_in_callback(file, at + 5500, i, 100 + 10 * i, at + 3900);
    file.use_thread(999);
    file.call(at + 4000, 300, 1, 50 + i);
    file.kernel(at + 6000, 2000, 2, 2, 50 + i);
    file.use_thread(file.main);
  }
  file.collective(45'000, 3, 1000, 1001);  // and one that its own thread enqueued, after its launch
  file.use_thread(999);
  file.call(44'000, 300, 1, 60);
  file.kernel(46'000, 2000, 2, 2, 60);
  const Trace trace = import(file);
  EXPECT_THAT(begins_of_collectives(trace), ElementsAre(6000, 16'000, 26'000, 46'000));
}

TEST(PaceGpuImport, APlanOfAGraphRunsWithTheGraphsKernelOfItsPlace) {
  GpuFile file;
  file.communicator(9, 1, 0xabc, 0, "");
  for (std::uint64_t i = 0; i < 3; ++i) {
    plan_in_callback(file, 10'000 * i + 5000, i, 100 + 10 * i);
    file.use_thread(999);
    file.kernel(10'000 * i + 6000, 2000, 2, 2, 50 + i, 77);
    file.use_thread(file.main);
  }
  EXPECT_THAT(begins_of_collectives(import(file)), ElementsAre(6000, 16'000, 26'000));
}

TEST(PaceGpuImport, APlanWhoseKernelWasNotSeenIsNotGivenAnother) {
  GpuFile file;
  file.communicator(9, 1, 0xabc, 0, "");
  for (std::uint64_t i = 0; i < 3; ++i) {
    plan_in_callback(file, 10'000 * i + 5000, i, 100 + 10 * i);
    file.use_thread(999);
    if (i != 1) file.kernel(10'000 * i + 6000, 2000, 2, 2, 50 + i, 77);
    file.use_thread(file.main);
  }
  EXPECT_THAT(begins_of_collectives(import(file)), ElementsAre());
}

// The device's clock is five seconds ahead and gains 40 µs in a second. NCCL reports each edge 3 µs after it happened,
// but for twelve seconds two seconds late.
TEST(PaceGpuImport, AReportsDelayIsNotTakenForTheDistanceOfTheClocks) {
  constexpr std::uint64_t ms = 1'000'000, late_from = 15'000 * ms, late_to = 27'000 * ms;
  GpuFile file;
  std::vector<std::uint64_t> starts;
  for (std::uint64_t at = 1000 * ms; at < 40'000 * ms; at += 100 * ms) {
    const std::uint64_t id = starts.size() + 1, started = at + ms / 50;
    starts.push_back(started);
    file.collective(at, id, id, 0);
    for (const std::uint64_t edge : {0, 1}) {
      const std::uint64_t happened = started + edge * ms / 10;
      file.add(happened + (at >= late_from && at < late_to ? 2000 * ms : 3000), EventType::nccl_channel, id);
      file.extension(happened + 5000 * ms + happened / 25'000, pair(0, edge));
    }
  }
  const Trace trace = import(file);
  const Track& track = track_labelled(trace.ranks[0], "NCCL ");
  ASSERT_EQ(track.slices.size(), starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::uint64_t from_prompt = starts[i] < late_from || starts[i] > late_to
                                          ? 0
                                          : std::min(starts[i] - late_from + 100 * ms, late_to - starts[i]);
    EXPECT_NEAR(static_cast<double>(track.slices.start_ns[i]), static_cast<double>(starts[i]),
                3010 + 1.05e-3 * static_cast<double>(from_prompt))
        << i;
  }
}

// NCCL without its plugin: two calls alone, two in a group with one kernel, two in a group with two.
GpuFile nccl_ranges_of(int rank, std::uint64_t late) {
  GpuFile file(rank, 2);
  file.nccl_domain();
  std::uint64_t correlation = 0;
  const auto launch = [&](std::uint64_t at) {
    file.use_thread(999);
    file.call(at, 300, 1, ++correlation);
    file.kernel(at + 2000 + late, 2000 - late, 2, 2, correlation);
    file.use_thread(file.main);
  };
  for (const std::uint64_t at : {10'000, 20'000}) {
    file.nccl_range(at, at + 1000);
    launch(at + 500);
  }
  for (const std::uint64_t at : {30'000, 40'000}) {
    file.nccl_range(at, at + 10, 1);
    file.nccl_range(at + 100, at + 200);
    file.nccl_range(at + 300, at + 400);
    file.nccl_range(at + 500, at + 3000, 2);
    launch(at + 600);
    if (at == 40'000) launch(at + 2650);
  }
  return file;
}

TEST(PaceGpuImport, NcclsRangesAloneTellOfItsCollectivesWhereOneKernelIsTheirs) {
  GpuFile first = nccl_ranges_of(0, 0), second = nccl_ranges_of(1, 500);
  const Trace trace = import(first, second);
  EXPECT_TRUE(trace.notes.empty());
  const Collectives collectives = match_collectives(trace);
  EXPECT_EQ(collectives.unmatched_calls, 0U);
  ASSERT_EQ(collectives.rows.size(), 1U);
  EXPECT_EQ(collectives.rows[0].bytes, 4000U);
  EXPECT_EQ(collectives.rows[0].count, 6U);
  EXPECT_EQ(collectives.rows[0].timed, 4U);
  EXPECT_EQ(collectives.rows[0].wait_ns, 3 * 500) << "the two in one kernel wait at the same time";
  EXPECT_EQ(collectives.rows[0].transfer_ns, 4 * 1500);
  const Track& track = track_labelled(trace.ranks[0], "NCCL 0000000000000abc");
  EXPECT_THAT(track.slices.start_ns, ElementsAre(12'500, 22'500, 32'600, 32'600, 40'100, 40'300));
  EXPECT_EQ(trace.names[trace.kind_of(track.slices, 4).category], "enqueue");
}

TEST(PaceGpuImport, NcclsRangesThatNameNoCommunicatorAreNotMatchedAndThatIsSaid) {
  GpuFile file;
  file.nccl_domain(false);
  file.nccl_range(10, 20, 0, {4000});
  file.nccl_range(30, 40, 0, {4000});
  const Trace trace = import(file);
  EXPECT_THAT(trace.notes, ElementsAre(::testing::HasSubstr("2 NCCL calls cannot be matched with other ranks': their "
                                                            "NVTX ranges name no communicator")));
  EXPECT_EQ(trace.ranks[0].tracks.size(), 1U);
}

TEST(PaceGpuImport, NcclsRangesThatCannotBeCountedAreNotMatchedAndThatIsSaid) {
  const auto recorded_late = [](int rank) {
    GpuFile file(rank, 2);
    file.nccl_domain();
    file.add(0, EventType::recording, format::before_delay);
    file.add(1000, EventType::recording, 0);
    file.nccl_range(2000, 2100);
    return file;
  };
  GpuFile first = recorded_late(0), second = recorded_late(1);
  const Trace trace = import(first, second);
  ASSERT_EQ(trace.notes.size(), 2U);
  EXPECT_THAT(trace.notes[0], ::testing::HasSubstr("1 NCCL calls cannot be matched with other ranks': only"));
  EXPECT_TRUE(match_collectives(trace).matched.empty());
}

TEST(PaceGpuImport, ACollectiveFindsTheCallOfItsThreadSizeAndTime) {
  GpuFile file;
  file.communicator(9, 2, 0xabc, 0, "");
  file.nccl_domain();
  file.nccl_range(1000, 1100, 0, {0xabc, 8000});  // another size
  file.nccl_range(2000, 2100, 0, {0xdef, 4000});  // another communicator
  file.nccl_range(3000, 3100);                    // was not enqueued
  file.nccl_range(5000, 5100);
  file.nccl_range(9000, 9100);  // later
  file.collective(5050, 0, 500, 501);
  file.collective(7000, 1, 502, 503);  // in no call
  const Trace trace = import(file);
  const Track& track = track_labelled(trace.ranks[0], "NCCL 0000000000000abc");
  const Track& main = *main_track(trace.ranks[0]);
  const NameId call = trace.names.find("call");
  const auto number = track.slices.number(0, call);
  ASSERT_TRUE(number);
  EXPECT_FALSE(track.slices.number(1, call));
  for (std::uint32_t i = 0; i < main.slices.size(); ++i) {
    EXPECT_EQ(main.slices.number(i, call) == number, main.slices.start_ns[i] == 5000) << i;
  }
}

// A non-blocking communicator enqueues in a thread of NCCL's.
TEST(PaceGpuImport, ACollectiveThatNcclsOwnThreadEnqueuedFindsTheEarliestCallThatHasBegun) {
  GpuFile file;
  file.communicator(9, 2, 0xabc, 0, "");
  file.nccl_domain();
  file.nccl_range(1000, 1100);
  file.nccl_range(2000, 2100, 0, {0xabc, 8000});  // another size
  file.nccl_range(3000, 3100);
  file.nccl_range(9000, 9100);  // later than both
  file.use_thread(77);
  file.collective(3500, 0, 500, 501);
  file.collective(4000, 1, 502, 503);
  file.collective(4500, 2, 504, 505);  // in no call
  const Trace trace = import(file);
  const Track& track = track_labelled(trace.ranks[0], "NCCL 0000000000000abc");
  const Track& main = *main_track(trace.ranks[0]);
  const NameId call = trace.names.find("call");
  std::vector<std::int64_t> starts;  // of the calls that were found
  for (std::uint32_t i = 0; i < track.slices.size(); ++i) {
    const auto number = track.slices.number(i, call);
    for (std::uint32_t j = 0; number && j < main.slices.size(); ++j) {
      if (main.slices.number(j, call) == number) starts.push_back(main.slices.start_ns[j]);
    }
  }
  EXPECT_THAT(starts, ::testing::ElementsAre(1000, 3000));
}

// The correlation differs from slice to slice; the other arguments of a kernel are stored once for each kernel.
TEST(PaceGpuImport, KeepsASliceIn32BytesAnd8ForEachArgumentThatDiffers) {
  GpuFile file;
  constexpr std::uint64_t launches = 50'000;
  for (std::uint64_t i = 0; i < launches; ++i) {
    file.call(1000 + 10 * i, 5, 1, i + 1);
    file.kernel(1004 + 10 * i, 3, 1 + i % 2, 1 + i % 2, i + 1);
  }
  const Trace trace = import(file);
  std::size_t slices = 0, bytes = 0;
  for (const Track& track : trace.ranks[0].tracks) {
    slices += track.slices.size();
    bytes += track.slices.bytes();
  }
  ASSERT_EQ(slices, 2 * launches);
  EXPECT_LE(bytes, (32 + 8) * slices);
}

TEST(PaceGpuImport, DamagedFilesOfAnyNumbersAreRead) {
  PaceFile file;
  for (const std::uint64_t word :
       {std::uint64_t{0}, ~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{1} << 31}) {
    for (unsigned type = 96; type <= 118; ++type) {
      const auto event = static_cast<EventType>(type);
      const std::uint32_t slots = format::extension_slots({format::pack_high(1, event), word});
      file.add((word >> 8) + type, event, word);
      for (std::uint32_t i = 0; i < slots; ++i) file.extension(~word, word);
    }
  }
  const Trace trace = import(file);
  EXPECT_GT(trace.ranks[0].cuda_events, 0U);
  EXPECT_GT(trace.ranks[0].nccl_events, 0U);
  phases_of(trace, trace.ranks[0]);
  gpu_usage(gpu_activity(trace, trace.ranks[0]));
  match_collectives(trace);
}

}  // namespace
}  // namespace paceline::analysis
