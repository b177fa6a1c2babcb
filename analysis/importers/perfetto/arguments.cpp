// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/perfetto/arguments.h"

#include <fmt/format.h>

namespace paceline::analysis::perfetto {
namespace perfetto_arguments {

constexpr int deepest = 8;

// `around`: the key of what this is a part of, and `place` its place in a list, else negative.
void add(std::string_view annotation, const Sequence& sequence, Texts& texts, std::vector<Value>& values,
         const std::string* around, int place, int depth) {
  Value value;
  bool has_value = false;
  std::vector<Field> parts;  // mostly none
  const auto set = [&](ValueType type, std::uint64_t bits) {
    value.type = type;
    value.bits = bits;
    has_value = true;
  };
  Fields fields(annotation);
  Field field;
  while (fields.next(field)) {
    switch (field.tag) {
      case integer(1):
        value.key = sequence.keys[field.value];
        break;
      case text(10):
        value.key = texts.intern(field.bytes);
        break;
      case integer(2):
      case integer(3):
      case integer(7):
        set(ValueType::unsigned_integer, field.value);
        break;
      case integer(4):
        set(ValueType::signed_integer, field.value);
        break;
      case fixed64(5):
        set(ValueType::real, field.value);
        break;
      case text(6):
      case text(9):
        set(ValueType::text, texts.intern(field.bytes));
        value.json = field.tag == text(9);
        break;
      case integer(17):
        set(ValueType::text, sequence.values[field.value]);
        break;
      case text(11):
      case text(12):
        parts.push_back(field);
        break;
      default:
        break;
    }
  }
  if (!has_value && parts.empty()) return;
  std::string path;
  if (around != nullptr || !parts.empty()) {
    path = around == nullptr ? "" : *around;
    if (place >= 0) path += fmt::format("[{}]", place);
    const std::string_view key = texts[value.key];
    if (!key.empty()) path += (path.empty() ? "" : ".") + std::string(key);
    value.key = texts.intern(path);
  }
  if (has_value) values.push_back(value);
  if (depth == deepest) return;
  int number = 0;
  for (const Field& part : parts) {
    add(part.bytes, sequence, texts, values, &path, part.tag == text(12) ? number++ : -1, depth + 1);
  }
}

}  // namespace perfetto_arguments

void add_values(std::string_view annotation, const Sequence& sequence, Texts& texts, std::vector<Value>& values) {
  // Mostly the number of a key and a value, and nothing else.
  Fields fields(annotation);
  Field key, value, more;
  if (fields.next(key) && key.tag == integer(1) && fields.next(value) && !fields.next(more) && !fields.damaged()) {
    const TextId of_key = sequence.keys[key.value];
    switch (value.tag) {
      case integer(3):
        values.push_back({of_key, ValueType::unsigned_integer, value.value});
        return;
      case integer(4):
        values.push_back({of_key, ValueType::signed_integer, value.value});
        return;
      case fixed64(5):
        values.push_back({of_key, ValueType::real, value.value});
        return;
      case integer(17):
        values.push_back({of_key, ValueType::text, sequence.values[value.value]});
        return;
      default:
        break;
    }
  }
  perfetto_arguments::add(annotation, sequence, texts, values, nullptr, -1, 1);
}

}  // namespace paceline::analysis::perfetto
