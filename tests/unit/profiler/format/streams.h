// SPDX-License-Identifier: Apache-2.0
// Slots for tests: random events of every type, and the stream that a trainer gives.
#pragma once

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "profiler/format/event_table.h"

namespace paceline::format {
inline bool operator==(const Slot& a, const Slot& b) { return a.high == b.high && a.low == b.low; }
}  // namespace paceline::format

namespace paceline::format::testing {

inline constexpr EventType all_types[] = {
    EventType::name,
    EventType::domain,
    EventType::category,
    EventType::thread_name,
    EventType::communicator,
    EventType::push,
    EventType::push_payload,
    EventType::pop,
    EventType::mark,
    EventType::mark_payload,
    EventType::start,
    EventType::start_payload,
    EventType::end,
    EventType::mpi_begin,
    EventType::mpi_begin_peer,
    EventType::mpi_begin_coll,
    EventType::mpi_end,
    EventType::clock_pair,
    EventType::clock_exchange,
    EventType::setting,
    EventType::mpi_posted,
    EventType::mpi_completed,
    EventType::mpi_file,
    EventType::mpi_begin_file,
    EventType::mpi_window,
    EventType::mpi_begin_window,
    EventType::cuda_function,
    EventType::cuda_stream,
    EventType::cuda_kernel,
    EventType::cuda_call,
    EventType::cuda_kernel_run,
    EventType::cuda_copy,
    EventType::cuda_set,
    EventType::cuda_wait,
    EventType::cuda_graph,
    EventType::cuda_overhead,
    EventType::cuda_clock,
    EventType::cuda_handle,
    EventType::nccl_collective,
    EventType::nccl_peer,
    EventType::nccl_call,
    EventType::nccl_channel,
    EventType::nccl_proxy,
    EventType::nccl_end,
    EventType::stack,
    EventType::stack_sample,
    EventType::recording,
    EventType::trigger,
    EventType::lost,
    EventType::process_end,
    EventType::resource,
    EventType::resource_end,
    EventType::schema,
    EventType::schema_entry,
    EventType::enumeration,
    EventType::enumerator,
    EventType::payload,
    EventType::payload_part,
    EventType::scope,
    EventType::time_domain,
    EventType::time_sync,
    EventType::submit,
    EventType::counter,
    EventType::sample,
    EventType::thread_found,
    EventType::thread_switch,
    EventType::thread_times,
    EventType::other_program,
};

inline void append(std::vector<Slot>& slots, std::uint64_t ticks, EventType type, std::uint64_t low,
                   std::vector<Slot> extension = {}) {
  slots.push_back({pack_high(ticks, type), low});
  slots.insert(slots.end(), extension.begin(), extension.end());
}

// An event of a type that has bytes.
inline void append_bytes(std::vector<Slot>& slots, std::uint64_t ticks, EventType type, std::uint32_t id,
                         const std::string& bytes) {
  append(slots, ticks, type, id | std::uint64_t{bytes.size()} << 32);
  const std::size_t at = slots.size();
  slots.resize(at + (bytes.size() + 15) / 16);
  if (!bytes.empty()) std::memcpy(&slots[at], bytes.data(), bytes.size());
}
inline void append_name(std::vector<Slot>& slots, std::uint64_t ticks, std::uint32_t id, const std::string& text) {
  append_bytes(slots, ticks, EventType::name, id, text);
}

// One event whose words are random: half of them small, the others of any size up to 64 bits.
inline void append_random(std::vector<Slot>& slots, std::mt19937_64& random) {
  const EventType type = all_types[random() % std::size(all_types)];
  const auto word = [&] { return random() >> (random() % 2 == 0 ? 56 : random() % 64); };
  const std::uint64_t ticks = random() >> (8 + random() % 56);
  if (has_bytes(type)) {
    std::string bytes(random() % 100, ' ');
    for (char& c : bytes) c = static_cast<char>(random());
    append_bytes(slots, ticks, type, static_cast<std::uint32_t>(word()), bytes);
    return;
  }
  const Slot head{pack_high(ticks, type), word()};
  slots.push_back(head);
  for (std::uint32_t i = 0; i < extension_slots(head); ++i) slots.push_back({word(), word()});
}

// Two events of each type that version 1 of the format had, which was without `lost`, stacks and states of threads.
inline std::vector<Slot> two_of_each_type_of_version_1() {
  std::vector<Slot> slots;
  for (const EventType type : all_types) {
    if (type == EventType::lost || type == EventType::stack || type == EventType::stack_sample) continue;
    if (type >= EventType::thread_found) continue;
    for (const std::uint64_t word : {std::uint64_t{3}, std::uint64_t{300} << 32}) {
      if (has_bytes(type)) {
        append_bytes(slots, word, type, 5, "twenty letters of it");
        continue;
      }
      const Slot head{pack_high(word, type), word};
      slots.push_back(head);
      slots.insert(slots.end(), extension_slots(head), Slot{word, ~word});
    }
  }
  return slots;
}

// Iterations of a trainer of `layers` layers: iteration > preprocess, forward > layers, backward > layers, allreduce
// (an MPI collective inside), optimizer; events 20 to 200 µs apart on a clock of 2.5 GHz. Cut to whole events within
// `slots`. Names and categories are those of registered strings, which were defined earlier.
struct TrainerStream {
  std::vector<Slot> slots;
  std::size_t ranges = 0;
  std::size_t collectives = 0;
};
inline TrainerStream trainer_stream(std::size_t slots, std::size_t layers, std::uint64_t seed = 1) {
  TrainerStream stream;
  std::mt19937_64 random(seed);
  std::uint64_t ticks = 123'456'789'012;
  const auto now = [&] { return ticks += 50'000 + random() % 450'000; };
  const auto push = [&](std::uint32_t name, std::uint16_t category) {
    append(stream.slots, now(), EventType::push, pack_scope(name, category, 1));
    ++stream.ranges;
  };
  const auto pop = [&] { append(stream.slots, now(), EventType::pop, 0); };
  const auto layer = [&](std::size_t i) {
    push(static_cast<std::uint32_t>(20 + i), 10);
    pop();
  };
  for (std::uint64_t iteration = 0; stream.slots.size() + 8 * layers + 40 < slots; ++iteration) {
    append(stream.slots, now(), EventType::push_payload, pack_scope(1, 1, 1), {{1, iteration}});
    push(2, 2), pop();
    push(3, 3);
    for (std::size_t i = 0; i < layers; ++i) layer(i);
    pop();
    push(4, 4);
    for (std::size_t i = layers; i > 0; --i) layer(i - 1);
    pop();
    append(stream.slots, now(), EventType::push_payload, pack_scope(5, 5, 1), {{1, 44'695'848}});
    append(stream.slots, now(), EventType::mpi_begin_coll, 12 | 0xffff'ffffULL << 16,
           {{44'695'848, 7 | iteration << 32}});
    append(stream.slots, now(), EventType::mpi_end, 12);
    ++stream.collectives;
    pop();
    push(6, 6), pop();
    pop();
    stream.ranges += 2;
  }
  return stream;
}

}  // namespace paceline::format::testing
