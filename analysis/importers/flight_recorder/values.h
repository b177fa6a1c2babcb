// SPDX-License-Identifier: Apache-2.0
// The values of a Flight Recorder dump, decoded from a pickle or from JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline::analysis::flight_recorder {

struct Value {
  enum class Type : std::uint8_t { none, boolean, whole, real, text, list, dictionary };
  Type type = Type::none;
  std::int64_t whole = 0;  // of a boolean as well
  double real = 0;
  std::string text;
  std::vector<const Value*> items;                             // of a list, a tuple or a set
  std::vector<std::pair<const Value*, const Value*>> entries;  // of a dictionary

  // The entry of a dictionary under a text; nullptr where there is none. Looks at the first 256 entries, which is far
  // more than a record has: a dictionary may be shared by many records.
  const Value* find(std::string_view key) const;
  std::optional<std::int64_t> whole_at(std::string_view key) const;
  std::string_view text_at(std::string_view key) const;  // "" where it is no text
};

// Owns values, which may refer to each other in any way; nothing is copied, and nothing is freed recursively.
using Values = std::deque<Value>;

// Decodes a pickle of the protocols 0 to 5 that holds nothing but plain values. Opcodes that name a class or call
// anything are refused. Throws Error with what is wrong and where. The result lives as long as `values`. Cost: linear
// in the bytes.
const Value& decode_pickle(std::string_view bytes, Values& values);

// The same for JSON. What is nested deeper than 16 levels is left out.
const Value& decode_json(std::string_view text, Values& values);

}  // namespace paceline::analysis::flight_recorder
