// The choice between CPU and GPU.
#pragma once

#include <string>

#include "trainer/run/gpu_part.h"

namespace paceline::train {

// wish: cpu, cuda, or auto, which means cuda if every rank can have a GPU, else cpu. Makes this rank's GPU current and
// returns the GPU part of the program; returns null if the CPU computes. Throws Error (usage) on all ranks if a
// requested GPU is not available, or if two ranks would have the same one without `share`. A collective call over all
// ranks of the job.
const GpuPart* open_gpu(const std::string& wish, bool share);

}  // namespace paceline::train
