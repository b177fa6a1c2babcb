// NVIDIA's management library, found at run time: the functions that are used here, as its documentation declares them
// (NVML API Reference). Nothing of it is needed to build Paceline.
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
  // What follows may be missing in old libraries: then null.
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
  bool visible;  // $CUDA_VISIBLE_DEVICES names it, or is not set
};
inline constexpr unsigned most_gpus = 16;

// Loads and starts NVML at the first call; nullptr where there is none, or no GPU. May take seconds.
const Nvml* open_nvml();

// The machine's GPUs, by index; after open_nvml().
const Gpu* nvml_gpus(unsigned* count);

}  // namespace paceline::inject
