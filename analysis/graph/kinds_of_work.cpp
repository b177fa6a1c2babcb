// SPDX-License-Identifier: Apache-2.0
// Which layers and kernels take most of the critical path, by kind.
#include <algorithm>
#include <functional>
#include <map>
#include <string_view>

#include "analysis/graph/what_if.h"

namespace paceline::analysis {
namespace kinds_of_work_parts {

constexpr std::size_t longest_name = 40, most_kinds = 2;
constexpr double least_share = 0.05;  // of the critical path

// "*conv*" of "layer1.0.conv2", and the name itself where it is one word or a kernel's signature.
std::string pattern_of(const std::string& name) {
  if (name.size() > longest_name) return name.substr(0, longest_name) + "*";
  if (name.find_first_of("<(: ") != std::string::npos) return name;
  std::string_view kind = name;
  while (!kind.empty() && (kind.back() == '.' || kind.back() == '_' || (kind.back() >= '0' && kind.back() <= '9'))) {
    kind.remove_suffix(1);
  }
  if (const std::size_t dot = kind.rfind('.'); dot != std::string_view::npos) kind.remove_prefix(dot + 1);
  return kind.size() < 2 || kind == name ? name : "*" + std::string(kind) + "*";
}

// Whether the name is that of a layer or a kernel that computes: not of a phase, an iteration or a library's call.
bool computes(const PhaseTable& table, const PathName& name) {
  const Trace& trace = table.trace();
  if (name.name.empty() || name.domain == "mpi" || name.domain == "nccl" || name.domain == "cuda") return false;
  for (KindId kind = 0; kind < trace.kinds.size(); ++kind) {
    const bool same =
        trace.names[trace.kinds[kind].name] == name.name && trace.names[trace.kinds[kind].domain] == name.domain;
    if (same && (table.phase(kind) || table.iteration(kind))) return false;
  }
  return true;
}

}  // namespace kinds_of_work_parts

std::vector<FasterWork> largest_kinds(const PhaseTable& table, const CriticalPath& path) {
  using namespace kinds_of_work_parts;
  std::map<std::string, std::int64_t> by_pattern;
  for (const PathName& name : path.names) {
    if (computes(table, name)) by_pattern[pattern_of(name.name)] += name.ns;
  }
  std::vector<std::pair<std::int64_t, std::string>> largest;
  for (const auto& [pattern, ns] : by_pattern) {
    if (static_cast<double>(ns) >= least_share * static_cast<double>(path.wall_ns)) largest.emplace_back(ns, pattern);
  }
  std::ranges::stable_sort(largest, std::greater(), &std::pair<std::int64_t, std::string>::first);
  if (largest.size() > most_kinds) largest.resize(most_kinds);
  std::vector<FasterWork> kinds;
  for (const auto& [ns, pattern] : largest) kinds.push_back({pattern, 2});
  return kinds;
}

}  // namespace paceline::analysis
