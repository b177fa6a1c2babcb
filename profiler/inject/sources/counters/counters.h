// Values of the process and its machine beside the events: some times a second (settings.counters_ns, 0 = off), and
// once what the machine is (machine_facts.h).
//
// One thread of ours does it, which sleeps between samplings. Asking NVML may take milliseconds, so it is not the
// drain, which has to keep up with the program. A sampling allocates nothing: files stay open and are read again. Where
// one costs more than 1 % of its interval, the interval is doubled. In a child of fork there is no such thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "profiler/format/event.h"

namespace paceline::inject {

using format::CounterKind;

void start_counters();

// Takes a last sample and ends the thread. Waits for it no longer than a second. Harmless when called twice, or in a
// child.
void stop_counters();

// A forked child that records into a file of its own starts anew; without GPUs, because NVML does not outlive a fork.
void reset_counters_in_child();

// The rest is for the sources, on that thread only.

inline constexpr unsigned most_counters = 250;

// Records what a counter is and returns its number; 0 if there are too many.
std::uint16_t define_counter(std::string_view name, std::string_view unit, std::string_view device, CounterKind kind);

// Samples that follow are of now.
void begin_moment();
std::uint64_t current_moment();  // absolute ticks

// Counter 0 is none.
void record_sample(std::uint16_t counter, std::uint64_t value);
void record_sample_at(std::uint64_t moment, std::uint16_t counter, std::uint64_t value);

// The sources: open() defines counters, sample() records their values.
void open_process_counters();
void sample_process();
void open_network_counters();
void sample_network();
void forget_files();  // of both
// The GPUs, if there is NVML. open() may take seconds.
void open_gpu_counters();
void sample_gpus();

}  // namespace paceline::inject
