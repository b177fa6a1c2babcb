// SPDX-License-Identifier: Apache-2.0
// The names that the events of a .pace file become, interned for one rank.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/trace/builder.h"

namespace paceline::analysis {

// The texts of a run's communicators: the name where only one communicator has it, else with the identity behind it.
class CommunicatorTexts {
 public:
  void add(std::uint64_t identity, std::string_view name);
  // Of one that was not added, the identity in hexadecimal digits.
  std::string operator()(std::uint64_t identity) const;

 private:
  std::unordered_map<std::uint64_t, std::string> texts_;
  std::unordered_set<std::string> names_;
};

class PaceVocabulary {
 public:
  PaceVocabulary(RankBuilder& rank, const CommunicatorTexts& communicators);

  // The kind of a call. A function that this version does not know gets its number as its name.
  KindId mpi(std::uint32_t function) {
    return function < mpi_.size() && mpi_[function] != 0 ? mpi_[function] : look_up(function);
  }

  // A call that another tool made on its own behalf: "PMPI_Allreduce", of the category "tool".
  KindId mpi_of_tool(std::uint32_t function);

  NameId communicator_text(std::uint64_t identity) { return rank_.names().intern(communicators_(identity)); }

 private:
  KindId look_up(std::uint32_t function);

  RankBuilder& rank_;
  const CommunicatorTexts& communicators_;
  std::vector<KindId> mpi_;  // by function; 0: not looked up yet

 public:
  const NameId payload, bytes, communicator, sequence, members, root, peer, tag, request, file, offset, window,
      unfinished;
};

}  // namespace paceline::analysis
