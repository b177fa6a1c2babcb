#include "profiler/inject/cupti/cupti_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "profiler/inject/cupti/records.h"
#include "profiler/record/environment.h"

namespace paceline::inject::cupti {
namespace {

// By major version of CUDA, the headers' first.
constexpr const char* file_names[] = {
#if CUPTI_API_VERSION >= 130000
    "libcupti.so.13",
#endif
    "libcupti.so.12",
};

void* open_library() {
  if (const char* given = getenv(record::env_cupti)) return dlopen(given, RTLD_NOW);
  for (const char* name : file_names) {
    if (void* there = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return there;
  }
  for (const char* name : file_names) {
    if (void* library = dlopen(name, RTLD_NOW)) return library;
  }
  const char* home = getenv("CUDA_HOME");
  if (home == nullptr) home = getenv("CUDA_PATH");
  if (home == nullptr) home = "/usr/local/cuda";
  for (const char* folder : {"extras/CUPTI/lib64", "lib64", "lib"}) {
    for (const char* name : file_names) {
      char path[4096];
      const int length = snprintf(path, sizeof path, "%s/%s/%s", home, folder, name);
      if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) continue;
      if (void* library = dlopen(path, RTLD_NOW)) return library;
    }
  }
  return nullptr;
}

template <class Function>
bool find(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

const char* CuptiLibrary::name_of(CUptiResult result) const {
  const char* name = nullptr;
  if (get_result_string != nullptr && get_result_string(result, &name) == CUPTI_SUCCESS && name != nullptr) return name;
  static char number[32];
  snprintf(number, sizeof number, "CUPTI error %d", static_cast<int>(result));
  return number;
}

bool load_cupti(CuptiLibrary& cupti, char* why, std::size_t capacity) {
  void* library = open_library();
  if (library == nullptr && getenv(record::env_cupti) != nullptr) {
    snprintf(why, capacity, "%s, which PACELINE_CUPTI names, cannot be loaded", getenv(record::env_cupti));
    return false;
  }
  if (library == nullptr) {
    snprintf(why, capacity,
             "%s is not found: put its folder (extras/CUPTI/lib64 of the CUDA toolkit) into LD_LIBRARY_PATH",
             file_names[0]);
    return false;
  }
  const bool whole =
      find(library, cupti.get_version, "cuptiGetVersion") &&
      find(library, cupti.get_result_string, "cuptiGetResultString") &&
      find(library, cupti.subscribe, "cuptiSubscribe") && find(library, cupti.unsubscribe, "cuptiUnsubscribe") &&
      find(library, cupti.get_callback_name, "cuptiGetCallbackName") &&
      find(library, cupti.set_thread_id_type, "cuptiSetThreadIdType") &&
      find(library, cupti.get_timestamp, "cuptiGetTimestamp") &&
      find(library, cupti.set_attribute, "cuptiActivitySetAttribute") &&
      find(library, cupti.register_callbacks, "cuptiActivityRegisterCallbacks") &&
      find(library, cupti.enable, "cuptiActivityEnable") && find(library, cupti.disable, "cuptiActivityDisable") &&
      find(library, cupti.flush_all, "cuptiActivityFlushAll") &&
      find(library, cupti.get_next_record, "cuptiActivityGetNextRecord") &&
      find(library, cupti.get_dropped_records, "cuptiActivityGetNumDroppedRecords");
  find(library, cupti.enable_callback, "cuptiEnableCallback");
  find(library, cupti.get_context_id, "cuptiGetContextId");
  find(library, cupti.get_stream_id, "cuptiGetStreamIdEx");
  find(library, cupti.enable_runtime_call, "cuptiActivityEnableRuntimeApi");
  find(library, cupti.enable_driver_call, "cuptiActivityEnableDriverApi");
  if (!whole || cupti.get_version(&cupti.version) != CUPTI_SUCCESS || !is_known_version(cupti.version)) {
    snprintf(why, capacity,
             "CUPTI's version %u is not known here (CUDA 12.0 to %d): use a Paceline built with its toolkit",
             cupti.version, CUPTI_API_VERSION >= 130000 ? CUPTI_API_VERSION / 10000 : 12);
    return false;
  }
  return true;
}

}  // namespace paceline::inject::cupti
