// SPDX-License-Identifier: Apache-2.0
// Which recorded transfers a replay takes.
#include <algorithm>
#include <tuple>

#include "analysis/graph/replay_program.h"

namespace paceline::analysis {
namespace transfer_draws {

// The collectives or edges of each iteration, by their kind, in the order of the program.
template <typename Key>
using ByKind = std::map<Key, std::map<std::int32_t, std::vector<std::uint32_t>>>;

// Calls take(to, from) for each pair of counterparts.
template <typename Key, typename Take>
void pair_up(const ReplayProgram& program, std::size_t draw, const ByKind<Key>& by_kind, Take take) {
  std::vector<std::int32_t> partners;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(program.iterations.size()); ++i) {
    partners.push_back(partner_of(program, i, draw));
  }
  for (const auto& [key, of_iterations] : by_kind) {
    for (const auto& [iteration, of] : of_iterations) {
      const auto from = of_iterations.find(partners[static_cast<std::size_t>(iteration)]);
      if (from == of_iterations.end()) continue;
      for (std::size_t k = 0; k < std::min(of.size(), from->second.size()); ++k) take(of[k], from->second[k]);
    }
  }
}

}  // namespace transfer_draws

std::int32_t warm_up_of(const ReplayProgram& program) {
  const auto count = static_cast<std::int32_t>(program.iterations.size());
  return count < 4 ? 0 : std::max(1, count / 10);
}

std::int32_t partner_of(const ReplayProgram& program, std::int32_t iteration, std::size_t draw) {
  const auto count = static_cast<std::int32_t>(program.iterations.size()), first = warm_up_of(program);
  const std::int32_t block = count > replay_block ? replay_block : 1;
  const bool even = iteration / block % 2 == 0;
  std::vector<std::int32_t> partners;
  for (std::int32_t distance = block; distance < count && partners.size() <= draw; distance += 2 * block) {
    for (const std::int32_t partner :
         {iteration + (even ? distance : -distance), iteration - (even ? distance : -distance)}) {
      if (partner >= first && partner < count) partners.push_back(partner);
    }
  }
  return partners.empty() ? -1 : partners[draw % partners.size()];
}

void draw_transfers(ReplayProgram& program, std::size_t draw) {
  using namespace transfer_draws;
  ByKind<std::tuple<std::string, std::uint32_t, std::uint64_t>> collectives;
  for (std::uint32_t c = 0; c < program.collectives.size(); ++c) {
    ReplayCollective& of = program.collectives[c];
    of.drawn = no_collective;
    if (of.iteration >= 0) collectives[{of.operation, of.members, of.bytes}][of.iteration].push_back(c);
  }
  pair_up(program, draw, collectives, [&](std::uint32_t to, std::uint32_t from) {
    program.collectives[to].drawn = from;
    program.collectives[to].drawn_ns = program.collectives[from].recorded_ns;
  });
  ByKind<std::tuple<DependencyKind, std::uint32_t, std::uint32_t, std::uint64_t>> edges;
  for (std::uint32_t e = 0; e < program.edges.size(); ++e) {
    ReplayEdge& of = program.edges[e];
    of.drawn_ns = -1;
    if (of.iteration >= 0) edges[{of.kind, of.from, of.to, of.bytes}][of.iteration].push_back(e);
  }
  pair_up(program, draw, edges, [&](std::uint32_t to, std::uint32_t from) {
    const ReplayEdge& source = program.edges[from];
    if (source.binding == program.edges[to].binding) program.edges[to].drawn_ns = source.recorded_ns;
  });
}

}  // namespace paceline::analysis
