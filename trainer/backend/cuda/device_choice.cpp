#include "trainer/backend/cuda/device_choice.h"

#include <algorithm>
#include <vector>

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

}  // namespace paceline::train::cuda
