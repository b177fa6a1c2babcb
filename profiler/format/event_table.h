// SPDX-License-Identifier: Apache-2.0
// One row for each event type: its name, how many slots follow its head, what it counts as, and the columns that a
// block splits it into. The recorder, the encoder, the decoder and the readers all go by this table.
//
// docs/trace-format.md has the same tables; a test compares them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "profiler/format/event.h"
#include "profiler/format/events_device.h"
#include "profiler/format/events_mpi.h"
#include "profiler/format/events_nvtx.h"
#include "profiler/format/events_recording.h"
#include "profiler/format/events_scheduler.h"
#include "profiler/format/layout.h"

namespace paceline::format {

// plain: the value. delta: the difference from the value before it in the same column, modulo 2^64, zigzag-coded
// (0, -1, 1, -2, … as 0, 1, 2, 3, …); the first is a difference from 0. series: the same, but from the value before it
// among the events whose `low` is equal modulo 256, because samples of many counters take turns.
enum class Coding : std::uint8_t { plain, delta, series };
inline constexpr std::size_t series_keys = 256;

// An event's 64-bit words after `high`: 0 = low, 1 = ext.high, 2 = ext.low, 3 = ext2.high, 4 = ext2.low.
inline constexpr std::size_t event_words = 5;

// A column of a block: bits of one word of all events of one type.
struct Field {
  std::uint8_t word, shift, bits;
  Coding coding = Coding::plain;
};

namespace fields {
inline constexpr Coding delta = Coding::delta;
inline constexpr Field name[] = {{0, 0, 32, delta}, {0, 32, 32}};  // and the text column
inline constexpr Field domain[] = {{0, 0, 16}, {0, 16, 16}, {0, 32, 32}};
inline constexpr Field category[] = {{0, 0, 16}, {0, 16, 16}, {0, 32, 32}, {1, 0, 64, delta}, {2, 0, 64}};
inline constexpr Field thread_name[] = {{0, 0, 32}, {0, 32, 32}, {1, 0, 64}, {2, 0, 64}};
inline constexpr Field communicator[] = {{0, 0, 32}, {0, 32, 32}, {1, 0, 64}, {2, 0, 32}, {2, 32, 32}};
inline constexpr Field scope[] = {{0, 0, 32}, {0, 32, 16}, {0, 48, 16}};
inline constexpr Field scope_payload[] = {{0, 0, 32}, {0, 32, 16}, {0, 48, 16}, {1, 0, 64}, {2, 0, 64}};
inline constexpr Field whole[] = {{0, 0, 64}};
inline constexpr Field start[] = {{0, 0, 32}, {0, 32, 16}, {0, 48, 16}, {1, 0, 64, delta}, {2, 0, 64}};
inline constexpr Field start_payload[] = {{0, 0, 32}, {0, 32, 16}, {0, 48, 16}, {1, 0, 64, delta},
                                          {2, 0, 64}, {3, 0, 64},  {4, 0, 64}};
inline constexpr Field end[] = {{0, 0, 64, delta}};
inline constexpr Field function[] = {{0, 0, 16}, {0, 16, 48}};
inline constexpr Field peer[] = {{0, 0, 16}, {0, 16, 32}, {0, 48, 16}, {1, 0, 64}, {2, 0, 32}, {2, 32, 32}};
inline constexpr Field collective[] = {{0, 0, 16}, {0, 16, 32}, {0, 48, 16},
                                       {1, 0, 64}, {2, 0, 32},  {2, 32, 32, delta}};
inline constexpr Field clock_pair[] = {{0, 0, 64, delta}, {1, 0, 64, delta}, {2, 0, 64}};
inline constexpr Field clock_exchange[] = {{0, 0, 32}, {0, 32, 32}, {1, 0, 64, delta}, {2, 0, 64, delta}};
inline constexpr Field trigger[] = {{0, 0, 8}, {0, 8, 56}, {1, 0, 64}, {2, 0, 64}};
inline constexpr Field lost[] = {{0, 0, 8}, {0, 8, 8}, {0, 16, 48}, {1, 0, 64, delta}, {2, 0, 64, delta}};
inline constexpr Field mpi_definition[] = {{0, 0, 32}, {0, 32, 32}, {1, 0, 64}, {2, 0, 64}};
inline constexpr Field mpi_file[] = {{0, 0, 16}, {0, 16, 32}, {0, 48, 16}, {1, 0, 64}, {2, 0, 64, delta}};
inline constexpr Field counter[] = {{0, 0, 16}, {0, 16, 16}, {0, 32, 32}, {1, 0, 32}, {1, 32, 32}, {2, 0, 64}};
inline constexpr Field sample[] = {{0, 0, 32}, {0, 32, 32}, {1, 0, 64, Coding::series}, {2, 0, 64}};
inline constexpr Field stack[] = {{0, 0, 32, delta}, {0, 32, 32}, {1, 0, 32}, {1, 32, 32}, {2, 0, 32}, {2, 32, 32}};
inline constexpr Field stack_sample[] = {{0, 0, 32}, {0, 32, 32}, {1, 0, 64}, {2, 0, 64}};
inline constexpr Field two_names[] = {{0, 0, 32}, {0, 32, 32}};
inline constexpr Field thread_found[] = {{0, 0, 32}, {0, 32, 32}, {1, 0, 64}, {2, 0, 64}};
inline constexpr Field thread_switch[] = {{0, 0, 32}, {0, 32, 8}, {0, 40, 24}};
inline constexpr Field thread_times[] = {
    {0, 0, 32}, {0, 32, 32}, {1, 0, 64, Coding::series}, {2, 0, 64, Coding::series}};
inline constexpr Field other_program[] = {{0, 0, 32}, {0, 32, 32}, {1, 0, 64}, {2, 0, 64}, {3, 0, 64}, {4, 0, 64}};

inline constexpr Field cuda_function[] = {{0, 0, 16}, {0, 16, 16}, {0, 32, 32}};
inline constexpr Field cuda_stream[] = {{0, 0, 32}, {0, 32, 32}, {1, 0, 32}, {1, 32, 32}, {2, 0, 32}, {2, 32, 32}};
inline constexpr Field cuda_kernel[] = {{0, 0, 32, delta}, {0, 32, 32}, {1, 0, 32},  {1, 32, 32}, {2, 0, 32},
                                        {2, 32, 32},       {3, 0, 32},  {3, 32, 32}, {4, 0, 64}};
inline constexpr Field cuda_call[] = {{0, 0, 16}, {0, 16, 16}, {0, 32, 32}, {1, 0, 64}, {2, 0, 32, delta}, {2, 32, 32}};
// Activities of a device: two numbers of 32 bits, duration, correlation and one number more, then the rest.
inline constexpr Field cuda_ran[] = {{0, 0, 32}, {0, 32, 32}, {1, 0, 64}, {2, 0, 32, delta}, {2, 32, 32}};
inline constexpr Field cuda_moved[] = {{0, 0, 32},  {0, 32, 32}, {1, 0, 64}, {2, 0, 32, delta},
                                       {2, 32, 32}, {3, 0, 64},  {4, 0, 32}, {4, 32, 32}};
inline constexpr Field cuda_handle[] = {{0, 0, 32}, {0, 32, 32, delta}, {1, 0, 64, delta}, {2, 0, 64}};
inline constexpr Field cuda_clock[] = {{0, 0, 64, delta}, {1, 0, 64}, {2, 0, 64}};
inline constexpr Field nccl_work[] = {{0, 0, 32},  {0, 32, 32},       {1, 0, 64},       {2, 0, 32, delta},
                                      {2, 32, 32}, {3, 0, 64, delta}, {4, 0, 64, delta}};
inline constexpr Field nccl_channel[] = {{0, 0, 64, delta}, {1, 0, 64, delta}, {2, 0, 32}, {2, 32, 32}};
inline constexpr Field nccl_proxy[] = {{0, 0, 16}, {0, 16, 16}, {0, 32, 32},       {1, 0, 64, delta},
                                       {2, 0, 32}, {2, 32, 32}, {3, 0, 64, delta}, {4, 0, 64}};
inline constexpr Field resource[] = {{0, 0, 32, delta}, {0, 32, 32}, {1, 0, 64, delta}, {2, 0, 32}, {2, 32, 32}};
inline constexpr Field schema[] = {{0, 0, 32}, {0, 32, 32}, {1, 0, 16}, {1, 16, 16}, {1, 32, 32},
                                   {2, 0, 32}, {2, 32, 32}, {3, 0, 64}, {4, 0, 64}};
inline constexpr Field schema_entry[] = {{0, 0, 32},         {0, 32, 32}, {1, 0, 32}, {1, 32, 32}, {2, 0, 16},
                                         {2, 16, 16, delta}, {2, 32, 32}, {3, 0, 64}, {4, 0, 64}};
inline constexpr Field enumeration[] = {{0, 0, 32}, {0, 32, 32}, {1, 0, 16}, {1, 16, 48}, {2, 0, 64}};
inline constexpr Field enumerator[] = {{0, 0, 32}, {0, 32, 32}, {1, 0, 64, delta}, {2, 0, 16}, {2, 16, 48}};
inline constexpr Field bytes[] = {{0, 0, 32}, {0, 32, 32}};  // and the column of bytes
inline constexpr Field nvtx_scope[] = {{0, 0, 16}, {0, 16, 16}, {0, 32, 32}, {1, 0, 64}, {2, 0, 64}};
inline constexpr Field time_domain[] = {{0, 0, 16}, {0, 16, 48}, {1, 0, 64}, {2, 0, 64}, {3, 0, 64}, {4, 0, 64}};
inline constexpr Field time_sync[] = {{0, 0, 64}, {1, 0, 64}, {2, 0, 64}, {3, 0, 64, delta}, {4, 0, 64, delta}};
}  // namespace fields

// In place of a number of slots: the slots are raw bytes, padded with zeros to a whole slot. The upper half of `low` is
// the number of bytes.
inline constexpr std::uint8_t in_bytes = 255;

struct EventInfo {
  EventType type;
  std::string_view name;
  std::uint8_t extension_slots;  // slots after the head, or in_bytes
  Family family;                 // what the event is counted as; ranges and calls count once, by their begin
  std::uint32_t contents;        // BlockContent bits that the event sets
  // They cover every bit of `low` and of the extension slots, so that a block gives back exactly what was put in. A
  // field that is always 0 costs nothing. A type with bytes has one more column, of the bytes.
  std::span<const Field> columns;
};

// The row of a struct of events_*.h, whose bytes are the event's words from `low` on.
template <class Event>
constexpr EventInfo row(std::string_view name, Family family, std::uint32_t contents, std::span<const Field> columns,
                        std::uint8_t slots = (sizeof(Event) - sizeof(std::uint64_t)) / sizeof(Slot)) {
  static_assert(std::has_unique_object_representations_v<Event>, "the struct has padding: name it `unused`");
  static_assert(sizeof(Event) % sizeof(Slot) == sizeof(std::uint64_t), "the struct does not fill its slots");
  return {Event::type, name, slots, family, contents, columns};
}

inline constexpr auto event_table = [] {
  using namespace events;
  return std::to_array<EventInfo>({
      row<Name>("name", Family::other, has_definitions, fields::name, in_bytes),
      row<Domain>("domain", Family::other, has_definitions, fields::domain),
      row<Category>("category", Family::other, has_definitions, fields::category),
      row<ThreadName>("thread_name", Family::other, has_definitions, fields::thread_name),
      row<Communicator>("communicator", Family::other, has_definitions, fields::communicator),
      row<Push>("push", Family::nvtx, 0, fields::scope),
      row<PushPayload>("push_payload", Family::nvtx, 0, fields::scope_payload),
      row<Pop>("pop", Family::other, 0, fields::whole),
      row<Mark>("mark", Family::nvtx, 0, fields::scope),
      row<MarkPayload>("mark_payload", Family::nvtx, 0, fields::scope_payload),
      row<Start>("start", Family::nvtx, 0, fields::start),
      row<StartPayload>("start_payload", Family::nvtx, 0, fields::start_payload),
      row<End>("end", Family::other, 0, fields::end),
      row<MpiBegin>("mpi_begin", Family::mpi, 0, fields::function),
      row<MpiBeginPeer>("mpi_begin_peer", Family::mpi, 0, fields::peer),
      row<MpiBeginColl>("mpi_begin_coll", Family::mpi, 0, fields::collective),
      row<MpiEnd>("mpi_end", Family::other, 0, fields::function),
      row<ClockPair>("clock_pair", Family::other, has_clock, fields::clock_pair),
      row<ClockExchange>("clock_exchange", Family::other, has_clock, fields::clock_exchange),
      row<Setting>("setting", Family::other, has_settings, fields::two_names),
      row<Recording>("recording", Family::other, has_settings, fields::whole),
      row<Trigger>("trigger", Family::other, has_settings, fields::trigger),
      row<Lost>("lost", Family::other, has_lost, fields::lost),
      row<ProcessEnd>("process_end", Family::other, has_settings, fields::whole),
      row<Resource>("resource", Family::other, has_definitions, fields::resource),
      row<ResourceEnd>("resource_end", Family::other, has_definitions, fields::whole),
      row<Schema>("schema", Family::other, has_definitions, fields::schema),
      row<SchemaEntry>("schema_entry", Family::other, has_definitions, fields::schema_entry),
      row<Enumeration>("enumeration", Family::other, has_definitions, fields::enumeration),
      row<Enumerator>("enumerator", Family::other, has_definitions, fields::enumerator),
      row<Payload>("payload", Family::other, 0, fields::bytes, in_bytes),
      row<PayloadPart>("payload_part", Family::other, 0, fields::bytes, in_bytes),
      row<Scope>("scope", Family::other, has_definitions, fields::nvtx_scope),
      row<TimeDomain>("time_domain", Family::other, has_definitions, fields::time_domain),
      row<TimeSync>("time_sync", Family::other, has_definitions | has_clock, fields::time_sync),
      row<Submit>("submit", Family::nvtx, 0, fields::scope),
      row<MpiPosted>("mpi_posted", Family::other, 0, fields::end),
      row<MpiCompleted>("mpi_completed", Family::other, 0, fields::end),
      row<MpiFile>("mpi_file", Family::other, has_definitions, fields::mpi_definition),
      row<MpiBeginFile>("mpi_begin_file", Family::mpi, 0, fields::mpi_file),
      row<MpiWindow>("mpi_window", Family::other, has_definitions, fields::mpi_definition),
      row<MpiBeginWindow>("mpi_begin_window", Family::mpi, 0, fields::peer),
      row<CudaFunction>("cuda_function", Family::other, has_definitions, fields::cuda_function),
      row<CudaStream>("cuda_stream", Family::other, has_definitions, fields::cuda_stream),
      row<CudaKernel>("cuda_kernel", Family::other, has_definitions, fields::cuda_kernel),
      row<CudaCall>("cuda_call", Family::cuda, 0, fields::cuda_call),
      row<CudaKernelRun>("cuda_kernel_run", Family::cuda, 0, fields::cuda_ran),
      row<CudaCopy>("cuda_copy", Family::cuda, 0, fields::cuda_moved),
      row<CudaSet>("cuda_set", Family::cuda, 0, fields::cuda_moved),
      row<CudaWait>("cuda_wait", Family::cuda, 0, fields::cuda_ran),
      row<CudaGraph>("cuda_graph", Family::cuda, 0, fields::cuda_ran),
      row<CudaOverhead>("cuda_overhead", Family::cuda, 0, fields::cuda_ran),
      row<CudaClock>("cuda_clock", Family::other, has_clock, fields::cuda_clock),
      row<CudaHandle>("cuda_handle", Family::other, has_definitions, fields::cuda_handle),
      row<NcclCollective>("nccl_collective", Family::nccl, 0, fields::nccl_work),
      row<NcclPeer>("nccl_peer", Family::nccl, 0, fields::nccl_work),
      row<NcclApiCall>("nccl_call", Family::nccl, 0, fields::nccl_work),
      row<NcclChannel>("nccl_channel", Family::nccl, 0, fields::nccl_channel),
      row<NcclProxy>("nccl_proxy", Family::nccl, 0, fields::nccl_proxy),
      row<NcclEnd>("nccl_end", Family::other, 0, fields::end),
      row<Stack>("stack", Family::other, has_definitions, fields::stack),
      row<StackSample>("stack_sample", Family::other, 0, fields::stack_sample),
      row<Counter>("counter", Family::other, has_definitions, fields::counter),
      row<Sample>("sample", Family::counter, 0, fields::sample),
      row<ThreadFound>("thread_found", Family::other, has_definitions, fields::thread_found),
      row<ThreadSwitch>("thread_switch", Family::other, 0, fields::thread_switch),
      row<ThreadTimes>("thread_times", Family::other, 0, fields::thread_times),
      row<OtherProgram>("other_program", Family::other, 0, fields::other_program),
  });
}();

// Blocks have the columns of their types in this order.
static_assert(std::ranges::is_sorted(event_table, {}, &EventInfo::type));

// The row of each type, or null for a type that the format does not know.
inline constexpr auto event_rows = [] {
  std::array<const EventInfo*, 256> rows{};
  for (const EventInfo& info : event_table) rows[static_cast<unsigned>(info.type)] = &info;
  return rows;
}();
constexpr const EventInfo* event_info(EventType type) { return event_rows[static_cast<unsigned>(type)]; }

// The slots after a head, by type; in_bytes as in the table. 0 for a type that the format does not know.
inline constexpr auto extension_counts = [] {
  std::array<std::uint8_t, 256> counts{};
  for (const EventInfo& info : event_table) counts[static_cast<unsigned>(info.type)] = info.extension_slots;
  return counts;
}();

// The number of extension slots after the head. Of bytes it depends on `low` and may be hostile.
constexpr std::uint32_t extension_slots(const Slot& head) {
  const std::uint8_t count = extension_counts[head.high & 0xff];
  return count != in_bytes ? count : static_cast<std::uint32_t>(((head.low >> 32) + 15) / 16);
}

// The index of the head after the one at `at`. The two frequent numbers of slots are branches, which are predicted: the
// next head need not wait until the type of this one was looked up.
inline std::size_t next_head(const Slot* slots, std::size_t at) {
  const unsigned count = extension_counts[slots[at].high & 0xff];
  std::size_t next = at + 1;
  if (count == 0) {
    asm("" : "+r"(next));  // keeps the compiler from computing it instead
    return next;
  }
  if (count == 1) {
    asm("" : "+r"(next));
    return next + 1;
  }
  return next + extension_slots(slots[at]);
}

constexpr bool is_known(EventType type) { return event_info(type) != nullptr; }
constexpr std::span<const Field> fields_of(EventType type) {
  return is_known(type) ? event_info(type)->columns : std::span<const Field>();
}
constexpr Family family_of(EventType type) { return is_known(type) ? event_info(type)->family : Family::other; }
constexpr std::uint32_t content_of(EventType type) { return is_known(type) ? event_info(type)->contents : 0; }

// True for the types whose extension slots are raw bytes.
constexpr bool has_bytes(EventType type) { return extension_counts[static_cast<unsigned>(type)] == in_bytes; }

// True for the types that later events refer to.
constexpr bool defines(EventType type) { return (content_of(type) & has_definitions) != 0; }

// True for the definitions that NVTX's payloads refer to, and for resources.
constexpr bool is_nvtx_definition(EventType type) {
  return type >= EventType::resource && type < EventType::submit && !has_bytes(type);
}

// True for the events that a flight recorder keeps when it drops those around them. CUDA's clock only matters to the
// events around it.
constexpr bool outlives_ring(EventType type) { return content_of(type) != 0 && type != EventType::cuda_clock; }

// True for an event of CUDA that lasts ext.high ticks from its own ticks on.
constexpr bool has_duration(EventType type) { return family_of(type) == Family::cuda; }

// The ticks at the end of the event at `head`, which its extension slots follow.
constexpr std::uint64_t end_ticks(const Slot* head) {
  constexpr std::uint64_t longest = std::uint64_t{1} << 55;  // a longer duration is damage
  return ticks_of(*head) + (has_duration(type_of(*head)) && head[1].high < longest ? head[1].high : 0);
}
// The same for the end of what a run has of the event, which waits and overheads do not extend.
constexpr std::uint64_t last_ticks_of(const Slot* head) {
  const EventType type = type_of(*head);
  return type == EventType::cuda_wait || type == EventType::cuda_overhead ? ticks_of(*head) : end_ticks(head);
}

constexpr std::uint64_t field_mask(const Field& field) {
  return field.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << field.bits) - 1;
}

constexpr std::uint64_t zigzag(std::uint64_t difference) { return difference << 1 ^ (0 - (difference >> 63)); }
constexpr std::uint64_t undo_zigzag(std::uint64_t coded) { return coded >> 1 ^ (0 - (coded & 1)); }

// The number of columns of a block that has all types, with those of types, ticks and bytes.
constexpr std::size_t most_columns() {
  std::size_t columns = 1 + 8;
  for (const EventInfo& info : event_table) columns += info.columns.size() + (has_bytes(info.type) ? 1 : 0);
  return columns;
}

// The columns of each type cover each bit of its words exactly once.
constexpr bool columns_cover_all_bits() {
  for (const EventInfo& info : event_table) {
    std::uint64_t covered[event_words] = {};
    for (const Field& field : info.columns) {
      const std::uint64_t mask = field_mask(field) << field.shift;
      if ((covered[field.word] & mask) != 0) return false;
      covered[field.word] |= mask;
    }
    const unsigned slots = has_bytes(info.type) ? 0 : info.extension_slots;
    for (std::size_t word = 0; word < event_words; ++word) {
      if (covered[word] != (word < 1 + 2 * slots ? ~std::uint64_t{0} : 0)) return false;
    }
  }
  return true;
}
static_assert(columns_cover_all_bits());

// The key of a series is decoded before its values.
constexpr bool series_follow_their_key() {
  for (const EventInfo& info : event_table) {
    bool key_known = false;
    for (const Field& field : info.columns) {
      if (field.coding == Coding::series && !key_known) return false;
      key_known = key_known || (field.word == 0 && field.shift == 0 && field_mask(field) >= series_keys - 1);
    }
  }
  return true;
}
static_assert(series_follow_their_key());

}  // namespace paceline::format
