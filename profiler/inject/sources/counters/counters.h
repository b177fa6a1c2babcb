// SPDX-License-Identifier: Apache-2.0
// Counters of the process and its machine, which are sampled several times a second (--counters), and the facts of the
// machine, which are read once (machine_facts.h).
//
// A thread of the recorder takes the samples and sleeps in between. It is not the drain, because a query of NVML may
// take milliseconds and the drain must keep up with the program. Taking a sample does not allocate: files stay open and
// are read again. If a sample costs more than 1 % of the interval, the interval is doubled. A child of fork has no such
// thread.
#pragma once

namespace paceline::inject {

// These functions are for the files of this folder, on the counter thread only. The groups of counters: open_… defines
// them, sample_… records their values.
void open_process_counters();
void sample_process();
void open_network_counters();
void sample_network();
void forget_files();  // closes the files of both groups
// The GPUs, if there is NVML. open_gpu_counters() may take seconds.
void open_gpu_counters();
void sample_gpus();

}  // namespace paceline::inject
