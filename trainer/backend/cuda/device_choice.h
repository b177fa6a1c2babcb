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

}  // namespace paceline::train::cuda
