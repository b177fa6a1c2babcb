#include "analysis/graph/changed_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace paceline::analysis {
namespace changed_work_parts {

using PhaseWork = std::array<double, phase_count>;

// The work of main threads by rank and iteration.
std::vector<std::vector<PhaseWork>> work_of(const ReplayProgram& program) {
  std::vector<std::vector<PhaseWork>> work(program.ranks, std::vector<PhaseWork>(program.iterations.size()));
  for (const ReplayTrack& track : program.tracks) {
    if (!track.main) continue;
    for (const ReplayItem& item : *track.items) {
      if (item.what != ReplayItem::work || item.iteration < 0) continue;
      work[track.rank][static_cast<std::size_t>(item.iteration)][static_cast<std::size_t>(item.phase)] += item.ns;
    }
  }
  return work;
}

// Communication and idle depend on others.
bool is_own_work(std::size_t phase) {
  return phase != static_cast<std::size_t>(Phase::communication) && phase != static_cast<std::size_t>(Phase::idle);
}

// Scales the items that `factor(track, item)` is not 1 for. Tracks without them stay shared.
template <class Factor>
void scale(ReplayProgram& program, Factor&& factor) {
  for (ReplayTrack& track : program.tracks) {
    const auto of = [&](const ReplayItem& item) { return item.what == ReplayItem::work ? factor(track, item) : 1.0; };
    if (std::ranges::all_of(*track.items, [&](const ReplayItem& item) { return of(item) == 1; })) continue;
    for (ReplayItem& item : track.items.own()) item.ns *= of(item);
  }
}

// Scales the main threads' work to `target(rank, values of all ranks)` in each phase of each iteration.
template <class Target>
void scale_to(ReplayProgram& program, Target&& target) {
  const auto work = work_of(program);
  std::vector<double> values(program.ranks);
  auto factors = work;
  for (std::size_t i = 0; i < program.iterations.size(); ++i) {
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      for (std::size_t r = 0; r < program.ranks; ++r) values[r] = work[r][i][phase];
      for (std::size_t r = 0; r < program.ranks; ++r) {
        const bool scaled = is_own_work(phase) && values[r] > 0;
        factors[r][i][phase] = scaled ? target(r, values) / values[r] : 1;
      }
    }
  }
  scale(program, [&](const ReplayTrack& track, const ReplayItem& item) {
    if (!track.main || item.iteration < 0) return 1.0;
    return factors[track.rank][static_cast<std::size_t>(item.iteration)][static_cast<std::size_t>(item.phase)];
  });
}

}  // namespace changed_work_parts

void scale_phases(ReplayProgram& program, const std::vector<Phase>& phases, double factor) {
  changed_work_parts::scale(program, [&](const ReplayTrack&, const ReplayItem& item) {
    return item.iteration >= 0 && std::ranges::find(phases, item.phase) != phases.end() ? factor : 1;
  });
}

void speed_up_groups(ReplayProgram& program, const std::vector<double>& factors) {
  changed_work_parts::scale(program, [&](const ReplayTrack&, const ReplayItem& item) {
    return item.group > 0 ? 1 / factors[item.group - 1U] : 1;
  });
}

void balance_ranks(ReplayProgram& program) {
  changed_work_parts::scale_to(program, [](std::size_t, const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  });
}

void relieve_ranks(ReplayProgram& program, const std::vector<std::size_t>& ranks) {
  std::vector<bool> relieved(program.ranks, false);
  for (const std::size_t rank : ranks) relieved[rank] = true;
  changed_work_parts::scale_to(program, [&](std::size_t r, const std::vector<double>& values) {
    if (!relieved[r]) return values[r];
    std::vector<double> others;
    for (std::size_t other = 0; other < values.size(); ++other) {
      if (!relieved[other]) others.push_back(values[other]);
    }
    if (others.empty()) return values[r];
    std::ranges::sort(others);
    const double median = (others[(others.size() - 1) / 2] + others[others.size() / 2]) / 2;
    return std::min(values[r], median);
  });
}

std::vector<double> excess_work(const ReplayProgram& program, std::size_t warmup) {
  using namespace changed_work_parts;
  const auto work = work_of(program);
  std::vector<double> excess(program.ranks), values(program.ranks);
  for (std::size_t i = warmup; i < program.iterations.size(); ++i) {
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      if (!is_own_work(phase)) continue;
      for (std::size_t r = 0; r < program.ranks; ++r) values[r] = work[r][i][phase];
      std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(program.ranks / 2));
      const double median = values[program.ranks / 2];
      for (std::size_t r = 0; r < program.ranks; ++r) excess[r] += std::max(work[r][i][phase] - median, 0.0);
    }
  }
  return excess;
}

double work_deviation(const ReplayProgram& program, std::size_t warmup) {
  const auto work = changed_work_parts::work_of(program);
  double squares = 0, count = 0;
  for (const auto& of_rank : work) {
    std::vector<double> sums;
    for (std::size_t i = warmup; i < of_rank.size(); ++i) {
      double sum = 0;
      for (std::size_t phase = 0; phase < phase_count; ++phase) {
        if (changed_work_parts::is_own_work(phase)) sum += of_rank[i][phase];
      }
      sums.push_back(sum);
    }
    if (sums.size() < 2) continue;
    const double mean = std::accumulate(sums.begin(), sums.end(), 0.0) / static_cast<double>(sums.size());
    for (const double sum : sums) squares += (sum - mean) * (sum - mean);
    count += static_cast<double>(sums.size() - 1);
  }
  return count > 0 ? std::sqrt(squares / count) : 0;
}

}  // namespace paceline::analysis
