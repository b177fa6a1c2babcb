// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/counters/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace paceline::inject {
namespace {

Nvml nvml;
bool tried = false, works = false;
Gpu gpus[most_gpus];
unsigned gpu_count = 0;

template <class Function>
bool find(void* library, const char* name, Function& function) {
  void* symbol = dlsym(library, name);
  memcpy(&function, &symbol, sizeof symbol);
  return symbol != nullptr;
}

bool load() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  find(library, "nvmlDeviceGetTopologyCommonAncestor", nvml.common_ancestor);
  find(library, "nvmlDeviceGetNvLinkState", nvml.link_state);
  find(library, "nvmlDeviceGetNvLinkRemotePciInfo_v2", nvml.link_remote);
  find(library, "nvmlDeviceGetNvLinkRemoteDeviceType", nvml.link_remote_type);
  find(library, "nvmlEventSetCreate", nvml.make_events);
  find(library, "nvmlDeviceRegisterEvents", nvml.want_events);
  find(library, "nvmlEventSetWait_v2", nvml.next_event);
  return find(library, "nvmlInit_v2", nvml.init) && find(library, "nvmlDeviceGetCount_v2", nvml.count) &&
         find(library, "nvmlDeviceGetHandleByIndex_v2", nvml.by_index) &&
         find(library, "nvmlDeviceGetHandleByUUID", nvml.by_uuid) && find(library, "nvmlDeviceGetIndex", nvml.index) &&
         find(library, "nvmlDeviceGetName", nvml.name) && find(library, "nvmlDeviceGetPciInfo_v3", nvml.pci) &&
         find(library, "nvmlDeviceGetUtilizationRates", nvml.utilization) &&
         find(library, "nvmlDeviceGetMemoryInfo", nvml.memory) && find(library, "nvmlDeviceGetClockInfo", nvml.clock) &&
         find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", nvml.throttle) &&
         find(library, "nvmlDeviceGetPowerUsage", nvml.power) && nvml.init() == 0;
}

void take_all() {
  unsigned devices = 0;
  if (nvml.count(&devices) != 0) return;
  for (unsigned i = 0; i < devices && gpu_count < most_gpus; ++i) {
    Gpu& gpu = gpus[gpu_count];
    if (nvml.by_index(i, &gpu.device) != 0) continue;
    gpu.index = i;
    if (nvml.pci(gpu.device, &gpu.pci) != 0) gpu.pci = {};
    ++gpu_count;
  }
}

// Parses "0,2" or "GPU-8d1f…,GPU-…". Stops at the first entry that is not a device, as CUDA does.
void find_visible(const char* list) {
  char entry[96];
  while (*list != '\0') {
    const std::size_t length = strcspn(list, ",");
    snprintf(entry, sizeof entry, "%.*s", static_cast<int>(length), list);
    list += length + (list[length] == ',' ? 1 : 0);
    char* end = nullptr;
    unsigned index = static_cast<unsigned>(strtoul(entry, &end, 10));
    const bool is_number = end != entry && *end == '\0' && entry[0] != '-';
    NvmlDevice device = nullptr;
    if (!is_number && (nvml.by_uuid(entry, &device) != 0 || nvml.index(device, &index) != 0)) return;
    bool found = false;
    for (unsigned g = 0; g < gpu_count; ++g) {
      if (gpus[g].index == index) gpus[g].visible = found = true;
    }
    if (!found) return;
  }
}

}  // namespace

const Nvml* open_nvml() {
  if (!tried) {
    tried = true;
    if (load()) {
      take_all();
      const char* visible = getenv("CUDA_VISIBLE_DEVICES");
      for (unsigned g = 0; g < gpu_count; ++g) gpus[g].visible = visible == nullptr;
      if (visible != nullptr) find_visible(visible);
    }
    works = gpu_count > 0;
  }
  return works ? &nvml : nullptr;
}

const Gpu* nvml_gpus(unsigned* count) {
  *count = gpu_count;
  return gpus;
}

}  // namespace paceline::inject
