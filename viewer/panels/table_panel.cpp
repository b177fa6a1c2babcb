// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/table_panel.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLineEdit>
#include <QVBoxLayout>
#include <algorithm>
#include <numeric>
#include <utility>

#include "viewer/panels/columns.h"
#include "viewer/text/cut_label.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {

TableCell duration_cell(std::int64_t ns) { return {duration_text(ns), double(ns), "ns"}; }
TableCell count_cell(std::uint64_t count) { return {count_text(count), double(count)}; }
TableCell time_cell(const Run& run, std::int64_t ns) {
  return {time_text(double(ns), 1e3, run.end_ns - run.begin_ns), double(ns), "ns"};
}

QString part_text(const Part& part) {
  const auto& [range, ranks] = part;
  if (!range) return "in the whole run";
  const QString time = QString("in the selected %1").arg(duration_text(std::int64_t(range->length())));
  return ranks.empty() ? time : time + " of " + plural_text(ranks.size(), "rank", "ranks");
}

QString cut_text(std::size_t shown, std::size_t all, const char* which) {
  return shown == all ? QString() : QString("; the %1 %2 are shown").arg(count_text(shown), which);
}

TableModel::TableModel(std::vector<TableColumn> columns, int sorted_by)
    : columns_(std::move(columns)),
      sorted_by_(sorted_by),
      direction_(sorted_by >= 0 && columns_[std::size_t(sorted_by)].number ? Qt::DescendingOrder : Qt::AscendingOrder) {
}

void TableModel::show(std::vector<TableRow> rows) {
  beginResetModel();
  rows_ = std::move(rows);
  arrange();
  endResetModel();
}

void TableModel::set_filter(const QString& words) {
  beginResetModel();
  words_ = words.split(' ', Qt::SkipEmptyParts);
  arrange();
  endResetModel();
}

void TableModel::arrange() {
  order_.resize(rows_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::erase_if(order_, [&](std::size_t row) {
    const QString& text = rows_[row].cells.front().text;
    return !std::ranges::all_of(words_, [&](const QString& word) { return text.contains(word, Qt::CaseInsensitive); });
  });
  if (sorted_by_ < 0) return;
  const auto column = static_cast<std::size_t>(sorted_by_);
  const bool descending = direction_ == Qt::DescendingOrder;
  std::ranges::stable_sort(order_, [&](std::size_t a, std::size_t b) {
    const TableCell &left = rows_[a].cells[column], &right = rows_[b].cells[column];
    if (!columns_[column].number) return descending ? left.text > right.text : left.text < right.text;
    if (!left.number || !right.number) return left.number.has_value() && !right.number;
    return descending ? *left.number > *right.number : *left.number < *right.number;
  });
}

void TableModel::sort(int column, Qt::SortOrder order) {
  if (column < 0) return;
  Q_EMIT layoutAboutToBeChanged();
  sorted_by_ = column;
  direction_ = order;
  const std::vector<std::size_t> before = order_;
  arrange();
  std::vector<int> now(rows_.size());
  for (std::size_t row = 0; row < order_.size(); ++row) now[order_[row]] = static_cast<int>(row);
  for (const QModelIndex& index : persistentIndexList()) {
    changePersistentIndex(index, this->index(now[before[static_cast<std::size_t>(index.row())]], index.column()));
  }
  Q_EMIT layoutChanged();
}

int TableModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : int(order_.size()); }

QVariant TableModel::data(const QModelIndex& index, int role) const {
  const auto column = static_cast<std::size_t>(index.column());
  if (role == Qt::TextAlignmentRole) {
    return int((columns_[column].number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
  const TableCell& cell = rows_[order_[static_cast<std::size_t>(index.row())]].cells[column];
  if (role == value_role) return cell.number ? QVariant(*cell.number) : QVariant();
  if (role == unit_role) return cell.unit;
  return role == Qt::DisplayRole || role == Qt::ToolTipRole ? QVariant(cell.text) : QVariant();
}

QVariant TableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  const TableColumn& column = columns_[static_cast<std::size_t>(section)];
  if (role == Qt::TextAlignmentRole) return int((column.number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole) return column.meaning;
  return role == Qt::DisplayRole ? QVariant(column.title) : QVariant();
}

QStringList TableModel::texts(int row) const {
  QStringList texts;
  for (const TableCell& cell : rows_[order_[static_cast<std::size_t>(row)]].cells) texts << cell.text;
  return texts;
}

QStringList TableModel::titles() const {
  QStringList titles;
  for (const TableColumn& column : columns_) titles << column.title;
  return titles;
}

TablePanel::TablePanel(Document& document, Selection& selection, TableKind kind)
    : LazyPanel(document, selection), kind_(std::move(kind)), model_(kind_.columns, kind_.sorted_by) {
  note_ = new CutLabel;
  note_->setContentsMargins(12, 6, 12, 4);
  note_->setTextFormat(Qt::PlainText);
  view_ = new QTableView;
  view_->setModel(&model_);
  view_->setAccessibleName(kind_.name);
  view_->setFrameShape(QFrame::NoFrame);
  view_->setShowGrid(false);
  view_->setWordWrap(false);
  view_->setAlternatingRowColors(true);
  view_->setTabKeyNavigation(false);  // Tab goes on to the next panel
  view_->setSelectionBehavior(QAbstractItemView::SelectRows);
  view_->setSelectionMode(QAbstractItemView::SingleSelection);
  view_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  view_->verticalHeader()->hide();
  view_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  view_->verticalHeader()->setDefaultSectionSize(22);
  view_->horizontalHeader()->setHighlightSections(false);
  view_->horizontalHeader()->setDefaultSectionSize(48);  // widen_columns() makes none narrower
  view_->horizontalHeader()->setSortIndicator(
      kind_.sorted_by, kind_.columns[std::size_t(kind_.sorted_by)].number ? Qt::DescendingOrder : Qt::AscendingOrder);
  view_->setSortingEnabled(true);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  auto* above = new QHBoxLayout;
  above->addWidget(note_, 1);
  layout->addLayout(above);
  layout->addWidget(view_, 1);
  if (kind_.filtered) {
    auto* filter = new QLineEdit;
    filter->setPlaceholderText("Filter by name");
    filter->setAccessibleName("Filter the rows by name");
    filter->setClearButtonEnabled(true);
    filter->setMaximumWidth(220);
    above->setContentsMargins(0, 3, 8, 3);
    above->addWidget(filter);
    connect(filter, &QLineEdit::textChanged, this, [this](const QString& words) { model_.set_filter(words); });
  }
  auto* copying = new QAction("Copy the table", view_);
  copying->setShortcut(QKeySequence::Copy);
  copying->setShortcutContext(Qt::WidgetShortcut);
  connect(copying, &QAction::triggered, this, &TablePanel::copy);
  view_->addAction(copying);
  view_->setContextMenuPolicy(Qt::ActionsContextMenu);
  connect(view_, &QTableView::clicked, this, &TablePanel::go_to);
  connect(view_, &QTableView::activated, this, &TablePanel::go_to);
  connect(&document, &Document::analysed, this, [this] { set_stale(); });
  if (kind_.of_hits) connect(&selection, &Selection::hits_changed, this, [this] { set_stale(); });
  if (kind_.of_slices) connect(&selection, &Selection::slices_changed, this, [this] { set_stale(); });
  if (kind_.of_range) connect(&selection, &Selection::range_changed, this, [this] { set_stale(); });
}

void TablePanel::refresh() {
  if (!kind_.make) return;
  note_->setText("computing…");
  if (document_.insight() == nullptr) return;  // comes again when the run is analysed
  TableQuestion question;
  question.run = document_.shared_run();
  question.insight = document_.shared_insight();
  question.hits = selection_.hits();
  question.slices = selection_.slices();
  if (kind_.of_range) question.part = selected_part();
  task_.start([make = kind_.make, question](const Ticket& ticket) { return make(question, ticket); },
              [this](TableContent content) { show(std::move(content)); });
}

void TablePanel::show(TableContent content) {
  note_->setText(content.note);
  constexpr int widest = 360;
  model_.show(std::move(content.rows));
  widen_columns(*view_, widest);
}

void TablePanel::go_to(const QModelIndex& index) {
  if (const Place& place = model_.place(index.row()); place.anywhere()) selection_.go_to(place);
}

// As text with tabs, which spreadsheets take.
void TablePanel::copy() {
  QString text = model_.titles().join('\t') + '\n';
  for (int row = 0; row < model_.rowCount(); ++row) text += model_.texts(row).join('\t') + '\n';
  QApplication::clipboard()->setText(text);
}

}  // namespace paceline::viewer
