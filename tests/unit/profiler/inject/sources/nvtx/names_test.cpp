// SPDX-License-Identifier: Apache-2.0
// The names that a program gives through NVTX, and the effect of the filters.
#include <nvtx3/nvToolsExtSync.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <thread>

#include "tests/unit/profiler/inject/child.h"
#if __has_include(<cuda.h>) && __has_include(<driver_types.h>) && __has_include(<nvtx3/nvToolsExtCuda.h>)
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#define HAVE_CUDA_HEADERS
#endif

namespace paceline::test {
namespace {

using format::EventType;

class InjectNvtxNames : public RecordingTest {
 protected:
  void TearDown() override {
    for (const char* variable : {"PACELINE_NVTX_DOMAINS", "PACELINE_NVTX_EXCLUDE_DOMAINS", "PACELINE_NVTX_CATEGORIES",
                                 "PACELINE_NVTX_EXCLUDE_CATEGORIES"}) {
      unsetenv(variable);
    }
    RecordingTest::TearDown();
  }
};

nvtxResourceAttributes_t resource(std::int32_t type, std::uint64_t identifier, const char* name) {
  nvtxResourceAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
  attributes.identifierType = type;
  attributes.identifier.ullValue = identifier;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  return attributes;
}

nvtxEventAttributes_t in_category(std::uint32_t category, const char* name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  attributes.category = category;
  return attributes;
}

TEST_F(InjectNvtxNames, ResourcesAreDefinedAndDestroyed) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const auto address = reinterpret_cast<std::uintptr_t>(&mutex);
  RECORD({
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("locks");
    nvtxResourceAttributes_t queue = resource(NVTX_RESOURCE_TYPE_SYNC_PTHREAD_MUTEX, address, "queue lock");
    nvtxResourceAttributes_t file = resource(NVTX_RESOURCE_TYPE_GENERIC_HANDLE, 7, nullptr);
    file.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    file.message.registered = nvtxDomainRegisterStringA(domain, "log file");
    const nvtxResourceHandle_t handle = nvtxDomainResourceCreate(domain, &queue);
    if (handle == nullptr || nvtxDomainResourceCreate(nullptr, &file) == handle) exit(1);
    nvtxDomainResourceDestroy(handle);
  });
  const RecordedFile file = only_file();
  const auto resources = file.of(EventType::resource);
  ASSERT_EQ(resources.size(), 2u);
  EXPECT_EQ(resources[0].name, "queue lock");
  EXPECT_EQ(resources[0].extension[0].high, address);
  EXPECT_EQ(resources[0].extension[0].low, NVTX_RESOURCE_TYPE_SYNC_PTHREAD_MUTEX | std::uint64_t{1} << 32);
  EXPECT_EQ(resources[1].name, "log file");
  EXPECT_EQ(resources[1].extension[0].low, std::uint64_t{NVTX_RESOURCE_TYPE_GENERIC_HANDLE});
  const auto ends = file.of(EventType::resource_end);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].head.low, resources[0].head.low & 0xffffffff);
}

TEST_F(InjectNvtxNames, ThreadsAreNamedAsResourcesWhileTheyLive) {
  RECORD({
    std::atomic<int> ready{0};
    pid_t id = 0;
    std::thread thread([&] {
      id = gettid();
      nvtxMarkA("of the thread");
      for (ready = 1; ready != 2;) usleep(100);
    });
    while (ready != 1) usleep(100);
    nvtxResourceAttributes_t posix =
        resource(NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX, thread.native_handle(), "loader");
    nvtxDomainResourceCreate(nullptr, &posix);
    nvtxResourceAttributes_t self = resource(NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX, pthread_self(), "main");
    nvtxDomainResourceCreate(nullptr, &self);
    nvtxResourceAttributes_t gone = resource(NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX, 0x1000, "points nowhere");
    nvtxDomainResourceCreate(nullptr, &gone);
    nvtxNameOsThreadW(static_cast<std::uint32_t>(id) + 100'000, L"größer");
    nvtxMarkA(std::to_string(id).c_str());
    ready = 2;
    thread.join();
  });
  const RecordedFile file = only_file();
  const auto marks = file.of(EventType::mark);
  ASSERT_EQ(marks.size(), 2u);
  std::map<std::string, std::uint64_t> threads;
  for (const RecordedEvent& name : file.of(EventType::thread_name)) threads[name.name] = name.extension[0].high;
  const std::uint64_t loader = std::stoull(marks[marks[0].name == "of the thread" ? 1 : 0].name);
  EXPECT_EQ(threads, (std::map<std::string, std::uint64_t>{
                         {"loader", loader}, {"main", file.file.header.pid}, {"größer", loader + 100'000}}));
}

TEST_F(InjectNvtxNames, CudaObjectsAreNamedWithoutCuda) {
#ifdef HAVE_CUDA_HEADERS
  RECORD({
    nvtxNameCuDeviceA(1, "left");
    nvtxNameCuContextW(reinterpret_cast<CUcontext>(0x100), L"training");
    nvtxNameCuStreamA(reinterpret_cast<CUstream>(0x200), "copies");
    nvtxNameCuEventA(reinterpret_cast<CUevent>(0x300), "done");
    nvtxNameCudaDeviceW(2, L"right");
    nvtxNameCudaStreamA(reinterpret_cast<cudaStream_t>(0x400), "compute");
    nvtxNameCudaEventW(reinterpret_cast<cudaEvent_t>(0x500), L"loaded");
  });
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> named;
  for (const RecordedEvent& event : only_file().of(EventType::resource)) {
    named[event.name] = {event.extension[0].low, event.extension[0].high};
  }
  using Named = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(named.size(), 7u);
  EXPECT_EQ(named["left"], Named(NVTX_RESOURCE_TYPE_CUDA_DEVICE, 1));
  EXPECT_EQ(named["training"], Named(NVTX_RESOURCE_TYPE_CUDA_CONTEXT, 0x100));
  EXPECT_EQ(named["copies"], Named(NVTX_RESOURCE_TYPE_CUDA_STREAM, 0x200));
  EXPECT_EQ(named["done"], Named(NVTX_RESOURCE_TYPE_CUDA_EVENT, 0x300));
  EXPECT_EQ(named["right"], Named(NVTX_RESOURCE_TYPE_CUDART_DEVICE, 2));
  EXPECT_EQ(named["compute"], Named(NVTX_RESOURCE_TYPE_CUDART_STREAM, 0x400));
  EXPECT_EQ(named["loaded"], Named(NVTX_RESOURCE_TYPE_CUDART_EVENT, 0x500));
#else
  GTEST_SKIP() << "CUDA's headers (cuda.h) are not installed";
#endif
}

// In two domains and the default one, nested in each other.
void ranges_of_three_domains() {
  const nvtxDomainHandle_t kept = nvtxDomainCreateA("kept");
  const nvtxDomainHandle_t other = nvtxDomainCreateW(L"other");
  const nvtxEventAttributes_t attributes = in_category(0, "range");
  for (const nvtxDomainHandle_t domain : {kept, other, nvtxDomainHandle_t{}}) {
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxRangePushA("text");
    nvtxDomainMarkEx(domain, &attributes);
    const nvtxRangeId_t range = nvtxDomainRangeStartEx(domain, &attributes);
    nvtxRangePop();
    nvtxDomainRangePop(domain);
    nvtxDomainRangeEnd(domain, range);
    nvtxDomainRangePop(domain);
  }
}

std::map<std::string, int> events_by_domain(const RecordedFile& file) {
  std::map<std::string, int> events;
  int ends = 0;
  for (const RecordedEvent& event : file.events) {
    if (event.type == EventType::end) ++ends;
    if (event.type != EventType::push && event.type != EventType::pop && event.type != EventType::mark &&
        event.type != EventType::start) {
      continue;
    }
    ++events[event.domain];
  }
  events["ends"] = ends;
  return events;
}

TEST_F(InjectNvtxNames, OnlySelectedDomainsAreRecorded) {
  setenv("PACELINE_NVTX_DOMAINS", "kept,missing", 1);
  RECORD(ranges_of_three_domains());
  const RecordedFile file = only_file();
  EXPECT_EQ(events_by_domain(file), (std::map<std::string, int>{{"kept", 6}, {"ends", 1}}));
  EXPECT_EQ(file.setting("nvtx_domains"), "kept,missing");
  EXPECT_EQ(file.dropped(), 0u);
}

TEST_F(InjectNvtxNames, ExcludedDomainsAreLeftOut) {
  setenv("PACELINE_NVTX_EXCLUDE_DOMAINS", "other,default", 1);
  RECORD(ranges_of_three_domains());
  const RecordedFile file = only_file();
  EXPECT_EQ(events_by_domain(file), (std::map<std::string, int>{{"kept", 6}, {"ends", 1}}));
  EXPECT_EQ(file.setting("nvtx_exclude_domains"), "other,default");
}

TEST_F(InjectNvtxNames, WithoutAFilterAllDomainsAreRecorded) {
  RECORD(ranges_of_three_domains());
  EXPECT_EQ(events_by_domain(only_file()),
            (std::map<std::string, int>{{"kept", 6}, {"other", 6}, {"", 12}, {"ends", 3}}));
}

// A pop does not name its category. The ranges that remain must keep their own pops.
void nested_categories() {
  nvtxNameCategoryA(1, "layer");
  nvtxNameCategoryA(2, "step");
  const nvtxEventAttributes_t step = in_category(2, "step"), layer = in_category(1, "layer"),
                              none = in_category(0, "none");
  nvtxRangePushEx(&step);
  nvtxRangePushEx(&layer);
  nvtxRangePushEx(&none);
  nvtxRangePushEx(&layer);
  nvtxMarkEx(&layer);
  nvtxRangePop();
  nvtxRangeEnd(nvtxRangeStartEx(&layer));
  nvtxRangeEnd(nvtxRangeStartEx(&step));
  nvtxRangePop();
  nvtxRangePop();
  nvtxRangePop();
  for (int i = 0; i < 100; ++i) nvtxRangePushEx(&layer);  // deeper than the filter remembers
  for (int i = 0; i < 100; ++i) nvtxRangePop();
}

std::vector<std::string> sequence(const RecordedFile& file) {
  std::vector<std::string> seen;
  for (const RecordedEvent& event : file.events) {
    if (event.type == EventType::push) seen.push_back(event.name);
    if (event.type == EventType::pop) seen.push_back("pop");
    if (event.type == EventType::mark) seen.push_back("mark");
    if (event.type == EventType::start) seen.push_back("start " + event.name);
    if (event.type == EventType::end) seen.push_back("end");
  }
  return seen;
}

TEST_F(InjectNvtxNames, ExcludedCategoriesAreLeftOutAndRangesStayBalanced) {
  setenv("PACELINE_NVTX_EXCLUDE_CATEGORIES", "layer", 1);
  RECORD(nested_categories());
  std::vector<std::string> expected = {"step", "none", "start step", "end", "pop", "pop"};
  for (int i = 0; i < 36; ++i) expected.push_back("layer");
  for (int i = 0; i < 36; ++i) expected.push_back("pop");
  EXPECT_EQ(sequence(only_file()), expected);
}

TEST_F(InjectNvtxNames, CategoriesAreFoundByNameOrNumber) {
  setenv("PACELINE_NVTX_CATEGORIES", "2,nothing", 1);
  RECORD({
    nvtxNameCategoryA(1, "layer");
    const nvtxEventAttributes_t step = in_category(2, "step");
    const nvtxEventAttributes_t layer = in_category(1, "layer");
    nvtxRangePushEx(&step);
    nvtxRangePushEx(&layer);
    nvtxRangePushA("text");
    nvtxRangePop();
    nvtxRangePop();
    nvtxRangePop();
  });
  EXPECT_EQ(sequence(only_file()), (std::vector<std::string>{"step", "pop"}));
}

}  // namespace
}  // namespace paceline::test
