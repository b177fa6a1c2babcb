// SPDX-License-Identifier: Apache-2.0
// Replaces NVIDIA's management library: two GPUs, connected by four NVLinks, whose figures follow from the index and
// the number of queries. GPU 1 reports XID error 79 once.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))

typedef struct Device {
  unsigned index, asked;
} Device;
static Device devices[2] = {{0, 0}, {1, 0}};
static int started = 0, has_events = 0;

typedef struct {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
} Pci;
typedef struct {
  Device* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
} Event;

static int pci_of(unsigned index, Pci* pci) {
  memset(pci, 0, sizeof *pci);
  pci->bus = 0x18 + index;
  snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
  return 0;
}

SHOWN int nvmlInit_v2(void) {
  started = 1;
  return 0;
}
SHOWN int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return started ? 0 : 1;
}
SHOWN int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device** device) {
  if (!started || index > 1) return 2;
  *device = &devices[index];
  return 0;
}
SHOWN int nvmlDeviceGetHandleByUUID(const char* uuid, Device** device) {
  if (strcmp(uuid, "GPU-one") != 0) return 6;
  *device = &devices[1];
  return 0;
}
SHOWN int nvmlDeviceGetIndex(Device* device, unsigned* index) {
  *index = device->index;
  return 0;
}
SHOWN int nvmlDeviceGetName(Device* device, char* name, unsigned capacity) {
  snprintf(name, capacity, "Stand-in %c", 'A' + (char)device->index);
  return 0;
}
SHOWN int nvmlDeviceGetPciInfo_v3(Device* device, Pci* pci) { return pci_of(device->index, pci); }
SHOWN int nvmlDeviceGetUtilizationRates(Device* device, unsigned rates[2]) {
  rates[0] = 40 + device->index;
  rates[1] = 7;
  return 0;
}
SHOWN int nvmlDeviceGetMemoryInfo(Device* device, unsigned long long memory[3]) {
  memory[0] = 8ULL << 30;
  memory[2] = (1ULL << 30) * (device->index + 1) + ++device->asked;
  memory[1] = memory[0] - memory[2];
  return 0;
}
SHOWN int nvmlDeviceGetClockInfo(Device* device, unsigned which, unsigned* mhz) {
  (void)device;
  if (which != 1) return 3;  // no memory clock: not supported
  *mhz = 1980;
  return 0;
}
SHOWN int nvmlDeviceGetCurrentClocksThrottleReasons(Device* device, unsigned long long* reasons) {
  *reasons = device->index == 1 ? 0x40 : 0x1;
  return 0;
}
SHOWN int nvmlDeviceGetPowerUsage(Device* device, unsigned* milliwatts) {
  *milliwatts = 350000 + device->index;
  return 0;
}
SHOWN int nvmlDeviceGetTopologyCommonAncestor(Device* one, Device* other, unsigned* level) {
  *level = one == other ? 0 : 40;
  return 0;
}
SHOWN int nvmlDeviceGetNvLinkState(Device* device, unsigned link, unsigned* active) {
  (void)device;
  *active = link < 4;
  return 0;
}
// Directly to the other GPU, or to a switch if $STAND_IN_NVSWITCH is set.
SHOWN int nvmlDeviceGetNvLinkRemoteDeviceType(Device* device, unsigned link, unsigned* type) {
  (void)device, (void)link;
  *type = getenv("STAND_IN_NVSWITCH") != NULL ? 2 : 0;
  return 0;
}
SHOWN int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device* device, unsigned link, Pci* pci) {
  (void)link;
  return pci_of(1 - device->index, pci);
}
SHOWN int nvmlEventSetCreate(void** set) {
  *set = devices;
  return 0;
}
SHOWN int nvmlDeviceRegisterEvents(Device* device, unsigned long long types, void* set) {
  (void)set;
  if (device->index == 1 && types == 8) has_events = 1;
  return 0;
}
SHOWN int nvmlEventSetWait_v2(void* set, Event* event, unsigned milliseconds) {
  (void)set;
  (void)milliseconds;
  if (!has_events) return 10;
  has_events = 0;
  memset(event, 0, sizeof *event);
  event->device = &devices[1];
  event->type = 8;
  event->data = 79;
  return 0;
}
