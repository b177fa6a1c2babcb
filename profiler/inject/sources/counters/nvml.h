// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library (NVML), found at run time: the functions that the recorder uses, as the NVML API
// Reference declares them. Paceline builds without NVML.
#pragma once

#include <cstdint>

namespace paceline::inject {

using NvmlDevice = struct NvmlDeviceOpaque*;
using NvmlEventSet = struct NvmlEventSetOpaque*;

struct NvmlUtilization {
  unsigned gpu, memory;  // per cent of the last sample period
};
struct NvmlMemory {
  unsigned long long total, free, used;  // bytes
};
struct NvmlPci {
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct NvmlEvent {
  NvmlDevice device;
  unsigned long long type, data;  // data: the number of an XID error
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(NvmlPci) == 68 && sizeof(NvmlEvent) == 32);

enum : unsigned { nvml_clock_sm = 1, nvml_clock_memory = 2 };
inline constexpr unsigned long long nvml_event_xid = 8;
inline constexpr unsigned nvml_links = 18, nvml_remote_switch = 2;

struct Nvml {
  int (*init)();
  int (*count)(unsigned* devices);
  int (*by_index)(unsigned index, NvmlDevice* device);
  int (*by_uuid)(const char* uuid, NvmlDevice* device);
  int (*index)(NvmlDevice device, unsigned* index);
  int (*name)(NvmlDevice device, char* name, unsigned capacity);
  int (*pci)(NvmlDevice device, NvmlPci* pci);
  int (*utilization)(NvmlDevice device, NvmlUtilization* utilization);
  int (*memory)(NvmlDevice device, NvmlMemory* memory);
  int (*clock)(NvmlDevice device, unsigned which, unsigned* mhz);
  int (*throttle)(NvmlDevice device, unsigned long long* reasons);
  int (*power)(NvmlDevice device, unsigned* milliwatts);
  // The following are null if an old library does not have them.
  int (*common_ancestor)(NvmlDevice one, NvmlDevice other, unsigned* level);
  int (*link_state)(NvmlDevice device, unsigned link, unsigned* active);
  int (*link_remote)(NvmlDevice device, unsigned link, NvmlPci* pci);
  int (*link_remote_type)(NvmlDevice device, unsigned link, unsigned* type);
  int (*make_events)(NvmlEventSet* set);
  int (*want_events)(NvmlDevice device, unsigned long long types, NvmlEventSet set);
  int (*next_event)(NvmlEventSet set, NvmlEvent* event, unsigned milliseconds);
};

struct Gpu {
  NvmlDevice device;
  unsigned index;  // NVML's, in the order of PCI addresses
  NvmlPci pci;
  bool visible;  // $CUDA_VISIBLE_DEVICES contains it or is not set
};
inline constexpr unsigned most_gpus = 16;

// Loads and starts NVML at the first call, which may take seconds. Returns nullptr if there is no NVML or no GPU.
const Nvml* open_nvml();

// The machine's GPUs, by index. Valid after open_nvml().
const Gpu* nvml_gpus(unsigned* count);

}  // namespace paceline::inject
