// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/kineto/header.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "analysis/importers/kineto/json_tokens.h"
#include "analysis/importers/kineto/values.h"

namespace paceline::analysis::kineto {
namespace {

using Json = nlohmann::json;

// A number, or a string with a number inside.
std::optional<std::int64_t> integer(const Json& json) {
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_string()) return whole_number(json.get_ref<const std::string&>());
  return std::nullopt;
}

std::optional<std::int64_t> member(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? std::nullopt : integer(*found);
}

std::string text_member(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return "";
  return found->is_string() ? plain_text(found->get_ref<const std::string&>()) : plain_text(found->dump());
}

std::optional<int> small(std::optional<std::int64_t> value) {
  if (!value || *value < 0 || *value > 100'000'000) return std::nullopt;
  return static_cast<int>(*value);
}

void add_group(const Json& json, Header& header) {
  if (!json.is_object()) return;
  Header::Group group{text_member(json, "pg_name"), text_member(json, "pg_desc"), {}, 0};
  if (const auto size = small(member(json, "pg_size"))) group.size = static_cast<std::uint32_t>(*size);
  if (const auto ranks = json.find("ranks"); ranks != json.end() && ranks->is_array()) {
    for (const Json& rank : *ranks) {
      if (const auto number = small(integer(rank))) group.ranks.push_back(*number);
    }
  }
  header.groups.push_back(std::move(group));
}

void add_distributed(const Json& json, Header& header) {
  if (!json.is_object()) return;
  header.rank = small(member(json, "rank"));
  header.world_size = small(member(json, "world_size"));
  header.backend = text_member(json, "backend");
  for (const auto& [key, value] : json.items()) {
    if (key == "pg_config" && value.is_array()) {
      for (const Json& group : value) add_group(group, header);
    } else if (key != "rank" && key != "world_size" && !value.is_structured()) {
      header.facts["pytorch." + plain_text(key)] = text_member(json, key.c_str());
    }
  }
}

void add_device(const Json& json, Header& header) {
  if (!json.is_object()) return;
  const auto id = member(json, "id");
  if (!id) return;
  std::string text = text_member(json, "name");
  if (const auto bytes = member(json, "totalGlobalMem")) text += fmt::format(", {} MiB", *bytes >> 20);
  if (const auto multiprocessors = member(json, "numSms")) text += fmt::format(", {} SMs", *multiprocessors);
  const auto major = member(json, "computeMajor"), minor = member(json, "computeMinor");
  if (major && minor) text += fmt::format(", compute capability {}.{}", *major, *minor);
  header.facts[fmt::format("gpu.{}", *id)] = text;
}

std::size_t skip(std::string_view text, std::size_t at, std::string_view characters) {
  while (at < text.size() && characters.find(text[at]) != characters.npos) ++at;
  return at;
}

// The place behind the string that begins at text[at]; npos where it does not end.
std::size_t behind_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.npos;
}

constexpr std::size_t deepest = 64;

// The place behind the value at text[at], and how deep it nests; npos where it does not end.
std::size_t behind_value(std::string_view text, std::size_t at, std::size_t& depths) {
  depths = 0;
  std::size_t depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = behind_string(text, at);
      if (at == text.npos) return at;
    } else if (c == '{' || c == '[') {
      depths = std::max(depths, ++depth);
      ++at;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return at;  // of what is around a scalar
      --depth, ++at;
    } else if (depth == 0 && (c == ',' || Tokens::is_space(c))) {
      return at;
    } else {
      ++at;
      continue;
    }
    if (depth == 0 && c != '{' && c != '[') return at;
  }
  return text.npos;
}

void add_member(std::string_view key, std::string_view value, bool deep, Header& header) {
  constexpr std::string_view of_kineto[] = {"distributedInfo", "deviceProperties", "schemaVersion",
                                            "baseTimeNanoseconds", "record_shapes"};
  header.of_kineto = header.of_kineto || std::ranges::find(of_kineto, key) != std::end(of_kineto);
  if (key == "baseTimeNanoseconds") {
    header.base_ns = whole_number(skip(value, 0, "\"") > 0 ? value.substr(1, value.size() - 2) : value);
    return;
  }
  if (key == "displayTimeUnit" || deep) return;  // the unit of a viewer: times in the file are always in µs
  const bool structured = value.starts_with('{') || value.starts_with('[');
  if (structured && key != "distributedInfo" && key != "deviceProperties") return;
  const Json json = Json::parse(value, nullptr, false);
  if (json.is_discarded()) return;
  if (key == "distributedInfo") return add_distributed(json, header);
  if (key == "deviceProperties" && json.is_array()) {
    for (const Json& device : json) add_device(device, header);
    return;
  }
  header.facts["kineto." + plain_text(key)] =
      json.is_string() ? plain_text(json.get_ref<const std::string&>()) : plain_text(value);
}

}  // namespace

std::size_t read_members(std::string_view text, Header& header) {
  for (std::size_t at = 0;;) {
    at = skip(text, at, " \t\r\n,");
    if (at >= text.size() || text[at] != '"') return text.npos;
    const std::size_t key_end = behind_string(text, at);
    if (key_end == text.npos) return text.npos;
    const std::string_view key = text.substr(at + 1, key_end - at - 2);
    at = skip(text, key_end, " \t\r\n:");
    if (key == "traceEvents") return at;
    std::size_t depths = 0;
    const std::size_t end = behind_value(text, at, depths);
    if (end == text.npos || end == at) return text.npos;
    add_member(key, text.substr(at, end - at), depths > deepest, header);
    at = end;
  }
}

}  // namespace paceline::analysis::kineto
