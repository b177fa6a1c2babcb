// What `paceline record` tells the recorder inside the program (libpaceline-inject.so), through the environment.
//
// The recorder must also work without any of these (a program started by hand with NVTX_INJECTION64_PATH set): each
// line says what it then takes. Numbers are decimal and whole, so that no locale changes their meaning; times are in
// milliseconds, sizes in bytes. A switch is on where its variable is "1".
#pragma once

namespace paceline::record {

// --- where to

// Absolute path of the directory for trace files; exists and is writable. Unset: "paceline-run" in the current
// directory, made if need be.
inline constexpr char env_output[] = "PACELINE_OUTPUT";
// File name in that directory, with the placeholders of file_name.h. Unset: default_pattern.
inline constexpr char env_pattern[] = "PACELINE_PATTERN";
// Switch: a file of that name in the directory may be replaced. Else the recorder never overwrites: it appends "-2",
// "-3", … before the ending (a program that execs another keeps its pid, and with it the name).
// Switch: a thread that finds no room for an event waits until there is some, and how long it waited is recorded.
inline constexpr char env_lossless[] = "PACELINE_LOSSLESS";
inline constexpr char env_force[] = "PACELINE_FORCE";
// Directory that files are written in, and moved from at the end. Unset: the output directory.
inline constexpr char env_stage[] = "PACELINE_STAGE";

// --- what to say about the run

// What --set described: lines KEY=VALUE, separated by '\n', in the order given; the last of equal keys counts. Goes
// into the header's JSON text as it is. Unset: nothing.
inline constexpr char env_set[] = "PACELINE_SET";
// The job's identity, the same in all of its ranks, another in every other job (launcher.h). Goes into the header.
// Unset: launcher.h finds it, or it is left out.
inline constexpr char env_job[] = "PACELINE_JOB";

// --- what to record

// "A:B", both included: the iterations to record, by occurrence, from 0; B may be missing. Unset: all.
inline constexpr char env_iterations[] = "PACELINE_ITERATIONS";
// Name of the NVTX ranges that are iterations; `*` stands for any text. Unset: format/iteration_rules.h.
inline constexpr char env_iteration_name[] = "PACELINE_ITERATION_NAME";
// Recording starts so long after the process, and lasts so long. Unset: at once, to the end.
inline constexpr char env_delay_ms[] = "PACELINE_DELAY_MS";
inline constexpr char env_duration_ms[] = "PACELINE_DURATION_MS";
// Switch: recording is off but between cudaProfilerStart and cudaProfilerStop.
inline constexpr char env_capture_range[] = "PACELINE_CAPTURE_RANGE";
// Which children of a recorded process are recorded, beside those with a rank of their own: "1" all, "0" none. Unset:
// workers, which were forked or run the same program.
inline constexpr char env_children[] = "PACELINE_CHILDREN";

// Names of NVTX domains ("default": the default domain) and categories, separated by commas: only these are recorded,
// all but these. Unset: all.
inline constexpr char env_nvtx_domains[] = "PACELINE_NVTX_DOMAINS";
inline constexpr char env_nvtx_exclude_domains[] = "PACELINE_NVTX_EXCLUDE_DOMAINS";
inline constexpr char env_nvtx_categories[] = "PACELINE_NVTX_CATEGORIES";
inline constexpr char env_nvtx_exclude_categories[] = "PACELINE_NVTX_EXCLUDE_CATEGORIES";
// Time between two samplings of counters, in µs; 0: no counters, and no facts of the machine. Unset: 50000.
inline constexpr char env_counters_us[] = "PACELINE_COUNTERS_US";

// --- how much

// Size of the file's live area, rounded up to whole chunks (layout.h). Unset: 32 MiB.
inline constexpr char env_buffer_bytes[] = "PACELINE_BUFFER_BYTES";
// Bound of the recorder's memory in the process, live area and names together. Unset: 64 MiB.
inline constexpr char env_max_memory_bytes[] = "PACELINE_MAX_MEMORY_BYTES";
// Bound of the file. Unset: none.
inline constexpr char env_max_size_bytes[] = "PACELINE_MAX_SIZE_BYTES";

// --- flight recorder and hangs

// Only the last so much time is kept, and written out when something asks for it. Unset: everything is kept.
inline constexpr char env_ring_ms[] = "PACELINE_RING_MS";
// Number of the signal that asks for it; 0: none. Unset: SIGUSR2.
inline constexpr char env_ring_signal[] = "PACELINE_RING_SIGNAL";
// An iteration of more than so many thousandths of the median asks for it. Unset: none.
inline constexpr char env_ring_slow_permille[] = "PACELINE_RING_SLOW_PERMILLE";
// So long without an end of an iteration or a collective is said on standard error. Unset: nobody looks.
inline constexpr char env_hang_ms[] = "PACELINE_HANG_MS";

// --- clocks

// Which clock events are stamped with: "tsc", the processor's counter where it can be trusted, or "monotonic_raw", the
// system's. Unset: tsc.
inline constexpr char env_clock[] = "PACELINE_CLOCK";
// How far the clocks of one machine's CPUs are apart: "NS BOOT_ID TEXT" (clock_check.h). Unset, or of another boot: the
// reader takes a bound for every machine.
inline constexpr char env_clock_error[] = "PACELINE_CLOCK_ERROR";
// How often the clocks of machines are compared while an MPI program runs, in seconds; 0: only at MPI_Init and
// MPI_Finalize. Unset: 10.
inline constexpr char env_clock_interval[] = "PACELINE_CLOCK_INTERVAL";

// --- variables of others that the launcher sets: the recorder's path is put in front of LD_PRELOAD, and NVTX loads it
// by the second one

inline constexpr char env_preload[] = "LD_PRELOAD";
inline constexpr char env_nvtx[] = "NVTX_INJECTION64_PATH";

// How the CUDA driver finds libpaceline-cupti.so and NCCL finds libpaceline-nccl.so. Unset: they are not recorded.
inline constexpr char env_cuda[] = "CUDA_INJECTION64_PATH";
inline constexpr char env_nccl_plugin[] = "NCCL_PROFILER_PLUGIN";

// CUPTI's library, for a machine where it is somewhere else. Unset: it is looked for (cupti_library.h).
inline constexpr char env_cupti[] = "PACELINE_CUPTI";

// "nodes": each node of a CUDA graph is an event. Unset: a launch of a graph is one.
inline constexpr char env_cuda_graphs[] = "PACELINE_CUDA_GRAPHS";

// The words "proxy" and "channels": what NCCL is asked for beyond its calls. Unset: nothing.
inline constexpr char env_nccl[] = "PACELINE_NCCL";

inline constexpr char recorder_library[] = "libpaceline-inject.so";
inline constexpr char cuda_library[] = "libpaceline-cupti.so";
inline constexpr char nccl_library[] = "libpaceline-nccl.so";
inline constexpr char default_output[] = "paceline-run";
inline constexpr char default_pattern[] = "%h-r%r-p%p.pace";

}  // namespace paceline::record
