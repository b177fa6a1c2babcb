// SPDX-License-Identifier: Apache-2.0
// Sixteen threads use all parts of the recorder at once while the drain writes. This is mainly for ThreadSanitizer.
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <map>
#include <thread>

#include "tests/unit/profiler/inject/child.h"

extern "C" int paceline_recording(int on);

namespace paceline::test {
namespace {

using format::EventType;

constexpr int threads = 16;
constexpr int rounds = 1500;

nvtxEventAttributes_t attributes_of(nvtxStringHandle_t message, std::uint64_t payload) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = message;
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = payload;
  return attributes;
}

// Ranges that one thread starts are ended by the next.
std::atomic<nvtxRangeId_t> handed_on[threads];

void work(int thread) {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA(thread % 2 == 0 ? "even" : "odd");
  const std::string own = "thread " + std::to_string(thread);
  const nvtxStringHandle_t shared = nvtxDomainRegisterStringA(domain, "shared name");
  nvtxNameOsThreadA(static_cast<std::uint32_t>(thread + 1), own.c_str());
  for (int round = 0; round < rounds; ++round) {
    const nvtxEventAttributes_t attributes = attributes_of(shared, static_cast<std::uint64_t>(round));
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxRangePushA(own.c_str());
    if (round % 16 == 0) nvtxMarkA(("mark " + std::to_string(round / 16)).c_str());
    nvtxRangePop();
    nvtxDomainRangePop(domain);
    const nvtxRangeId_t started = nvtxDomainRangeStartEx(domain, &attributes);
    const nvtxRangeId_t received = handed_on[(thread + 1) % threads].exchange(started);
    if (received != 0) nvtxDomainRangeEnd(domain, received);
  }
}

class InjectStress : public RecordingTest {};

// A small live area, so that all its chunks are reused many times.
TEST_F(InjectStress, SixteenThreadsRecordAtOnce) {
  setenv("PACELINE_BUFFER_BYTES", "4194304", 1);
  RECORD({
    nvtxInitialize(nullptr);  // NVTX's headers read their state without memory ordering
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread) all.emplace_back(work, thread);
    for (std::thread& thread : all) thread.join();
    // And again while recording is paused and resumed.
    all.clear();
    for (int thread = 0; thread < threads; ++thread) all.emplace_back(work, thread);
    for (int turn = 0; turn < 50; ++turn) paceline_recording(turn % 2);
    for (std::thread& thread : all) thread.join();
  });
  const RecordedFile file = only_file();
  EXPECT_FALSE(file.file.damaged) << file.file.damage;
  EXPECT_EQ(file.file.header.closed, 1u);

  std::map<std::string, std::size_t> pushes;
  std::map<std::uint64_t, int> started;
  for (const RecordedEvent& event : file.events) {
    if (event.type == EventType::push || event.type == EventType::push_payload) ++pushes[event.name];
    if (event.type == EventType::start_payload) ++started[event.extension[0].high];
  }
  // Missing events were counted as dropped.
  std::size_t there = 0;
  for (const auto& [name, count] : pushes) there += count;
  EXPECT_GE(there + file.dropped(), std::size_t{2} * threads * rounds);
  EXPECT_EQ(pushes.size(), std::size_t{threads + 1});
  for (const auto& [id, count] : started) EXPECT_EQ(count, 1) << id;
  for (const RecordedEvent& event : file.of(EventType::end)) EXPECT_LE(started.count(event.head.low), 1u);
}

}  // namespace
}  // namespace paceline::test
