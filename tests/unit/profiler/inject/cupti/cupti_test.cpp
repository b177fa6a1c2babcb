// SPDX-License-Identifier: Apache-2.0
// CUPTI's records, built by the test, go through the real cuptiActivityGetNextRecord and become events. No GPU is
// needed.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "profiler/format/block.h"
#include "profiler/format/layout.h"
#include "profiler/inject/cupti/buffers.h"
#include "profiler/inject/cupti/cupti_library.h"
#include "profiler/inject/cupti/lending.h"
#include "profiler/inject/cupti/quiet_calls.h"
#include "profiler/inject/cupti/records.h"
#include "profiler/inject/cupti/transcoder.h"

namespace paceline::inject::cupti {
namespace {

CuptiVerdict use_any_cupti(CuptiLibrary&, char*, std::size_t) { return CuptiVerdict::use; }

using format::EventType;
using format::Slot;
using ::testing::ElementsAre;

// The recorder's table in memory: the emitted and defined events, as slots.
struct Sink {
  std::vector<Slot> slots;
  std::vector<std::string> names;
  std::uint64_t lost = 0;
} sink_state;

int put(std::uint64_t at, std::uint32_t type, std::uint64_t low, const std::uint64_t* words, std::uint32_t slots) {
  sink_state.slots.push_back({format::pack_high(at, static_cast<EventType>(type)), low});
  for (std::uint32_t i = 0; i < slots; ++i) sink_state.slots.push_back({words[2 * i], words[2 * i + 1]});
  return 1;
}
const paceline_event_sink_v1 sink = {
    sizeof sink,
    [] { return 1; },
    [] { return 1; },
    [] { return std::uint64_t{7'000'000}; },
    [] { return 2.5e9; },
    [](const char* text, size_t length) {
      auto& names = sink_state.names;
      const std::string name(text, length);
      for (std::uint32_t i = 0; i < names.size(); ++i) {
        if (names[i] == name) return i + 1;
      }
      names.push_back(name);
      return static_cast<std::uint32_t>(names.size());
    },
    put,
    [](std::uint32_t type, std::uint64_t low, const std::uint64_t* words, std::uint32_t slots) {
      return put(7'000'000, type, low, words, slots);
    },
    [](std::uint32_t, std::uint64_t events) { sink_state.lost += events; },
    [](const char*) {},
    [](void (*)()) { return 1; },
    [](const paceline_cupti_watcher*) {},
};

const char* name_of_call(bool driver, std::uint32_t call) {
  return driver ? "cuLaunchKernel_ptsz" : call == 211 ? "cudaLaunchKernel_v7000" : "cudaMemcpyAsync_ptsz_v7000";
}

struct Event {
  EventType type;
  std::uint64_t ticks, low;
  std::vector<std::uint64_t> words;
};

std::vector<Event> events_of(EventType type) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < sink_state.slots.size(); i += 1 + format::extension_slots(sink_state.slots[i])) {
    const Slot& head = sink_state.slots[i];
    if (format::type_of(head) != type) continue;
    Event event{type, format::ticks_of(head), head.low, {}};
    for (std::size_t e = 1; e <= format::extension_slots(head); ++e) {
      event.words.push_back(sink_state.slots[i + e].high);
      event.words.push_back(sink_state.slots[i + e].low);
    }
    events.push_back(event);
  }
  return events;
}

constexpr std::uint64_t pair(std::uint64_t low, std::uint64_t high) { return low | high << 32; }

class CuptiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sink_state = {};
    timestamps.add(1'000'000'000, 5'000'000'000);  // ns 1 s is tick 5e9, at 2.5 ticks a ns
    transcoder = std::make_unique<Transcoder>(sink, timestamps, name_of_call);
  }

  // Records one after another, as in a buffer from CUPTI.
  template <class Record>
  void lay(const Record& record) {
    const std::size_t at = buffer.size();
    buffer.resize(at + sizeof record);
    std::memcpy(buffer.data() + at, &record, sizeof record);
  }
  template <class Record>
  void take(const Record& record) {
    buffer.clear();
    lay(record);
    transcoder->take(*reinterpret_cast<const CUpti_Activity*>(buffer.data()));
  }
  // Uses the real CUPTI if it is found.
  void take_all(CuptiLibrary& cupti) {
    CUpti_Activity* record = nullptr;
    CUptiResult result;
    while ((result = cupti.get_next_record(buffer.data(), buffer.size(), &record)) == CUPTI_SUCCESS) {
      transcoder->take(*record);
      ++taken;
    }
    EXPECT_EQ(result, CUPTI_ERROR_MAX_LIMIT_REACHED);
  }

  Timestamps timestamps{2.5e9};
  std::unique_ptr<Transcoder> transcoder;
  std::vector<std::uint8_t> buffer;
  int taken = 0;
};

CUpti_ActivityKernel10 kernel_record(const char* name, std::uint64_t start, std::uint64_t end,
                                     std::uint32_t correlation) {
  CUpti_ActivityKernel10 kernel;
  std::memset(&kernel, 0, sizeof kernel);
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.name = name;
  kernel.start = start;
  kernel.end = end;
  kernel.deviceId = 1;
  kernel.contextId = 2;
  kernel.streamId = 7;
  kernel.gridX = 100'000, kernel.gridY = 2, kernel.gridZ = 3;
  kernel.blockX = 1024, kernel.blockY = 4, kernel.blockZ = 5;
  kernel.registersPerThread = 255;
  kernel.staticSharedMemory = 48;
  kernel.dynamicSharedMemory = 65'536;
  kernel.localMemoryPerThread = 16;
  kernel.correlationId = correlation;
  return kernel;
}

CUpti_ActivityAPI call_record(CUpti_ActivityKind kind, std::uint32_t cbid, std::uint64_t start, std::uint64_t end,
                              std::uint32_t correlation) {
  CUpti_ActivityAPI call;
  std::memset(&call, 0, sizeof call);
  call.kind = kind;
  call.cbid = cbid;
  call.start = start;
  call.end = end;
  call.threadId = 4711;
  call.correlationId = correlation;
  return call;
}

TEST_F(CuptiTest, RecordsOfTheTestBecomeEventsWithTheRealCupti) {
  CuptiLibrary cupti;
  char why[512] = "";
  if (!load_cupti(cupti, use_any_cupti, why, sizeof why)) GTEST_SKIP() << why;
  constexpr std::uint64_t t = 1'000'000'000;
  lay(call_record(CUPTI_ACTIVITY_KIND_RUNTIME, 211, t, t + 4'000, 31));
  lay(kernel_record("_Z6squarePfi", t + 10'000, t + 30'000, 31));
  CUpti_ActivityMemcpy6 copy;
  std::memset(&copy, 0, sizeof copy);
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.bytes = 5'000'000'000;
  copy.start = t + 40'000, copy.end = t + 50'000;
  copy.deviceId = 1, copy.contextId = 2, copy.streamId = 8, copy.correlationId = 32;
  lay(copy);
  CUpti_ActivityMemcpyPtoP4 peer;
  std::memset(&peer, 0, sizeof peer);
  peer.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  peer.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  peer.start = t + 60'000, peer.end = t + 61'000;
  peer.deviceId = 1, peer.contextId = 2, peer.streamId = 8, peer.srcDeviceId = 1, peer.dstDeviceId = 3;
  peer.bytes = 77;
  lay(peer);
  CUpti_ActivityMemset4 set;
  std::memset(&set, 0, sizeof set);
  set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  set.value = 0xab, set.bytes = 256, set.start = t + 70'000, set.end = t + 71'000;
  set.deviceId = 1, set.contextId = 2, set.streamId = 7, set.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  lay(set);
  CUpti_ActivitySynchronization2 wait;
  std::memset(&wait, 0, sizeof wait);
  wait.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  wait.start = t + 80'000, wait.end = t + 90'000, wait.contextId = 2, wait.streamId = 8;
  wait.cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE, wait.correlationId = 33;
  lay(wait);
  CUpti_ActivityGraphTrace2 graph;
  std::memset(&graph, 0, sizeof graph);
  graph.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  graph.start = t + 91'000, graph.end = t + 92'000, graph.deviceId = 1, graph.contextId = 2, graph.streamId = 7;
  graph.graphId = 5, graph.correlationId = 34;
  lay(graph);
  CUpti_ActivityOverhead3 overhead;
  std::memset(&overhead, 0, sizeof overhead);
  overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  overhead.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  overhead.objectId.pt.threadId = 12;
  overhead.start = t + 93'000, overhead.end = t + 94'000;
  lay(overhead);
  CUpti_ActivityContext3 context;
  std::memset(&context, 0, sizeof context);
  context.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  context.contextId = 2, context.deviceId = 1, context.nullStreamId = 7;
  lay(context);
  take_all(cupti);
  EXPECT_EQ(taken, 9);
  EXPECT_EQ(sink_state.lost, 0U);

  constexpr std::uint64_t zero = 5'000'000'000;  // ticks at t
  ASSERT_EQ(events_of(EventType::cuda_call).size(), 1U);
  const Event call = events_of(EventType::cuda_call)[0];
  EXPECT_EQ(call.ticks, zero);
  EXPECT_EQ(call.low, 211 | pair(0, 4711));
  EXPECT_THAT(call.words, ElementsAre(10'000, pair(31, 0)));
  ASSERT_EQ(events_of(EventType::cuda_function).size(), 1U);
  EXPECT_EQ(sink_state.names[(events_of(EventType::cuda_function)[0].low >> 32) - 1], "cudaLaunchKernel");

  ASSERT_EQ(events_of(EventType::cuda_kernel).size(), 1U);
  const Event shape = events_of(EventType::cuda_kernel)[0];
  EXPECT_EQ(sink_state.names[(shape.low >> 32) - 1], "_Z6squarePfi");
  EXPECT_THAT(shape.words, ElementsAre(100'000 | 2ULL << 32 | 3ULL << 48, 1024 | 4ULL << 16 | 5ULL << 32 | 255ULL << 48,
                                       pair(48, 65'536), 16));
  const Event kernel = events_of(EventType::cuda_kernel_run).at(0);
  EXPECT_EQ(kernel.ticks, zero + 25'000);
  EXPECT_EQ(kernel.low, pair(1, 1));
  EXPECT_THAT(kernel.words, ElementsAre(50'000, pair(31, 0)));

  const auto copies = events_of(EventType::cuda_copy);
  ASSERT_EQ(copies.size(), 2U);
  EXPECT_EQ(copies[0].low, pair(2, 1 | 2 << 8 | 3 << 16));
  EXPECT_THAT(copies[0].words, ElementsAre(25'000, pair(32, 0), 5'000'000'000, 0));
  EXPECT_EQ(copies[1].low, pair(2, 10));
  EXPECT_THAT(copies[1].words, ElementsAre(2'500, 0, 77, pair(1, 3)));
  EXPECT_EQ(events_of(EventType::cuda_set).at(0).low, pair(1, 0xab));
  EXPECT_THAT(events_of(EventType::cuda_set)[0].words, ElementsAre(2'500, 0, 256, 3));
  EXPECT_EQ(events_of(EventType::cuda_wait).at(0).low, pair(2, 3));
  EXPECT_EQ(events_of(EventType::cuda_graph).at(0).low, pair(1, 5));
  EXPECT_EQ(events_of(EventType::cuda_overhead).at(0).low, pair(1 << 16, 12));
  const auto streams = events_of(EventType::cuda_stream);
  ASSERT_EQ(streams.size(), 3U);  // 7, 8, and 7 again with its name
  EXPECT_EQ(sink_state.names[(streams[2].low >> 32) - 1], "default");
  EXPECT_THAT(streams[2].words, ElementsAre(pair(1, 2), 7));
}

TEST_F(CuptiTest, TheRealCuptiNamesTheCallsThatAreLeftOut) {
  CuptiLibrary cupti;
  char why[512] = "";
  if (!load_cupti(cupti, use_any_cupti, why, sizeof why)) GTEST_SKIP() << why;
  const auto name = [&](CUpti_CallbackDomain domain, std::uint32_t call) -> std::string {
    const char* text = nullptr;
    return cupti.get_callback_name(domain, call, &text) == CUPTI_SUCCESS && text != nullptr ? text : "";
  };
  for (const std::uint32_t call : quiet_runtime_calls) {
    EXPECT_THAT(name(CUPTI_CB_DOMAIN_RUNTIME_API, call), ::testing::StartsWith("cuda")) << call;
    transcoder->leave_out(false, call);
    const auto record = call_record(CUPTI_ACTIVITY_KIND_RUNTIME, call, 1'000'000'000, 1'000'001'000, 1);
    take(record);
  }
  for (const std::uint32_t call : quiet_driver_calls) {
    EXPECT_THAT(name(CUPTI_CB_DOMAIN_DRIVER_API, call), ::testing::StartsWith("cu")) << call;
  }
  EXPECT_TRUE(sink_state.slots.empty());
}

TEST_F(CuptiTest, ARecordWithoutTimesIsCountedAsLost) {
  const auto kernel = kernel_record("k", 0, 0, 1);
  take(kernel);
  EXPECT_EQ(sink_state.lost, 1U);
  EXPECT_TRUE(events_of(EventType::cuda_kernel_run).empty());
}

TEST_F(CuptiTest, EqualLaunchesAreDefinedOnceAndOthersAnew) {
  auto kernel = kernel_record("k", 1'000'000'000, 1'000'000'100, 1);
  for (int i = 0; i < 3; ++i) take(kernel);
  EXPECT_EQ(events_of(EventType::cuda_kernel).size(), 1U);
  kernel.dynamicSharedMemory += 1;
  take(kernel);
  EXPECT_EQ(events_of(EventType::cuda_kernel).size(), 2U);
  EXPECT_EQ(events_of(EventType::cuda_kernel_run).at(3).low, pair(2, 1));
  for (int i = 0; i < 40'000; ++i) {  // more than the table holds: nothing is lost
    kernel.gridX = i;
    take(kernel);
  }
  const auto shapes = events_of(EventType::cuda_kernel);
  std::map<std::uint32_t, std::uint32_t> grid_of;
  for (const Event& shape : shapes) {
    grid_of[static_cast<std::uint32_t>(shape.low)] = static_cast<std::uint32_t>(shape.words[0]);
  }
  const auto runs = events_of(EventType::cuda_kernel_run);
  for (std::uint32_t i = 0; i < 40'000; ++i) {
    ASSERT_EQ(grid_of.at(static_cast<std::uint32_t>(runs[4 + i].low)), i);
  }
}

// The records of a training step: for each launch a call of the runtime, 4 to 12 µs apart, and a kernel, of 24
// different ones, that runs 2 to 200 µs; calls and kernels come from CUPTI in separate buffers of some thousand
// records.
TEST_F(CuptiTest, ALaunchTakesAtMost32BytesOnDisk) {
  std::mt19937_64 random(5);
  std::vector<std::string> names;
  for (int i = 0; i < 24; ++i) {
    names.push_back("_ZN2at6native29vectorized_elementwise_kernelILi" + std::to_string(i) + "EEEviT0_T1_");
  }
  constexpr int launches = 20'000, in_a_buffer = 4'000;
  std::uint64_t host = 1'000'000'000, device = host + 20'000;
  std::uint32_t correlation = 100;
  for (int first = 0; first < launches; first += in_a_buffer) {
    std::vector<CUpti_ActivityKernel10> kernels;
    for (int i = 0; i < in_a_buffer; ++i) {
      const std::uint64_t start = host, end = start + 2'000 + random() % 3'000;
      host += 4'000 + random() % 8'000;
      correlation += 1 + random() % 3;
      const auto call = call_record(CUPTI_ACTIVITY_KIND_RUNTIME, 211, start, end, correlation);
      take(call);
      device = std::max(device, end) + random() % 2'000;
      kernels.push_back(
          kernel_record(names[random() % 24].c_str(), device, device + 2'000 + random() % 200'000, correlation));
      device = kernels.back().end;
    }
    for (const auto& kernel : kernels) take(kernel);
  }
  EXPECT_EQ(events_of(EventType::cuda_kernel_run).size(), launches + 0U);
  format::BlockEncoder encoder;
  std::size_t bytes = 0;
  for (std::size_t at = 0; at < sink_state.slots.size();) {
    const std::size_t left = sink_state.slots.size() - at;
    const std::size_t whole =
        format::whole_slots(&sink_state.slots[at], left < format::slots_per_chunk ? left : format::slots_per_chunk);
    ASSERT_GT(whole, 0U);
    bytes += encoder.encode({}, &sink_state.slots[at], whole).size();
    at += whole;
  }
  const double each = static_cast<double>(bytes) / launches;
  RecordProperty("bytes_per_launch", std::to_string(each));
  std::printf("%.1f bytes a launch, call and kernel\n", each);
  EXPECT_LE(each, 32.0);
}

TEST(CuptiTimestamps, LieOnTheLineBetweenTheReadingsAroundThem) {
  Timestamps timestamps(1e9);
  timestamps.add(1'000'000, 500);
  timestamps.add(2'000'000, 1'000'600);  // 100 ppm fast
  timestamps.add(3'000'000, 2'000'600);
  EXPECT_EQ(timestamps.ticks(1'000'000), 500U);
  EXPECT_EQ(timestamps.ticks(1'500'000), 500'550U);
  EXPECT_EQ(timestamps.ticks(2'500'000), 1'500'600U);
  EXPECT_EQ(timestamps.ticks(3'500'000), 2'500'600U);  // after the latest: the nominal frequency
  EXPECT_EQ(timestamps.ticks(999'900), 400U);          // before the first
}

TEST(CuptiTimestamps, StayCorrectWhenTheClockIsSet) {
  Timestamps timestamps(1e9);
  timestamps.add(1'000'000, 0);
  timestamps.add(9'000'000, 1'000'000);  // set forward by 7 ms
  timestamps.add(10'000'000, 2'000'000);
  EXPECT_EQ(timestamps.ticks(1'300'000), 300'000U);
  EXPECT_EQ(timestamps.ticks(9'500'000), 1'500'000U);
  timestamps.add(4'000'000, 3'000'000);  // set back
  timestamps.add(5'000'000, 4'000'000);
  EXPECT_EQ(timestamps.ticks(4'500'000), 3'500'000U);
}

TEST(CuptiTimestamps, KeepTheLatestReadings) {
  Timestamps timestamps(1e9);
  for (std::uint64_t i = 1; i <= 10'000; ++i) timestamps.add(i * 1000, i * 1000 + 7);
  EXPECT_EQ(timestamps.ticks(9'999'500), 9'999'507U);
  EXPECT_EQ(timestamps.ticks(500), 507U);  // older than the kept readings: the nominal frequency
}

TEST(CuptiBuffers, AreZeroedBeforeTheirReuse) {
  BufferPool pool;
  ASSERT_TRUE(pool.make());
  std::vector<std::uint8_t*> taken;
  while (std::uint8_t* buffer = pool.take()) taken.push_back(buffer);
  EXPECT_EQ(taken.size(), BufferPool::count);
  taken[3][5] = 9;
  EXPECT_TRUE(pool.put_full(taken[3], 6));
  EXPECT_FALSE(pool.put_full(reinterpret_cast<std::uint8_t*>(&pool), 6));
  std::size_t valid = 0;
  EXPECT_EQ(pool.take_full(valid), taken[3]);
  EXPECT_EQ(valid, 6U);
  EXPECT_EQ(pool.take_full(valid), nullptr);
  EXPECT_EQ(pool.take(), nullptr);
  pool.put_free(taken[3], 6);
  EXPECT_EQ(pool.take(), taken[3]);
  EXPECT_EQ(taken[3][5], 0);
}

TEST(CuptiStall, IsABufferThatDoesNotComeBackForTheGivenRounds) {
  StallWatch watch(3);
  EXPECT_FALSE(watch.is_stalled(0, 0));
  for (int round = 0; round < 10; ++round) EXPECT_FALSE(watch.is_stalled(0, 0)) << "CUPTI has no buffer";
  for (std::uint32_t round = 1; round < 10; ++round)
    EXPECT_FALSE(watch.is_stalled(round + 1, round)) << "they come back";
  EXPECT_FALSE(watch.is_stalled(10, 9));
  EXPECT_FALSE(watch.is_stalled(10, 9));
  EXPECT_TRUE(watch.is_stalled(10, 9));
  EXPECT_FALSE(watch.is_stalled(10, 9)) << "it counts again";
}

// Kineto's calls of two profiles: CUPTI comes back after the flush that follows the last kind.
TEST(Lending, LastsFromTheCallbacksToTheLastFlush) {
  Lending lending;
  EXPECT_FALSE(lending.begins_with(paceline_cupti_subscribe));
  EXPECT_FALSE(lending.begins_with(paceline_cupti_enable));
  for (int profile = 0; profile < 2; ++profile) {
    ASSERT_TRUE(lending.begins_with(paceline_cupti_register_callbacks));
    lending.begin();
    EXPECT_FALSE(lending.begins_with(paceline_cupti_register_callbacks));
    lending.note(paceline_cupti_register_callbacks, 0);
    lending.note(paceline_cupti_enable, 10);
    lending.note(paceline_cupti_enable, 5);
    lending.note(paceline_cupti_flush, 1);
    EXPECT_FALSE(lending.is_over());
    lending.note(paceline_cupti_disable, 10);
    lending.note(paceline_cupti_flush, 1);
    EXPECT_FALSE(lending.is_over()) << "one kind is enabled";
    lending.note(paceline_cupti_disable, 5);
    EXPECT_FALSE(lending.is_over());
    lending.note(paceline_cupti_flush, 0);
    EXPECT_FALSE(lending.is_over()) << "not all buffers are back";
    lending.note(paceline_cupti_flush, 1);
    EXPECT_TRUE(lending.is_over());
    lending.end();
    EXPECT_FALSE(lending.is_lent());
  }
}

TEST(Lending, IsNotOverForAProfileThatBeginsAtOnce) {
  Lending lending;
  lending.begin();
  lending.note(paceline_cupti_flush, 1);
  EXPECT_TRUE(lending.is_over());
  lending.note(paceline_cupti_enable, 10);
  EXPECT_FALSE(lending.is_over());
}

TEST(Lending, EndsWhenCuptiIsShutDownWhichEndsAllRecording) {
  Lending lending;
  lending.begin();
  lending.note(paceline_cupti_enable, 10);
  lending.note(paceline_cupti_finalize, 0);
  EXPECT_TRUE(lending.is_over());
}

TEST(CuptiVersions, FromCuda12ToTheHeadersMajorVersionAreKnown) {
  EXPECT_FALSE(is_known_version(0));
  EXPECT_FALSE(is_known_version(18));  // CUDA 11.8
  EXPECT_TRUE(is_known_version(19));
  EXPECT_TRUE(is_known_version(28));
  EXPECT_FALSE(is_known_version(29));
  EXPECT_EQ(is_known_version(130'400), CUPTI_API_VERSION >= 130'000);
  EXPECT_FALSE(is_known_version(990'000));
}

}  // namespace
}  // namespace paceline::inject::cupti
