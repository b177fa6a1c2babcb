// Names and classes that all files of a run share, interned once.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/trace/builder.h"

namespace paceline::analysis {

class PaceVocabulary {
 public:
  explicit PaceVocabulary(TraceBuilder& run);

  struct MpiCall {
    NameId name = 0;
    std::uint16_t slice_class = 0;
  };
  // Of a function that this version does not know, the number is its name.
  MpiCall mpi(std::uint32_t function);

  // The text that tells a communicator from all others: its name where only one has that name.
  NameId communicator_text(std::uint64_t identity, std::string_view name);

 private:
  TraceBuilder& run_;
  std::vector<MpiCall> mpi_;
  std::unordered_map<std::uint64_t, NameId> communicators_;
  std::set<std::string> communicator_names_;

 public:
  const NameId payload, bytes, communicator, sequence, members, root, peer, tag, request, file, offset, window,
      unfinished;
};

}  // namespace paceline::analysis
