// SPDX-License-Identifier: Apache-2.0
// A panel with a sortable table whose rows lead to places on the timeline. A kind of table is a TableKind in a file of
// its own: its columns, and a function that makes the rows in a worker thread.
#pragma once

#include <QAbstractTableModel>
#include <QLabel>
#include <QStringList>
#include <QTableView>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "viewer/panels/lazy_panel.h"
#include "viewer/panels/slices_in.h"

namespace paceline::viewer {

struct TableCell {
  QString text;
  std::optional<double> number = {};  // what a column of numbers is sorted by; cells without one come last
  const char* unit = "";              // of the number
};
// A cell with the text of a duration, a count or a time.
TableCell duration_cell(std::int64_t ns);
TableCell count_cell(std::uint64_t count);
TableCell time_cell(const Run& run, std::int64_t ns);

// "in the whole run", "in the selected 12.30 ms of 3 ranks".
QString part_text(const Part& part);

struct TableRow {
  std::vector<TableCell> cells;
  Place place;
};

struct TableContent {
  std::vector<TableRow> rows;
  QString note;  // above the table: what it covers, and what was left out
};

struct TableColumn {
  QString title, meaning;
  bool number = true;
};

// What the rows are made of.
struct TableQuestion {
  std::shared_ptr<const Run> run;
  std::shared_ptr<const Insight> insight;
  Part part;                     // the selected one
  HitList hits;                  // of the last search; nullptr: none was made
  std::vector<SliceRef> slices;  // the selected ones

  bool contains(std::int64_t time_ns) const {
    const auto& range = part.range;
    return !range || (double(time_ns) >= range->begin_ns && double(time_ns) < range->end_ns);
  }
  QString where() const { return part_text(part); }
};

struct TableKind {
  QString name;  // for screen readers
  std::vector<TableColumn> columns;
  int sorted_by = 0;       // this column at first, the largest value first
  bool filtered = false;   // a field above the table filters the rows by the words in their first cell
  bool of_range = false;   // the rows depend on the selected range
  bool of_hits = false;    // … on the hits of the search
  bool of_slices = false;  // … on the selected slices
  std::function<TableContent(const TableQuestion&, const Ticket&)> make;
};

// A table of more rows would be read by nobody and would be slow to sort. The kinds keep the most important ones.
inline constexpr std::size_t most_table_rows = 10'000;
// "; the 10,000 longest of 123,456" or empty.
QString cut_text(std::size_t shown, std::size_t all, const char* which);

class TableModel : public QAbstractTableModel {
 public:
  // Sorted by this column at first, largest numbers first; in the order of the rows if it is -1.
  TableModel(std::vector<TableColumn> columns, int sorted_by);

  void show(std::vector<TableRow> rows);  // keeps the order that the user chose
  // Shows only rows whose first cell has each of these words, whatever their case.
  void set_filter(const QString& words);
  const Place& place(int row) const { return rows_[order_[static_cast<std::size_t>(row)]].place; }
  QStringList texts(int row) const;
  QStringList titles() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& = {}) const override { return static_cast<int>(columns_.size()); }
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  void sort(int column, Qt::SortOrder order) override;

 private:
  void arrange();

  std::vector<TableColumn> columns_;
  std::vector<TableRow> rows_;
  std::vector<std::size_t> order_;  // of the rows on screen
  QStringList words_;               // of the filter
  int sorted_by_;
  Qt::SortOrder direction_;
};

class TablePanel : public LazyPanel {
  Q_OBJECT

 public:
  TablePanel(Document& document, Selection& selection, TableKind kind);

  const TableModel& model() const { return model_; }
  QTableView& view() { return *view_; }
  QString note() const { return note_->text(); }

 protected:
  void refresh() override;
  void show(TableContent content);

  QLabel* note_;

 private:
  void go_to(const QModelIndex& index);
  void copy();

  TableKind kind_;
  TableModel model_;
  QTableView* view_;
};

}  // namespace paceline::viewer
