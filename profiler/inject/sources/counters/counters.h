// Counters of the process and its machine, which are sampled several times a second (--counters), and the facts of the
// machine, which are read once (machine_facts.h).
//
// A thread of the recorder takes the samples and sleeps in between. It is not the drain, because a query of NVML may
// take milliseconds and the drain must keep up with the program. Taking a sample does not allocate: files stay open and
// are read again. If a sample costs more than 1 % of the interval, the interval is doubled. A child of fork has no such
// thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "profiler/format/event.h"

namespace paceline::inject {

using format::CounterKind;

inline constexpr unsigned most_counters = 250;

// These functions are for the files of this folder, on the counter thread only.

// Defines a counter and returns its number; 0 if there are too many.
std::uint16_t define_counter(std::string_view name, std::string_view unit, std::string_view device, CounterKind kind);

// The following samples are taken now.
void begin_moment();
std::uint64_t current_moment();  // absolute ticks

// Records a sample. Counter 0 does not exist and is ignored.
void record_sample(std::uint16_t counter, std::uint64_t value);
void record_sample_at(std::uint64_t moment, std::uint16_t counter, std::uint64_t value);

// The groups of counters: open_… defines them, sample_… records their values.
void open_process_counters();
void sample_process();
void open_network_counters();
void sample_network();
void forget_files();  // closes the files of both groups
// The GPUs, if there is NVML. open_gpu_counters() may take seconds.
void open_gpu_counters();
void sample_gpus();

}  // namespace paceline::inject
