// SPDX-License-Identifier: Apache-2.0
// Makes whole .pace files from events, for tests and tools. (The recorder writes its files itself, as they grow.)
//
//   TraceWriter writer({.pid = 7, .ticks_per_second = 1e9, .rank = 0, .world_size = 2, .host = "node1"});
//   const auto forward = writer.scope("forward", "paceline.trainer", "forward");
//   writer.add(0, 1000, EventType::push, forward);      // track, ticks since start_ticks, …
//   writer.add(0, 5000, EventType::pop, writer.domain("paceline.trainer"));
//   writer.write("run/node1-r0-p7.pace");
#pragma once

#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/format/event.h"
#include "profiler/format/header.h"
#include "profiler/format/reader.h"

namespace paceline::format {

// closed: the file of a process that ended by itself. killed: each track's last chunk is still in the live area.
enum class Ending { closed, killed };

// Writes a file of these tracks. It cuts their slots into chunks of at most slots_per_chunk and numbers the chunks
// round the tracks. It sets live_bytes itself. Throws Error if the file cannot be written.
void write_trace_file(const std::filesystem::path& path, HeaderFacts facts, const std::vector<Track>& tracks,
                      Ending ending = Ending::closed);

class TraceWriter {
 public:
  // The texts that `facts` points to must live as long as the writer.
  explicit TraceWriter(const HeaderFacts& facts) : facts_(facts) {}

  // Ids. The writer defines them at first use, on track 0 at ticks 0 before all other events. The empty name is 0, and
  // the empty domain is the default domain.
  std::uint32_t name(std::string_view text);
  std::uint16_t domain(std::string_view name);
  std::uint16_t category(std::string_view domain, std::string_view name);
  std::uint64_t scope(std::string_view name, std::string_view domain = {}, std::string_view category = {});

  // Sets the system's id and the name of a track's thread. Without this call the id is pid + track.
  void thread(std::uint32_t track, std::uint64_t thread_id, std::string_view name);

  // Appends an event. `extension` must have the slots of the type.
  void add(std::uint32_t track, std::uint64_t ticks, EventType type, std::uint64_t low,
           std::initializer_list<Slot> extension = {});

  void write(const std::filesystem::path& path, Ending ending = Ending::closed) const;

 private:
  void define(EventType type, std::uint64_t low, std::initializer_list<Slot> extension = {});

  HeaderFacts facts_;
  std::vector<Slot> definitions_;
  std::map<std::string, std::uint32_t, std::less<>> names_;
  std::map<std::string, std::uint16_t, std::less<>> domains_;
  std::map<std::pair<std::uint16_t, std::string>, std::uint16_t> categories_;
  std::map<std::uint32_t, Track> tracks_;
};

}  // namespace paceline::format
