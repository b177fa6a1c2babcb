// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/perfetto/packets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace paceline::analysis::perfetto {

Packets::Packets(const std::filesystem::path& path, ProgressCounter& progress)
    : file_(path), progress_(progress), size_(file_.size()) {}

// Makes that many bytes available in the buffer; false where the file has fewer.
bool Packets::fill(std::uint64_t bytes) {
  if (end_ - at_ >= bytes) return true;
  if (bytes > size_ - read_ + (end_ - at_)) return false;
  constexpr std::size_t usual_bytes = std::size_t{1} << 18;  // stays in a core's cache
  std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
  end_ -= at_;
  at_ = 0;
  const auto left = std::min<std::uint64_t>(end_ + size_ - read_, usual_bytes);
  buffer_.resize(std::max(buffer_.size(), static_cast<std::size_t>(std::max(bytes, left))));
  const std::size_t came = file_.read(read_, buffer_.data() + end_, buffer_.size() - end_);
  read_ += came;
  end_ += came;
  progress_.add(came);
  return end_ >= bytes;
}

bool Packets::fail(const char* what) {
  damage_ = fmt::format("{} at byte {}", what, read_ - (end_ - at_));
  return false;
}

bool Packets::next_of_any(std::string_view& packet) {
  constexpr std::uint64_t longest_head = 20;  // two numbers
  for (;;) {
    if (end_ - at_ < longest_head) fill(std::min<std::uint64_t>(longest_head, size_ - read_ + (end_ - at_)));
    if (at_ == end_) return false;
    const char* const begin = buffer_.data() + at_;
    const char* const end = buffer_.data() + end_;
    const char* head = begin;
    std::uint64_t tag = 0, size = 0;
    if (!Fields::varint(head, end, tag)) return fail("the file ends inside a packet");
    const bool has_size = (tag & 7) == 2;
    if (!has_size && (tag & 7) != 0) return fail("there is no packet");
    if (!Fields::varint(head, end, size)) return fail("the file ends inside a packet");
    const auto head_bytes = static_cast<std::size_t>(head - begin);
    if (!has_size) {
      at_ += head_bytes;
      continue;
    }
    if (size > size_ || (end_ - at_ < head_bytes + size && !fill(head_bytes + size)))
      return fail("the file ends inside a packet");
    packet = std::string_view(buffer_).substr(at_ + head_bytes, static_cast<std::size_t>(size));
    at_ += head_bytes + static_cast<std::size_t>(size);
    if (tag == text_tag(1)) return true;
  }
}

bool has_event(std::string_view packet) {
  Fields fields(packet);
  Field field;
  while (fields.next(field)) {
    if (field.tag == text_tag(11)) return true;
  }
  return false;
}

bool Packet::parse(std::string_view packet) {
  bytes = packet;
  Fields fields(packet);
  Field field;
  while (fields.next(field)) {
    if (field.tag == text_tag(11)) {  // first what most packets have
      event = field.bytes;
      has_event = true;
    } else if (field.tag == integer_tag(8)) {
      timestamp = field.value;
    } else if (field.tag == integer_tag(10)) {
      sequence = field.value;
    } else if (field.tag == integer_tag(13)) {
      flags = field.value;
    } else if (field.tag == integer_tag(58)) {
      clock = field.value;
    } else {
      has_more = has_more || (field.tag & 7) == 2;
      cleared = cleared || (field.tag == integer_tag(41) && field.value != 0);
      dropped = dropped || (field.tag == integer_tag(42) && field.value != 0);
      has_sample = has_sample || field.tag == text_tag(66);
      of_kernel = of_kernel || field.tag == text_tag(1);
      compressed = compressed || field.tag == text_tag(50);
    }
  }
  cleared = cleared || (flags & 1) != 0;
  return !fields.damaged();
}

std::string_view Packet::message(std::uint32_t number) const {
  std::string_view found;
  Fields fields(bytes);
  for (Field field; fields.next(field);) {
    if (field.tag == text_tag(number)) found = field.bytes;
  }
  return found;
}

bool begins_with_packets(std::string_view bytes) {
  Fields file(bytes);
  Field packet;
  if (bytes.empty() || bytes[0] != static_cast<char>(text_tag(1)) || !file.next(packet)) return false;
  // The numbers of TracePacket's fields that files begin with, with their wire types.
  constexpr std::uint64_t usual[] = {integer_tag(3), text_tag(6),     integer_tag(8), integer_tag(10), text_tag(11),
                                     text_tag(12),   integer_tag(13), text_tag(33),   text_tag(36),    text_tag(43),
                                     text_tag(44),   text_tag(50),    text_tag(59),   text_tag(60),    text_tag(89)};
  Fields fields(packet.bytes);
  Field field;
  bool known = false;
  while (fields.next(field)) known = known || std::ranges::find(usual, field.tag) != std::end(usual);
  if (!known || fields.damaged()) return false;
  const std::size_t next = static_cast<std::size_t>(packet.bytes.data() - bytes.data()) + packet.bytes.size();
  return next == bytes.size() || bytes[next] == static_cast<char>(text_tag(1));
}

}  // namespace paceline::analysis::perfetto
