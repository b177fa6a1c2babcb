// SPDX-License-Identifier: Apache-2.0
// The recorded event: a head of one 16-byte slot, followed by as many extension slots as its type has.
//
// Threads write slots into their chunk of the file's live area (layout.h); the drain thread transposes full chunks into
// compressed blocks (block.h); the reader gives the same slots back from either. event_table.h lists the slots of each
// type, and events.h the values in them. docs/trace-format.md describes both.
//
// Publication: a writer fills the extension slots, then `low`, then stores `high` with release order. A head whose
// `high` is 0 was never written; a chunk is zeroed before it is used. So a process killed at any instruction leaves
// only whole events.
#pragma once

#include <cstdint>

namespace paceline::format {

struct Slot {
  std::uint64_t high = 0;  // ticks since the header's start_ticks (56 bits) << 8 | type
  std::uint64_t low = 0;   // by type
};
static_assert(sizeof(Slot) == 16);

enum class EventType : std::uint8_t {
  none = 0,

  // Definitions. They precede the first use on the same track, or come from another track of the same file: a reader
  // takes all definitions of a file before it resolves names.
  name = 1,
  domain = 2,
  category = 3,
  thread_name = 4,
  communicator = 5,

  // Ranges and marks (NVTX).
  push = 16,
  push_payload = 17,
  pop = 18,
  mark = 19,
  mark_payload = 20,
  start = 21,
  start_payload = 22,
  end = 23,

  // MPI calls, as begin and end, so that a call that never returned is visible. More about MPI is at 80 to 85.
  mpi_begin = 32,
  mpi_begin_peer = 33,
  mpi_begin_coll = 34,
  mpi_end = 35,

  // The clock.
  clock_pair = 48,
  clock_exchange = 49,

  // How the recording went.
  setting = 56,
  recording = 57,
  trigger = 58,
  lost = 59,
  process_end = 63,

  // What NVTX names and describes beside ranges. Schema numbers are those of the payload extension: below 1024 its
  // predefined types, from 1024 on those that the recorder assigns, from 2^24 on the program's own (per domain).
  resource = 64,
  resource_end = 65,
  schema = 66,
  schema_entry = 67,
  enumeration = 68,
  enumerator = 69,
  payload = 70,
  payload_part = 71,
  scope = 72,
  time_domain = 73,
  time_sync = 74,
  submit = 75,

  // MPI's requests, files and windows.
  mpi_posted = 80,
  mpi_completed = 81,
  mpi_file = 82,
  mpi_begin_file = 83,
  mpi_window = 84,
  mpi_begin_window = 85,

  // CUDA, from CUPTI's activity records. The head's ticks are the begin of the activity.
  cuda_function = 96,
  cuda_stream = 97,
  cuda_kernel = 98,
  cuda_call = 99,
  cuda_kernel_run = 100,
  cuda_copy = 101,
  cuda_set = 102,
  cuda_wait = 103,
  cuda_graph = 104,
  cuda_overhead = 105,
  cuda_clock = 106,
  cuda_handle = 107,

  // NCCL, from its profiler interface. An id is unique in the process.
  nccl_collective = 113,
  nccl_peer = 114,
  nccl_call = 115,
  nccl_channel = 116,
  nccl_proxy = 117,
  nccl_end = 118,

  // Stacks of threads, sampled.
  stack = 120,
  stack_sample = 121,

  // Values of the machine and of the process over time.
  counter = 128,
  sample = 129,

  // What the scheduler did with the threads.
  thread_found = 130,
  thread_switch = 131,
  thread_times = 132,
  other_program = 133,
};

// What a thread does. unknown: its switches are not recorded from here on, only the sums of thread_times.
enum class ThreadState : std::uint8_t { unknown = 0, running = 1, waiting = 2, blocked = 3, ended = 4 };

// What an nccl_call event describes.
enum class NcclCall : std::uint32_t { group_api = 1, collective_api = 2, peer_api = 3, kernel_launch = 4, group = 5 };

// level: the value itself counts (a temperature). sum: the value rises from an arbitrary start, and its rise between
// two samples counts (bytes sent).
enum class CounterKind : std::uint16_t { level = 0, sum = 1 };

enum class PayloadType : std::uint64_t { none = 0, unsigned_integer = 1, signed_integer = 2, floating = 3 };

// Bits of `recording`. Several reasons may keep the recording off at once.
enum PauseReason : std::uint32_t {
  by_program = 1,          // paceline_recording(0), MPI_Pcontrol(0)
  before_delay = 2,        // --delay
  outside_iterations = 4,  // --iterations
  outside_capture = 8,     // --capture-range: cudaProfilerStart, cudaProfilerStop
  after_duration = 16,     // --duration
  file_is_full = 32,       // --max-size
};

// Whose events are lost: those of the track that the event `lost` is on, or those of threads that are not known.
enum class LostScope : std::uint8_t { track = 0, any_thread = 1 };

enum class TriggerCause : std::uint8_t { signal = 1, slow_iteration = 2, hang = 3 };

constexpr std::uint64_t pack_lost(std::uint32_t cause, std::uint64_t events) { return cause | events << 16; }

constexpr std::uint64_t pack_high(std::uint64_t ticks, EventType type) {
  return ticks << 8 | static_cast<std::uint64_t>(type);
}
constexpr EventType type_of(const Slot& slot) { return static_cast<EventType>(slot.high & 0xff); }
constexpr std::uint64_t ticks_of(const Slot& slot) { return slot.high >> 8; }

constexpr std::uint64_t pack_scope(std::uint32_t name, std::uint16_t category, std::uint16_t domain) {
  return std::uint64_t{name} | std::uint64_t{category} << 32 | std::uint64_t{domain} << 48;
}

}  // namespace paceline::format
