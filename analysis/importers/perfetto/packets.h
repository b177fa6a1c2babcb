// SPDX-License-Identifier: Apache-2.0
// The packets of a file, one after the other: all that Perfetto's format is made of.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "analysis/importers/perfetto/fields.h"
#include "analysis/trace/progress.h"
#include "profiler/format/input_file.h"

namespace paceline::analysis::perfetto {

class Packets {
 public:
  // Reports the bytes that it has read to `progress`. Throws Error where the file cannot be opened.
  Packets(const std::filesystem::path& path, ProgressCounter& progress);

  // The next packet, valid until the next call; false at the end, and where damage hides what follows. Memory: 256 KiB,
  // or the largest packet. Throws Error where the system fails or the loading was stopped.
  bool next(std::string_view& packet) {
    const std::string_view ready(buffer_.data() + at_, end_ - at_);
    if (ready.size() < 2 || ready[0] != static_cast<char>(text_tag(1))) return next_of_any(packet);
    const auto size = static_cast<unsigned char>(ready[1]);
    if (size >= 128 || ready.size() - 2 < size) return next_of_any(packet);
    packet = {ready.data() + 2, size};  // most are short
    at_ += 2U + size;
    return true;
  }

  // What is wrong with the file, for people; "" where it came to its end.
  const std::string& damage() const { return damage_; }

 private:
  bool next_of_any(std::string_view& packet);
  bool fill(std::uint64_t bytes);
  bool fail(const char* what);

  const format::InputFile file_;
  ProgressCounter& progress_;
  const std::uint64_t size_;
  std::uint64_t read_ = 0;  // bytes of the file that came into the buffer so far
  std::string buffer_;
  std::size_t at_ = 0, end_ = 0;  // of what is in the buffer
  std::string damage_;
};

// The fields of a packet that are read. Those that are missing are 0 or empty.
struct Packet {
  std::string_view bytes, event;
  std::uint64_t timestamp = 0, sequence = 0, flags = 0;
  std::uint64_t clock = 0;  // 0: that of the sequence
  bool has_event = false, has_sample = false, cleared = false, dropped = false, of_kernel = false, compressed = false;
  bool has_more = false;  // messages beside an event: message() may find something

  // False where the packet is damaged.
  bool parse(std::string_view packet);
  // What describes tracks, texts and clocks, which few packets have.
  std::string_view clocks() const { return message(6); }
  std::string_view interned() const { return message(12); }
  std::string_view process() const { return message(43); }
  std::string_view thread() const { return message(44); }
  std::string_view defaults() const { return message(59); }
  std::string_view track() const { return message(60); }

 private:
  std::string_view message(std::uint32_t number) const;
};

// True if the packet has an event, beside which it describes nothing.
bool has_event(std::string_view packet);

// True if the bytes look like the beginning of such a file.
bool begins_with_packets(std::string_view bytes);

}  // namespace paceline::analysis::perfetto
