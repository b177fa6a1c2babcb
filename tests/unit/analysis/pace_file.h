// SPDX-License-Identifier: Apache-2.0
// Makes the content of a .pace file by hand, event by event.
#pragma once

#include <bit>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "profiler/format/mpi_functions.h"
#include "profiler/format/reader.h"

namespace paceline::analysis::testing {

using format::EventType;
using format::PayloadType;

// Ticks are given relative to the file's start, as in the file.
class PaceFile {
 public:
  explicit PaceFile(int rank = 0, int world_size = 1) {
    file.path = "rank" + std::to_string(rank) + ".pace";
    file.host = "node";
    file.boot_id = "boot";
    file.header.rank = rank;
    file.header.world_size = world_size;
    file.header.pid = 100 + static_cast<std::uint32_t>(rank);
    file.header.clock_source = format::ClockSource::tsc;
    file.header.ticks_per_second = 1e9;
    file.header.closed = 1;
    file.header.start_ticks = 1'000'000;
    file.header.start_utc_ns = 1'700'000'000'000'000'000;
    use_thread(file.header.pid);
  }

  // Later events are this thread's.
  void use_thread(std::uint64_t thread_id) {
    for (track_ = 0; track_ < file.tracks.size(); ++track_) {
      if (file.tracks[track_].thread_id == thread_id) return;
    }
    file.tracks.push_back({static_cast<std::uint32_t>(track_), thread_id, {}});
  }

  void add(std::uint64_t ticks, EventType type, std::uint64_t low = 0) {
    file.tracks[track_].slots.push_back({format::pack_high(ticks, type), low});
  }
  void extension(std::uint64_t high, std::uint64_t low) { file.tracks[track_].slots.push_back({high, low}); }

  std::uint32_t name(std::string_view text) {
    const std::uint32_t id = ++names_;
    add(0, EventType::name, id | std::uint64_t{text.size()} << 32);
    for (std::size_t at = 0; at < text.size(); at += 16) {
      format::Slot slot;
      std::memcpy(&slot, text.data() + at, std::min<std::size_t>(16, text.size() - at));
      file.tracks[track_].slots.push_back(slot);
    }
    return id;
  }
  void domain(std::uint16_t domain, std::string_view text) {
    const std::uint64_t id = name(text);
    add(0, EventType::domain, domain | id << 32);
  }
  void category(std::uint16_t domain, std::uint32_t category, std::string_view text) {
    const std::uint64_t id = name(text);
    add(0, EventType::category, domain | std::uint64_t{category} << 32);
    extension(id, 0);
  }
  void thread_name(std::uint64_t thread_id, std::string_view text) {
    const std::uint64_t id = name(text);
    add(0, EventType::thread_name, id << 32);
    extension(thread_id, 0);
  }
  void communicator(std::uint32_t local, std::uint32_t size, std::uint64_t identity, std::uint32_t rank,
                    std::string_view text) {
    const std::uint64_t id = text.empty() ? 0 : name(text);
    add(0, EventType::communicator, local | std::uint64_t{size} << 32);
    extension(identity, rank | id << 32);
  }
  void setting(std::string_view key, std::string_view value) {
    const std::uint64_t key_id = name(key), value_id = name(value);
    add(0, EventType::setting, key_id | value_id << 32);
  }

  void counter(std::uint16_t counter, format::CounterKind kind, std::string_view name_text, std::string_view unit,
               std::string_view device) {
    const std::uint64_t name_id = name(name_text), unit_id = unit.empty() ? 0 : name(unit),
                        device_id = device.empty() ? 0 : name(device);
    add(0, EventType::counter, counter | std::uint64_t{static_cast<std::uint16_t>(kind)} << 16 | name_id << 32);
    extension(unit_id | device_id << 32, 0);
  }
  void sample(std::uint64_t ticks, std::uint32_t counter, std::uint64_t value) {
    add(ticks, EventType::sample, counter);
    extension(value, 0);
  }

  // A payload of these words, for the event that follows.
  void payload(std::uint64_t ticks, std::uint32_t schema, std::initializer_list<std::uint64_t> words) {
    add(ticks, EventType::payload, schema | std::uint64_t{words.size()} * 8 << 32);
    for (auto word = words.begin(); word != words.end();) {
      const std::uint64_t first = *word++;
      extension(first, word != words.end() ? *word++ : 0);
    }
  }
  void schema_entry(std::uint32_t schema, std::uint64_t index, std::string_view text, std::uint64_t type,
                    std::uint64_t flags, std::uint16_t domain) {
    const std::uint64_t id = text.empty() ? 0 : name(text);
    add(0, EventType::schema_entry, schema | id << 32);
    extension(type | flags << 32, domain | index << 16);
    extension(0, 0);
  }

  void push(std::uint64_t ticks, std::uint64_t scope) { add(ticks, EventType::push, scope); }
  void pop(std::uint64_t ticks, std::uint16_t domain = 0) { add(ticks, EventType::pop, domain); }
  void start(std::uint64_t ticks, std::uint64_t scope, std::uint64_t id) {
    add(ticks, EventType::start, scope);
    extension(id, 0);
  }
  void end(std::uint64_t ticks, std::uint64_t id) { add(ticks, EventType::end, id); }
  void mpi_begin(std::uint64_t ticks, format::MpiId function) {
    add(ticks, EventType::mpi_begin, static_cast<std::uint64_t>(function));
  }
  void mpi_collective(std::uint64_t ticks, format::MpiId function, int root, std::uint64_t bytes,
                      std::uint32_t communicator, std::uint32_t sequence) {
    add(ticks, EventType::mpi_begin_coll,
        static_cast<std::uint64_t>(function) | std::uint64_t{static_cast<std::uint32_t>(root)} << 16);
    extension(bytes, communicator | std::uint64_t{sequence} << 32);
  }
  void mpi_peer(std::uint64_t ticks, format::MpiId function, int tag, std::uint64_t bytes, std::uint32_t communicator,
                int peer) {
    add(ticks, EventType::mpi_begin_peer,
        static_cast<std::uint64_t>(function) | std::uint64_t{static_cast<std::uint32_t>(tag)} << 16);
    extension(bytes, communicator | std::uint64_t{static_cast<std::uint32_t>(peer)} << 32);
  }
  void mpi_end(std::uint64_t ticks, format::MpiId function) {
    add(ticks, EventType::mpi_end, static_cast<std::uint64_t>(function));
  }
  void clock_pair(std::uint64_t ticks, std::int64_t utc_ns, std::int64_t monotonic_ns, std::uint64_t width) {
    add(ticks, EventType::clock_pair, static_cast<std::uint64_t>(utc_ns));
    extension(static_cast<std::uint64_t>(monotonic_ns), width);
  }

  format::TraceFile file;

 private:
  std::size_t track_ = 0;
  std::uint32_t names_ = 0;
};

}  // namespace paceline::analysis::testing
