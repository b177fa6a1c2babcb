// SPDX-License-Identifier: Apache-2.0
// What a slice is: its domain, category and name, interned together.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/trace/names.h"

namespace paceline::analysis {

using NameId = std::uint32_t;  // 0 is the empty string
using KindId = std::uint32_t;  // index into Kinds; 0 is the kind without domain, category and name

// The NVTX domain and category, or "mpi" and "collective", "point-to-point", …; and the name of the function or range.
struct Kind {
  NameId domain = 0;
  NameId category = 0;
  NameId name = 0;
  bool operator==(const Kind&) const = default;
};

// Kinds numbered in the order in which they were interned: equal kinds have equal numbers.
class Kinds {
 public:
  Kinds() { intern({}); }

  // O(1).
  KindId intern(const Kind& kind) {
    const auto [found, fresh] = ids_.try_emplace(kind, static_cast<KindId>(kinds_.size()));
    if (fresh) kinds_.push_back(kind);
    return found->second;
  }
  const Kind& operator[](KindId id) const { return kinds_[id]; }
  std::size_t size() const { return kinds_.size(); }
  auto begin() const { return kinds_.begin(); }
  auto end() const { return kinds_.end(); }

 private:
  struct Hash {
    std::size_t operator()(const Kind& kind) const {
      constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
      std::uint64_t hash = (std::uint64_t{kind.domain} << 32 | kind.category) * odd;
      hash = (hash ^ hash >> 29 ^ kind.name) * odd;
      return static_cast<std::size_t>(hash ^ hash >> 32);
    }
  };
  std::vector<Kind> kinds_;
  std::unordered_map<Kind, KindId, Hash> ids_;
};

// The names and kinds of one trace, or of a part of a trace that is still being built.
struct Vocabulary {
  Names names;
  Kinds kinds;

  KindId kind(std::string_view name, std::string_view domain = "", std::string_view category = "") {
    return kinds.intern({names.intern(domain), names.intern(category), names.intern(name)});
  }
};

}  // namespace paceline::analysis
