// SPDX-License-Identifier: Apache-2.0
// Strings interned once for all ranks of a run: equal strings have equal ids.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace paceline::analysis {

class Names {
 public:
  Names() { intern(""); }
  Names(Names&&) = default;  // the map views into the texts, so a copy of it would view into another's
  Names& operator=(Names&&) = default;

  std::uint32_t intern(std::string_view text) {
    if (const auto found = ids_.find(text); found != ids_.end()) return found->second;
    const auto id = static_cast<std::uint32_t>(texts_.size());
    ids_.emplace(texts_.emplace_back(text), id);
    return id;
  }
  // 0 where the string is not known, which is also the empty string's id.
  std::uint32_t find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? 0 : found->second;
  }
  const std::string& operator[](std::uint32_t id) const { return texts_[id]; }
  std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;  // a deque keeps addresses, so that the map can view into it
  std::unordered_map<std::string_view, std::uint32_t> ids_;
};

}  // namespace paceline::analysis
