// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/flight_recorder/verdicts.h"

#include <algorithm>
#include <map>
#include <set>

namespace paceline::analysis::flight_recorder {

std::vector<std::string> verdicts_of(const std::vector<Dump>& dumps, const std::vector<Fault>& faults) {
  std::set<int> given, members;
  std::map<std::pair<std::string, std::int64_t>, std::set<std::string>> functions;  // by group and number
  bool pends = false;
  for (const Dump& dump : dumps) {
    given.insert(dump.rank);
    for (const auto& [name, group] : dump.groups) members.insert(group.ranks.begin(), group.ranks.end());
    for (const Call& call : dump.calls) {
      if (call.is_message) continue;
      pends = pends || call.pends();
      functions[{call.group, call.number}].insert(call.function);
    }
  }
  std::vector<std::string> verdicts;
  const auto add = [&](bool holds, const char* verdict) {
    if (holds) verdicts.emplace_back(verdict);
  };
  add(std::ranges::any_of(functions, [](const auto& call) { return call.second.size() > 1; }),
      "JOB_CONTAINS_COLL_METADATA_MISMATCH");
  add(std::ranges::any_of(faults, [](const Fault& fault) { return !fault.entered; }),
      "JOB_STUCK_IN_NCCL_RANK_NOT_JOIN");
  add(std::ranges::any_of(faults, &Fault::entered), "JOB_STUCK_IN_NCCL_BASED_ON_PT");
  add(pends && faults.empty(), "JOB_STUCK_IN_NCCL_UNKNOWN_BAD_RANKS");
  add(!std::ranges::includes(given, members), "JOB_COMM_DUMP_MISSING");
  add(verdicts.empty(), "ALL_GOOD");
  return verdicts;
}

}  // namespace paceline::analysis::flight_recorder
