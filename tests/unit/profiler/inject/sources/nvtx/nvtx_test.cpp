// SPDX-License-Identifier: Apache-2.0
// NVTX calls as a program makes them, and the resulting file.
#include <nvtx3/nvToolsExt.h>
//
#include <nvtx3/nvToolsExtSync.h>

#include <bit>

#include "tests/unit/profiler/inject/child.h"

namespace paceline::test {
namespace {

using format::EventType;
using format::PayloadType;

class InjectNvtx : public RecordingTest {};

nvtxEventAttributes_t with_text(const char* text) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text;
  return attributes;
}

TEST_F(InjectNvtx, PushesAndPopsOfTheDefaultDomainAreInOrder) {
  RECORD({
    nvtxRangePushA("outer");
    nvtxRangePushW(L"größer ▶");
    nvtxRangePop();
    nvtxMarkA("here");
    nvtxRangePop();
  });
  const RecordedFile file = only_file();
  EXPECT_EQ(file.file.header.closed, 1u);
  EXPECT_EQ(file.file.header.live_bytes, 0u);
  EXPECT_EQ(file.dropped(), 0u);
  std::vector<std::string> seen;
  std::uint64_t before = 0;
  for (const RecordedEvent& event : file.events) {
    EXPECT_GE(event.ticks, before);
    before = event.ticks;
    if (event.type == EventType::push) seen.push_back("push " + event.name);
    if (event.type == EventType::pop) seen.push_back("pop");
    if (event.type == EventType::mark) seen.push_back("mark " + event.name);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"push outer", "push größer ▶", "pop", "mark here", "pop"}));
  EXPECT_EQ(file.of(EventType::clock_pair).size(), 2u);
  EXPECT_EQ(file.of(EventType::process_end).size(), 1u);
  EXPECT_EQ(file.events.back().type, EventType::process_end);
}

TEST_F(InjectNvtx, DomainsCategoriesAndRegisteredStringsAreNamed) {
  RECORD({
    nvtxDomainHandle_t domain = nvtxDomainCreateA("paceline.test");
    nvtxDomainHandle_t wide = nvtxDomainCreateW(L"domäne");
    nvtxDomainNameCategoryA(domain, 7, "forward");
    nvtxNameCategoryA(7, "of the default domain");
    nvtxEventAttributes_t attributes = with_text(nullptr);
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = nvtxDomainRegisterStringA(domain, "layer1.0.conv1");
    attributes.category = 7;
    nvtxDomainRangePushEx(domain, &attributes);
    attributes.message.registered = nvtxDomainRegisterStringW(wide, L"schön");
    nvtxDomainRangePushEx(wide, &attributes);
    nvtxDomainRangePop(domain);
    nvtxDomainRangePop(wide);
    nvtxDomainDestroy(domain);
  });
  const RecordedFile file = only_file();
  const auto pushes = file.of(EventType::push);
  ASSERT_EQ(pushes.size(), 2u);
  EXPECT_EQ(pushes[0].name, "layer1.0.conv1");
  EXPECT_EQ(pushes[0].domain, "paceline.test");
  EXPECT_EQ(pushes[0].category, 7u);
  EXPECT_EQ(pushes[1].name, "schön");
  EXPECT_EQ(pushes[1].domain, "domäne");
  const auto pops = file.of(EventType::pop);
  ASSERT_EQ(pops.size(), 2u);
  EXPECT_EQ(pops[0].domain, "paceline.test");
  EXPECT_EQ(pops[1].domain, "domäne");
  const auto categories = file.of(EventType::category);
  ASSERT_EQ(categories.size(), 2u);
  EXPECT_EQ(categories[0].name, "forward");
  EXPECT_EQ(categories[0].domain, "paceline.test");
  EXPECT_EQ(categories[1].name, "of the default domain");
  EXPECT_EQ(categories[1].domain, "");
}

TEST_F(InjectNvtx, ADomainOfTheSameNameIsTheSameDomain) {
  RECORD({
    if (nvtxDomainCreateA("one") != nvtxDomainCreateA("one")) exit(1);
    if (nvtxDomainCreateA("one") == nvtxDomainCreateA("two")) exit(2);
  });
  EXPECT_EQ(only_file().of(EventType::domain).size(), 2u);
}

TEST_F(InjectNvtx, PayloadsKeepTheirValues) {
  RECORD({
    nvtxEventAttributes_t attributes = with_text("value");
    attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attributes.payload.ullValue = ~0ull;
    nvtxMarkEx(&attributes);
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    attributes.payload.llValue = -5;
    nvtxMarkEx(&attributes);
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT32;
    attributes.payload.iValue = -6;
    nvtxMarkEx(&attributes);
    attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
    attributes.payload.uiValue = 7;
    nvtxMarkEx(&attributes);
    attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    attributes.payload.dValue = 0.875;
    nvtxMarkEx(&attributes);
    attributes.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
    attributes.payload.fValue = 0.5f;
    nvtxRangePushEx(&attributes);
    nvtxRangePop();
  });
  const RecordedFile file = only_file();
  const auto marks = file.of(EventType::mark_payload);
  ASSERT_EQ(marks.size(), 5u);
  const auto type = [](const RecordedEvent& event) { return static_cast<PayloadType>(event.extension[0].high); };
  EXPECT_EQ(type(marks[0]), PayloadType::unsigned_integer);
  EXPECT_EQ(marks[0].extension[0].low, ~std::uint64_t{0});
  EXPECT_EQ(type(marks[1]), PayloadType::signed_integer);
  EXPECT_EQ(static_cast<std::int64_t>(marks[1].extension[0].low), -5);
  EXPECT_EQ(type(marks[2]), PayloadType::signed_integer);
  EXPECT_EQ(static_cast<std::int64_t>(marks[2].extension[0].low), -6);
  EXPECT_EQ(type(marks[3]), PayloadType::unsigned_integer);
  EXPECT_EQ(marks[3].extension[0].low, 7u);
  EXPECT_EQ(type(marks[4]), PayloadType::floating);
  EXPECT_EQ(std::bit_cast<double>(marks[4].extension[0].low), 0.875);
  const auto pushes = file.of(EventType::push_payload);
  ASSERT_EQ(pushes.size(), 1u);
  EXPECT_EQ(type(pushes[0]), PayloadType::floating);
  EXPECT_EQ(std::bit_cast<double>(pushes[0].extension[0].low), 0.5);
}

TEST_F(InjectNvtx, StartsAndEndsAreConnectedByTheirId) {
  RECORD({
    nvtxEventAttributes_t attributes = with_text("with payload");
    attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attributes.payload.ullValue = 42;
    const nvtxRangeId_t first = nvtxRangeStartA("plain");
    const nvtxRangeId_t second = nvtxRangeStartEx(&attributes);
    nvtxRangeEnd(first);
    nvtxRangeEnd(second);
  });
  const RecordedFile file = only_file();
  const auto plain = file.of(EventType::start);
  const auto payload = file.of(EventType::start_payload);
  const auto ends = file.of(EventType::end);
  ASSERT_EQ(plain.size(), 1u);
  ASSERT_EQ(payload.size(), 1u);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(plain[0].name, "plain");
  EXPECT_EQ(payload[0].extension[0].low, 42u);
  EXPECT_EQ(ends[0].head.low, plain[0].extension[0].high);
  EXPECT_EQ(ends[1].head.low, payload[0].extension[0].high);
  EXPECT_NE(ends[0].head.low, ends[1].head.low);
}

TEST_F(InjectNvtx, ThreadsAreNamedByTheSystemsId) {
  RECORD(nvtxNameOsThreadA(4711, "loader"));
  const auto names = only_file().of(EventType::thread_name);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names[0].name, "loader");
  EXPECT_EQ(names[0].extension[0].high, 4711u);
}

TEST_F(InjectNvtx, WaitsForLocksAreRangesWithTheLocksName) {
  RECORD({
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("loader");
    nvtxSyncUserAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_SYNCUSER_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = "queue of batches";
    const nvtxSyncUser_t lock = nvtxDomainSyncUserCreate(domain, &attributes);
    nvtxDomainSyncUserAcquireStart(lock);
    nvtxDomainSyncUserAcquireFailed(lock);
    nvtxDomainSyncUserAcquireStart(lock);
    nvtxDomainSyncUserAcquireSuccess(lock);
    nvtxDomainSyncUserReleasing(lock);
    nvtxDomainSyncUserDestroy(lock);
  });
  const RecordedFile file = only_file();
  std::vector<EventType> types;
  for (const RecordedEvent& event : file.events) {
    if (event.type != EventType::push && event.type != EventType::pop && event.type != EventType::mark) continue;
    types.push_back(event.type);
    EXPECT_EQ(event.domain, "loader");
    if (event.type != EventType::pop) {
      EXPECT_EQ(event.name, "queue of batches");
    }
  }
  using enum EventType;
  EXPECT_EQ(types, (std::vector<EventType>{push, pop, push, pop, mark}));
}

TEST_F(InjectNvtx, ATextIsRecordedOnce) {
  RECORD(for (int i = 0; i < 1000; ++i) {
    nvtxRangePushA(i % 2 == 0 ? "even" : "odd");
    nvtxRangePop();
  });
  const RecordedFile file = only_file();
  EXPECT_EQ(file.named(EventType::push, "even").size(), 500u);
  EXPECT_EQ(file.named(EventType::push, "odd").size(), 500u);
  EXPECT_EQ(file.named(EventType::name, "even").size(), 1u);
}

TEST_F(InjectNvtx, ATextThatIsTooLongIsCutBetweenCharacters) {
  std::string text;
  while (text.size() < 40'000) text += "ä";
  RECORD({
    nvtxMarkA(("x" + text).c_str());
    nvtxMarkA(text.c_str());
  });
  const auto marks = only_file().of(EventType::mark);
  ASSERT_EQ(marks.size(), 2u);
  for (const RecordedEvent& mark : marks) {
    EXPECT_LE(mark.name.size(), 32u * 1024);
    EXPECT_GE(mark.name.size(), 32u * 1024 - 2);
    EXPECT_TRUE(mark.name.ends_with("ä…")) << mark.name.substr(mark.name.size() - 8);
  }
}

TEST_F(InjectNvtx, CallsAfterTheEndAreHarmless) {
  RECORD({
    nvtxRangePushA("before");
    struct Late {
      ~Late() {
        for (int i = 0; i < 10'000; ++i) {
          nvtxRangePushA("late");
          nvtxRangePop();
        }
      }
    };
    static Late late;
  });
  EXPECT_EQ(only_file().named(EventType::push, "before").size(), 1u);
}

}  // namespace
}  // namespace paceline::test
