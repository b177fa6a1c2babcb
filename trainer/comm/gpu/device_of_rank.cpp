// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/gpu/device_of_rank.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "trainer/backend/cuda/runtime.h"
#include "trainer/comm/gpu/nccl_comm.h"
#include "trainer/core/error.h"

namespace paceline::train::nccl {

std::vector<Placement> placements(const Ranks& ranks) {
  struct Text {
    std::array<char, 64> host, device;
  } own{};
  const char* const host_of_nccl =
      std::getenv("NCCL_HOSTID");  // it takes ranks with other ones for ranks of other hosts
  if (host_of_nccl != nullptr) {
    std::strncpy(own.host.data(), host_of_nccl, own.host.size() - 1);
  } else {
    gethostname(own.host.data(), own.host.size() - 1);
  }
  const cuda::VisibleDevices visible = cuda::visible_devices();
  int current = 0;
  if (!visible.devices.empty() && cudaGetDevice(&current) == cudaSuccess) {
    const std::string& uuid = visible.devices[static_cast<std::size_t>(current)].uuid;
    std::copy_n(uuid.begin(), std::min(uuid.size(), own.device.size() - 1), own.device.begin());
  }
  std::vector<Text> all(static_cast<std::size_t>(ranks.size));
  MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, ranks.world);
  std::vector<Placement> result;
  for (const Text& text : all) result.push_back({text.host.data(), text.device.data()});
  return result;
}

void use_device_of_rank(const Ranks& ranks, bool share) {
  std::string what;
  try {
    const cuda::VisibleDevices visible = cuda::visible_devices();
    const int index = cuda::choose_device(ranks.local_rank, visible.devices.size(), visible.reason);
    cuda::use_device(visible.devices[static_cast<std::size_t>(index)]);
  } catch (const Error& error) {
    what = error.what();
  }
  // On a machine without GPUs the message is the same on all ranks, so it names no rank.
  const std::string first = first_failure(ranks.world, what);
  int without = what.empty() ? 0 : 1;
  MPI_Allreduce(MPI_IN_PLACE, &without, 1, MPI_INT, MPI_SUM, ranks.world);
  if (without == ranks.size) throw Error(what, Status::usage);
  if (without > 0) throw Error(first, Status::usage);

  std::vector<int> host_of(static_cast<std::size_t>(ranks.size));
  int host = ranks.rank;
  MPI_Bcast(&host, 1, MPI_INT, 0, ranks.host);
  MPI_Allgather(&host, 1, MPI_INT, host_of.data(), 1, MPI_INT, ranks.world);
  const std::vector<Placement> all = placements(ranks);
  for (int of = 0; of < ranks.size; ++of) {  // checks every host, so that all ranks throw the same
    std::vector<std::string> uuids;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (host_of[rank] == of) uuids.push_back(all[rank].device_uuid);
    }
    cuda::refuse_shared_gpu(uuids, share);
  }
}

}  // namespace paceline::train::nccl
