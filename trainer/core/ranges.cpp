// SPDX-License-Identifier: Apache-2.0
#include "trainer/core/ranges.h"

#include <array>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

namespace paceline::train {
namespace {

constexpr std::array category_names = {"",          "iteration", "preprocess", "forward", "backward", "allreduce",
                                       "optimizer", "evaluate",  "checkpoint", "startup", "layer",    "run",
                                       "accuracy",  "wait",      "staleness",  "fault",   "stage",    "microbatch",
                                       "send",      "receive",   "part",       "layers"};

struct Domain {
  nvtxDomainHandle_t handle = nvtxDomainCreateA("paceline.trainer");
  std::array<nvtxStringHandle_t, category_names.size()> strings{};

  Domain() {
    for (std::uint32_t category = 1; category < category_names.size(); ++category) {
      nvtxDomainNameCategoryA(handle, category, category_names[category]);
      strings[category] = nvtxDomainRegisterStringA(handle, category_names[category]);
    }
  }
};

// Never destroyed, because ranges may still end while the program exits.
Domain& domain() {
  static Domain* const instance = new Domain;
  return *instance;
}

nvtxEventAttributes_t attributes(Category category) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.category = static_cast<std::uint32_t>(category);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = domain().strings[event.category];
  return event;
}

nvtxEventAttributes_t attributes(Category category, const RangeName& name, std::uint64_t payload) {
  nvtxEventAttributes_t event = attributes(category);
  event.message.registered = name.handle();
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = payload;
  return event;
}

}  // namespace

bool is_profiled() { return domain().handle != nullptr; }

RangeName::RangeName(const std::string& name) : handle_(nvtxDomainRegisterStringA(domain().handle, name.c_str())) {}

Range::Range(Category category) {
  const nvtxEventAttributes_t event = attributes(category);
  nvtxDomainRangePushEx(domain().handle, &event);
}

Range::Range(Category category, std::uint64_t payload) {
  nvtxEventAttributes_t event = attributes(category);
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = payload;
  nvtxDomainRangePushEx(domain().handle, &event);
}

Range::Range(Category category, const RangeName& name, std::uint64_t payload) { push_range(category, name, payload); }

Range::~Range() { nvtxDomainRangePop(domain().handle); }

void push_range(Category category, const RangeName& name) {
  nvtxEventAttributes_t event = attributes(category);
  event.message.registered = name.handle();
  nvtxDomainRangePushEx(domain().handle, &event);
}

void push_range(Category category, const RangeName& name, std::uint64_t payload) {
  const nvtxEventAttributes_t event = attributes(category, name, payload);
  nvtxDomainRangePushEx(domain().handle, &event);
}

void pop_range() { nvtxDomainRangePop(domain().handle); }

void mark(Category category, const std::string& text) {
  nvtxEventAttributes_t event = attributes(category);
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = text.c_str();
  nvtxDomainMarkEx(domain().handle, &event);
}

void mark_accuracy(double accuracy) {
  nvtxEventAttributes_t event = attributes(Category::accuracy);
  event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  event.payload.dValue = accuracy;
  nvtxDomainMarkEx(domain().handle, &event);
}

void mark(Category category, const RangeName& name, std::uint64_t payload) {
  const nvtxEventAttributes_t event = attributes(category, name, payload);
  nvtxDomainMarkEx(domain().handle, &event);
}

void inject_delay(const RangeName& fault, std::chrono::nanoseconds time) {
  if (time.count() == 0) return;
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  const Range range(Category::fault, fault, static_cast<std::uint64_t>(whole));
  std::this_thread::sleep_for(time);
}

void name_this_thread(const char* name) { nvtxNameOsThreadA(static_cast<std::uint32_t>(syscall(SYS_gettid)), name); }

}  // namespace paceline::train
