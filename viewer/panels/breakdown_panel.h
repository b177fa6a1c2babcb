// SPDX-License-Identifier: Apache-2.0
// Where each rank's time went: one row for each rank, one column for each phase, for the whole run or the selected
// range of time. The figures of the whole run are those of the report.
#pragma once

#include <QAbstractTableModel>
#include <QLabel>
#include <QTableView>
#include <QWidget>
#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "viewer/drawing/palette.h"
#include "viewer/panels/slices_in.h"
#include "viewer/session/document.h"
#include "viewer/session/selection.h"

namespace paceline::viewer {

// The cells; texts are made when they are shown.
class BreakdownModel : public QAbstractTableModel {
 public:
  enum Column { rank_column, total_column, bar_column, first_phase_column };
  static constexpr int values_role = Qt::UserRole, longest_role = Qt::UserRole + 1;  // of a bar, in ns
  static constexpr int phase_role = Qt::UserRole;                                    // of a column's header

  using Totals = std::array<std::int64_t, analysis::phase_count>;

  explicit BreakdownModel(const Run& run);

  // The time of each rank in each phase, of the whole run or of a range. Only these ranks have rows; if empty, all.
  void show(std::vector<Totals> totals, bool whole, const std::set<std::size_t>& ranks);
  std::size_t rank_of(int row) const { return rows_[static_cast<std::size_t>(row)]; }

  int rowCount(const QModelIndex& = {}) const override { return static_cast<int>(rows_.size()); }
  int columnCount(const QModelIndex& = {}) const override {
    return first_phase_column + static_cast<int>(phases_.size());
  }
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::int64_t time_ns(std::size_t rank, int column) const;  // of the total or a phase
  QString cell_text(std::size_t rank, int column) const;

  const Run& run_;
  std::vector<analysis::Phase> phases_;  // of the columns
  bool whole_ = true;
  std::vector<std::size_t> rows_;   // the rank of each
  std::vector<Totals> totals_;      // of each rank
  std::vector<std::int64_t> sums_;  // of each rank's totals
  std::int64_t longest_ns_ = 0;     // of the sums
};

class BreakdownPanel : public QWidget {
  Q_OBJECT

 public:
  BreakdownPanel(Document& document, Selection& selection);

  const QAbstractItemModel& table() const { return model_; }
  QString title() const { return title_->text(); }

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void fill();
  void show(std::vector<BreakdownModel::Totals> totals, const Part& part);
  void keep_bar_visible();

  Document& document_;
  Selection& selection_;
  Task task_;
  BreakdownModel model_;
  QLabel* title_;
  QTableView* view_;
};

}  // namespace paceline::viewer
