// SPDX-License-Identifier: Apache-2.0
#include "trainer/reporting/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "trainer/core/error.h"

namespace paceline::train {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t rest = i;
    for (int bit = 0; bit < 8; ++bit)
      rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0x82f63b78u : 0u);  // Castagnoli's, turned
    table[i] = rest;
  }
  return table;
}();

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

template <typename T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Protobuf's encoding: each field is its number × 8 + its wire type, then the value.
enum WireType : std::uint8_t { varint = 0, eight_bytes = 1, delimited = 2, four_bytes = 5 };

std::string number(std::uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

std::string field(int which, WireType type, std::string_view value) {
  const std::string key = number(static_cast<std::uint64_t>(which) * 8 + type);
  return key + (type == delimited ? number(value.size()) : "") + std::string(value);
}

std::string now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return field(1, eight_bytes, bytes_of(std::chrono::duration<double>(since).count()));  // Event.wall_time
}

std::string file_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("events.out.tfevents.{}.{}.{}", std::chrono::duration_cast<std::chrono::seconds>(since).count(),
                     host.data(), getpid());
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view data) {
  std::uint32_t crc = ~0u;
  for (const char c : data) crc = crc_table[(crc ^ static_cast<unsigned char>(c)) & 0xff] ^ (crc >> 8);
  return std::rotr(~crc, 15) + 0xa282ead8u;
}

EventFile::EventFile(const std::filesystem::path& directory) : file_(directory / file_name()) {
  std::error_code code;
  std::filesystem::create_directories(directory, code);
  if (code) throw Error(directory.string(), "the directory cannot be created", code.message());
  out_.open(file_, std::ios::binary | std::ios::trunc);
  if (!out_) throw Error(file_.string(), "the event file cannot be written", std::strerror(errno));
  write(now() + field(3, delimited, "brain.Event:2"));  // Event.file_version
}

void EventFile::scalars(std::int64_t step, const std::vector<std::pair<std::string_view, double>>& values) {
  std::string summary;
  for (const auto& [tag, value] : values) {
    const std::string scalar =
        field(1, delimited, tag) + field(2, four_bytes, bytes_of(static_cast<float>(value)));  // tag, simple_value
    summary += field(1, delimited, scalar);                                                    // Summary.value
  }
  write(now() + field(2, varint, number(static_cast<std::uint64_t>(step))) +  // Event.step
        field(5, delimited, summary));                                        // Event.summary
}

void EventFile::write(std::string_view event) {
  const std::string length = bytes_of(std::uint64_t{event.size()});
  out_ << length << bytes_of(masked_crc32c(length)) << event << bytes_of(masked_crc32c(event)) << std::flush;
  if (!out_) throw Error(file_.string(), "the event file cannot be written", "check whether the disk is full");
}

}  // namespace paceline::train
