// SPDX-License-Identifier: Apache-2.0
// The choice of a GPU for each rank.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace paceline::train::cuda {

// The index into visible_devices() for a rank: the local rank, modulo the number of visible devices, because a launcher
// may show each rank only its own. Throws Error (usage) if none is visible.
int choose_device(int local_rank, std::size_t visible, const std::string& reason_for_none);

// uuids: of the GPU of each rank of this host, in the order of local ranks. Throws Error (usage) if two are equal,
// unless `share` is set.
void refuse_shared_gpu(std::span<const std::string> uuids, bool share);

// A device's UUID as 32 hexadecimal digits. Instances of one GPU (MIG) have UUIDs of their own, which the driver has
// (cuDeviceGetUuid_v2); cudaDeviceProp::uuid, which is returned where the driver has none, may be that of the whole
// GPU. driver: another library in tests.
std::string uuid_of_device(int ordinal, std::span<const char, 16> of_properties, const char* driver = "libcuda.so.1");

}  // namespace paceline::train::cuda
