// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/header.h"

#include <stdio.h>
#include <string.h>

#include "profiler/format/hash.h"

namespace paceline::format {
namespace {

constexpr std::size_t max_command_bytes = 64 * 1024;

// Length of the UTF-8 character at the front of the text, 0 if there is none (RFC 3629, section 4).
std::size_t character_bytes(const unsigned char* text, std::size_t size) {
  if (text[0] < 0x80) return 1;
  std::size_t length = 0;
  unsigned char second_from = 0x80, second_to = 0xbf;
  if (text[0] >= 0xc2 && text[0] <= 0xdf) {
    length = 2;
  } else if (text[0] >= 0xe0 && text[0] <= 0xef) {
    length = 3;
    if (text[0] == 0xe0) second_from = 0xa0;
    if (text[0] == 0xed) second_to = 0x9f;
  } else if (text[0] >= 0xf0 && text[0] <= 0xf4) {
    length = 4;
    if (text[0] == 0xf0) second_from = 0x90;
    if (text[0] == 0xf4) second_to = 0x8f;
  }
  if (length == 0 || length > size || text[1] < second_from || text[1] > second_to) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (text[i] < 0x80 || text[i] > 0xbf) return 0;
  }
  return length;
}

// Writes a JSON text of one level of objects and lists into a buffer of fixed size.
class JsonText {
 public:
  JsonText(char* out, std::size_t capacity) : out_(out), capacity_(capacity) {}

  void put(const char* bytes, std::size_t size) {
    if (size > capacity_ - size_) {
      fits_ = false;
      return;
    }
    memcpy(out_ + size_, bytes, size);
    size_ += size;
  }
  void put(const char* text) { put(text, strlen(text)); }

  // Puts a comma, except before the first member of an object or list.
  void separate() {
    if (size_ > 0 && out_[size_ - 1] != '{' && out_[size_ - 1] != '[') put(",");
  }
  void string(const char* text, std::size_t size) {
    put("\"");
    for (std::size_t at = 0; at < size;) {
      const auto* character = reinterpret_cast<const unsigned char*>(text + at);
      const std::size_t length = character_bytes(character, size - at);
      if (length == 0) {
        put("\xef\xbf\xbd");
      } else if (*character < 0x20) {
        const char hex[] = "0123456789abcdef";
        const char escape[] = {'\\', 'u', '0', '0', hex[*character >> 4], hex[*character & 15]};
        put(escape, sizeof escape);
      } else {
        if (*character == '"' || *character == '\\') put("\\");
        put(text + at, length);
      }
      at += length == 0 ? 1 : length;
    }
    put("\"");
  }
  void member(const char* key, const char* value) {
    if (value == nullptr || *value == '\0') return;
    separate();
    string(key, strlen(key));
    put(":");
    string(value, strlen(value));
  }
  void open(const char* key, const char* bracket) {
    separate();
    string(key, strlen(key));
    put(":");
    put(bracket);
  }
  void member(const char* key, std::int64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%lld", static_cast<long long>(value));
    open(key, text);
  }
  // Puts NAME=VALUE as a member, or nothing if there is no name.
  void assignment(const char* text, std::size_t size) {
    const auto* equals = static_cast<const char*>(memchr(text, '=', size));
    if (equals == nullptr || equals == text) return;
    separate();
    string(text, static_cast<std::size_t>(equals - text));
    put(":");
    string(equals + 1, size - static_cast<std::size_t>(equals + 1 - text));
  }
  // Returns the length, or 0 if the text did not fit.
  std::size_t finish() const { return fits_ ? size_ : 0; }

 private:
  char* out_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  bool fits_ = true;
};

// Calls visit(text, length) for each piece that ends with `separator`, or with the end.
template <typename Visit>
void for_each_piece(const char* bytes, std::size_t size, char separator, Visit visit) {
  while (size > 0) {
    const auto* end = static_cast<const char*>(memchr(bytes, separator, size));
    const std::size_t length = end != nullptr ? static_cast<std::size_t>(end - bytes) : size;
    if (!visit(bytes, length)) return;
    const std::size_t taken = end != nullptr ? length + 1 : length;
    bytes += taken;
    size -= taken;
  }
}

std::size_t put_text(const HeaderFacts& facts, char* out, std::size_t capacity) {
  JsonText json(out, capacity);
  json.put("{");
  json.member("host", facts.host != nullptr && *facts.host != '\0' ? facts.host : "unknown");
  json.member("boot_id", facts.boot_id);
  if (facts.utc_error_us >= 0) json.member("utc_error_us", facts.utc_error_us);
  if (facts.command.size > 0) {
    json.open("command", "[");
    std::size_t bytes = 0;
    for_each_piece(facts.command.bytes, facts.command.size, '\0', [&](const char* text, std::size_t size) {
      bytes += size;
      json.separate();
      if (bytes > max_command_bytes) {
        json.string("…", strlen("…"));
        return false;
      }
      json.string(text, size);
      return true;
    });
    json.put("]");
  }
  json.member("directory", facts.directory);
  json.member("job", facts.job);
  json.member("launch", facts.launch);
  json.member("parent", facts.parent);
  if (facts.process_start > 0) json.member("start", static_cast<std::int64_t>(facts.process_start));
  if (facts.pid_namespace > 0) json.member("pid_namespace", static_cast<std::int64_t>(facts.pid_namespace));
  if (facts.heartbeat_s > 0) json.member("heartbeat_s", std::int64_t{facts.heartbeat_s});
  if (facts.ancestors.size > 0) {
    json.open("ancestors", "[");
    for_each_piece(facts.ancestors.bytes, facts.ancestors.size, '\0', [&](const char* text, std::size_t size) {
      json.separate();
      json.string(text, size);
      return true;
    });
    json.put("]");
  }
  if (facts.forked > 0) json.member("forked", std::int64_t{facts.forked});
  const auto put_assignment = [&](const char* text, std::size_t size) {
    json.assignment(text, size);
    return true;
  };
  if (facts.environment.size > 0) {
    json.open("environment", "{");
    for_each_piece(facts.environment.bytes, facts.environment.size, '\0', put_assignment);
    json.put("}");
  }
  if (facts.set != nullptr && *facts.set != '\0') {
    json.open("set", "{");
    for_each_piece(facts.set, strlen(facts.set), '\n', put_assignment);
    json.put("}");
  }
  json.put("}");
  return json.finish();
}

}  // namespace

std::size_t make_header(const HeaderFacts& facts, void* out, std::size_t capacity) noexcept {
  if (capacity > max_header_bytes) capacity = max_header_bytes;
  if (capacity < page_bytes) return 0;
  auto* const bytes = static_cast<char*>(out);
  const std::size_t text_bytes =
      put_text(facts, bytes + sizeof(FileHeader), capacity - sizeof(FileHeader) - late_counters_bytes);
  const std::size_t used = sizeof(FileHeader) + text_bytes;
  const std::size_t header_bytes = (used + late_counters_bytes + page_bytes - 1) / page_bytes * page_bytes;
  if (text_bytes == 0 || header_bytes > capacity) return 0;
  memset(bytes + used, 0, header_bytes - used);

  FileHeader header{};
  memcpy(header.magic, file_magic, sizeof header.magic);
  header.version = file_version;
  header.header_bytes = static_cast<std::uint32_t>(header_bytes);
  header.file_id = facts.file_id;
  header.clock_source = facts.clock_source;
  header.pid = facts.pid;
  header.ticks_per_second = facts.ticks_per_second;
  header.start_ticks = facts.start_ticks;
  header.start_utc_ns = facts.start_utc_ns;
  header.process_start_utc_ns = facts.process_start_utc_ns;
  header.text_bytes = static_cast<std::uint32_t>(text_bytes);
  header.text_hash = XXH3_64bits(bytes + sizeof header, text_bytes);
  header.hash = header_hash(header);
  header.live_bytes = facts.live_bytes;
  header.blocks_end = header_bytes + facts.live_bytes;
  header.rank = facts.rank;
  header.world_size = facts.world_size;
  header.local_rank = facts.local_rank;
  memcpy(bytes, &header, sizeof header);
  return header_bytes;
}

}  // namespace paceline::format
