// What the machine is and how this process is bound to it, recorded once as settings (docs/trace-format.md lists them).
#pragma once

namespace paceline::inject {

// CPUs, NUMA nodes, limits, network adapters. Some tens of small files are read.
void record_machine_facts();

// GPUs and how they are connected, if there is NVML. May take seconds.
void record_gpu_facts();

}  // namespace paceline::inject
