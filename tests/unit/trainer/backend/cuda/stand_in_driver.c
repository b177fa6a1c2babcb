// SPDX-License-Identifier: Apache-2.0
// Stands in for a driver with two instances (MIG) of one GPU. As NVIDIA's header says, the first version of the
// function would return the UUID of the whole GPU.
#include <string.h>

int cuDeviceGet(int* device, int ordinal) {
  *device = 0x70 + ordinal;
  return ordinal < 2 ? 0 : 101;  // CUDA_ERROR_INVALID_DEVICE
}

int cuDeviceGetUuid_v2(char* uuid, int device) {
  memset(uuid, 0, 16);
  uuid[0] = (char)device;
  return 0;
}
