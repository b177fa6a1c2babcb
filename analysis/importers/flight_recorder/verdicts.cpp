// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/flight_recorder/verdicts.h"

#include <algorithm>
#include <map>
#include <set>

namespace paceline::analysis::flight_recorder {

std::vector<std::string> verdicts_of(const std::vector<Dump>& dumps, const std::vector<Fault>& faults) {
  std::set<int> given, members;
  struct Seen {
    std::set<std::string> functions, datatypes;
    bool pends = false, completed = false;
  };
  std::map<std::pair<std::string, std::int64_t>, Seen> calls;  // by group and number
  for (const Dump& dump : dumps) {
    given.insert(dump.rank);
    for (const auto& [name, group] : dump.groups) members.insert(group.ranks.begin(), group.ranks.end());
    for (const Call& call : dump.calls) {
      if (call.is_message) continue;
      Seen& seen = calls[{call.group, call.number}];
      seen.functions.insert(call.function);
      if (!call.datatype.empty()) seen.datatypes.insert(call.datatype);
      (call.pends() ? seen.pends : seen.completed) = true;
    }
  }
  std::vector<std::string> verdicts;
  const auto add = [&](bool holds, const char* verdict) {
    if (holds) verdicts.emplace_back(verdict);
  };
  const auto any = [&](auto holds) {
    return std::ranges::any_of(calls, [&](const auto& call) { return holds(call.second); });
  };
  add(any([](const Seen& seen) { return seen.functions.size() > 1 || seen.datatypes.size() > 1; }),
      "JOB_CONTAINS_COLL_METADATA_MISMATCH");
  add(std::ranges::any_of(faults, [](const Fault& fault) { return !fault.entered; }),
      "JOB_STUCK_IN_NCCL_RANK_NOT_JOIN");
  add(std::ranges::any_of(faults, &Fault::entered), "JOB_STUCK_IN_NCCL_BASED_ON_PT");
  add(faults.empty() && any([](const Seen& seen) { return seen.pends && !seen.completed; }),
      "JOB_STUCK_IN_NCCL_UNKNOWN_BAD_RANKS");
  add(!std::ranges::includes(given, members), "JOB_COMM_DUMP_MISSING");
  add(verdicts.empty(), "ALL_GOOD");
  return verdicts;
}

}  // namespace paceline::analysis::flight_recorder
