// The recorded event: a head of one 16-byte slot, followed by as many extension slots as its type has.
//
// Threads write slots into their chunk of the file's live area (layout.h); the drain thread transposes full chunks into
// compressed blocks (block.h); the reader gives the same slots back from either. So there is one meaning of an event,
// written down here and in docs/trace-format.md.
//
// Publication: a writer fills the extension slots, then `low`, then stores `high` with release order. A head whose
// `high` is 0 was never written; a chunk is zeroed before it is used. So a process killed at any instruction leaves
// only whole events.
#pragma once

#include <cstdint>

namespace paceline::format {

struct Slot {
  std::uint64_t high = 0;  // ticks since the header's start_ticks (56 bits) << 8 | type
  std::uint64_t low = 0;   // by type, below
};
static_assert(sizeof(Slot) == 16);

// What `low` and the extension slots hold, by type. Fields of `low` are given from bit 0 upward.
// "text" = extension slots of raw bytes, UTF-8, padded with zeros to a whole slot, as many as needed.
enum class EventType : std::uint8_t {
  none = 0,

  // Definitions. They precede the first use on the same track, or come from another track of the same file: a reader
  // takes all definitions of a file before it resolves names.
  name = 1,          // low: id:32 | bytes:32; text. A string's id, from 1; 0 is the empty string.
  domain = 2,        // low: domain:16 | unused:16 | name:32. NVTX domain; 0 is the default domain.
  category = 3,      // low: domain:16 | unused:16 | category:32; ext.high = name id. NVTX category of a domain.
  thread_name = 4,   // low: unused:32 | name:32; ext.high = thread id of the system. Names that thread's track.
  communicator = 5,  // low: communicator:32 | size:32; ext.high = identity hash, equal on all members and different
                     // from every other communicator's; ext.low = rank of this process in it:32 | name:32.

  // Ranges and marks (NVTX). `scope` = name:32 | category:16 | domain:16.
  push = 16,           // low: scope
  push_payload = 17,   // low: scope; ext.high = PayloadType, ext.low = value bits
  pop = 18,            // low: domain:16. Ends the latest open push of that domain on this track.
  mark = 19,           // low: scope
  mark_payload = 20,   // as push_payload
  start = 21,          // low: scope; ext.high = range id (unique in the process)
  start_payload = 22,  // low: scope; ext.high = range id, ext.low = value bits; ext2.high = PayloadType
  end = 23,            // low: range id

  // MPI calls, as begin and end, so that a call that never returned is seen. `function` is an id of mpi_functions.h.
  mpi_begin = 32,       // low: function:16 | unused:48
  mpi_begin_peer = 33,  // low: function:16 | tag:32 | unused:16; ext.high = bytes;
                        // ext.low = communicator:32 | peer:32 (signed)
  mpi_begin_coll = 34,  // low: function:16 | root:32 (signed, -1: none) | unused:16; ext.high = bytes;
                        // ext.low = communicator:32 | sequence:32 (collectives begun on that communicator before this)
  mpi_end = 35,         // low: function:16 | unused:48. Ends the latest open call of this track.
  // More about MPI is at 80 to 85.

  // The clock. A pair ties ticks to the system's clocks. low: CLOCK_REALTIME, ns; ext.high = CLOCK_MONOTONIC_RAW, ns;
  // ext.low = ticks that reading both took.
  clock_pair = 48,
  // An exchange ties two processes' ticks to one another: one round trip with the rank that keeps the reference clock.
  // The head's ticks are its own at sending, relative as always. low: peer rank:32 | phase:32 (0 = at MPI_Init, 1 = at
  // MPI_Finalize, 2 = between); ext.high = own ABSOLUTE ticks at receiving; ext.low = the peer's ABSOLUTE ticks
  // between.
  clock_exchange = 49,

  // A fact learned while running: "rank", "world_size", "mpi_library", … low: key name:32 | value name:32.
  setting = 56,

  // What was recorded. low: why recording is off, as bits (PauseReason); 0 = it is on from here on. With ticks 0, it
  // was off from the beginning.
  recording = 57,
  // The flight recorder wrote out what it held. low: TriggerCause:8 | number:56 (of the iteration, the signal, the
  // seconds; 0 = none); ext.high = the tick from which on everything is there (header: kept_from).
  trigger = 58,

  // Events of this track were dropped between two times, `events` of them. Others of the track may be there all the
  // same. low: DropCause:8 | LostScope:8 | events:48; ext.high = first tick, ext.low = last tick, relative as in heads.
  lost = 59,

  process_end = 63,  // low: exit kind (0 = normal). The last event of a process that ended by itself.

  // What NVTX names and describes beside ranges. `schema` numbers are those of the payload extension: below 1024 its
  // predefined types, from 1024 on those that the recorder gave out, from 2^24 on the program's own (per domain).
  resource = 64,      // low: resource:32 (0 = never destroyed) | name:32; ext.high = identifier, ext.low = type:32
                      // (NVTX_RESOURCE_TYPE_…: class:16 << 16 | index) | domain:16. Named mutexes, CUDA streams, …
  resource_end = 65,  // low: resource:32. It was destroyed.
  schema = 66,        // low: schema:32 | name:32; ext.high = domain:16 | type:16 | flags:32, ext.low = bytes:32 |
                      // packing:16 | unused:16; ext2.high = time domain of its time stamps (0 = none given)
  schema_entry = 67,  // low: schema:32 | name:32; ext.high = type or schema of the entry:32 | flags:32, ext.low =
                      // domain:16 | index:16 | offset:32; ext2.high = array length or union detail
  enumeration = 68,   // low: schema:32 | name:32; ext.high = domain:16 | bytes:16
  enumerator = 69,    // low: schema:32 | name:32; ext.high = value, ext.low = domain:16 | 1 if it is a flag
  // A payload of the event that follows on the track, right after it and its other payloads.
  payload = 70,       // low: schema:32 | bytes:32; then the bytes, padded with zeros to a whole slot
  payload_part = 71,  // low: offset:32 | bytes:32; then the bytes. What the pointer at that offset of the payload
                      // before pointed to.
  scope = 72,         // low: domain:16 | unused:16 | path:32 (a name); ext.high = id, ext.low = the parent's id
  time_domain = 73,  // low: domain:16 | flags:16; ext.high = id, ext.low = NVTX_TIMESTAMP_TYPE_…; ext2.high = ticks a
                     // second (0 = not known), ext2.low = NVTX_TIMER_START_…
  time_sync = 74,    // low: domain:16; ext.high, ext.low = two time domains; ext2.high, ext2.low = one moment in both.
                     // Time domain 1 (NVTX_TIMESTAMP_TYPE_TOOL_PROVIDED) is ABSOLUTE ticks.
  submit = 75,       // low: scope (its domain). A range or mark whose times are in its payload.

  // Requests of MPI, told inside the call that is open on the track. A request's number is used once in a process.
  mpi_posted = 80,     // low: request:64. The call started an operation that another call completes.
  mpi_completed = 81,  // low: request:64. The operation is complete when the open call (a wait, a test) ends.

  // MPI's files and windows: definitions, and the calls on them. The identity is equal on all members that opened the
  // file, or made the window, together.
  mpi_file = 82,          // low: file:32 | path name:32; ext.high = identity; ext.low = communicator:32 | unused:32
  mpi_begin_file = 83,    // low: function:16 | file:32 | unused:16; ext.high = bytes;
                          // ext.low = offset in the file's own units (signed; -1: at a file pointer)
  mpi_window = 84,        // low: window:32 | communicator:32; ext.high = identity; ext.low = bytes of this rank's part
  mpi_begin_window = 85,  // low: function:16 | target rank:32 (signed, -1: none) | unused:16; ext.high = bytes;
                          // ext.low = window:32 | unused:32

  // CUDA, from CUPTI's activity records. The head's ticks are the begin of what is told; `duration` is in ticks. What a
  // call started on the device has the call's correlation. `stream`, `kernel` and `graph` 0: none.
  cuda_function = 96,  // low: function:16 | api:16 (0 = runtime, 1 = driver) | name:32
  cuda_stream = 97,    // low: stream:32 (from 1) | name:32; ext.high = device:32 | context:32;
                       // ext.low = CUPTI's number of it:32 | unused:32
  cuda_kernel = 98,    // A function as it was launched. low: kernel:32 (from 1) | name:32;
                       // ext.high = grid x:32 | y:16 | z:16; ext.low = block x:16 | y:16 | z:16 | registers:16;
                       // ext2.high = static:32 | dynamic:32 shared bytes; ext2.low = local bytes of a thread
  cuda_call = 99,      // low: function:16 | api:16 | thread:32 (the system's); ext.high = duration;
                       // ext.low = correlation:32 | result:32
  // low: kernel:32 | stream:32; ext.high = duration; ext.low = correlation:32 | graph:32
  cuda_kernel_run = 100,
  // low: stream:32 | kind:8 | from:8 | to:8 (CUPTI's numbers) | 0:8; ext.high = duration; ext.low = correlation:32 |
  // graph:32; ext2.high = bytes; ext2.low = from device:32 | to device:32
  cuda_copy = 101,
  cuda_set = 102,       // low: stream:32 | value:32; ext.high = duration; ext.low = correlation:32 | graph:32;
                        // ext2.high = bytes; ext2.low = kind of memory
  cuda_wait = 103,      // low: stream:32 | kind:32 (CUPTI's number); ext.high = duration;
                        // ext.low = correlation:32 | event:32
  cuda_graph = 104,     // low: stream:32 | graph:32; ext.high = duration; ext.low = correlation:32 | unused:32
  cuda_overhead = 105,  // low: kind:32 (CUPTI's number) | thread:32; ext.high = duration; ext.low = correlation
  cuda_clock = 106,   // low: CUPTI's clock at the head's ticks, ns; ext.high = ticks that reading it took. The times of
                      // all other events of CUDA were converted along a line through these.
  cuda_handle = 107,  // low: context:32 | stream:32, CUPTI's numbers (stream all ones: the context itself);
                      // ext.high = the driver's handle of it, by which NVTX gives names; ext.low = 0

  // NCCL, from its profiler interface. `operation` is a name: "FUNCTION DATATYPE ALGORITHM PROTOCOL CHANNELS WARPS",
  // "-" for what is not known. `id` is unique in the process; `nccl_end` ends what has it, on any track. A collective,
  // begin of its enqueueing. low: operation:32 | communicator:32; ext.high = bytes; ext.low = sequence:32 (by function)
  // | root:32; ext2.high = id; ext2.low = id of the nccl_call that enqueued it
  nccl_collective = 113,
  nccl_peer = 114,  // A send or a receive. As nccl_collective, but ext.low = peer:32 | channels:32
  // low: operation:32 | communicator:32; ext.high = bytes; ext.low = NcclCall:32 | root:32 (signed); ext2.high = id;
  // ext2.low = 1: captured into a graph
  nccl_call = 115,
  // One channel of a kernel begins or ends. low: id of what it works for; ext.high = the device's clock, ns;
  // ext.low = channel:32 | edge:32 (0 = begin, 1 = end). The ticks are when it was told.
  nccl_channel = 116,
  nccl_proxy = 117,  // low: channel:16 | sends:16 | peer:32; ext.high = id of what it works for;
                     // ext.low = steps:32 | chunk bytes:32; ext2.high = id; ext2.low unused
  nccl_end = 118,    // low: id

  // Values of the machine and of the process over time. A definition, and one value; samples of one moment have the
  // same ticks.
  counter = 128,  // low: counter:16 | CounterKind:16 | name:32; ext.high = unit name:32 | device name:32 (0: none).
  sample = 129,   // low: counter:32; ext.high = value, whole, in the counter's unit
};

// What an nccl_call is.
enum class NcclCall : std::uint32_t { group_api = 1, collective_api = 2, peer_api = 3, kernel_launch = 4, group = 5 };

// level: the value itself says something (a temperature). sum: it rises from an arbitrary start, and what it rose by
// between two samples says something (bytes sent).
enum class CounterKind : std::uint16_t { level = 0, sum = 1 };

enum class PayloadType : std::uint64_t { none = 0, unsigned_integer = 1, signed_integer = 2, floating = 3 };

// Bits of `recording`: several may keep it off at once.
enum PauseReason : std::uint32_t {
  by_program = 1,          // paceline_recording(0), MPI_Pcontrol(0)
  before_delay = 2,        // --delay
  outside_iterations = 4,  // --iterations
  outside_capture = 8,     // --capture-range: cudaProfilerStart, cudaProfilerStop
  after_duration = 16,     // --duration
  file_is_full = 32,       // --max-size
};

// Whose events are lost: those of the track that the event is on, or those of threads that are not known.
enum class LostScope : std::uint8_t { track = 0, any_thread = 1 };

enum class TriggerCause : std::uint8_t { signal = 1, slow_iteration = 2, hang = 3 };

// True of the types whose extension slots are raw bytes.
constexpr bool has_bytes(EventType type) {
  return type == EventType::name || type == EventType::payload || type == EventType::payload_part;
}

// True of what NVTX's payloads refer to, and of resources.
constexpr bool is_nvtx_definition(EventType type) {
  return type >= EventType::resource && type < EventType::submit && !has_bytes(type);
}

// True of what later events refer to.
constexpr bool defines(EventType type) {
  const auto number = static_cast<unsigned>(type);
  return (number > 0 && number < 16) || is_nvtx_definition(type) || type == EventType::mpi_file ||
         type == EventType::mpi_window || type == EventType::cuda_function || type == EventType::cuda_stream ||
         type == EventType::cuda_kernel || type == EventType::cuda_handle || type == EventType::counter;
}

// True of what says how clocks and ticks belong together, or how the recording went.
constexpr bool is_clock_event(EventType type) {
  return type == EventType::clock_pair || type == EventType::clock_exchange || type == EventType::cuda_clock ||
         type == EventType::time_sync;
}
constexpr bool is_setting(EventType type) {
  return type == EventType::setting || type == EventType::recording || type == EventType::trigger ||
         type == EventType::process_end;
}

// What a flight recorder keeps when it drops the events around it. (CUDA's clock only matters to the events around it.)
constexpr bool outlives_ring(EventType type) {
  return defines(type) || is_setting(type) || type == EventType::lost ||
         (is_clock_event(type) && type != EventType::cuda_clock);
}

// True of an event of CUDA that lasts from its ticks on for as many ticks as ext.high says.
constexpr bool has_duration(EventType type) { return type >= EventType::cuda_call && type <= EventType::cuda_overhead; }

constexpr std::uint64_t pack_lost(std::uint32_t cause, std::uint64_t events) { return cause | events << 16; }

constexpr std::uint64_t pack_high(std::uint64_t ticks, EventType type) {
  return ticks << 8 | static_cast<std::uint64_t>(type);
}
constexpr EventType type_of(const Slot& slot) { return static_cast<EventType>(slot.high & 0xff); }
constexpr std::uint64_t ticks_of(const Slot& slot) { return slot.high >> 8; }

constexpr std::uint64_t pack_scope(std::uint32_t name, std::uint16_t category, std::uint16_t domain) {
  return std::uint64_t{name} | std::uint64_t{category} << 32 | std::uint64_t{domain} << 48;
}

// Extension slots after the head; for bytes it depends on `low`.
constexpr std::uint32_t extension_slots(const Slot& head) {
  switch (type_of(head)) {
    case EventType::name:
    case EventType::payload:
    case EventType::payload_part:
      return static_cast<std::uint32_t>(((head.low >> 32) + 15) / 16);
    case EventType::category:
    case EventType::thread_name:
    case EventType::communicator:
    case EventType::push_payload:
    case EventType::mark_payload:
    case EventType::start:
    case EventType::mpi_begin_peer:
    case EventType::mpi_begin_coll:
    case EventType::clock_pair:
    case EventType::clock_exchange:
    case EventType::trigger:
    case EventType::lost:
    case EventType::mpi_file:
    case EventType::mpi_begin_file:
    case EventType::mpi_window:
    case EventType::mpi_begin_window:
    case EventType::cuda_stream:
    case EventType::cuda_call:
    case EventType::cuda_kernel_run:
    case EventType::cuda_wait:
    case EventType::cuda_graph:
    case EventType::cuda_overhead:
    case EventType::cuda_clock:
    case EventType::cuda_handle:
    case EventType::nccl_channel:
    case EventType::resource:
    case EventType::enumeration:
    case EventType::enumerator:
    case EventType::scope:
    case EventType::counter:
    case EventType::sample:
      return 1;
    case EventType::start_payload:
    case EventType::cuda_kernel:
    case EventType::cuda_copy:
    case EventType::cuda_set:
    case EventType::nccl_collective:
    case EventType::nccl_peer:
    case EventType::nccl_call:
    case EventType::nccl_proxy:
    case EventType::schema:
    case EventType::schema_entry:
    case EventType::time_domain:
    case EventType::time_sync:
      return 2;
    default:
      return 0;
  }
}

}  // namespace paceline::format
