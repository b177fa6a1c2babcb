// SPDX-License-Identifier: Apache-2.0
// The names that a program gives through NVTX: of domains, strings, categories, threads and resources (mutexes, CUDA
// streams, …). These are definitions, which are recorded even while recording is paused.
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/buffer/hot.h"
#include "profiler/inject/sources/nvtx/copies.h"
#include "profiler/inject/sources/nvtx/handles.h"
#include "profiler/inject/sources/nvtx/ranges.h"
#include "profiler/inject/sources/nvtx/schemas.h"
#include "profiler/inject/sources/sources.h"
#include "profiler/inject/sources/watch/iterations.h"

namespace paceline::inject {

PACELINE_HOT std::uint32_t default_domain = 0;

namespace {

constexpr std::uint32_t most_domains = 4096;  // further domains count as the default domain

pthread_mutex_t domains_lock = PTHREAD_MUTEX_INITIALIZER;
std::uint32_t domain_names[most_domains];  // name id by domain; [0] is the default domain
std::uint32_t domain_count = 1;

std::atomic<std::uint32_t> next_resource{1};

// --- domains, strings, categories

// The same name gives the same domain, whichever shared object asks.
nvtxDomainHandle_t domain_named(std::uint32_t name, std::string_view text) {
  if (name == 0) return nullptr;
  const bool left_out = leaves_out_domain(text);
  pthread_mutex_lock(&domains_lock);
  std::uint32_t id = 1;
  while (id < domain_count && domain_names[id] != name) ++id;
  if (id == domain_count && id < most_domains) {
    domain_names[domain_count++] = name;
    emit_surely(events::Domain{.domain = static_cast<std::uint16_t>(id), .name = name});
  }
  pthread_mutex_unlock(&domains_lock);
  if (id >= most_domains) return nullptr;
  return to_handle<nvtxDomainHandle_t>(id | (left_out ? left_out_bit : 0));
}

nvtxDomainHandle_t NVTX_API create_domain_wide(const wchar_t* text) {
  const ReentrancyGuard guard;
  if (guard.is_nested() || !file_is_open() || text == nullptr) return nullptr;
  char utf8[longest_wide];
  const std::string_view narrow_text = to_utf8(text, utf8);
  return domain_named(intern(narrow_text), narrow_text);
}
void NVTX_API destroy_domain(nvtxDomainHandle_t) {}  // its events stay, and another library may use the same name

template <class Text>
nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t, const Text* text) {
  const ReentrancyGuard guard;
  return to_handle<nvtxStringHandle_t>(!guard.is_nested() && file_is_open() ? intern_text(text) : 0);
}

void define_category(std::uint32_t domain, std::uint32_t category, std::string_view text) {
  filter_category(number_of(domain), narrow(category), text);
  note_category(number_of(domain), narrow(category), text);
  emit_surely(events::Category{.domain = number_of(domain), .category = narrow(category), .name = intern(text)});
}
}  // namespace

nvtxDomainHandle_t NVTX_API create_domain(const char* text) {
  const ReentrancyGuard guard;
  if (guard.is_nested() || !file_is_open() || text == nullptr) return nullptr;
  return domain_named(intern_text(text), text);
}
void NVTX_API name_category(nvtxDomainHandle_t domain, std::uint32_t category, const char* text) {
  const ReentrancyGuard guard;
  if (!guard.is_nested() && file_is_open() && text != nullptr) define_category(domain_of(domain), category, text);
}

namespace {

void NVTX_API name_category_wide(nvtxDomainHandle_t domain, std::uint32_t category, const wchar_t* text) {
  char utf8[longest_wide];
  const ReentrancyGuard guard;
  if (!guard.is_nested() && file_is_open() && text != nullptr)
    define_category(domain_of(domain), category, to_utf8(text, utf8));
}
void NVTX_API name_category_of_default(std::uint32_t category, const char* text) {
  name_category(nullptr, category, text);
}
void NVTX_API name_category_of_default_wide(std::uint32_t category, const wchar_t* text) {
  name_category_wide(nullptr, category, text);
}

// --- threads and resources

void define_thread(std::uint64_t thread, std::uint32_t name) {
  emit_surely(events::ThreadName{.name = name, .thread_id = thread});
}

template <class Text>
void NVTX_API name_thread(std::uint32_t thread, const Text* text) {
  const ReentrancyGuard guard;
  if (!guard.is_nested() && file_is_open()) define_thread(thread, intern_text(text));
}

// The system's id of a pthreads thread; 0 if it is unknown. The id of a thread's CPU-time clock contains the thread's
// id (the kernel's own encoding). The handle of a thread that has ended may be invalid, so its memory is probed first.
std::uint64_t system_thread(std::uint64_t handle) {
  const auto thread = static_cast<pthread_t>(handle);
  char probe[1024];
  const iovec here{probe, sizeof probe}, there{reinterpret_cast<void*>(handle), sizeof probe};
  if (pthread_equal(thread, pthread_self()) == 0 &&
      process_vm_readv(getpid(), &here, 1, &there, 1, 0) != static_cast<ssize_t>(sizeof probe)) {
    return 0;
  }
  clockid_t clock = 0;
  if (pthread_getcpuclockid(thread, &clock) != 0) return 0;
  return static_cast<std::uint32_t>(~(clock >> 3));
}

void define_resource(std::uint32_t number, std::uint32_t type, std::uint64_t identifier, std::uint32_t name,
                     std::uint16_t domain) {
  emit_surely(events::Resource{
      .resource = number, .name = name, .identifier = identifier, .resource_type = type, .domain = domain});
}

nvtxResourceHandle_t NVTX_API create_resource(nvtxDomainHandle_t domain, nvtxResourceAttributes_t* given) {
  const ReentrancyGuard guard;
  if (guard.is_nested() || given == nullptr || !file_is_open()) return nullptr;
  const std::uint32_t number = next_resource.fetch_add(1, std::memory_order_relaxed);
  const auto type = static_cast<std::uint32_t>(given->identifierType);
  const std::uint64_t identifier = given->identifier.ullValue;
  const std::uint32_t name = message_of(*given);
  define_resource(number, type, identifier, name, number_of(domain_of(domain)));
  if (type == NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE) define_thread(identifier, name);
  if (type == NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX) {
    if (const std::uint64_t thread = system_thread(identifier)) define_thread(thread, name);
  }
  return to_handle<nvtxResourceHandle_t>(number);
}

void NVTX_API destroy_resource(nvtxResourceHandle_t resource) {
  const ReentrancyGuard guard;
  if (!guard.is_nested() && resource != nullptr && file_is_open())
    emit_surely(events::ResourceEnd{.resource = to_id(resource)});
}

// The functions that name a device, stream, context or event of CUDA's driver, CUDA's runtime or OpenCL. Each name is a
// resource that is never destroyed, with the type that ResourceCreate has for it.
template <std::uint32_t type, class Text, class Identifier>
void NVTX_API name_object(Identifier object, const Text* text) {
  const ReentrancyGuard guard;
  if (guard.is_nested() || !file_is_open()) return;
  std::uint64_t identifier = 0;
  if constexpr (std::is_pointer_v<Identifier>) {
    identifier = reinterpret_cast<std::uintptr_t>(object);
  } else {
    identifier = static_cast<std::uint64_t>(object);
  }
  define_resource(0, type, identifier, intern_text(text), 0);
}

// The functions come in pairs, ASCII and wide, in the order of the types' indices.
template <std::uint32_t type, class Identifier>
void fill_object(const NvtxSlots& slots, unsigned id) {
  slots.fill(id, name_object<type, char, Identifier>);
  slots.fill(id + 1, name_object<type, wchar_t, Identifier>);
}

constexpr std::uint32_t type_of(std::uint32_t resource_class, std::uint32_t index) {
  return resource_class << 16 | index;
}
constexpr std::uint32_t cuda = 4, cuda_runtime = 5,
                        opencl = 6;  // NVTX_RESOURCE_CLASS_…; NVTX's headers for them need CUDA's headers

void reset_nvtx_in_child() {
  pthread_mutex_init(&domains_lock, nullptr);
  reset_nvtx_filter_in_child();
  reset_schemas_in_child();
}

}  // namespace

NvtxSlots slots_of(const NvtxExportTableCallbacks* callbacks, NvtxCallbackModule module) {
  NvtxSlots slots;
  if (callbacks->GetModuleFunctionTable(module, &slots.table, &slots.size) == 0) slots.size = 0;
  return slots;
}

void follow_filter() {
  read_nvtx_filter();
  default_domain = leaves_out_domain("") ? left_out_bit : 0;
}

const Source nvtx_source = {
    .start = follow_filter,
    .opened = record_nvtx_filter,
    .before_fork = find_nvtx_copies,
    .forked = reset_nvtx_copies,
    .reset_in_child = reset_nvtx_in_child,
};

void fill_names(const NvtxExportTableCallbacks* callbacks) {
  const NvtxSlots core = slots_of(callbacks, NVTX_CB_MODULE_CORE);
  core.fill(NVTX_CBID_CORE_NameCategoryA, name_category_of_default);
  core.fill(NVTX_CBID_CORE_NameCategoryW, name_category_of_default_wide);
  core.fill(NVTX_CBID_CORE_NameOsThreadA, name_thread<char>);
  core.fill(NVTX_CBID_CORE_NameOsThreadW, name_thread<wchar_t>);

  const NvtxSlots core2 = slots_of(callbacks, NVTX_CB_MODULE_CORE2);
  core2.fill(NVTX_CBID_CORE2_DomainResourceCreate, create_resource);
  core2.fill(NVTX_CBID_CORE2_DomainResourceDestroy, destroy_resource);
  core2.fill(NVTX_CBID_CORE2_DomainNameCategoryA, name_category);
  core2.fill(NVTX_CBID_CORE2_DomainNameCategoryW, name_category_wide);
  core2.fill(NVTX_CBID_CORE2_DomainRegisterStringA, register_string<char>);
  core2.fill(NVTX_CBID_CORE2_DomainRegisterStringW, register_string<wchar_t>);
  core2.fill(NVTX_CBID_CORE2_DomainCreateA, create_domain);
  core2.fill(NVTX_CBID_CORE2_DomainCreateW, create_domain_wide);
  core2.fill(NVTX_CBID_CORE2_DomainDestroy, destroy_domain);

  const NvtxSlots driver = slots_of(callbacks, NVTX_CB_MODULE_CUDA);
  fill_object<type_of(cuda, 1), int>(driver, NVTX_CBID_CUDA_NameCuDeviceA);
  fill_object<type_of(cuda, 2), void*>(driver, NVTX_CBID_CUDA_NameCuContextA);
  fill_object<type_of(cuda, 3), void*>(driver, NVTX_CBID_CUDA_NameCuStreamA);
  fill_object<type_of(cuda, 4), void*>(driver, NVTX_CBID_CUDA_NameCuEventA);
  const NvtxSlots runtime = slots_of(callbacks, NVTX_CB_MODULE_CUDART);
  fill_object<type_of(cuda_runtime, 0), int>(runtime, NVTX_CBID_CUDART_NameCudaDeviceA);
  fill_object<type_of(cuda_runtime, 1), void*>(runtime, NVTX_CBID_CUDART_NameCudaStreamA);
  fill_object<type_of(cuda_runtime, 2), void*>(runtime, NVTX_CBID_CUDART_NameCudaEventA);
  const NvtxSlots cl = slots_of(callbacks, NVTX_CB_MODULE_OPENCL);
  fill_object<type_of(opencl, 1), void*>(cl, NVTX_CBID_OPENCL_NameClDeviceA);
  fill_object<type_of(opencl, 2), void*>(cl, NVTX_CBID_OPENCL_NameClContextA);
  fill_object<type_of(opencl, 3), void*>(cl, NVTX_CBID_OPENCL_NameClCommandQueueA);
  fill_object<type_of(opencl, 4), void*>(cl, NVTX_CBID_OPENCL_NameClMemObjectA);
  fill_object<type_of(opencl, 5), void*>(cl, NVTX_CBID_OPENCL_NameClSamplerA);
  fill_object<type_of(opencl, 6), void*>(cl, NVTX_CBID_OPENCL_NameClProgramA);
  fill_object<type_of(opencl, 7), void*>(cl, NVTX_CBID_OPENCL_NameClEventA);
}

}  // namespace paceline::inject
