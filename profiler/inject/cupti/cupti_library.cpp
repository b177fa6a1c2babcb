// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/cupti/cupti_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "profiler/inject/cupti/records.h"
#include "profiler/launch/environment.h"

namespace paceline::inject::cupti {
namespace {

// CUDA's major versions whose CUPTI is known here.
constexpr int majors[] = {
#if CUPTI_API_VERSION >= 130000
    13,
#endif
    12,
};

// The newest major version of CUDA that the driver serves; 0 if there is no driver.
int driver_major() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  int version = 0;
  if (driver == nullptr) return 0;
  const auto get_version = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDriverGetVersion"));
  if (get_version == nullptr || get_version(&version) != 0) version = 0;
  dlclose(driver);
  return version / 1000;
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

namespace {

CuptiVerdict judge_whole(void* library, CuptiLibrary& cupti, JudgeCupti judge, char* why, std::size_t capacity) {
  cupti = {};
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
             cupti.version, majors[0]);
    return CuptiVerdict::try_another;
  }
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(cupti.get_version), &info) != 0 && info.dli_fname != nullptr) {
    snprintf(cupti.path, sizeof cupti.path, "%s", info.dli_fname);
  }
  return judge(cupti, why, capacity);
}

// Tries libraries until one is used or none can be.
class Search {
 public:
  Search(CuptiLibrary& cupti, JudgeCupti judge, char* why, std::size_t capacity)
      : cupti_(cupti), judge_(judge), why_(why), capacity_(capacity) {
    why[0] = '\0';
  }

  // Returns true when the search is over. `library` may be null.
  bool try_library(void* library) {
    if (library == nullptr) return false;
    char reason[1536] = "";
    const CuptiVerdict verdict = judge_whole(library, cupti_, judge_, reason, sizeof reason);
    found_ = verdict == CuptiVerdict::use;
    if (!found_) dlclose(library);
    if (!found_ && why_[0] == '\0') snprintf(why_, capacity_, "%s", reason);
    return verdict != CuptiVerdict::try_another;
  }

  // Tries what open_one(file name) opens, for the driver's own major version of CUDA first.
  template <class Open>
  bool try_names(Open open_one) {
    for (const bool of_driver : {true, false}) {
      for (const int major : majors) {
        char name[32];
        snprintf(name, sizeof name, "libcupti.so.%d", major);
        if ((major == own_) == of_driver && try_library(open_one(name))) return true;
      }
    }
    return false;
  }

  bool found() const { return found_; }
  bool has_reason() const { return why_[0] != '\0'; }

 private:
  CuptiLibrary& cupti_;
  JudgeCupti judge_;
  char* why_;
  std::size_t capacity_;
  const int own_ = driver_major();
  bool found_ = false;
};

bool search_everywhere(Search& search) {
  if (search.try_names([](const char* name) { return dlopen(name, RTLD_NOW | RTLD_NOLOAD); })) return true;
  if (search.try_names([](const char* name) { return dlopen(name, RTLD_NOW); })) return true;
  const char* home = getenv("CUDA_HOME");
  if (home == nullptr) home = getenv("CUDA_PATH");
  if (home == nullptr) home = "/usr/local/cuda";
  for (const char* folder : {"extras/CUPTI/lib64", "lib64", "lib"}) {
    const auto open_there = [&](const char* name) -> void* {
      char path[4096];
      const int length = snprintf(path, sizeof path, "%s/%s/%s", home, folder, name);
      return length > 0 && static_cast<std::size_t>(length) < sizeof path ? dlopen(path, RTLD_NOW) : nullptr;
    };
    if (search.try_names(open_there)) return true;
  }
  return false;
}

}  // namespace

bool load_cupti(CuptiLibrary& cupti, JudgeCupti judge, char* why, std::size_t capacity) {
  Search search(cupti, judge, why, capacity);
  const char* given = getenv(record::env_cupti);
  if (given != nullptr) {
    search.try_library(dlopen(given, RTLD_NOW));
  } else {
    search_everywhere(search);
  }
  if (search.found() || search.has_reason()) return search.found();
  if (given != nullptr) {
    snprintf(why, capacity, "%s, which PACELINE_CUPTI names, cannot be loaded", given);
  } else {
    snprintf(
        why, capacity,
        "libcupti.so.%d is not found: put its folder (extras/CUPTI/lib64 of the CUDA toolkit) into LD_LIBRARY_PATH",
        majors[0]);
  }
  return false;
}

}  // namespace paceline::inject::cupti
