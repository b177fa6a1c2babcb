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

#include "profiler/format/event.h"
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
inline constexpr Field two_names[] = {{0, 0, 32}, {0, 32, 32}};

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

inline constexpr EventInfo event_table[] = {
    {EventType::name, "name", in_bytes, Family::other, has_definitions, fields::name},
    {EventType::domain, "domain", 0, Family::other, has_definitions, fields::domain},
    {EventType::category, "category", 1, Family::other, has_definitions, fields::category},
    {EventType::thread_name, "thread_name", 1, Family::other, has_definitions, fields::thread_name},
    {EventType::communicator, "communicator", 1, Family::other, has_definitions, fields::communicator},
    {EventType::push, "push", 0, Family::nvtx, 0, fields::scope},
    {EventType::push_payload, "push_payload", 1, Family::nvtx, 0, fields::scope_payload},
    {EventType::pop, "pop", 0, Family::other, 0, fields::whole},
    {EventType::mark, "mark", 0, Family::nvtx, 0, fields::scope},
    {EventType::mark_payload, "mark_payload", 1, Family::nvtx, 0, fields::scope_payload},
    {EventType::start, "start", 1, Family::nvtx, 0, fields::start},
    {EventType::start_payload, "start_payload", 2, Family::nvtx, 0, fields::start_payload},
    {EventType::end, "end", 0, Family::other, 0, fields::end},
    {EventType::mpi_begin, "mpi_begin", 0, Family::mpi, 0, fields::function},
    {EventType::mpi_begin_peer, "mpi_begin_peer", 1, Family::mpi, 0, fields::peer},
    {EventType::mpi_begin_coll, "mpi_begin_coll", 1, Family::mpi, 0, fields::collective},
    {EventType::mpi_end, "mpi_end", 0, Family::other, 0, fields::function},
    {EventType::clock_pair, "clock_pair", 1, Family::other, has_clock, fields::clock_pair},
    {EventType::clock_exchange, "clock_exchange", 1, Family::other, has_clock, fields::clock_exchange},
    {EventType::setting, "setting", 0, Family::other, has_settings, fields::two_names},
    {EventType::recording, "recording", 0, Family::other, has_settings, fields::whole},
    {EventType::trigger, "trigger", 1, Family::other, has_settings, fields::trigger},
    {EventType::lost, "lost", 1, Family::other, has_lost, fields::lost},
    {EventType::process_end, "process_end", 0, Family::other, has_settings, fields::whole},
    {EventType::resource, "resource", 1, Family::other, has_definitions, fields::resource},
    {EventType::resource_end, "resource_end", 0, Family::other, has_definitions, fields::whole},
    {EventType::schema, "schema", 2, Family::other, has_definitions, fields::schema},
    {EventType::schema_entry, "schema_entry", 2, Family::other, has_definitions, fields::schema_entry},
    {EventType::enumeration, "enumeration", 1, Family::other, has_definitions, fields::enumeration},
    {EventType::enumerator, "enumerator", 1, Family::other, has_definitions, fields::enumerator},
    {EventType::payload, "payload", in_bytes, Family::other, 0, fields::bytes},
    {EventType::payload_part, "payload_part", in_bytes, Family::other, 0, fields::bytes},
    {EventType::scope, "scope", 1, Family::other, has_definitions, fields::nvtx_scope},
    {EventType::time_domain, "time_domain", 2, Family::other, has_definitions, fields::time_domain},
    {EventType::time_sync, "time_sync", 2, Family::other, has_definitions | has_clock, fields::time_sync},
    {EventType::submit, "submit", 0, Family::nvtx, 0, fields::scope},
    {EventType::mpi_posted, "mpi_posted", 0, Family::other, 0, fields::end},
    {EventType::mpi_completed, "mpi_completed", 0, Family::other, 0, fields::end},
    {EventType::mpi_file, "mpi_file", 1, Family::other, has_definitions, fields::mpi_definition},
    {EventType::mpi_begin_file, "mpi_begin_file", 1, Family::mpi, 0, fields::mpi_file},
    {EventType::mpi_window, "mpi_window", 1, Family::other, has_definitions, fields::mpi_definition},
    {EventType::mpi_begin_window, "mpi_begin_window", 1, Family::mpi, 0, fields::peer},
    {EventType::cuda_function, "cuda_function", 0, Family::other, has_definitions, fields::cuda_function},
    {EventType::cuda_stream, "cuda_stream", 1, Family::other, has_definitions, fields::cuda_stream},
    {EventType::cuda_kernel, "cuda_kernel", 2, Family::other, has_definitions, fields::cuda_kernel},
    {EventType::cuda_call, "cuda_call", 1, Family::cuda, 0, fields::cuda_call},
    {EventType::cuda_kernel_run, "cuda_kernel_run", 1, Family::cuda, 0, fields::cuda_ran},
    {EventType::cuda_copy, "cuda_copy", 2, Family::cuda, 0, fields::cuda_moved},
    {EventType::cuda_set, "cuda_set", 2, Family::cuda, 0, fields::cuda_moved},
    {EventType::cuda_wait, "cuda_wait", 1, Family::cuda, 0, fields::cuda_ran},
    {EventType::cuda_graph, "cuda_graph", 1, Family::cuda, 0, fields::cuda_ran},
    {EventType::cuda_overhead, "cuda_overhead", 1, Family::cuda, 0, fields::cuda_ran},
    {EventType::cuda_clock, "cuda_clock", 1, Family::other, has_clock, fields::cuda_clock},
    {EventType::cuda_handle, "cuda_handle", 1, Family::other, has_definitions, fields::cuda_handle},
    {EventType::nccl_collective, "nccl_collective", 2, Family::nccl, 0, fields::nccl_work},
    {EventType::nccl_peer, "nccl_peer", 2, Family::nccl, 0, fields::nccl_work},
    {EventType::nccl_call, "nccl_call", 2, Family::nccl, 0, fields::nccl_work},
    {EventType::nccl_channel, "nccl_channel", 1, Family::nccl, 0, fields::nccl_channel},
    {EventType::nccl_proxy, "nccl_proxy", 2, Family::nccl, 0, fields::nccl_proxy},
    {EventType::nccl_end, "nccl_end", 0, Family::other, 0, fields::end},
    {EventType::counter, "counter", 1, Family::other, has_definitions, fields::counter},
    {EventType::sample, "sample", 1, Family::counter, 0, fields::sample},
};

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
