// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "analysis/importers/mpi_names.h"

namespace paceline::analysis {

void CommunicatorTexts::add(std::uint64_t identity, std::string_view name) {
  const auto [text, fresh] = texts_.try_emplace(identity);
  if (!fresh) return;
  const bool unique = !name.empty() && names_.insert(std::string(name)).second;
  text->second = unique ? std::string(name) : fmt::format("{}{}{:016x}", name, name.empty() ? "" : " ", identity);
}

std::string CommunicatorTexts::operator()(std::uint64_t identity) const {
  const auto found = texts_.find(identity);
  return found != texts_.end() ? found->second : fmt::format("{:016x}", identity);
}

PaceVocabulary::PaceVocabulary(RankBuilder& rank, const CommunicatorTexts& communicators)
    : rank_(rank),
      communicators_(communicators),
      payload(rank.names().intern("payload")),
      bytes(rank.names().intern("bytes")),
      communicator(rank.names().intern("communicator")),
      sequence(rank.names().intern("sequence")),
      members(rank.names().intern("members")),
      root(rank.names().intern("root")),
      peer(rank.names().intern("peer")),
      tag(rank.names().intern("tag")),
      request(rank.names().intern("request")),
      file(rank.names().intern("file")),
      offset(rank.names().intern("offset")),
      window(rank.names().intern("window")),
      unfinished(rank.names().intern("unfinished")) {}

KindId PaceVocabulary::look_up(std::uint32_t function) {
  if (mpi_.size() <= function) mpi_.resize(function + 1);
  const auto known = std::ranges::find(format::mpi_functions, function,
                                       [](const auto& candidate) { return static_cast<std::uint32_t>(candidate.id); });
  mpi_[function] = known != std::end(format::mpi_functions)
                       ? rank_.kind(known->name, "mpi", mpi_category(known->kind))
                       : rank_.kind(fmt::format("MPI function {}", function), "mpi");
  return mpi_[function];
}

KindId PaceVocabulary::mpi_of_tool(std::uint32_t function) {
  const format::MpiFunction* known = format::find_mpi_function(function);
  return rank_.kind(known != nullptr ? fmt::format("P{}", known->name) : fmt::format("PMPI function {}", function),
                    "mpi", "tool");
}

}  // namespace paceline::analysis
