// SPDX-License-Identifier: Apache-2.0
#include "viewer/comparison/name_differences.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace paceline::viewer {
namespace name_sums {

// Where each rank's slices are added up.
std::vector<Part> parts_of(const Run& run, const Stretch& stretch) {
  if (!stretch.iteration) return {stretch.part};
  std::vector<Part> parts;
  for (std::size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const auto& all = run.index->iterations(rank);
    const auto one = std::ranges::find(all, *stretch.iteration, &analysis::Iteration::number);
    if (one == all.end() || !stretch.part.on(rank)) continue;
    parts.push_back({TimeRange{double(one->start_ns), double(one->start_ns + one->duration_ns)}, {rank}});
  }
  return parts;
}

// By kind.
std::vector<NameTotal> totals_of(const Run& run, const Stretch& stretch, const Ticket& ticket) {
  std::vector<NameTotal> totals(run.trace.kinds.size());
  std::vector<std::int64_t> longest(totals.size(), -1);
  for (const Part& part : parts_of(run, stretch)) {
    each_slice_in(run, part, ticket, [&](const SliceRef& ref, analysis::KindId kind, std::int64_t ns) {
      NameTotal& total = totals[kind];
      ++total.count;
      total.mean_ns += double(ns);
      if (ns > longest[kind]) longest[kind] = ns, total.longest = ref;
    });
  }
  const double ranks = double(stretch.part.ranks.empty() ? run.ranks.size() : stretch.part.ranks.size());
  for (NameTotal& total : totals) total.mean_ns /= std::max(ranks, 1.0);
  return totals;
}

}  // namespace name_sums

std::vector<NameDifference> name_differences(const Run& a, const Stretch& of_a, const Run& b, const Stretch& of_b,
                                             const Ticket& ticket) {
  std::map<std::array<std::string_view, 3>, NameDifference> names;
  const auto add = [&](const Run& run, const Stretch& stretch, auto side) {
    const std::vector<NameTotal> totals = name_sums::totals_of(run, stretch, ticket);
    for (std::size_t kind = 0; kind < totals.size(); ++kind) {
      if (totals[kind].count == 0) continue;
      const analysis::Kind& of = run.trace.kinds[kind];
      const auto& texts = run.trace.names;
      NameDifference& name = names[{texts[of.name], texts[of.domain], texts[of.category]}];
      name.*side = totals[kind];
      name.iteration = name.iteration || run.index->phases().iteration(analysis::KindId(kind));
    }
  };
  add(a, of_a, &NameDifference::a);
  add(b, of_b, &NameDifference::b);
  std::vector<NameDifference> differences;
  for (auto& [texts, name] : names) {
    name.name = texts[0], name.domain = texts[1], name.category = texts[2];
    differences.push_back(std::move(name));
  }
  std::ranges::stable_sort(differences, std::ranges::greater{},
                           [](const NameDifference& name) { return std::abs(name.difference_ns()); });
  return differences;
}

const analysis::QuantityComparison* compared(const analysis::RunComparison& comparison, const NameDifference& name) {
  using analysis::QuantityType;
  if (name.iteration) return comparison.step();
  const bool is_call = name.domain == "mpi" || name.domain == "cuda" || name.domain == "nccl";
  const std::string of_range = name.domain.empty() ? name.name : name.domain + ": " + name.name;
  const auto found = std::ranges::find_if(comparison.quantities, [&](const analysis::QuantityComparison& quantity) {
    if (quantity.type == QuantityType::range) return !is_call && quantity.name == of_range;
    const bool names_slices = quantity.type == QuantityType::call || quantity.type == QuantityType::device;
    return is_call && names_slices && quantity.name == name.name;
  });
  return found == comparison.quantities.end() ? nullptr : &*found;
}

}  // namespace paceline::viewer
