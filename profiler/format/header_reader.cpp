// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/header_reader.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "profiler/format/hash.h"

namespace paceline::format {
namespace header_text {

void read_string(const nlohmann::json& json, const char* key, std::string& value) {
  const auto found = json.find(key);
  if (found != json.end() && found->is_string()) value = found->get<std::string>();
}

void read_list(const nlohmann::json& json, const char* key, std::vector<std::string>& values) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) return;
  for (const auto& value : *found) {
    if (value.is_string()) values.push_back(value.get<std::string>());
  }
}

void read_map(const nlohmann::json& json, const char* key, std::map<std::string, std::string>& values) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_object()) return;
  for (const auto& [name, value] : found->items()) {
    if (value.is_string()) values[name] = value.get<std::string>();
  }
}

// Sets `value` to the member if it is a number from 0 to below `end`.
template <typename Number>
void read_number(const nlohmann::json& json, const char* key, std::uint64_t end, Number& value) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return;
  const auto number = found->get<std::uint64_t>();
  if (number < end) value = static_cast<Number>(number);
}

void read(const std::string& text, TraceFacts& facts, DamageLog& damage) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    damage.add("the header's text is not a JSON object");
    return;
  }
  read_string(json, "host", facts.host);
  read_string(json, "boot_id", facts.boot_id);
  read_string(json, "directory", facts.directory);
  read_string(json, "job", facts.job);
  read_string(json, "launch", facts.launch);
  read_string(json, "parent", facts.parent);
  read_map(json, "environment", facts.environment);
  read_map(json, "set", facts.set);
  read_list(json, "ancestors", facts.ancestors);
  read_list(json, "command", facts.command);
  read_number(json, "start", ~std::uint64_t{0}, facts.process_start);
  read_number(json, "forked", 4096, facts.forked);
  read_number(json, "pid_namespace", ~std::uint64_t{0}, facts.pid_namespace);
  read_number(json, "heartbeat_s", 3601, facts.heartbeat_s);
  read_number(json, "utc_error_us", std::uint64_t{1} << 40, facts.utc_error_us);
}

}  // namespace header_text

std::uint64_t read_header(const InputFile& file, TraceFacts& facts, DamageLog& damage) {
  FileHeader& header = facts.header;
  const std::uint64_t size = file.size();
  const std::size_t got = file.read(0, &header, sizeof header);
  if (got < sizeof header.magic || std::memcmp(header.magic, file_magic, sizeof header.magic) != 0) {
    file.fail("not a .pace trace: it does not start with PACELINE");
  }
  if (got < sizeof header) file.fail(fmt::format("cut in its header, after {} bytes; nothing can be read", got));
  if (header.version < oldest_file_version || header.version > file_version) {
    file.fail(
        fmt::format("version {} of the trace format, but this program reads versions {} to {}; use a newer Paceline",
                    header.version, oldest_file_version, file_version));
  }
  if (header.hash != header_hash(header)) file.fail("the header's checksum does not fit; nothing can be read");
  if (header.header_bytes % page_bytes != 0 || header.header_bytes > max_header_bytes ||
      header.header_bytes < sizeof header || header.text_bytes > header.header_bytes - sizeof header) {
    file.fail("the header's sizes are out of range; nothing can be read");
  }
  if (size < header.header_bytes) {
    file.fail(fmt::format("cut in its header, after {} of {} bytes; nothing can be read", size, header.header_bytes));
  }
  if (sizeof header + header.text_bytes + late_counters_bytes <= header.header_bytes) {
    file.read(header.header_bytes - late_counters_bytes, &facts.interrupted, sizeof facts.interrupted);
  }
  std::string text(header.text_bytes, '\0');
  text.resize(file.read(sizeof header, text.data(), text.size()));
  if (text.size() != header.text_bytes || header.text_hash != XXH3_64bits(text.data(), text.size())) {
    damage.add("the checksum of the header's text does not fit");
  } else {
    header_text::read(text, facts, damage);
  }
  return size;
}

}  // namespace paceline::format
