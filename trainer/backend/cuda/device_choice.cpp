// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cuda/device_choice.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <dlfcn.h>

#include "trainer/core/error.h"

namespace paceline::train::cuda {

int choose_device(int local_rank, std::size_t visible, const std::string& reason_for_none) {
  if (visible == 0) {
    throw Error("‹device› cuda", "no GPU can be used: " + reason_for_none,
                "see nvidia-smi and CUDA_VISIBLE_DEVICES, or take ‹device› cpu", Status::usage);
  }
  return local_rank % static_cast<int>(visible);
}

void refuse_shared_gpu(std::span<const std::string> uuids, bool share) {
  if (share) return;
  std::vector<std::string> distinct(uuids.begin(), uuids.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (distinct.size() == uuids.size()) return;
  const auto count = [](std::size_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  throw Error("‹device› cuda",
              count(uuids.size(), "rank") + " on a host with " + count(distinct.size(), "GPU") + " for them",
              "start one rank for each GPU, or give ‹share-gpu› to let ranks share", Status::usage);
}

std::string uuid_of_device(int ordinal, std::span<const char, 16> of_properties, const char* driver) {
  std::array<char, 16> uuid{};
  std::copy(of_properties.begin(), of_properties.end(), uuid.begin());
  if (void* const library = dlopen(driver, RTLD_NOW)) {  // stays open, as the driver does
    const auto device_of = reinterpret_cast<int (*)(int*, int)>(dlsym(library, "cuDeviceGet"));
    const auto uuid_of = reinterpret_cast<int (*)(std::array<char, 16>*, int)>(dlsym(library, "cuDeviceGetUuid_v2"));
    int device = 0;
    std::array<char, 16> own{};
    if (device_of != nullptr && uuid_of != nullptr && device_of(&device, ordinal) == 0 && uuid_of(&own, device) == 0) {
      uuid = own;
    }
  }
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : uuid) {
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace paceline::train::cuda
