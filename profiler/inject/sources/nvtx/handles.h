// SPDX-License-Identifier: Apache-2.0
// NVTX's opaque handles are numbers of the recorder: the number of a domain, the name id of a registered string, the
// number of a resource. Every shared object has its own copy of NVTX, but a handle means the same in all of them and
// needs no look-up.
#pragma once

#define NVTX_NO_IMPL  // the tool's side of NVTX
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstdint>

#include "profiler/inject/buffer/names.h"
#include "profiler/inject/sources/nvtx/filter.h"

namespace paceline::inject {

template <class Handle>
Handle to_handle(std::uint32_t id) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(id));
}
template <class Handle>
std::uint32_t to_id(Handle handle) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(handle));
}

// A domain's number is in the low 16 bits. The bit above them is set if the filter leaves the domain's events out, so
// that a range of such a domain costs one test of its handle.
constexpr std::uint32_t left_out_bit = 1U << 16;
extern std::uint32_t default_domain;  // 0, or left_out_bit

inline std::uint32_t domain_of(nvtxDomainHandle_t handle) {
  const std::uint32_t id = to_id(handle);
  return id != 0 ? id : default_domain;
}
constexpr bool is_left_out(std::uint32_t domain) { return (domain & left_out_bit) != 0; }
constexpr std::uint16_t number_of(std::uint32_t domain) { return static_cast<std::uint16_t>(domain); }

// Ranges with start and end: this bit marks a range that was left out, so that its end is left out too.
constexpr std::uint64_t left_out_range = std::uint64_t{1} << 63;
extern std::atomic<std::uint64_t> next_range;
inline std::uint64_t new_range() { return next_range.fetch_add(1, std::memory_order_relaxed); }

// Categories are 32 bits wide in NVTX and 16 in an event; programs number them from 1.
constexpr std::uint16_t narrow(std::uint32_t category) {
  return category > 0xffff ? std::uint16_t{0xffff} : static_cast<std::uint16_t>(category);
}

inline std::uint32_t intern_text(const char* text) { return text != nullptr ? intern(std::string_view(text)) : 0; }
inline std::uint32_t intern_text(const wchar_t* text) { return text != nullptr ? intern(text) : 0; }

// The name id of the message of an event, a resource or a lock.
template <class Attributes>
std::uint32_t message_of(const Attributes& given) {
  switch (given.messageType) {
    case NVTX_MESSAGE_TYPE_REGISTERED:
      return to_id(given.message.registered);
    case NVTX_MESSAGE_TYPE_ASCII:
      return intern_text(given.message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
      return intern_text(given.message.unicode);
    default:
      return 0;
  }
}

// Sets default_domain and the filter from the environment. Has no effect when repeated. As read_nvtx_filter().
void follow_filter();

// The function slots of one module of one copy of NVTX.
struct NvtxSlots {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;

  // Older copies of NVTX have shorter tables.
  template <class Function>
  void fill(unsigned id, Function* function) const {
    if (id < size && table[id] != nullptr) *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  }
};
NvtxSlots slots_of(const NvtxExportTableCallbacks* callbacks, NvtxCallbackModule module);

// Fills the slots for names: domains, strings, categories, threads and resources (names.cpp).
void fill_names(const NvtxExportTableCallbacks* callbacks);

}  // namespace paceline::inject
