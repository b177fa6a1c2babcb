// Which GPU a rank takes.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace paceline::train::cuda {

// The index into visible_devices() for a rank: the local rank; ranks take turns where fewer devices are visible, as
// they are where a launcher shows each rank its own. Throws Error (usage) where none is visible.
int choose_device(int local_rank, std::size_t visible, const std::string& reason_for_none);

// `uuids`: of the GPU of each rank of this host, in the order of local ranks. Throws Error (usage) where two are the
// same, unless `share` (--share-gpu).
void refuse_shared_gpu(std::span<const std::string> uuids, bool share);

}  // namespace paceline::train::cuda
