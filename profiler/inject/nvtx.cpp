// NVTX as an event source, through NVTX's own injection entry: no GPU and no driver needed.
//
// Every shared object that uses NVTX has its own copy of it and calls InitializeInjectionNvtx2 for itself; handles made
// by one may be used in another. So handles are our own numbers: a domain's, a registered string's name id, a range's.
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <string.h>

#include <bit>
#include <type_traits>

#include "profiler/inject/iterations.h"
#include "profiler/inject/names.h"
#include "profiler/inject/recorder.h"
#include "profiler/inject/session.h"

namespace paceline::inject {
namespace {

using format::PayloadType;

constexpr std::uint32_t most_domains = 4096;  // later ones are taken for the default domain

pthread_mutex_t domains_lock = PTHREAD_MUTEX_INITIALIZER;
std::uint32_t domain_names[most_domains];  // name id by domain; [0] is the default domain
std::uint32_t domain_count = 1;

std::atomic<std::uint64_t> next_range{1};

template <class Handle>
Handle to_handle(std::uint32_t id) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(id));
}
template <class Handle>
std::uint32_t to_id(Handle handle) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle));
}

std::uint16_t domain_id(nvtxDomainHandle_t domain) { return static_cast<std::uint16_t>(to_id(domain)); }
std::uint64_t pop_low(std::uint16_t domain) { return domain; }

// Categories are 32 bits wide in NVTX and 16 in an event; programs number them from 1.
std::uint16_t narrow(std::uint32_t category) {
  return category > 0xffff ? std::uint16_t{0xffff} : static_cast<std::uint16_t>(category);
}

std::uint32_t intern_text(const char* text) { return text != nullptr ? intern(std::string_view(text)) : 0; }
std::uint32_t intern_text(const wchar_t* text) { return text != nullptr ? intern(text) : 0; }

struct Attributes {
  std::uint64_t scope = 0;
  PayloadType payload_type = PayloadType::none;
  std::uint64_t payload = 0;
};

Attributes read_attributes(std::uint16_t domain, const nvtxEventAttributes_t* given) {
  Attributes read;
  if (given == nullptr) return read;
  std::uint32_t name = 0;
  switch (given->messageType) {
    case NVTX_MESSAGE_TYPE_REGISTERED:
      name = to_id(given->message.registered);
      break;
    case NVTX_MESSAGE_TYPE_ASCII:
      name = intern_text(given->message.ascii);
      break;
    case NVTX_MESSAGE_TYPE_UNICODE:
      name = intern_text(given->message.unicode);
      break;
    default:
      break;
  }
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
    default:
      break;
  }
  read.scope = format::pack_scope(name, narrow(given->category), domain);
  return read;
}

// --- ranges and marks

void mark(std::uint16_t domain, const nvtxEventAttributes_t* given) {
  if (!recording()) return;
  const Attributes read = read_attributes(domain, given);
  if (read.payload_type == PayloadType::none) {
    emit(EventType::mark, read.scope);
  } else {
    emit(EventType::mark_payload, read.scope, Slot{static_cast<std::uint64_t>(read.payload_type), read.payload});
  }
}

// Depths are not counted: that would cost every push, and the reader knows them anyway.
constexpr int no_depth = NVTX_NO_PUSH_POP_TRACKING;

int push(std::uint16_t domain, const nvtxEventAttributes_t* given) {
  if (!recording() && !watching()) return no_depth;
  const Attributes read = read_attributes(domain, given);
  if (watching()) watch_push(read.scope);
  if (!recording()) return no_depth;
  const bool kept = read.payload_type == PayloadType::none
                        ? emit(EventType::push, read.scope)
                        : emit(EventType::push_payload, read.scope,
                               Slot{static_cast<std::uint64_t>(read.payload_type), read.payload});
  if (!kept) lose_push();
  return no_depth;
}

int pop(std::uint16_t domain) {
  if (recording()) emit_pop(pop_low(domain));
  if (watching()) watch_pop(domain);
  return no_depth;
}

nvtxRangeId_t start(std::uint16_t domain, const nvtxEventAttributes_t* given) {
  const std::uint64_t range = next_range.fetch_add(1, std::memory_order_relaxed);
  if (!recording() && !watching()) return range;
  const Attributes read = read_attributes(domain, given);
  if (watching()) watch_start(read.scope, range);
  if (!recording()) return range;
  if (read.payload_type == PayloadType::none) {
    emit(EventType::start, read.scope, Slot{range, 0});
  } else {
    emit(EventType::start_payload, read.scope, Slot{range, read.payload},
         Slot{static_cast<std::uint64_t>(read.payload_type), 0});
  }
  return range;
}

void end(nvtxRangeId_t range) {
  if (recording()) emit(EventType::end, range);
  if (watching()) watch_end(range);
}

template <class Text>
void NVTX_API mark_text(const Text* text) {
  if (recording()) emit(EventType::mark, format::pack_scope(intern_text(text), 0, 0));
}
template <class Text>
int NVTX_API push_text(const Text* text) {
  if (!recording() && !watching()) return no_depth;
  const std::uint64_t scope = format::pack_scope(intern_text(text), 0, 0);
  if (watching()) watch_push(scope);
  if (recording() && !emit(EventType::push, scope)) lose_push();
  return no_depth;
}
template <class Text>
nvtxRangeId_t NVTX_API start_text(const Text* text) {
  const std::uint64_t range = next_range.fetch_add(1, std::memory_order_relaxed);
  if (!recording() && !watching()) return range;
  const std::uint64_t scope = format::pack_scope(intern_text(text), 0, 0);
  if (watching()) watch_start(scope, range);
  if (recording()) emit(EventType::start, scope, Slot{range, 0});
  return range;
}

// --- definitions; they are recorded even while events are switched off

template <class Text>
void NVTX_API name_category(nvtxDomainHandle_t domain, std::uint32_t category, const Text* text) {
  if (!file_is_open()) return;
  emit_surely(EventType::category, domain_id(domain) | std::uint64_t{narrow(category)} << 32,
              Slot{intern_text(text), 0});
  if constexpr (std::is_same_v<Text, char>) {
    if (text != nullptr) note_category(domain_id(domain), narrow(category), text);
  }
}

template <class Text>
void NVTX_API name_thread(std::uint32_t thread, const Text* text) {
  if (!file_is_open()) return;
  emit_surely(EventType::thread_name, std::uint64_t{intern_text(text)} << 32, Slot{thread, 0});
}

template <class Text>
nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t, const Text* text) {
  return to_handle<nvtxStringHandle_t>(file_is_open() ? intern_text(text) : 0);
}

// The same name gives the same domain, whichever shared object asks.
template <class Text>
nvtxDomainHandle_t NVTX_API create_domain(const Text* text) {
  if (!file_is_open()) return nullptr;
  const std::uint32_t name = intern_text(text);
  if (name == 0) return nullptr;
  pthread_mutex_lock(&domains_lock);
  std::uint32_t id = 1;
  while (id < domain_count && domain_names[id] != name) ++id;
  if (id == domain_count && id < most_domains) {
    domain_names[domain_count++] = name;
    emit_surely(EventType::domain, id | std::uint64_t{name} << 32);
  }
  pthread_mutex_unlock(&domains_lock);
  return to_handle<nvtxDomainHandle_t>(id < most_domains ? id : 0);
}

// --- the functions as NVTX calls them

void NVTX_API core_mark(const nvtxEventAttributes_t* given) { mark(0, given); }
int NVTX_API core_push(const nvtxEventAttributes_t* given) { return push(0, given); }
int NVTX_API core_pop() { return pop(0); }
nvtxRangeId_t NVTX_API core_start(const nvtxEventAttributes_t* given) { return start(0, given); }
void NVTX_API core_end(nvtxRangeId_t range) { end(range); }
void NVTX_API core_category_ascii(std::uint32_t category, const char* text) { name_category(nullptr, category, text); }
void NVTX_API core_category_wide(std::uint32_t category, const wchar_t* text) {
  name_category(nullptr, category, text);
}

void NVTX_API domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* given) {
  mark(domain_id(domain), given);
}
int NVTX_API domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* given) {
  return push(domain_id(domain), given);
}
int NVTX_API domain_pop(nvtxDomainHandle_t domain) { return pop(domain_id(domain)); }
nvtxRangeId_t NVTX_API domain_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* given) {
  return start(domain_id(domain), given);
}
void NVTX_API domain_end(nvtxDomainHandle_t, nvtxRangeId_t range) { end(range); }
void NVTX_API domain_destroy(nvtxDomainHandle_t) {}
nvtxResourceHandle_t NVTX_API create_resource(nvtxDomainHandle_t, nvtxResourceAttributes_t*) { return nullptr; }
void NVTX_API destroy_resource(nvtxResourceHandle_t) {}
void NVTX_API initialize(const void*) {}

struct Slots {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;

  // Older copies of NVTX have shorter tables.
  template <class Function>
  void fill(unsigned id, Function* function) const {
    if (id < size && table[id] != nullptr) *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  }
};

Slots module_slots(const NvtxExportTableCallbacks* callbacks, NvtxCallbackModule module) {
  Slots slots;
  if (callbacks->GetModuleFunctionTable(module, &slots.table, &slots.size) == 0) slots.size = 0;
  return slots;
}

bool attach(NvtxGetExportTableFunc_t export_table) {
  if (export_table == nullptr) return false;
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks) return false;
  if (!open_recorder()) return false;

  const Slots core = module_slots(callbacks, NVTX_CB_MODULE_CORE);
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
  core.fill(NVTX_CBID_CORE_NameCategoryA, core_category_ascii);
  core.fill(NVTX_CBID_CORE_NameCategoryW, core_category_wide);
  core.fill(NVTX_CBID_CORE_NameOsThreadA, name_thread<char>);
  core.fill(NVTX_CBID_CORE_NameOsThreadW, name_thread<wchar_t>);

  const Slots core2 = module_slots(callbacks, NVTX_CB_MODULE_CORE2);
  core2.fill(NVTX_CBID_CORE2_DomainMarkEx, domain_mark);
  core2.fill(NVTX_CBID_CORE2_DomainRangeStartEx, domain_start);
  core2.fill(NVTX_CBID_CORE2_DomainRangeEnd, domain_end);
  core2.fill(NVTX_CBID_CORE2_DomainRangePushEx, domain_push);
  core2.fill(NVTX_CBID_CORE2_DomainRangePop, domain_pop);
  core2.fill(NVTX_CBID_CORE2_DomainResourceCreate, create_resource);
  core2.fill(NVTX_CBID_CORE2_DomainResourceDestroy, destroy_resource);
  core2.fill(NVTX_CBID_CORE2_DomainNameCategoryA, name_category<char>);
  core2.fill(NVTX_CBID_CORE2_DomainNameCategoryW, name_category<wchar_t>);
  core2.fill(NVTX_CBID_CORE2_DomainRegisterStringA, register_string<char>);
  core2.fill(NVTX_CBID_CORE2_DomainRegisterStringW, register_string<wchar_t>);
  core2.fill(NVTX_CBID_CORE2_DomainCreateA, create_domain<char>);
  core2.fill(NVTX_CBID_CORE2_DomainCreateW, create_domain<wchar_t>);
  core2.fill(NVTX_CBID_CORE2_DomainDestroy, domain_destroy);
  core2.fill(NVTX_CBID_CORE2_Initialize, initialize);
  return true;
}

}  // namespace

void reset_nvtx_in_child() { pthread_mutex_init(&domains_lock, nullptr); }

}  // namespace paceline::inject

// Called by NVTX at a program's first NVTX call, once for each copy of NVTX. 1: we listen; 0: calls do nothing.
extern "C" __attribute__((visibility("default"))) int NVTX_API
InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table) {
  return paceline::inject::attach(export_table) ? 1 : 0;
}
