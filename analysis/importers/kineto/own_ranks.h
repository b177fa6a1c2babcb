// SPDX-License-Identifier: Apache-2.0
// Chrome JSON with several ranks in one file: a process for each, named "rank 3 (node17)" by Paceline's own export, and
// "Rank 3" or "MPI rank 3 of 8" by others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/trace/trace.h"

namespace paceline::analysis::kineto {

struct RankName {
  int number = 0;
  std::string host;
  std::int64_t pid = 0;
  bool operator<(const RankName& other) const { return number < other.number; }
};
// The number behind the word "rank" in the name of a process, and the host of the export's own form, "rank 3 (node17)".
std::optional<RankName> rank_in_name(std::string_view process_name);

// What the label of a track, or the device of a counter, begins with until split_own_ranks(). Empty where the process's
// name has no rank. `process`: its id.
std::string rank_prefix(const std::string& process_name, const std::string& process);

// Makes ranks out of a rank whose tracks have such prefixes, and adds them to the list. Other ranks are added as they
// are.
void split_own_ranks(Rank rank, std::vector<Rank>& ranks);

}  // namespace paceline::analysis::kineto
