// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/context.h"

namespace paceline::analysis {

PaceContext::PaceContext(RankBuilder& rank, PaceVocabulary& words, const PaceEvents& events,
                         const PaceDefinitions& definitions, const std::vector<PaceGap>& gaps,
                         const PiecewiseLine& clock, double zero)
    : rank(rank), words(words), events(events), definitions(definitions), gaps(gaps), time(clock, zero) {
  names_.reserve(definitions.names.size());
  for (const std::string& name : definitions.names) names_.push_back(rank.names().intern(name));
  for (const auto& [number, communicator] : definitions.communicators) {
    communicators[number] = {words.communicator_text(communicator.identity), communicator.identity, communicator.size};
  }
}

KindId PaceContext::look_up(std::uint64_t scope) {
  const auto [found, fresh] = kinds_.try_emplace(scope, KindId{0});
  if (!fresh) return found->second;
  const auto [domain, category, name] = parts_of(scope);
  Kind kind{0, 0, this->name(name)};
  if (domain < definitions.domains.size()) {
    kind.domain = rank.names().intern(definitions.name(definitions.domains[domain]));
  }
  if (domain < definitions.categories.size()) {
    const auto named = definitions.categories[domain].find(category);
    if (named != definitions.categories[domain].end()) {
      kind.category = rank.names().intern(definitions.name(named->second));
    }
  }
  return found->second = rank.vocabulary().kinds.intern(kind);
}

}  // namespace paceline::analysis
