// What the parts of an import share: the rank that is built, the file's definitions, and its clock.
#pragma once

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
  const PaceClock time;  // ticks to nanoseconds of the run

  // The kind of a range or mark, by its scope as in the event.
  KindId kind(std::uint64_t scope) {
    if (scope == last_scope_) return last_kind_;
    last_kind_ = look_up(scope);
    last_scope_ = scope;
    return last_kind_;
  }

 private:
  KindId look_up(std::uint64_t scope);

  std::vector<NameId> names_;                        // by the file's id
  std::unordered_map<std::uint64_t, KindId> kinds_;  // by scope
  std::uint64_t last_scope_ = ~std::uint64_t{0};
  KindId last_kind_ = 0;
};

}  // namespace paceline::analysis
