// SPDX-License-Identifier: Apache-2.0
// What the parts of an import share: the rank that is built, the file's definitions, and its clock.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analysis/importers/pace/clock.h"
#include "analysis/importers/pace/definitions.h"
#include "analysis/importers/pace/gaps.h"
#include "analysis/importers/pace/vocabulary.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {

class PaceContext {
 public:
  PaceContext(RankBuilder& rank, PaceVocabulary& words, const PaceEvents& events, const PaceDefinitions& definitions,
              const std::vector<PaceGap>& gaps, const PiecewiseLine& clock, double zero);

  RankBuilder& rank;
  PaceVocabulary& words;
  const PaceEvents& events;
  const PaceDefinitions& definitions;
  const std::vector<PaceGap>& gaps;
  const PaceClock time;                                           // ticks to nanoseconds of the run
  std::unordered_map<std::uint32_t, Communicator> communicators;  // by the file's number

  // The rank's name for an id of the file.
  NameId name(std::uint32_t id) const { return id < names_.size() ? names_[id] : 0; }

  // The kind of a range or mark, by its scope as in the event.
  KindId kind(std::uint64_t scope) {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
    Known& known = known_[scope * odd >> 56];
    if (known.scope != scope) known = {scope, look_up(scope)};
    return known.kind;
  }

 private:
  KindId look_up(std::uint64_t scope);

  std::vector<NameId> names_;                        // by the file's id
  std::unordered_map<std::uint64_t, KindId> kinds_;  // by scope
  struct Known {
    std::uint64_t scope = ~std::uint64_t{0};
    KindId kind = 0;
  };
  std::array<Known, 256> known_;  // those that were asked for last, by a hash of the scope
};

}  // namespace paceline::analysis
