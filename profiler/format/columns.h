// Which columns a block has: for each event type, the fields that its words are split into.
//
// Encoder, decoder and docs/trace-format.md all follow this one table. The fields of a type cover every bit of its
// `low` and extension slots, so a block gives back exactly what was put in; a field that is always 0 costs nothing.
#pragma once

#include <cstdint>
#include <span>

#include "profiler/format/event.h"

namespace paceline::format {

// plain: the value. delta: the difference from the value before it in the same column, modulo 2^64, zigzag-coded
// (0, -1, 1, -2, … as 0, 1, 2, 3, …); the first is a difference from 0. series: the same, but from the value before it
// among the events whose `low` is equal modulo 256, because samples of many counters take turns.
enum class Coding : std::uint8_t { plain, delta, series };
inline constexpr std::size_t series_keys = 256;

// An event's 64-bit words after `high`: 0 = low, 1 = ext.high, 2 = ext.low, 3 = ext2.high, 4 = ext2.low.
inline constexpr std::size_t event_words = 5;

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
// Of what ran on a device: two numbers of 32 bits, duration, correlation and one number more, then the rest.
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

constexpr std::uint64_t field_mask(const Field& field) {
  return field.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << field.bits) - 1;
}

constexpr std::uint64_t zigzag(std::uint64_t difference) { return difference << 1 ^ (0 - (difference >> 63)); }
constexpr std::uint64_t undo_zigzag(std::uint64_t coded) { return coded >> 1 ^ (0 - (coded & 1)); }

// The fields of a type, in the order of their columns; none for a type that the format does not know.
constexpr std::span<const Field> fields_of(EventType type) {
  switch (type) {
    case EventType::none:
      return {};
    case EventType::name:
      return fields::name;
    case EventType::domain:
      return fields::domain;
    case EventType::category:
      return fields::category;
    case EventType::thread_name:
      return fields::thread_name;
    case EventType::communicator:
      return fields::communicator;
    case EventType::push:
    case EventType::mark:
      return fields::scope;
    case EventType::push_payload:
    case EventType::mark_payload:
      return fields::scope_payload;
    case EventType::pop:
    case EventType::process_end:
    case EventType::recording:
      return fields::whole;
    case EventType::start:
      return fields::start;
    case EventType::start_payload:
      return fields::start_payload;
    case EventType::end:
      return fields::end;
    case EventType::mpi_begin:
    case EventType::mpi_end:
      return fields::function;
    case EventType::mpi_begin_peer:
      return fields::peer;
    case EventType::mpi_begin_coll:
      return fields::collective;
    case EventType::clock_pair:
      return fields::clock_pair;
    case EventType::clock_exchange:
      return fields::clock_exchange;
    case EventType::setting:
      return fields::two_names;
    case EventType::trigger:
      return fields::trigger;
    case EventType::lost:
      return fields::lost;
    case EventType::mpi_posted:
    case EventType::mpi_completed:
      return fields::end;
    case EventType::mpi_file:
    case EventType::mpi_window:
      return fields::mpi_definition;
    case EventType::mpi_begin_file:
      return fields::mpi_file;
    case EventType::mpi_begin_window:
      return fields::peer;
    case EventType::cuda_function:
      return fields::cuda_function;
    case EventType::cuda_stream:
      return fields::cuda_stream;
    case EventType::cuda_kernel:
      return fields::cuda_kernel;
    case EventType::cuda_call:
      return fields::cuda_call;
    case EventType::cuda_kernel_run:
    case EventType::cuda_wait:
    case EventType::cuda_graph:
    case EventType::cuda_overhead:
      return fields::cuda_ran;
    case EventType::cuda_copy:
    case EventType::cuda_set:
      return fields::cuda_moved;
    case EventType::cuda_clock:
      return fields::cuda_clock;
    case EventType::cuda_handle:
      return fields::cuda_handle;
    case EventType::nccl_collective:
    case EventType::nccl_peer:
    case EventType::nccl_call:
      return fields::nccl_work;
    case EventType::nccl_channel:
      return fields::nccl_channel;
    case EventType::nccl_proxy:
      return fields::nccl_proxy;
    case EventType::nccl_end:
      return fields::end;
    case EventType::resource:
      return fields::resource;
    case EventType::resource_end:
      return fields::whole;
    case EventType::schema:
      return fields::schema;
    case EventType::schema_entry:
      return fields::schema_entry;
    case EventType::enumeration:
      return fields::enumeration;
    case EventType::enumerator:
      return fields::enumerator;
    case EventType::payload:
    case EventType::payload_part:
      return fields::bytes;
    case EventType::scope:
      return fields::nvtx_scope;
    case EventType::time_domain:
      return fields::time_domain;
    case EventType::time_sync:
      return fields::time_sync;
    case EventType::submit:
      return fields::scope;
    case EventType::counter:
      return fields::counter;
    case EventType::sample:
      return fields::sample;
  }
  return {};
}

// Each type's fields cover each bit of its words exactly once.
constexpr bool covers_all_bits(EventType type, std::uint32_t extension_slots) {
  std::uint64_t covered[event_words] = {};
  for (const Field& field : fields_of(type)) {
    const std::uint64_t mask = field_mask(field) << field.shift;
    if ((covered[field.word] & mask) != 0) return false;
    covered[field.word] |= mask;
  }
  for (std::size_t word = 0; word < event_words; ++word) {
    if (covered[word] != (word < 1 + 2 * extension_slots ? ~std::uint64_t{0} : 0)) return false;
  }
  return true;
}
constexpr bool all_types_are_covered() {
  for (unsigned type = 1; type < 256; ++type) {
    const Slot head{type, 0};  // no bytes: a name has no extension slot then
    if (!fields_of(type_of(head)).empty() && !covers_all_bits(type_of(head), extension_slots(head))) return false;
  }
  return true;
}
static_assert(all_types_are_covered());

// Columns that a block of all types would have, with those of types, ticks and texts.
constexpr std::size_t most_columns() {
  std::size_t columns = 1 + 8 + 1;
  for (unsigned type = 1; type < 256; ++type) columns += fields_of(static_cast<EventType>(type)).size();
  return columns;
}
// What a series is told by is decoded before its values.
constexpr bool series_follow_their_key() {
  for (unsigned type = 1; type < 256; ++type) {
    bool key_known = false;
    for (const Field& field : fields_of(static_cast<EventType>(type))) {
      if (field.coding == Coding::series && !key_known) return false;
      key_known = key_known || (field.word == 0 && field.shift == 0 && field_mask(field) >= series_keys - 1);
    }
  }
  return true;
}
static_assert(series_follow_their_key());

}  // namespace paceline::format
