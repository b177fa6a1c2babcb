// SPDX-License-Identifier: Apache-2.0
// Which rows are shown and in which order: folded, pinned, hidden and filtered ones. Also what is shown with them.
#pragma once

#include <QObject>
#include <QString>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "viewer/session/run.h"

namespace paceline::viewer {

// Whether slices of each kind are shown; nullptr: all are.
using KindSet = std::shared_ptr<const std::vector<bool>>;
// Of each rank; empty: everything is shown.
using KindSets = std::vector<KindSet>;

// Ranks that stand together on screen, as indices into Run::ranks.
struct RankGroup {
  QString host;  // empty where the group has no heading
  std::vector<std::size_t> ranks;
  bool folded = false;
};

class Arrangement : public QObject {
  Q_OBJECT

 public:
  enum class RankOrder { number, host, waiting_caused, duration, own };
  static constexpr std::size_t many_ranks = 9;  // from here on, ranks start folded, and hosts have headings

  explicit Arrangement(const Run& run);

  // The ranks from top to bottom: the pinned ones, then the others in their order, each host below a heading if there
  // are many ranks.
  const std::vector<RankGroup>& groups() const { return groups_; }
  RankOrder rank_order() const { return rank_order_; }
  void sort_ranks(RankOrder order);
  bool pinned(std::size_t rank) const { return folds_[rank].pinned; }
  void set_pinned(std::size_t rank, bool pinned);
  // Moves a rank among the others, up if negative, or to the place of another one. The order is the user's own from
  // then on.
  void move_rank(std::size_t rank, int steps);
  void move_rank_to(std::size_t rank, std::size_t other);
  // The ranks from top to bottom where the order is the user's own; every rank once.
  void set_own_order(std::vector<std::size_t> ranks);
  // How long the others waited for a rank in its collectives; 0 until the run is analysed.
  std::int64_t waiting_caused_ns(std::size_t rank) const { return folds_[rank].waiting_caused_ns; }
  std::int64_t most_waiting_caused_ns() const;
  void set_waiting_caused(const std::vector<std::int64_t>& ns);

  // Of a collapsed rank only the strip of phases is shown; of its counters only the first, unless they are unfolded.
  bool collapsed(std::size_t rank) const { return folds_[rank].collapsed; }
  void set_collapsed(std::size_t rank, bool collapsed);
  void set_all_collapsed(bool collapsed) { set_all(&Folds::collapsed, collapsed); }
  bool counters_unfolded(std::size_t rank) const { return folds_[rank].counters_unfolded; }
  void set_counters_unfolded(std::size_t rank, bool unfolded);
  void set_all_counters_unfolded(bool unfolded) { set_all(&Folds::counters_unfolded, unfolded); }
  void set_host_folded(const QString& host, bool folded);

  // Hidden ranks, and rows hidden by name on every rank ("loader").
  bool rank_hidden(std::size_t rank) const { return folds_[rank].hidden; }
  void set_rank_hidden(std::size_t rank, bool hidden);
  const std::set<QString>& hidden_rows() const { return hidden_rows_; }
  void hide_rows(const QString& name);
  void show_hidden();
  // Shows the rank: it is no longer hidden, and its host no longer folded.
  void uncover(std::size_t rank);
  // Single rows above all ranks, each by its rank and its name, in the order in which they were pinned.
  using RowName = std::pair<std::size_t, QString>;
  const std::vector<RowName>& pinned_rows() const { return pinned_rows_; }
  bool row_pinned(std::size_t rank, const QString& name) const;
  void set_row_pinned(std::size_t rank, const QString& name, bool pinned);

  // Only slices that fit the filter are shown in the rows. The text is as in slice_filter.h, and `kinds` are those that
  // fit it; both are empty where everything is shown. Ranks that the text leaves out while it shows others are hidden.
  const QString& filter() const { return filter_; }
  const KindSets& shown_kinds() const { return shown_kinds_; }
  void set_filter(const QString& text, KindSets kinds);

  // The strips of the states of threads are shown below their slices.
  bool states_shown() const { return states_shown_; }
  void set_states_shown(bool shown);
  // The critical path through the ranks is drawn over the rows.
  bool path_shown() const { return path_shown_; }
  void set_path_shown(bool shown);
  // The panels beside the timeline are shown.
  bool panels_shown() const { return panels_shown_; }
  void set_panels_shown(bool shown);

 Q_SIGNALS:
  void folds_changed();  // the rows are to be placed again
  void filter_changed();
  void path_changed();
  void panels_changed();

 private:
  struct Folds {
    bool collapsed = false, counters_unfolded = false, pinned = false, hidden = false;
    bool filtered_out = false;  // by the filter, while other ranks are not
    std::int64_t waiting_caused_ns = 0;
  };
  void set_all(bool Folds::*fold, bool value);
  void arrange();                                   // fills groups_
  void rearrange();                                 // the same, and signals it
  std::vector<std::size_t> ranks_in_order() const;  // the hidden ones last

  const Run& run_;
  std::vector<Folds> folds_;  // of each rank
  std::vector<RankGroup> groups_;
  std::set<QString> folded_hosts_, hidden_rows_;
  std::vector<RowName> pinned_rows_;
  std::vector<std::size_t> own_order_;
  RankOrder rank_order_ = RankOrder::number;
  QString filter_;
  KindSets shown_kinds_;
  bool states_shown_ = true, path_shown_ = false, panels_shown_ = true;
};

}  // namespace paceline::viewer
