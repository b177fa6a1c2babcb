// SPDX-License-Identifier: Apache-2.0
// What a writer of packets said once for all that follow: texts by number, and defaults.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/importers/kineto/interner.h"
#include "analysis/importers/perfetto/fields.h"

namespace paceline::analysis::perfetto {

// Texts of a file, as numbers; 0 is the empty text.
using Texts = kineto::Interner;
using TextId = std::uint32_t;

// A writer's numbers for texts or other things. They are mostly small and dense.
class Numbers {
 public:
  void set(std::uint64_t number, std::uint32_t value) {
    ++set_;
    if (number >= dense_.size()) {
      if (number > 16 * (set_ + 1024)) {
        sparse_[number] = value;
        return;
      }
      dense_.resize(std::max<std::size_t>(static_cast<std::size_t>(number) + 1, 2 * dense_.size()));
    }
    dense_[static_cast<std::size_t>(number)] = value;
  }
  // 0 where the number is not known.
  std::uint32_t operator[](std::uint64_t number) const {
    if (number < dense_.size() && dense_[static_cast<std::size_t>(number)] != 0)
      return dense_[static_cast<std::size_t>(number)];
    if (sparse_.empty()) return 0;
    const auto found = sparse_.find(number);
    return found == sparse_.end() ? 0 : found->second;
  }

 private:
  std::uint64_t set_ = 0;
  std::vector<std::uint32_t> dense_;
  std::unordered_map<std::uint64_t, std::uint32_t> sparse_;
};

struct Sequence {
  bool known = false;       // its state is complete: nothing was lost since it was cleared
  std::uint64_t state = 0;  // another number with each change of what follows
  std::uint64_t clock = 0, track = 0;
  std::vector<std::uint64_t> counters, real_counters;  // tracks of an event's extra values
  Numbers categories, names, keys, values;             // TextId

  void take_defaults(std::string_view bytes) {
    Fields fields(bytes);
    Field field;
    while (fields.next(field)) {
      if (field.tag == integer_tag(58)) clock = field.value;
      if (field.tag == text_tag(11)) take_event_defaults(field.bytes);
    }
  }

  void take_interned(std::string_view bytes, Texts& texts) {
    Fields fields(bytes);
    Field field;
    while (fields.next(field)) {
      Numbers* const table = table_of(field.tag);
      if (table == nullptr) continue;
      std::uint64_t number = 0;
      std::string_view entry;
      Fields parts(field.bytes);
      Field part;
      while (parts.next(part)) {
        if (part.tag == integer_tag(1)) number = part.value;
        if (part.tag == text_tag(2)) entry = part.bytes;
      }
      table->set(number, texts.intern(entry));
    }
  }

 private:
  void take_event_defaults(std::string_view bytes) {
    counters.clear(), real_counters.clear();
    Fields fields(bytes);
    Field field;
    while (fields.next(field)) {
      if (field.tag == integer_tag(11)) track = field.value;
      if (field.tag == integer_tag(31)) counters.push_back(field.value);
      if (field.tag == integer_tag(45)) real_counters.push_back(field.value);
    }
  }
  Numbers* table_of(std::uint64_t tag) {
    switch (tag) {
      case text_tag(1):
        return &categories;
      case text_tag(2):
        return &names;
      case text_tag(3):
        return &keys;
      case text_tag(29):
        return &values;
      default:
        return nullptr;
    }
  }
};

}  // namespace paceline::analysis::perfetto
