// SPDX-License-Identifier: Apache-2.0
// NVTX's marks and ranges as an event source, through NVTX's own injection entry. It needs neither a GPU nor a driver.
//
// Every shared object that uses NVTX has its own copy of it and calls InitializeInjectionNvtx2 for itself. A handle
// from one may be used in another (handles.h).
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include <bit>

#include "profiler/inject/process/lifecycle.h"
#include "profiler/inject/sources/nvtx/handles.h"
#include "profiler/inject/sources/watch/iterations.h"
//
#include <nvtx3/nvToolsExtSync.h>
//
#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/process/starts.h"
#include "profiler/inject/sources/nvtx/payload.h"
#include "profiler/inject/sources/nvtx/ranges.h"
#include "profiler/inject/system/quiet_thread.h"

namespace paceline::inject {

std::atomic<std::uint64_t> next_range{1};

namespace {

using format::PayloadType;

struct Attributes {
  std::uint64_t scope = 0;
  PayloadType payload_type = PayloadType::none;
  std::uint64_t payload = 0;
  Payloads extended;  // from the payload extension
};

Attributes read_attributes(std::uint32_t domain, const nvtxEventAttributes_t* given) {
  Attributes read;
  if (given == nullptr) return read;
  const std::uint32_t name = message_of(*given);
  const auto put = [&](PayloadType type, std::uint64_t bits) {
    read.payload_type = type;
    read.payload = bits;
  };
  switch (given->payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      put(PayloadType::unsigned_integer, given->payload.ullValue);
      break;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      put(PayloadType::unsigned_integer, given->payload.uiValue);
      break;
    case NVTX_PAYLOAD_TYPE_INT64:
      put(PayloadType::signed_integer, static_cast<std::uint64_t>(given->payload.llValue));
      break;
    case NVTX_PAYLOAD_TYPE_INT32:
      put(PayloadType::signed_integer, static_cast<std::uint64_t>(std::int64_t{given->payload.iValue}));
      break;
    case NVTX_PAYLOAD_TYPE_DOUBLE:
      put(PayloadType::floating, std::bit_cast<std::uint64_t>(given->payload.dValue));
      break;
    case NVTX_PAYLOAD_TYPE_FLOAT:
      put(PayloadType::floating, std::bit_cast<std::uint64_t>(double{given->payload.fValue}));
      break;
    case NVTX_PAYLOAD_TYPE_EXT:
      read.extended = {reinterpret_cast<const nvtxPayloadData_t*>(given->payload.ullValue),
                       static_cast<std::size_t>(given->reserved0 > 0 ? given->reserved0 : 0)};
      break;
    default:
      break;
  }
  read.scope = format::pack_scope(name, narrow(given->category), number_of(domain));
  return read;
}

// --- ranges and marks. `domain` is domain_of(handle). Iterations are followed also in events that the filter leaves
// out.

std::uint16_t category_of(const nvtxEventAttributes_t* given) { return given != nullptr ? narrow(given->category) : 0; }

// Called before a mark or a start is recorded.
bool leaves_out(std::uint32_t domain, std::uint16_t category) {
  return is_left_out(domain) || (filters_categories && leaves_out_category(number_of(domain), category));
}
bool left_out_push(std::uint32_t domain, std::uint16_t category) {
  return is_left_out(domain) || (filters_categories && leaves_out_push(number_of(domain), category));
}
bool left_out_pop(std::uint32_t domain) {
  return is_left_out(domain) || (filters_categories && leaves_out_pop(number_of(domain)));
}

// --- events of a signal handler that interrupts another event of its thread. They are dropped, a push and its pop
// alike, and they change neither depths nor the filter's state.

void lose_unless_left_out(std::uint32_t domain) {
  if (!is_left_out(domain)) drop_nested_event();
}
int lose_interrupted_range(std::uint32_t domain) {
  lose_unless_left_out(domain);
  return NVTX_NO_PUSH_POP_TRACKING;
}
nvtxRangeId_t interrupted_start(std::uint32_t domain) {
  lose_unless_left_out(domain);
  return left_out_range;
}
void lose_interrupted_end(nvtxRangeId_t range) {
  if ((range & left_out_range) == 0) drop_nested_event();
}

// A JSON object describes the run, such as the trainer's with the size of a batch. Programs write it at the
// start, in the part that --iterations and --delay skip.
bool describes_the_run(const nvtxEventAttributes_t* given) {
  return given != nullptr && given->messageType == NVTX_MESSAGE_TYPE_ASCII && given->message.ascii != nullptr &&
         given->message.ascii[0] == '{' && file_is_open();
}

void mark(std::uint32_t domain, const nvtxEventAttributes_t* given) {
  const ReentrancyGuard guard;
  if (guard.is_nested()) return lose_unless_left_out(domain);
  if (leaves_out(domain, category_of(given)) || (!recording() && !describes_the_run(given))) return;
  const Attributes read = read_attributes(domain, given);
  if (!read.extended.empty()) {
    emit_with_payloads(read.extended, number_of(domain), EventType::mark, read.scope);
  } else if (read.payload_type == PayloadType::none) {
    emit(EventType::mark, read.scope);
  } else {
    emit(EventType::mark_payload, read.scope, Slot{static_cast<std::uint64_t>(read.payload_type), read.payload});
  }
}

// Depths are not returned: the recorder does not count filtered ranges, and the reader computes the depths anyway.
constexpr int no_depth = NVTX_NO_PUSH_POP_TRACKING;

int skipped_push() {
  skip_push();
  return no_depth;
}

int push(std::uint32_t domain, const nvtxEventAttributes_t* given) {
  const ReentrancyGuard guard;
  if (guard.is_nested()) return lose_interrupted_range(domain);
  const bool out = left_out_push(domain, category_of(given));
  if ((out || !recording()) && !watching()) return out ? no_depth : skipped_push();
  const Attributes read = read_attributes(domain, given);
  if (watching()) watch_push(read.scope);  // may resume or pause recording
  if (out || !recording()) return out ? no_depth : skipped_push();
  if (!read.extended.empty()) {
    emit_push_with_payloads(read.extended, number_of(domain), read.scope);
  } else if (read.payload_type == PayloadType::none) {
    emit_push(EventType::push, read.scope);
  } else {
    emit_push(EventType::push_payload, read.scope, Slot{static_cast<std::uint64_t>(read.payload_type), read.payload});
  }
  return no_depth;
}

int pop(std::uint32_t domain) {
  const ReentrancyGuard guard;
  if (guard.is_nested()) return lose_interrupted_range(domain);
  if (!left_out_pop(domain)) recording() ? emit_pop(number_of(domain)) : skip_pop();
  if (watching()) watch_pop(number_of(domain));
  return no_depth;
}

nvtxRangeId_t start(std::uint32_t domain, const nvtxEventAttributes_t* given) {
  const ReentrancyGuard guard;
  if (guard.is_nested()) return interrupted_start(domain);
  const bool out = leaves_out(domain, category_of(given));
  if (out && !watching()) return left_out_range;
  const std::uint64_t range = new_range() | (out ? left_out_range : 0);
  if (!recording() && !watching()) return range;
  const Attributes read = read_attributes(domain, given);
  if (watching()) watch_start(read.scope, range);
  if (out || !recording()) return range;
  if (!read.extended.empty()) {
    emit_with_payloads(read.extended, number_of(domain), EventType::start, read.scope, Slot{range, 0});
  } else if (read.payload_type == PayloadType::none) {
    emit(EventType::start, read.scope, Slot{range, 0});
  } else {
    emit(EventType::start_payload, read.scope, Slot{range, read.payload},
         Slot{static_cast<std::uint64_t>(read.payload_type), 0});
  }
  return range;
}

void end(nvtxRangeId_t range) {
  const ReentrancyGuard guard;
  if (guard.is_nested()) return lose_interrupted_end(range);
  if ((range & left_out_range) == 0 && recording()) emit(EventType::end, range);
  if (watching()) watch_end(range);
}

// --- the functions as NVTX calls them

template <class Text>
void NVTX_API mark_text(const Text* text) {
  const ReentrancyGuard guard;
  if (guard.is_nested()) return lose_unless_left_out(default_domain);
  if (!leaves_out(default_domain, 0) && recording()) emit(EventType::mark, format::pack_scope(intern_text(text), 0, 0));
}
template <class Text>
int NVTX_API push_text(const Text* text) {
  const ReentrancyGuard guard;
  if (guard.is_nested()) return lose_interrupted_range(default_domain);
  const bool out = left_out_push(default_domain, 0);
  if ((out || !recording()) && !watching()) return out ? no_depth : skipped_push();
  const std::uint64_t scope = format::pack_scope(intern_text(text), 0, 0);
  if (watching()) watch_push(scope);
  if (out || !recording()) return out ? no_depth : skipped_push();
  emit_push(EventType::push, scope);
  return no_depth;
}
template <class Text>
nvtxRangeId_t NVTX_API start_text(const Text* text) {
  const ReentrancyGuard guard;
  if (guard.is_nested()) return interrupted_start(default_domain);
  const bool out = leaves_out(default_domain, 0);
  if (out && !watching()) return left_out_range;
  const std::uint64_t range = new_range() | (out ? left_out_range : 0);
  if (!recording() && !watching()) return range;
  const std::uint64_t scope = format::pack_scope(intern_text(text), 0, 0);
  if (watching()) watch_start(scope, range);
  if (!out && recording()) emit(EventType::start, scope, Slot{range, 0});
  return range;
}

void NVTX_API core_mark(const nvtxEventAttributes_t* given) { mark(default_domain, given); }
int NVTX_API core_push(const nvtxEventAttributes_t* given) { return push(default_domain, given); }
int NVTX_API core_pop() { return pop(default_domain); }
nvtxRangeId_t NVTX_API core_start(const nvtxEventAttributes_t* given) { return start(default_domain, given); }
void NVTX_API core_end(nvtxRangeId_t range) { end(range); }

template <class... Payload>
void push_with_scope(std::uint32_t domain, std::uint64_t scope, EventType type, const Payload&... payload) {
  const ReentrancyGuard guard;
  if (guard.is_nested()) return lose_unless_left_out(domain);
  const bool out = left_out_push(domain, static_cast<std::uint16_t>(scope >> 32));
  if (watching()) watch_push(scope);  // may resume or pause recording
  if (out) return;
  recording() ? emit_push(type, scope, payload...) : skip_push();
}

}  // namespace

void push_scope(std::uint32_t domain, std::uint64_t scope) { push_with_scope(domain, scope, EventType::push); }
void push_scope(std::uint32_t domain, std::uint64_t scope, std::int64_t number) {
  const Slot payload{static_cast<std::uint64_t>(PayloadType::signed_integer), static_cast<std::uint64_t>(number)};
  push_with_scope(domain, scope, EventType::push_payload, payload);
}
void pop_scope(std::uint32_t domain) { pop(domain); }

void NVTX_API domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* given) {
  mark(domain_of(domain), given);
}
int NVTX_API domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* given) {
  return push(domain_of(domain), given);
}
int NVTX_API domain_pop(nvtxDomainHandle_t domain) { return pop(domain_of(domain)); }
nvtxRangeId_t NVTX_API domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* given) {
  return start(domain_of(domain), given);
}
void NVTX_API domain_end(nvtxDomainHandle_t, nvtxRangeId_t range) { end(range); }

namespace {

void NVTX_API initialize(const void*) {}

// --- locks and similar objects (nvToolsExtSync.h): a range with the object's name while a thread waits for it, and a
// mark when the thread releases it. The handle consists of the domain and the name.

nvtxSyncUser_t NVTX_API create_lock(nvtxDomainHandle_t domain, const nvtxSyncUserAttributes_t* given) {
  const ReentrancyGuard guard;
  if (guard.is_nested() || given == nullptr || !file_is_open()) return nullptr;
  constexpr std::uint64_t not_null = std::uint64_t{1} << 62;
  return reinterpret_cast<nvtxSyncUser_t>(not_null | std::uint64_t{domain_of(domain)} << 32 | message_of(*given));
}
std::uint32_t domain_of_lock(nvtxSyncUser_t lock) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(lock) >> 32 & (left_out_bit | 0xffff));
}
nvtxEventAttributes_t named_as(nvtxSyncUser_t lock) {
  nvtxEventAttributes_t attributes{};
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = to_handle<nvtxStringHandle_t>(to_id(lock));
  return attributes;
}
void NVTX_API wait_for_lock(nvtxSyncUser_t lock) {
  if (lock == nullptr) return;
  const nvtxEventAttributes_t attributes = named_as(lock);
  push(domain_of_lock(lock), &attributes);
}
void NVTX_API end_wait_for_lock(nvtxSyncUser_t lock) {
  if (lock != nullptr) pop(domain_of_lock(lock));
}
void NVTX_API release_lock(nvtxSyncUser_t lock) {
  if (lock == nullptr) return;
  const nvtxEventAttributes_t attributes = named_as(lock);
  mark(domain_of_lock(lock), &attributes);
}
void NVTX_API destroy_lock(nvtxSyncUser_t) {}

bool attach(NvtxGetExportTableFunc_t export_table) {
  if (export_table == nullptr) return false;
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks) return false;

  follow_filter();
  const NvtxSlots core = slots_of(callbacks, NVTX_CB_MODULE_CORE);
  core.fill(NVTX_CBID_CORE_MarkEx, core_mark);
  core.fill(NVTX_CBID_CORE_MarkA, mark_text<char>);
  core.fill(NVTX_CBID_CORE_MarkW, mark_text<wchar_t>);
  core.fill(NVTX_CBID_CORE_RangeStartEx, core_start);
  core.fill(NVTX_CBID_CORE_RangeStartA, start_text<char>);
  core.fill(NVTX_CBID_CORE_RangeStartW, start_text<wchar_t>);
  core.fill(NVTX_CBID_CORE_RangeEnd, core_end);
  core.fill(NVTX_CBID_CORE_RangePushEx, core_push);
  core.fill(NVTX_CBID_CORE_RangePushA, push_text<char>);
  core.fill(NVTX_CBID_CORE_RangePushW, push_text<wchar_t>);
  core.fill(NVTX_CBID_CORE_RangePop, core_pop);

  const NvtxSlots core2 = slots_of(callbacks, NVTX_CB_MODULE_CORE2);
  core2.fill(NVTX_CBID_CORE2_DomainMarkEx, domain_mark);
  core2.fill(NVTX_CBID_CORE2_DomainRangeStartEx, domain_start);
  core2.fill(NVTX_CBID_CORE2_DomainRangeEnd, domain_end);
  core2.fill(NVTX_CBID_CORE2_DomainRangePushEx, domain_push);
  core2.fill(NVTX_CBID_CORE2_DomainRangePop, domain_pop);
  core2.fill(NVTX_CBID_CORE2_Initialize, initialize);
  fill_names(callbacks);

  const NvtxSlots locks = slots_of(callbacks, NVTX_CB_MODULE_SYNC);
  locks.fill(NVTX_CBID_SYNC_DomainSyncUserCreate, create_lock);
  locks.fill(NVTX_CBID_SYNC_DomainSyncUserDestroy, destroy_lock);
  locks.fill(NVTX_CBID_SYNC_DomainSyncUserAcquireStart, wait_for_lock);
  locks.fill(NVTX_CBID_SYNC_DomainSyncUserAcquireFailed, end_wait_for_lock);
  locks.fill(NVTX_CBID_SYNC_DomainSyncUserAcquireSuccess, end_wait_for_lock);
  locks.fill(NVTX_CBID_SYNC_DomainSyncUserReleasing, release_lock);
  // Last, because until the functions are filled in, NVTX lets each call of another thread wait without limit.
  return open_recorder() || file_is_being_opened();
}

}  // namespace
}  // namespace paceline::inject

// Called at a program's first NVTX call, once for each copy of NVTX, by libpaceline-nvtx.so (nvtx_entry.c). 1: the
// calls are recorded; 0: they do nothing.
extern "C" __attribute__((visibility("default"))) int paceline_initialize_nvtx(NvtxGetExportTableFunc_t export_table) {
  // A handler that emits now would wait in NVTX for the thread that it interrupted.
  const paceline::inject::SignalsBlocked blocked;
  const paceline::inject::StartInProgress start;
  return paceline::inject::attach(export_table) ? 1 : 0;
}

// The same for a user who names this library in NVTX_INJECTION64_PATH.
extern "C" __attribute__((visibility("default"))) int NVTX_API
InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table) {
  return paceline_initialize_nvtx(export_table);
}

// A signal handler that emits while NVTX searches for its tool deadlocks: it waits for the thread that it interrupted.
// The first search takes some 50 µs, with page faults, lazily bound functions and memory for the loader. So all of it
// is done once beforehand, and NVTX's own search is short.
__attribute__((constructor)) static void shorten_the_search() {
  const char* const path = getenv("NVTX_INJECTION64_PATH");
  void* const tool = path != nullptr && getauxval(AT_SECURE) == 0 ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (tool == nullptr) return;
  const auto* const code = static_cast<const volatile char*>(dlsym(tool, "InitializeInjectionNvtx2"));
  if (code != nullptr) static_cast<void>(*code);
  paceline_initialize_nvtx(nullptr);  // changes nothing
  dlclose(tool);
}
