// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/perfetto/arguments.h"

#include <fmt/format.h>

namespace paceline::analysis::perfetto {
namespace perfetto_arguments {

constexpr int deepest = 8;
constexpr std::size_t longest_path = 256;

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
      case integer_tag(1):
        value.key = sequence.keys[field.value];
        break;
      case text_tag(10):
        value.key = texts.intern(field.bytes);
        break;
      case integer_tag(2):
      case integer_tag(3):
      case integer_tag(7):
        set(ValueType::unsigned_integer, field.value);
        break;
      case integer_tag(4):
        set(ValueType::signed_integer, field.value);
        break;
      case fixed64_tag(5):
        set(ValueType::real, field.value);
        break;
      case text_tag(6):
      case text_tag(9):
        set(ValueType::text, texts.intern(field.bytes));
        value.json = field.tag == text_tag(9);
        break;
      case integer_tag(17):
        set(ValueType::text, sequence.values[field.value]);
        break;
      case text_tag(11):
      case text_tag(12):
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
    if (path.size() > longest_path) path.resize(longest_path);
    value.key = texts.intern(path);
  }
  if (has_value) values.push_back(value);
  if (depth == deepest) return;
  int number = 0;
  for (const Field& part : parts) {
    add(part.bytes, sequence, texts, values, &path, part.tag == text_tag(12) ? number++ : -1, depth + 1);
  }
}

}  // namespace perfetto_arguments

void add_values(std::string_view annotation, const Sequence& sequence, Texts& texts, std::vector<Value>& values) {
  // Mostly the number of a key and a value, and nothing else.
  Fields fields(annotation);
  Field key, value, more;
  if (fields.next(key) && key.tag == integer_tag(1) && fields.next(value) && !fields.next(more) && !fields.damaged()) {
    const bool is_text = value.tag == integer_tag(17);
    if (is_text || value.tag == integer_tag(3) || value.tag == integer_tag(4) || value.tag == fixed64_tag(5)) {
      const ValueType type = is_text                       ? ValueType::text
                             : value.tag == integer_tag(3) ? ValueType::unsigned_integer
                             : value.tag == integer_tag(4) ? ValueType::signed_integer
                                                           : ValueType::real;
      const Value made{sequence.keys[key.value], type, is_text ? sequence.values[value.value] : value.value};
      values.push_back(made);
      return;
    }
  }
  perfetto_arguments::add(annotation, sequence, texts, values, nullptr, -1, 1);
}

}  // namespace paceline::analysis::perfetto
