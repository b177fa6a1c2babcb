// SPDX-License-Identifier: Apache-2.0
#include "analysis/watch/live_steps.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "analysis/statistics/statistics.h"

namespace paceline::analysis {
namespace live_steps_parts {

constexpr double test_share = 0.004;  // of a core, for the test of lateness

double clock_s(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Of a rank that has none while others are far ahead, none are expected.
std::size_t ranks_with_iterations(const std::vector<LiveFile*>& ranks) {
  constexpr std::uint64_t far_ahead = 8;
  std::uint64_t most = 0;
  std::size_t without = 0;
  for (const LiveFile* file : ranks) {
    most = std::max(most, file->finished);
    without += file->finished == 0;
  }
  return ranks.size() - (most >= far_ahead ? without : 0);
}

}  // namespace live_steps_parts

void LiveSteps::forget() {
  rows_.clear();
  finished_rows_ = tested_rows_ = 0;
  looks_.count_anew();
  lateness_.reset();
}

void LiveSteps::take(const std::vector<LiveFile*>& ranks, const Collectives& collectives, bool all_ended) {
  using namespace live_steps_parts;
  struct Common {
    std::int64_t start_ns = std::numeric_limits<std::int64_t>::max();
    std::size_t finished = 0;
    std::vector<const Iteration*> of_rank;
  };
  std::map<std::int64_t, Common> commons;  // by number
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const Iteration& iteration : ranks[r]->iterations) {
      if (!iteration.finished || ranks[r]->middle(iteration) <= ranks[r]->taken_until) continue;
      Common& common = commons[iteration.number];
      common.of_rank.resize(ranks.size());
      common.finished += common.of_rank[r] == nullptr;
      common.of_rank[r] = &iteration;
      common.start_ns = std::min(common.start_ns, iteration.start_ns);
    }
  }
  std::erase_if(commons,
                [needed = ranks_with_iterations(ranks)](const auto& one) { return one.second.finished < needed; });
  std::vector<std::pair<const std::int64_t, Common>*> complete;
  for (auto& one : commons) complete.push_back(&one);
  std::ranges::sort(complete, {}, [](const auto* one) { return one->second.start_ns; });
  if (!complete.empty() && !all_ended) complete.pop_back();
  if (complete.empty()) return;
  std::vector<std::span<const Iteration>> iterations;
  for (const LiveFile* file : ranks) iterations.emplace_back(file->iterations);
  std::map<std::int64_t, LatenessRow> lateness = lateness_rows(collectives, iterations);
  for (const auto* one : complete) {
    Row& row = rows_.emplace_back();
    row.number = one->first;
    row.finished = one->second.finished;
    row.lateness = std::move(lateness[one->first]);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      LiveFile& file = *ranks[r];
      const Iteration* own = one->second.of_rank[r];
      row.duration_ns.push_back(own != nullptr ? own->duration_ns : -1);
      row.waited_ns.push_back(own != nullptr ? file.waited_ns[static_cast<std::size_t>(own - file.iterations.data())]
                                             : 0);
      if (own == nullptr) continue;
      for (std::size_t p = 0; p < phase_count; ++p) row.phase_ns[p] += own->phase_ns[p];
      file.taken_until = std::max(file.taken_until, file.ticks_at(own->start_ns + own->duration_ns));
    }
    if (rows_.size() > LatenessLooks::most_iterations(ranks.size())) rows_.pop_front();
    ++finished_rows_;
  }
}

// Tests take a small share of a core at most.
void LiveSteps::test_if_due(const std::vector<LiveFile*>& ranks, bool now) {
  using namespace live_steps_parts;
  if (ranks.size() < 2 || finished_rows_ == tested_rows_) return;
  if (!now && (clock_s(CLOCK_MONOTONIC) < next_test_s_ || !looks_.due(finished_rows_))) return;
  const double before = clock_s(CLOCK_PROCESS_CPUTIME_ID);
  LatenessTable table;
  table.ranks = ranks.size();
  for (std::size_t i = LatenessLooks::first(finished_rows_, ranks.size()) - (finished_rows_ - rows_.size());
       i < rows_.size(); ++i) {
    if (!rows_[i].lateness.late_ns.empty()) add_iteration(table, rows_[i].number, rows_[i].lateness);
  }
  lateness_ = looks_.look(table, finished_rows_, now);
  tested_rows_ = finished_rows_;
  next_test_s_ = clock_s(CLOCK_MONOTONIC) + (clock_s(CLOCK_PROCESS_CPUTIME_ID) - before) / test_share;
}

LiveSteps::Rows::const_iterator LiveSteps::first_shown() const {
  return rows_.end() - static_cast<std::ptrdiff_t>(std::min(rows_.size(), shown));
}

void LiveSteps::describe_ranks(WatchFrame& frame) const {
  for (std::size_t r = 0; r < frame.ranks.size(); ++r) {
    double waited = 0, late = 0, time = 0, judged = 0;
    for (auto row = first_shown(); row != rows_.end(); ++row) {
      waited += static_cast<double>(row->waited_ns[r]);
      time += static_cast<double>(std::max<std::int64_t>(row->duration_ns[r], 0));
      if (row->lateness.behind_ns.empty()) continue;
      late += row->lateness.behind_ns[r];
      ++judged;
    }
    frame.ranks[r].wait_share = time > 0 ? waited / time : 0;
    frame.ranks[r].late_ns = judged > 0 ? late / judged : 0;
  }
}

void LiveSteps::describe(WatchFrame& frame) const {
  describe_ranks(frame);
  frame.lateness = lateness_;
  frame.iterations = finished_rows_;
  if (rows_.empty()) return;
  frame.newest_iteration = rows_.back().number;
  std::vector<std::int64_t> steps;
  double total = 0;
  for (auto row = first_shown(); row != rows_.end(); ++row) {
    double sum = 0;
    for (const std::int64_t ns : row->duration_ns) sum += static_cast<double>(std::max<std::int64_t>(ns, 0));
    frame.steps_ns.push_back(sum / static_cast<double>(row->finished));
    steps.push_back(static_cast<std::int64_t>(frame.steps_ns.back() + 0.5));
    for (std::size_t p = 0; p < phase_count; ++p) {
      frame.phase_shares[p] += static_cast<double>(row->phase_ns[p]);
      total += static_cast<double>(row->phase_ns[p]);
    }
  }
  for (double& share : frame.phase_shares) share = total > 0 ? share / total : 0;
  frame.median_ns = median(steps);
  frame.p95_ns = quantile(steps, 0.95);
  if (steps.size() < 8) return;
  const auto half = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  const auto older = median(std::vector<std::int64_t>(steps.begin(), half));
  const auto newer = median(std::vector<std::int64_t>(half, steps.end()));
  if (older > 0) frame.trend = static_cast<double>(newer) / static_cast<double>(older) - 1;
}

}  // namespace paceline::analysis
