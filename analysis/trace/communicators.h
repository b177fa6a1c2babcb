// SPDX-License-Identifier: Apache-2.0
// The communicators of a run, MPI's and NCCL's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/trace/kinds.h"

namespace paceline::analysis {

// The identity is the same in every process and on every rank, so that processes that each analyse some ranks agree on
// it. The text is for people: the communicator's name where only one has that name, else with the identity behind it.
struct Communicator {
  NameId text = 0;  // the value of the argument "communicator"
  std::uint64_t identity = 0;
  std::uint32_t members = 0;  // 0 = not known
};

// FNV-1a, the same in every process: the identity of a communicator that has only a name.
inline std::uint64_t name_identity(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

class Communicators {
 public:
  // The first entry with a text stays. O(n).
  void add(const Communicator& communicator) {
    const auto at = std::ranges::lower_bound(all_, communicator.text, {}, &Communicator::text);
    if (at == all_.end() || at->text != communicator.text) all_.insert(at, communicator);
  }
  // nullptr where no communicator has this text. O(log n).
  const Communicator* find(NameId text) const {
    const auto at = std::ranges::lower_bound(all_, text, {}, &Communicator::text);
    return at != all_.end() && at->text == text ? &*at : nullptr;
  }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  std::size_t size() const { return all_.size(); }

 private:
  std::vector<Communicator> all_;  // by text
};

}  // namespace paceline::analysis
