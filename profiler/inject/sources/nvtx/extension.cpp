// SPDX-License-Identifier: Apache-2.0
// NVTX's payload extension as an event source. Each copy of NVTX calls InitializeInjectionNvtxExtension for itself, as
// for the ranges (nvtx.cpp).
#include "profiler/inject/process/lifecycle.h"
#include "profiler/inject/process/starts.h"
#include "profiler/inject/sources/nvtx/payload.h"
#include "profiler/inject/sources/nvtx/schemas.h"
#include "profiler/inject/sources/watch/iterations.h"
#include "profiler/inject/system/quiet_thread.h"

namespace paceline::inject {
namespace {

// NCCL 2.28 has 0x0103. CUDA 13.0 has 0x0104, which adds deferred events: they are not recorded, as no program is known
// to submit any. Later additions use further slots.
constexpr std::uint16_t oldest_compatible = 0x0103;

// The function slots of one copy of NVTX for an extension.
struct ExtensionSlots {
  std::intptr_t* slots = nullptr;
  std::size_t count = 0;

  template <class Function>
  void fill(std::size_t id, Function* function) const {
    if (id < count) slots[id] = reinterpret_cast<std::intptr_t>(function);
  }
};

std::uint64_t schema_register(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t* given) {
  const ReentrancyGuard guard;
  if (guard.is_nested()) return 0;
  return given != nullptr && file_is_open() ? register_schema(number_of(domain_of(domain)), *given) : 0;
}

std::uint64_t enum_register(nvtxDomainHandle_t domain, const nvtxPayloadEnumAttr_t* given) {
  const ReentrancyGuard guard;
  if (guard.is_nested()) return 0;
  return given != nullptr && file_is_open() ? register_enumeration(number_of(domain_of(domain)), *given) : 0;
}

// Payloads have no category. Their ranges follow the domain's filter, and a filter of categories treats them as ranges
// without a category.
bool leaves_out(std::uint32_t domain) {
  return is_left_out(domain) || (filters_categories && leaves_out_category(number_of(domain), 0));
}

void mark_payload(nvtxDomainHandle_t handle, const nvtxPayloadData_t* data, std::size_t count) {
  const std::uint32_t domain = domain_of(handle);
  const ReentrancyGuard guard;
  if (guard.is_nested()) return drop_nested_event();
  if (leaves_out(domain) || !recording()) return;
  emit_with_payloads({data, count}, number_of(domain), EventType::mark, format::pack_scope(0, 0, number_of(domain)));
}

// The name of such a range is in its payload, which the recorder does not read. So none of them counts as an iteration.
int push_payload(nvtxDomainHandle_t handle, const nvtxPayloadData_t* data, std::size_t count) {
  const std::uint32_t domain = domain_of(handle);
  const ReentrancyGuard guard;
  if (guard.is_nested()) {
    drop_nested_event();
    return NVTX_NO_PUSH_POP_TRACKING;
  }
  const std::uint64_t scope = format::pack_scope(0, 0, number_of(domain));
  const bool out = is_left_out(domain) || (filters_categories && leaves_out_push(number_of(domain), 0));
  if (watching()) watch_push(scope);
  if (!out) recording() ? emit_push_with_payloads({data, count}, number_of(domain), scope) : skip_push();
  return NVTX_NO_PUSH_POP_TRACKING;
}

int pop_payload(nvtxDomainHandle_t handle, const nvtxPayloadData_t* data, std::size_t count) {
  const std::uint32_t domain = domain_of(handle);
  const ReentrancyGuard guard;
  if (guard.is_nested()) {
    drop_nested_event();
    return NVTX_NO_PUSH_POP_TRACKING;
  }
  const bool out = is_left_out(domain) || (filters_categories && leaves_out_pop(number_of(domain)));
  if (!out) recording() ? emit_pop_with_payloads({data, count}, number_of(domain)) : skip_pop();
  if (watching()) watch_pop(number_of(domain));
  return NVTX_NO_PUSH_POP_TRACKING;
}

nvtxRangeId_t start_payload(nvtxDomainHandle_t handle, const nvtxPayloadData_t* data, std::size_t count) {
  const std::uint32_t domain = domain_of(handle);
  const ReentrancyGuard guard;
  if (guard.is_nested()) drop_nested_event();
  if (guard.is_nested() || leaves_out(domain)) return left_out_range;
  const std::uint64_t range = new_range();
  if (recording()) {
    emit_with_payloads({data, count}, number_of(domain), EventType::start, format::pack_scope(0, 0, number_of(domain)),
                       Slot{range, 0});
  }
  return range;
}

void end_payload(nvtxDomainHandle_t handle, nvtxRangeId_t range, const nvtxPayloadData_t* data, std::size_t count) {
  const ReentrancyGuard guard;
  if (guard.is_nested()) return drop_nested_event();
  if ((range & left_out_range) == 0 && recording()) {
    emit_with_payloads({data, count}, number_of(domain_of(handle)), EventType::end, range);
  }
  if (watching()) watch_end(range);
}

std::uint8_t domain_is_enabled(nvtxDomainHandle_t domain) {
  return recording() && !is_left_out(domain_of(domain)) ? 1 : 0;
}

bool attach(const nvtxExtModuleInfo_t* module) {
  if (module == nullptr || module->structSize < sizeof *module || module->moduleId != NVTX_EXT_PAYLOAD_MODULEID ||
      module->compatId >> 8 != oldest_compatible >> 8 || module->compatId < oldest_compatible ||
      module->segmentsCount == 0 || module->segments == nullptr) {
    return false;
  }
  follow_filter();
  const ExtensionSlots slots{module->segments[0].functionSlots, module->segments[0].slotCount};
  slots.fill(NVTX3EXT_CBID_nvtxPayloadSchemaRegister, schema_register);
  slots.fill(NVTX3EXT_CBID_nvtxPayloadEnumRegister, enum_register);
  slots.fill(NVTX3EXT_CBID_nvtxMarkPayload, mark_payload);
  slots.fill(NVTX3EXT_CBID_nvtxRangePushPayload, push_payload);
  slots.fill(NVTX3EXT_CBID_nvtxRangePopPayload, pop_payload);
  slots.fill(NVTX3EXT_CBID_nvtxRangeStartPayload, start_payload);
  slots.fill(NVTX3EXT_CBID_nvtxRangeEndPayload, end_payload);
  slots.fill(NVTX3EXT_CBID_nvtxDomainIsEnabled, domain_is_enabled);
  return open_recorder() || file_is_being_opened();
}

}  // namespace
}  // namespace paceline::inject

// Called for each copy of NVTX and each of its extensions that the program uses, by libpaceline-nvtx.so (nvtx_entry.c).
// 1: the calls are recorded; 0: they do nothing.
extern "C" __attribute__((visibility("default"))) int paceline_initialize_nvtx_extension(nvtxExtModuleInfo_t* module) {
  const paceline::inject::SignalsBlocked blocked;  // as in paceline_initialize_nvtx
  const paceline::inject::StartInProgress start;
  return paceline::inject::attach(module) ? 1 : 0;
}

// The same for a user who names this library in NVTX_INJECTION64_PATH.
extern "C" __attribute__((visibility("default"))) int NVTX_API
InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t* module) {
  return paceline_initialize_nvtx_extension(module);
}
