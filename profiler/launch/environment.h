// SPDX-License-Identifier: Apache-2.0
// The environment variables through which `paceline record` controls the recorder inside the program
// (libpaceline-inject.so).
//
// The recorder must also work without any of them, in a program that was started by hand with NVTX_INJECTION64_PATH
// set. Each comment gives the value for an unset variable. Numbers are whole and decimal, so that no locale changes
// their meaning. Times are in milliseconds and sizes in bytes. A switch is on if its variable is "1".
#pragma once

namespace paceline::record {

// --- output

// Absolute path of the directory for trace files, which exists and is writable. Unset: "paceline-run" in the current
// directory, which the recorder creates.
inline constexpr char env_output[] = "PACELINE_OUTPUT";
// File name in that directory, with the placeholders of file_name.h. Unset: default_pattern.
inline constexpr char env_pattern[] = "PACELINE_PATTERN";
// Switch: a file with that name in the directory may be replaced. Otherwise the recorder never overwrites a file: it
// inserts "-2", "-3", … before the ending. (A program that execs another one keeps its pid, and therefore the name.)
inline constexpr char env_force[] = "PACELINE_FORCE";
// Directory that files are written to first. At the end they are moved to the output directory. Unset: files are
// written to the output directory at once.
inline constexpr char env_stage[] = "PACELINE_STAGE";

// The file in the output directory that names the job which records there (job_marker.h).
inline constexpr char job_marker_name[] = ".paceline-job";

// --- description of the run

// The values of --set: lines KEY=VALUE, separated by '\n', in the order given; the last of equal keys counts. They go
// into the header's JSON text unchanged. Unset: nothing.
inline constexpr char env_set[] = "PACELINE_SET";
// The job's identity, which is equal on all of its ranks and different in every other job (launcher.h). It goes into
// the header. Unset: launcher.h finds it, or it is omitted.
inline constexpr char env_job[] = "PACELINE_JOB";

// --- what to record

// "A:B", both included: the iterations to record, counted from 0. B may be missing. Unset: all.
inline constexpr char env_iterations[] = "PACELINE_ITERATIONS";
// Name of the NVTX ranges that are iterations; `*` matches any text. Unset: format/iteration_rules.h.
inline constexpr char env_iteration_name[] = "PACELINE_ITERATION_NAME";
// The time from the start of the process to the start of the recording, and the duration of the recording. Unset: it
// starts at once and lasts to the end.
inline constexpr char env_delay_ms[] = "PACELINE_DELAY_MS";
inline constexpr char env_duration_ms[] = "PACELINE_DURATION_MS";
// Switch: events are recorded only between cudaProfilerStart and cudaProfilerStop.
inline constexpr char env_capture_range[] = "PACELINE_CAPTURE_RANGE";
// Which children of a recorded process are recorded, besides those with a rank of their own: "1" all, "0" none. Unset:
// workers, which were forked or run the same program.
inline constexpr char env_children[] = "PACELINE_CHILDREN";

// Names of NVTX domains ("default" is the default domain) and categories, separated by commas: record only these, or
// all except these. Unset: all.
inline constexpr char env_nvtx_domains[] = "PACELINE_NVTX_DOMAINS";
inline constexpr char env_nvtx_exclude_domains[] = "PACELINE_NVTX_EXCLUDE_DOMAINS";
inline constexpr char env_nvtx_categories[] = "PACELINE_NVTX_CATEGORIES";
inline constexpr char env_nvtx_exclude_categories[] = "PACELINE_NVTX_EXCLUDE_CATEGORIES";
// Time between two samples of the counters, in µs; 0: no counters and no facts of the machine. Unset: 50000.
inline constexpr char env_counters_us[] = "PACELINE_COUNTERS_US";
// "0": what the scheduler does with the threads is not recorded. "sums": only its sums, without each switch. Unset:
// all.
inline constexpr char env_scheduler[] = "PACELINE_SCHEDULER";

// Time between two samples of the threads' stacks, in µs; 0: no samples. Unset: 100000.
inline constexpr char env_sample_us[] = "PACELINE_SAMPLE_US";
// "all": the stacks of all threads are sampled. Unset: those of the main thread.
inline constexpr char env_sample_threads[] = "PACELINE_SAMPLE_THREADS";

// "phases" or "modules": what PyTorch's hooks record (profiler/pytorch). Unset: nothing.
inline constexpr char env_pytorch[] = "PACELINE_PYTORCH";

// --- limits

// Switch: a thread that finds no room for an event waits for room, and the time that it waited is recorded.
inline constexpr char env_lossless[] = "PACELINE_LOSSLESS";

// Size of the file's live area, rounded up to whole chunks (layout.h). Unset: 32 MiB.
inline constexpr char env_buffer_bytes[] = "PACELINE_BUFFER_BYTES";
// Limit of the recorder's memory in the process, for live area and names together. Unset: 64 MiB.
inline constexpr char env_max_memory_bytes[] = "PACELINE_MAX_MEMORY_BYTES";
// Limit of the file. Unset: none.
inline constexpr char env_max_size_bytes[] = "PACELINE_MAX_SIZE_BYTES";

// --- flight recorder and hangs

// Length of the flight recorder: only the events of this last period are kept, and a trigger writes them out. Unset:
// all events are kept.
inline constexpr char env_ring_ms[] = "PACELINE_RING_MS";
// Number of the signal that is a trigger; 0: none. Unset: SIGUSR2.
inline constexpr char env_ring_signal[] = "PACELINE_RING_SIGNAL";
// An iteration that takes more than this many thousandths of the median is a trigger. Unset: none.
inline constexpr char env_ring_slow_permille[] = "PACELINE_RING_SLOW_PERMILLE";
// If no iteration and no collective ends for this time, a line on standard error reports it. Unset: no watch.
inline constexpr char env_hang_ms[] = "PACELINE_HANG_MS";

// --- clocks

// The clock of the events: "tsc", the CPU's counter if it can be trusted, or "monotonic_raw", the system's. Unset: tsc.
inline constexpr char env_clock[] = "PACELINE_CLOCK";
// The error between the clocks of one machine's CPUs: "NS BOOT_ID TEXT" (clock_check.h). Unset, or from another boot:
// the reader uses a bound for any machine.
inline constexpr char env_clock_error[] = "PACELINE_CLOCK_ERROR";
// Time between two comparisons of the machines' clocks while an MPI program runs, in seconds; 0: only at MPI_Init and
// MPI_Finalize. Unset: 10.
inline constexpr char env_clock_interval[] = "PACELINE_CLOCK_INTERVAL";

// Process id of the command, which `paceline record` replaced itself by. Unset: it is a child of `paceline record`.
inline constexpr char env_command_pid[] = "PACELINE_COMMAND_PID";

// The path of the recorder, which libpaceline-nvtx.so loads in a program that lost LD_PRELOAD.
inline constexpr char env_recorder[] = "PACELINE_RECORDER";

// --- variables of other programs that `paceline record` sets. The recorder's path is put in front of LD_PRELOAD, and
// NVTX loads libpaceline-nvtx.so through the second variable, which passes it on to the recorder.

inline constexpr char env_preload[] = "LD_PRELOAD";
inline constexpr char env_nvtx[] = "NVTX_INJECTION64_PATH";

// The sanitizers' options, to each of which one is added: AddressSanitizer accepts a library before its own, and
// ThreadSanitizer, which does not see the recorder's atomic variables, reports no races in it.
struct SanitizerOption {
  const char *variable, *name, *value;
};
inline constexpr SanitizerOption sanitizer_options[] = {{"ASAN_OPTIONS", "verify_asan_link_order", "0"},
                                                        {"TSAN_OPTIONS", "ignore_noninstrumented_modules", "1"}};

// The CUDA driver finds libpaceline-cupti.so, and NCCL finds libpaceline-nccl.so. Unset: they are not recorded.
inline constexpr char env_cuda[] = "CUDA_INJECTION64_PATH";
inline constexpr char env_nccl_plugin[] = "NCCL_PROFILER_PLUGIN";

// The folder of PyTorch's hooks is put in front.
inline constexpr char env_python_path[] = "PYTHONPATH";

// The path of CUPTI's library. Unset: it is searched for (cupti_library.h).
inline constexpr char env_cupti[] = "PACELINE_CUPTI";

// "nodes": each node of a CUDA graph is an event. Unset: the launch of a graph is one event.
inline constexpr char env_cuda_graphs[] = "PACELINE_CUDA_GRAPHS";

// The words "proxy" and "channels": the events that NCCL reports beyond its calls. Unset: none.
inline constexpr char env_nccl[] = "PACELINE_NCCL";

inline constexpr char recorder_library[] = "libpaceline-inject.so";
inline constexpr char nvtx_library[] = "libpaceline-nvtx.so";
inline constexpr char cuda_library[] = "libpaceline-cupti.so";
inline constexpr char nccl_library[] = "libpaceline-nccl.so";
inline constexpr char pytorch_folder[] = "paceline/pytorch";  // beside the libraries
inline constexpr char default_output[] = "paceline-run";
inline constexpr char default_pattern[] = "%h-r%r-p%p.pace";

}  // namespace paceline::record
