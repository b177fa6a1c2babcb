// Whether a GPU computes.
#pragma once

#include <string>

#include "trainer/run/gpu_part.h"

namespace paceline::train {

// wish: cpu, cuda or auto, which is cuda where every rank can have a GPU, else cpu. A GPU is this rank's and current
// afterwards; null: the CPU computes. Throws Error (usage) on all ranks where a wished GPU cannot be had, or where two
// ranks would have the same one and not `share`. A collective call over all ranks of the job.
const GpuPart* open_gpu(const std::string& wish, bool share);

}  // namespace paceline::train
