// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/profile.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "analysis/phases/phase_rules.h"

namespace paceline::analysis {
namespace profile_parts {

constexpr double least_share_of_step = 5e-4;
constexpr std::size_t most_quantities = 400;

// The place of a number among the steady iterations' numbers, or nothing.
std::optional<std::size_t> place_of(std::span<const std::int64_t> numbers, const Iteration& iteration) {
  const auto found = std::ranges::lower_bound(numbers, iteration.number);
  if (!iteration.finished || found == numbers.end() || *found != iteration.number) return std::nullopt;
  return static_cast<std::size_t>(found - numbers.begin());
}

// Where a steady iteration of one rank is in time, and its place among the steady iterations.
struct Window {
  std::int64_t start_ns = 0, end_ns = 0;
  std::size_t place = 0;
};

std::vector<Window> windows_of(const RankSummary& rank, std::span<const std::int64_t> numbers) {
  std::vector<Window> windows;
  for (const Iteration& iteration : rank.iterations) {
    const auto place = place_of(numbers, iteration);
    if (place) windows.push_back({iteration.start_ns, iteration.start_ns + iteration.duration_ns, *place});
  }
  return windows;
}

// Calls visit(kind, iteration, duration_ns) for each slice of a track that starts in an iteration and is not inside
// another one of its kind.
template <class Visit>
void each_slice(const PhaseTable& table, const Track& track, std::span<const Window> windows, Visit&& visit) {
  std::unordered_map<KindId, std::int64_t> open_until;
  const Slices& slices = track.slices;
  std::size_t at = 0;
  for (std::size_t i = 0; i < slices.size() && at < windows.size(); ++i) {
    while (at < windows.size() && windows[at].end_ns <= slices.start_ns[i]) ++at;
    if (at == windows.size() || slices.start_ns[i] < windows[at].start_ns) continue;
    const KindId kind = slices.kind[i];
    if (table.iteration(kind)) continue;
    std::int64_t& until = open_until.try_emplace(kind, windows[at].start_ns).first->second;
    if (slices.start_ns[i] < until) continue;
    until = slices.end_ns(i);
    visit(kind, windows[at].place, slices.duration_ns[i]);
  }
}

bool is_compared(const Track& track) { return track.main || track.kind == TrackKind::stream; }

// All kinds in the iterations, the one with the largest total over all ranks first, and how many of them take enough of
// the step.
struct SortedKinds {
  std::vector<KindId> kinds;
  std::size_t large = 0;
};

SortedKinds sort_kinds(const PhaseTable& table, std::span<const std::vector<Window>> windows) {
  const Trace& trace = table.trace();
  std::unordered_map<KindId, double> totals;
  double steps = 0;
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    for (const Window& window : windows[r]) steps += static_cast<double>(window.end_ns - window.start_ns);
    for (const Track& track : trace.ranks[r].tracks) {
      if (!is_compared(track)) continue;
      each_slice(table, track, windows[r],
                 [&](KindId kind, std::size_t, std::int64_t ns) { totals[kind] += static_cast<double>(ns); });
    }
  }
  std::vector<std::pair<double, KindId>> by_total;
  for (const auto& [kind, total] : totals) by_total.emplace_back(-total, kind);
  std::ranges::sort(by_total);
  SortedKinds sorted;
  for (const auto& [total, kind] : by_total) {
    sorted.large += -total >= least_share_of_step * steps && sorted.large < most_quantities;
    sorted.kinds.push_back(kind);
  }
  return sorted;
}

QuantityType type_of_kind(const std::string& domain, const std::string& category) {
  if (domain == "cuda" &&
      (category == "kernel" || category == "memcpy" || category == "memset" || category == "graph")) {
    return QuantityType::device;
  }
  return domain == "mpi" || domain == "cuda" || domain == "nccl" ? QuantityType::call : QuantityType::range;
}

void add_slices(const PhaseTable& table, std::span<const std::vector<Window>> windows, std::size_t iterations,
                RunProfile& profile, std::vector<Quantity>& quantities) {
  const Trace& trace = table.trace();
  const double scale = 1e-9 / static_cast<double>(trace.ranks.size());
  std::unordered_map<KindId, std::size_t> place;
  const SortedKinds sorted = sort_kinds(table, windows);
  for (std::size_t i = 0; i < sorted.kinds.size(); ++i) {
    const KindId kind = sorted.kinds[i];
    const Kind& known = trace.kinds[kind];
    const std::string &domain = trace.names[known.domain], &name = trace.names[known.name];
    const QuantityType type = type_of_kind(domain, trace.names[known.category]);
    std::string shown = type == QuantityType::range && !domain.empty() ? domain + ": " + name : name;
    if (i >= sorted.large) {
      profile.left_out.emplace(type, std::move(shown));
      continue;
    }
    place[kind] = quantities.size();
    quantities.push_back({.type = type, .name = std::move(shown), .seconds = std::vector<double>(iterations)});
  }
  for (std::size_t r = 0; r < trace.ranks.size(); ++r) {
    for (const Track& track : trace.ranks[r].tracks) {
      if (!is_compared(track)) continue;
      each_slice(table, track, windows[r], [&](KindId kind, std::size_t iteration, std::int64_t ns) {
        const auto found = place.find(kind);
        if (found == place.end()) return;
        quantities[found->second].seconds[iteration] += scale * static_cast<double>(ns);
        quantities[found->second].count += 1 / static_cast<double>(trace.ranks.size());
      });
    }
  }
}

void add_phases(const RunAnalysis& run, std::span<const std::int64_t> numbers, std::vector<Quantity>& quantities) {
  const double scale = 1e-9 / static_cast<double>(run.per_rank.size());
  std::array<std::vector<double>, phase_count> seconds;
  for (auto& phase : seconds) phase.resize(numbers.size());
  for (const RankSummary& rank : run.per_rank) {
    for (const Iteration& iteration : rank.iterations) {
      const auto place = place_of(numbers, iteration);
      if (!place) continue;
      for (std::size_t phase = 0; phase < phase_count; ++phase) {
        seconds[phase][*place] += scale * static_cast<double>(iteration.phase_ns[phase]);
      }
    }
  }
  for (std::size_t phase = 0; phase < phase_count; ++phase) {
    if (std::ranges::all_of(seconds[phase], [](double value) { return value == 0; })) continue;
    quantities.push_back({.type = QuantityType::phase,
                          .name = std::string(phase_name(static_cast<Phase>(phase))),
                          .seconds = std::move(seconds[phase])});
  }
}

// Ranges of one name may differ in their category: they are one quantity.
void merge_equal_names(std::vector<Quantity>& quantities) {
  std::map<std::pair<QuantityType, std::string>, std::size_t> first;
  std::vector<Quantity> merged;
  for (Quantity& quantity : quantities) {
    const auto [known, fresh] = first.try_emplace({quantity.type, quantity.name}, merged.size());
    if (fresh) {
      merged.push_back(std::move(quantity));
    } else {
      std::vector<double>& sum = merged[known->second].seconds;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += quantity.seconds[i];
      merged[known->second].count += quantity.count;
    }
  }
  quantities = std::move(merged);
}

}  // namespace profile_parts

const char* type_name(QuantityType type) {
  constexpr const char* names[] = {"step", "phase", "range", "call", "device"};
  return names[static_cast<std::size_t>(type)];
}

RunProfile profile_run(const Trace& trace, const std::string& path) {
  using namespace profile_parts;
  RunProfile profile{.run = analyse_run(trace, path), .quantities = {}};
  std::vector<std::vector<Window>> whole;
  for (const Rank& rank : trace.ranks) whole.push_back({{rank.start_ns, rank.end_ns + 1, 0}});
  add_slices(PhaseTable(trace), whole, 1, profile, profile.totals);
  merge_equal_names(profile.totals);
  profile.left_out.clear();
  const RunAnalysis& run = profile.run;
  const std::span<const double> steady = run.iterations.steady();
  if (steady.empty()) return profile;
  const std::span numbers = std::span(run.iterations.numbers).subspan(run.iterations.warmup);
  profile.quantities.push_back({QuantityType::step, "step", {steady.begin(), steady.end()}});
  add_phases(run, numbers, profile.quantities);
  // The trace's ranks are in the same order as those of the analysis.
  std::vector<std::vector<Window>> windows;
  for (const RankSummary& rank : run.per_rank) windows.push_back(windows_of(rank, numbers));
  add_slices(PhaseTable(trace), windows, numbers.size(), profile, profile.quantities);
  merge_equal_names(profile.quantities);
  return profile;
}

}  // namespace paceline::analysis
