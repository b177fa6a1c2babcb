// SPDX-License-Identifier: Apache-2.0
// Facts of the machine, and how this process is bound to it. They are recorded once as settings, which
// docs/trace-format.md lists.
#pragma once

namespace paceline::inject {

// CPUs, NUMA nodes, limits, network adapters. Cost: reads tens of small files.
void record_machine_facts();

// Records one fact, unless its text is empty. Called on the counter thread.
__attribute__((format(printf, 2, 3))) void machine_fact(const char* key, const char* format, ...);

// GPUs and their connections, if there is NVML. May take seconds.
void record_gpu_facts();

}  // namespace paceline::inject
