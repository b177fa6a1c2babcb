// SPDX-License-Identifier: Apache-2.0
// Traces that nobody would record, as .pace files and OTF2 archives: many names, deep nesting, many threads, strange
// times, and damage.
#pragma once

#include <otf2/otf2.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "profiler/format/writer.h"
#include "tests/otf2_archive.h"

namespace paceline {

class HostileFiles {
 public:
  std::uint64_t names = 1'000, nesting = 10'000, tracks = 200;  // many of each

  struct Hostile {
    std::filesystem::path path;
    bool damaged;  // it may also be refused
  };

  // Writes all files into the directory.
  std::vector<Hostile> write(const std::filesystem::path& directory) const {
    std::filesystem::create_directories(directory);
    std::vector<Hostile> all;
    const auto add = [&](const char* name, void (HostileFiles::*fill)(format::TraceWriter&) const,
                         double ticks_per_second = 1e9) {
      const auto path = directory / (std::string(name) + ".pace");
      format::TraceWriter writer(header(ticks_per_second));
      (this->*fill)(writer);
      writer.write(path);
      all.push_back({path, false});
    };
    add("names", &HostileFiles::many_names);
    add("nesting", &HostileFiles::deep_nesting);
    add("tracks", &HostileFiles::many_tracks);
    add("times", &HostileFiles::strange_times);
    add("slow-clock", &HostileFiles::strange_times, 1);  // its last ticks are two billion years
    add("fast-clock", &HostileFiles::strange_times, 1e18);
    add("unbalanced", &HostileFiles::unbalanced);
    all.push_back({damaged_copy(all.front().path, directory / "damaged.pace"), true});
    for (const bool damaged : {false, true}) {
      const auto folder = directory / (damaged ? "otf2-damaged" : "otf2");
      const auto anchor = write_archive(folder);
      if (damaged) invert_bytes(folder / "traces" / "0.evt");
      all.push_back({anchor, damaged});
    }
    return all;
  }

  // An OTF2 archive alone. Returns its anchor.
  std::filesystem::path write_archive(const std::filesystem::path& folder) const {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    Otf2Archive archive(folder);
    OTF2_EvtWriter* to = archive.location(0);
    const auto range = [&](OTF2_RegionRef region, OTF2_TimeStamp begin, OTF2_TimeStamp end) {
      OTF2_EvtWriter_Enter(to, nullptr, begin, region);
      OTF2_EvtWriter_Leave(to, nullptr, end, region);
    };
    OTF2_TimeStamp now = 1000;
    for (std::uint64_t i = 0; i < names; ++i, now += 1000) {
      range(archive.region("name " + std::to_string(i)), now, now + 900);
    }
    const OTF2_RegionRef level = archive.region("level"), undefined = level + 1'000'000'000;
    for (std::uint64_t i = 0; i < nesting; ++i) OTF2_EvtWriter_Enter(to, nullptr, ++now, level);
    for (std::uint64_t i = 0; i < nesting; ++i) OTF2_EvtWriter_Leave(to, nullptr, ++now, level);
    range(level, now, now);
    range(undefined, now, now + 10);
    OTF2_EvtWriter_Leave(to, nullptr, now + 20, level);                          // was not entered
    OTF2_EvtWriter_MpiSend(to, nullptr, now + 40, 77, 5, 0, ~std::uint64_t{0});  // to a rank that does not exist
    range(level, now + 50, ~std::uint64_t{0} - 1);
    OTF2_EvtWriter_Enter(to, nullptr, ~std::uint64_t{0} - 1, level);  // never left
    for (std::uint64_t track = 1; track < tracks; ++track) {
      to = archive.location(track);
      range(level, 1000 + track, 2000 + track);
    }
    return archive.end({.threads = static_cast<int>(tracks)});
  }

 private:
  using Type = format::EventType;

  static format::HeaderFacts header(double ticks_per_second) {
    return {.pid = 7,
            .ticks_per_second = ticks_per_second,
            .start_utc_ns = 1'700'000'000'000'000'000,
            .process_start_utc_ns = 1'700'000'000'000'000'000,
            .rank = 0,
            .world_size = 1,
            .host = "node1",
            .boot_id = "boot",
            .command = {},
            .environment = {}};
  }

  void many_names(format::TraceWriter& writer) const {
    for (std::uint64_t i = 0; i < names; ++i) {
      writer.add(0, 1000 * i, Type::push, writer.scope("name " + std::to_string(i)));
      writer.add(0, 1000 * i + 900, Type::pop, 0);
    }
  }

  void deep_nesting(format::TraceWriter& writer) const {
    const std::uint64_t level = writer.scope("level");
    for (std::uint64_t i = 0; i < nesting; ++i) writer.add(0, i, Type::push, level);
    for (std::uint64_t i = 0; i < nesting; ++i) writer.add(0, 2 * nesting + i, Type::pop, 0);
  }

  void many_tracks(format::TraceWriter& writer) const {
    const std::uint64_t work = writer.scope("work");
    for (std::uint32_t track = 0; track < tracks; ++track) {
      writer.thread(track, 100 + track, "thread " + std::to_string(track));
      writer.add(track, track, Type::push, work);
      writer.add(track, track + 1000, Type::pop, 0);
    }
  }

  // Nothing, backwards, the same time again, and the largest time that an event can have.
  void strange_times(format::TraceWriter& writer) const {
    constexpr std::uint64_t last = (std::uint64_t{1} << 56) - 1;
    const std::pair<std::uint64_t, std::uint64_t> ranges[] = {{100, 100}, {200, 150},   {200, 150}, {120, 300},
                                                              {0, 0},     {1000, last}, {last, 5},  {last, last}};
    const std::uint64_t scope = writer.scope("strange");
    for (const auto& [begin, end] : ranges) {
      writer.add(0, begin, Type::push, scope);
      writer.add(0, end, Type::pop, 0);
    }
  }

  // Ends without begins, begins without ends, and names, domains and functions that are not defined.
  void unbalanced(format::TraceWriter& writer) const {
    for (std::uint64_t i = 0; i < 100; ++i) {
      writer.add(0, 10 * i, Type::pop, i);
      writer.add(0, 10 * i + 1, Type::push, 0xffff'ffff'ffff'0000 + i);
      writer.add(0, 10 * i + 2, Type::mpi_end, 0xfff0 + i);
      writer.add(0, 10 * i + 3, Type::mpi_begin, i);
      writer.add(1, 10 * i + 3, Type::end, i);
      writer.add(1, 10 * i + 4, Type::start, i, {{i % 3, 0}});
    }
  }

  static void invert_bytes(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(in), {}};
    in.close();
    for (std::size_t at = bytes.size() / 3; at < bytes.size(); at += 997) bytes[at] = static_cast<char>(~bytes[at]);
    std::ofstream(path, std::ios::binary) << bytes;
  }

  static std::filesystem::path damaged_copy(const std::filesystem::path& from, const std::filesystem::path& to) {
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
    invert_bytes(to);
    return to;
  }
};

}  // namespace paceline
