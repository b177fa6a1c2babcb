// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/arrangement.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace paceline::viewer {

Arrangement::Arrangement(const Run& run) : run_(run), folds_(run.ranks.size()) {
  for (Folds& rank : folds_) rank.collapsed = folds_.size() >= many_ranks;
  arrange();
}

void Arrangement::set_collapsed(std::size_t rank, bool collapsed) {
  if (folds_[rank].collapsed == collapsed) return;
  folds_[rank].collapsed = collapsed;
  Q_EMIT folds_changed();
}

void Arrangement::set_counters_unfolded(std::size_t rank, bool unfolded) {
  folds_[rank].counters_unfolded = unfolded;
  Q_EMIT folds_changed();
}

void Arrangement::set_all(bool Folds::*fold, bool value) {
  for (Folds& rank : folds_) rank.*fold = value;
  Q_EMIT folds_changed();
}

void Arrangement::set_filter(const QString& text, KindSets kinds) {
  filter_ = text;
  shown_kinds_ = std::move(kinds);
  const auto shows_nothing = [](const KindSet& set) { return std::ranges::find(*set, true) == set->end(); };
  const bool all_alike = std::ranges::all_of(shown_kinds_, [&](const KindSet& set) { return set == shown_kinds_[0]; });
  for (std::size_t rank = 0; rank < folds_.size(); ++rank) {
    folds_[rank].filtered_out = !all_alike && shows_nothing(shown_kinds_[rank]);
  }
  arrange();
  Q_EMIT filter_changed();
}

void Arrangement::sort_ranks(RankOrder order) {
  rank_order_ = order;
  rearrange();
}

void Arrangement::set_pinned(std::size_t rank, bool pinned) {
  folds_[rank].pinned = pinned;
  rearrange();
}

void Arrangement::set_host_folded(const QString& host, bool folded) {
  if (folded ? folded_hosts_.insert(host).second : folded_hosts_.erase(host) > 0) rearrange();
}

std::int64_t Arrangement::most_waiting_caused_ns() const {
  std::int64_t most = 0;
  for (const Folds& rank : folds_) most = std::max(most, rank.waiting_caused_ns);
  return most;
}

void Arrangement::set_waiting_caused(const std::vector<std::int64_t>& ns) {
  for (std::size_t rank = 0; rank < folds_.size(); ++rank) folds_[rank].waiting_caused_ns = ns[rank];
  rearrange();
}

void Arrangement::arrange() {
  const auto& ranks = run_.trace.ranks;
  std::vector<std::size_t> order(ranks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto sort_for = [&](RankOrder wanted, auto key) {
    if (wanted == rank_order_) std::ranges::stable_sort(order, {}, key);
  };
  sort_for(RankOrder::host, [&](std::size_t rank) { return std::string_view(ranks[rank].host); });
  sort_for(RankOrder::waiting_caused, [&](std::size_t rank) { return -folds_[rank].waiting_caused_ns; });
  sort_for(RankOrder::duration, [&](std::size_t rank) { return ranks[rank].start_ns - ranks[rank].end_ns; });
  if (rank_order_ == RankOrder::own) order = own_order_;
  std::erase_if(order, [&](std::size_t rank) { return folds_[rank].hidden || folds_[rank].filtered_out; });
  std::ranges::stable_sort(order, {}, [&](std::size_t rank) { return !folds_[rank].pinned; });
  const bool by_host = rank_order_ == RankOrder::number || rank_order_ == RankOrder::host;
  const bool headings = by_host && order.size() >= many_ranks && run_.hosts.size() > 1;
  groups_.clear();
  for (const std::size_t rank : order) {
    const bool heading = headings && !folds_[rank].pinned;
    const QString host = heading ? QString::fromStdString(ranks[rank].host) : QString();
    if (groups_.empty() || groups_.back().host != host) {
      groups_.push_back({.host = host, .ranks = {}, .folded = heading && folded_hosts_.contains(host)});
    }
    groups_.back().ranks.push_back(rank);
  }
}

void Arrangement::rearrange() {
  arrange();
  Q_EMIT folds_changed();
}

void Arrangement::set_panels_shown(bool shown) {
  panels_shown_ = shown;
  Q_EMIT panels_changed();
}

void Arrangement::set_path_shown(bool shown) {
  path_shown_ = shown;
  Q_EMIT path_changed();
}

void Arrangement::set_states_shown(bool shown) {
  if (std::exchange(states_shown_, shown) != shown) Q_EMIT folds_changed();
}

std::vector<std::size_t> Arrangement::ranks_in_order() const {
  std::vector<std::size_t> order;
  for (const RankGroup& group : groups_) order.insert(order.end(), group.ranks.begin(), group.ranks.end());
  for (std::size_t rank = 0; rank < folds_.size(); ++rank) {
    if (folds_[rank].hidden || folds_[rank].filtered_out) order.push_back(rank);
  }
  return order;
}

void Arrangement::move_rank(std::size_t rank, int steps) {
  const std::vector<std::size_t> order = ranks_in_order();
  const auto to = std::ranges::find(order, rank) - order.begin() + steps;
  if (to >= 0 && to < std::ssize(order)) move_rank_to(rank, order[static_cast<std::size_t>(to)]);
}

void Arrangement::move_rank_to(std::size_t rank, std::size_t other) {
  std::vector<std::size_t> order = ranks_in_order();
  const auto from = std::ranges::find(order, rank), to = std::ranges::find(order, other);
  from < to ? std::rotate(from, from + 1, to + 1) : std::rotate(to, from, from + 1);
  set_own_order(std::move(order));
}

void Arrangement::set_own_order(std::vector<std::size_t> ranks) {
  own_order_ = std::move(ranks);
  sort_ranks(RankOrder::own);
}

void Arrangement::set_rank_hidden(std::size_t rank, bool hidden) {
  if (folds_[rank].hidden == hidden) return;
  folds_[rank].hidden = hidden;
  rearrange();
}

bool Arrangement::row_pinned(std::size_t rank, const QString& name) const {
  return std::ranges::find(pinned_rows_, RowName(rank, name)) != pinned_rows_.end();
}

void Arrangement::set_row_pinned(std::size_t rank, const QString& name, bool pinned) {
  if (name.isEmpty() || row_pinned(rank, name) == pinned) return;
  if (pinned) {
    pinned_rows_.emplace_back(rank, name);
  } else {
    std::erase(pinned_rows_, RowName(rank, name));
  }
  Q_EMIT folds_changed();
}

void Arrangement::hide_rows(const QString& name) {
  if (hidden_rows_.insert(name).second) Q_EMIT folds_changed();
}

void Arrangement::show_hidden() {
  hidden_rows_.clear();
  for (Folds& rank : folds_) rank.hidden = false;
  rearrange();
}

void Arrangement::uncover(std::size_t rank) {
  set_rank_hidden(rank, false);
  set_host_folded(QString::fromStdString(run_.trace.ranks[rank].host), false);
}

}  // namespace paceline::viewer
