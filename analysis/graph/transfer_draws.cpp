// SPDX-License-Identifier: Apache-2.0
// Which recorded transfers a replay takes.
#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/graph/replay_program.h"

namespace paceline::analysis {
namespace transfer_draws {

// The collectives or edges of one kind and iteration, in the order of the program: a stretch of `places`.
struct Stretch {
  std::uint32_t kind = 0;
  std::int32_t iteration = -1;
  std::size_t first = 0, count = 0;
};

// Collectives or edges by kind and iteration.
class ByKind {
 public:
  // `kind_of(k)` numbers the kinds; `iteration_of(k)` is below 0 outside of iterations.
  template <typename KindOf, typename IterationOf>
  ByKind(std::size_t count, KindOf kind_of, IterationOf iteration_of) {
    struct Entry {
      std::uint32_t kind;
      std::int32_t iteration;
      std::uint32_t place;
    };
    std::vector<Entry> entries;
    entries.reserve(count);
    for (std::uint32_t k = 0; k < count; ++k) {
      if (iteration_of(k) >= 0) entries.push_back({kind_of(k), iteration_of(k), k});
    }
    std::ranges::sort(entries, {}, [](const Entry& of) { return std::tuple(of.kind, of.iteration, of.place); });
    places_.reserve(entries.size());
    for (const Entry& of : entries) {
      if (stretches_.empty() || stretches_.back().kind != of.kind || stretches_.back().iteration != of.iteration) {
        stretches_.push_back({of.kind, of.iteration, places_.size(), 0});
      }
      ++stretches_.back().count;
      places_.push_back(of.place);
    }
  }

  // Calls take(to, from) for each pair of counterparts.
  template <typename Take>
  void pair_up(const std::vector<std::int32_t>& partners, Take take) const {
    for (std::size_t s = 0; s < stretches_.size(); ++s) {
      const Stretch& to = stretches_[s];
      const Stretch* from = find(s, partners[static_cast<std::size_t>(to.iteration)]);
      for (std::size_t k = 0; from != nullptr && k < std::min(to.count, from->count); ++k) {
        take(places_[to.first + k], places_[from->first + k]);
      }
    }
  }

 private:
  // That of the same kind in the other iteration; nullptr where there is none.
  const Stretch* find(std::size_t s, std::int32_t iteration) const {
    const std::pair wanted(stretches_[s].kind, iteration);
    const auto key = [](const Stretch& of) { return std::pair(of.kind, of.iteration); };
    // Most kinds occur in each iteration.
    const auto guess = static_cast<std::ptrdiff_t>(s) + iteration - stretches_[s].iteration;
    if (guess >= 0 && guess < std::ssize(stretches_) && key(stretches_[static_cast<std::size_t>(guess)]) == wanted) {
      return &stretches_[static_cast<std::size_t>(guess)];
    }
    const auto found = std::ranges::lower_bound(stretches_, wanted, {}, key);
    return found == stretches_.end() || key(*found) != wanted ? nullptr : &*found;
  }

  std::vector<Stretch> stretches_;  // by kind and iteration
  std::vector<std::uint32_t> places_;
};

// Numbers keys in the order of their first appearance.
template <typename Key>
class Numbers {
 public:
  std::uint32_t of(const Key& key) {
    return numbers_.try_emplace(key, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

 private:
  std::map<Key, std::uint32_t> numbers_;
};

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

std::vector<std::shared_ptr<const TransferDraw>> draw_transfers(const ReplayProgram& program) {
  using namespace transfer_draws;
  Numbers<std::tuple<std::string, std::uint32_t, std::uint64_t>> collective_kinds;
  const ByKind collectives(
      program.collectives.size(),
      [&](std::uint32_t c) {
        const ReplayCollective& of = program.collectives[c];
        return collective_kinds.of({of.operation, of.members, of.bytes});
      },
      [&](std::uint32_t c) { return program.collectives[c].iteration; });
  Numbers<std::tuple<DependencyKind, std::uint32_t, std::uint32_t, std::uint64_t>> edge_kinds;
  const ByKind edges(
      program.edges.size(),
      [&](std::uint32_t e) {
        const ReplayEdge& of = program.edges[e];
        return edge_kinds.of({of.kind, of.from, of.to, of.bytes});
      },
      [&](std::uint32_t e) { return program.edges[e].iteration; });
  std::vector<std::shared_ptr<const TransferDraw>> draws;
  for (std::size_t draw = 0; draw < draw_count; ++draw) {
    std::vector<std::int32_t> partners;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(program.iterations.size()); ++i) {
      partners.push_back(partner_of(program, i, draw));
    }
    TransferDraw of{std::vector(program.collectives.size(), no_collective), std::vector(program.edges.size(), -1.0)};
    collectives.pair_up(partners, [&](std::uint32_t to, std::uint32_t from) { of.collectives[to] = from; });
    edges.pair_up(partners, [&](std::uint32_t to, std::uint32_t from) {
      const ReplayEdge& source = program.edges[from];
      if (source.binding == program.edges[to].binding) of.edges_ns[to] = source.recorded_ns;
    });
    draws.push_back(std::make_shared<const TransferDraw>(std::move(of)));
  }
  return draws;
}

}  // namespace paceline::analysis
