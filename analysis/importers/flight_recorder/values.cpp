// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/flight_recorder/values.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "profiler/format/error.h"

namespace paceline::analysis::flight_recorder {
namespace json_values {

constexpr int deepest = 16;

const Value* convert(const nlohmann::json& json, Values& values, int depth) {
  Value& made = values.emplace_back();
  if (json.is_boolean()) {
    made.type = Value::Type::boolean, made.whole = json.get<bool>();
  } else if (json.is_number_integer()) {
    made.type = Value::Type::whole, made.whole = json.get<std::int64_t>();
  } else if (json.is_number()) {
    made.type = Value::Type::real, made.real = json.get<double>();
  } else if (json.is_string()) {
    made.type = Value::Type::text, made.text = json.get_ref<const std::string&>();
  } else if (depth < deepest && json.is_array()) {
    made.type = Value::Type::list;
    for (const nlohmann::json& item : json) made.items.push_back(convert(item, values, depth + 1));
  } else if (depth < deepest && json.is_object()) {
    made.type = Value::Type::dictionary;
    for (const auto& [key, value] : json.items()) {
      Value& name = values.emplace_back();
      name.type = Value::Type::text, name.text = key;
      made.entries.emplace_back(&name, convert(value, values, depth + 1));
    }
  }
  return &made;
}

}  // namespace json_values

const Value* Value::find(std::string_view key) const {
  constexpr std::size_t most = 256;
  for (std::size_t i = 0; i < std::min(entries.size(), most); ++i) {
    if (entries[i].first->type == Type::text && entries[i].first->text == key) return entries[i].second;
  }
  return nullptr;
}

std::optional<std::int64_t> Value::whole_at(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr || (value->type != Type::whole && value->type != Type::boolean)) return std::nullopt;
  return value->whole;
}

std::string_view Value::text_at(std::string_view key) const {
  const Value* value = find(key);
  return value != nullptr && value->type == Type::text ? std::string_view(value->text) : std::string_view();
}

const Value& decode_json(std::string_view text, Values& values) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) throw Error("the JSON is damaged");
  return *json_values::convert(json, values, 0);
}

}  // namespace paceline::analysis::flight_recorder
