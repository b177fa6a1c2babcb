// SPDX-License-Identifier: Apache-2.0
// CUPTI serves one tool at a time. A program that uses it itself, such as one with PyTorch's profiler, must get what it
// would get without the recorder. So the calls with which it begins and ends pass through here, and the recorder's CUDA
// part is told of them (event_sink.h), which lends CUPTI to the program for as long.
//
// This file is only in libpaceline-inject.so: the symbols of a preloaded library come before those of libcupti.
#include "profiler/inject/cupti_calls.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

namespace {

constexpr int not_initialized = 15;  // CUPTI_ERROR_NOT_INITIALIZED

// CUPTI's path, if it is loaded. PyTorch loads it where RTLD_NEXT does not look.
int find_cupti(dl_phdr_info* library, size_t, void* path) {
  const char* const slash = strrchr(library->dlpi_name, '/');
  const char* const name = slash != nullptr ? slash + 1 : library->dlpi_name;
  if (strncmp(name, "libcupti.so", strlen("libcupti.so")) != 0) return 0;
  *static_cast<const char**>(path) = library->dlpi_name;
  return 1;
}

void* next_of(const char* name) {
  if (void* const next = dlsym(RTLD_NEXT, name)) return next;
  const char* path = nullptr;
  if (dl_iterate_phdr(find_cupti, &path) == 0) return nullptr;
  void* const library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const next = dlsym(library, name);
  dlclose(library);
  return next;
}

template <class... Arguments>
int call(paceline_cupti_call what, const char* name, uint32_t argument, Arguments... arguments) {
  auto* const next = reinterpret_cast<int (*)(Arguments...)>(next_of(name));
  if (next == nullptr) return not_initialized;
  const auto* const watcher = paceline::inject::cupti_watcher.load(std::memory_order_acquire);
  if (watcher != nullptr) watcher->before(what);
  const int result = next(arguments...);
  if (watcher != nullptr) watcher->after(what, argument, result == 0 ? 1 : 0);
  return result;
}

}  // namespace

#define INTERPOSED extern "C" __attribute__((visibility("default")))

INTERPOSED int cuptiSubscribe(void** subscriber, void* callback, void* data) {
  return call(paceline_cupti_subscribe, "cuptiSubscribe", 0, subscriber, callback, data);
}
INTERPOSED int cuptiSubscribe_v2(void** subscriber, void* callback, void* data, void* parameters) {
  return call(paceline_cupti_subscribe, "cuptiSubscribe_v2", 0, subscriber, callback, data, parameters);
}
INTERPOSED int cuptiActivityRegisterCallbacks(void* request, void* complete) {
  return call(paceline_cupti_register_callbacks, "cuptiActivityRegisterCallbacks", 0, request, complete);
}
INTERPOSED int cuptiActivityEnable(uint32_t kind) {
  return call(paceline_cupti_enable, "cuptiActivityEnable", kind, kind);
}
INTERPOSED int cuptiActivityDisable(uint32_t kind) {
  return call(paceline_cupti_disable, "cuptiActivityDisable", kind, kind);
}
INTERPOSED int cuptiActivityFlushAll(uint32_t flag) {
  return call(paceline_cupti_flush, "cuptiActivityFlushAll", flag, flag);
}
INTERPOSED int cuptiFinalize() { return call(paceline_cupti_finalize, "cuptiFinalize", 0); }
