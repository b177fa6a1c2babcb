// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/breakdown_panel.h"

#include <QHeaderView>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>
#include <numeric>
#include <utility>

#include "viewer/panels/columns.h"
#include "viewer/panels/legend.h"
#include "viewer/panels/table_panel.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace breakdown {

const QString none = "–";

// One bar of all phases, stacked; the same length stands for the same time in every row.
class BarDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const QVariantList values = index.data(BreakdownModel::values_role).toList();
    const double longest = index.data(BreakdownModel::longest_role).toDouble();
    if (longest <= 0) return;
    const Theme theme = Theme::of(option.palette);
    const QRect box = option.rect.adjusted(8, 9, -8, -9);
    double sum = 0;
    int left = box.left();
    for (std::size_t i = 0; i < phase_order.size(); ++i) {
      sum += values[static_cast<qsizetype>(i)].toDouble();
      const int right = box.left() + static_cast<int>(sum / longest * box.width());
      painter->fillRect(left, box.top(), right - left, box.height(), QColor(phase_colour(phase_order[i], theme)));
      left = right;
    }
  }
};

// A duration, and below it its share in a fainter colour.
class ShareDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const QStringList lines = index.data(Qt::DisplayRole).toString().split('\n');
    const Theme theme = Theme::of(option.palette);
    const QRect box = option.rect.adjusted(margin, 3, -margin, -3);
    const auto side = static_cast<Qt::Alignment>(index.data(Qt::TextAlignmentRole).toInt()) & Qt::AlignHorizontal_Mask;
    const int middle = box.center().y();
    const bool two = lines.size() > 1;
    painter->setFont(option.font);
    painter->setPen(QColor(lines.front() == none ? theme.faint_text : theme.text));
    const auto shown = [&](const QString& line) {
      return option.fontMetrics.elidedText(line, Qt::ElideRight, box.width());
    };
    painter->drawText(QRect(box.left(), box.top(), box.width(), two ? middle - box.top() : box.height()),
                      side | Qt::AlignVCenter, shown(lines.front()));
    if (!two) return;
    painter->setPen(QColor(theme.faint_text));
    painter->drawText(QRect(box.left(), middle, box.width(), box.bottom() - middle), side | Qt::AlignVCenter,
                      shown(lines.back()));
  }

  static constexpr int margin = 8;
};

// The names of the columns; those of phases are underlined in the phase's colour.
class PhaseHeader : public QHeaderView {
 public:
  using QHeaderView::QHeaderView;

  QSize sizeHint() const override { return {QHeaderView::sizeHint().width(), 30}; }

 protected:
  void paintSection(QPainter* painter, const QRect& rect, int section) const override {
    const Theme theme = Theme::of(palette());
    painter->fillRect(rect, QColor(theme.background));
    painter->fillRect(rect.left(), rect.bottom(), rect.width(), 1, QColor(theme.row_line));
    const auto data = [&](int role) { return model()->headerData(section, orientation(), role); };
    painter->setPen(QColor(theme.faint_text));
    painter->drawText(rect.adjusted(8, 2, -8, -5), data(Qt::TextAlignmentRole).toInt(),
                      data(Qt::DisplayRole).toString());
    const QVariant phase = data(BreakdownModel::phase_role);
    if (!phase.isValid()) return;
    const QColor colour(phase_colour(static_cast<analysis::Phase>(phase.toInt()), theme));
    painter->fillRect(rect.left() + 8, rect.bottom() - 3, rect.width() - 16, 3, colour);
  }
};

}  // namespace breakdown

namespace breakdown {

std::vector<BreakdownModel::Totals> totals_between(const Run& run, TimeRange range) {
  std::vector<BreakdownModel::Totals> totals;
  for (const RankIndex& rank : run.ranks) {
    totals.push_back(
        rank.phases->between(static_cast<std::int64_t>(range.begin_ns), static_cast<std::int64_t>(range.end_ns)));
  }
  return totals;
}

}  // namespace breakdown

BreakdownModel::BreakdownModel(const Run& run)
    : run_(run), phases_(phases_present(run)), totals_(run.ranks.size()), sums_(run.ranks.size()) {}

void BreakdownModel::show(std::vector<Totals> totals, bool whole, const std::set<std::size_t>& ranks) {
  std::vector<std::size_t> rows(ranks.begin(), ranks.end());
  if (ranks.empty()) {
    rows.resize(totals.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
  }
  if (rows != rows_) {
    beginResetModel();
    rows_ = std::move(rows);
    endResetModel();
  }
  whole_ = whole;
  totals_ = std::move(totals);
  longest_ns_ = 0;
  for (const std::size_t rank : rows_) {
    sums_[rank] = std::accumulate(totals_[rank].begin(), totals_[rank].end(), std::int64_t{0});
    longest_ns_ = std::max(longest_ns_, sums_[rank]);
  }
  if (rows_.empty()) return;
  Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
  Q_EMIT headerDataChanged(Qt::Horizontal, total_column, total_column);
}

std::int64_t BreakdownModel::time_ns(std::size_t rank, int column) const {
  if (column == total_column) return sums_[rank];
  return totals_[rank][static_cast<std::size_t>(phases_[static_cast<std::size_t>(column - first_phase_column)])];
}

QString BreakdownModel::cell_text(std::size_t rank, int column) const {
  if (column == rank_column) return QString("Rank %1").arg(run_.trace.ranks[rank].rank);
  if (column == total_column) return duration_text(sums_[rank]);
  if (column == bar_column) return {};
  const std::int64_t ns = time_ns(rank, column);
  if (ns == 0) return breakdown::none;
  return QString("%1\n%2").arg(duration_text(ns), share_text(double(ns) / double(sums_[rank])));
}

QVariant BreakdownModel::data(const QModelIndex& index, int role) const {
  const std::size_t rank = rank_of(index.row());
  const bool left = index.column() == rank_column || index.column() == bar_column;
  if (role == Qt::TextAlignmentRole) return int((left ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
  if (role == Qt::DisplayRole) return cell_text(rank, index.column());
  if (index.column() >= total_column && index.column() != bar_column) {
    if (role == unit_role) return "ns";
    if (role == value_role) return static_cast<qlonglong>(time_ns(rank, index.column()));
  }
  if (index.column() != bar_column) return {};
  if (role == longest_role) return static_cast<qlonglong>(longest_ns_);
  if (role == values_role) {
    QVariantList values;
    for (const auto phase : phase_order) values << static_cast<qlonglong>(totals_[rank][std::size_t(phase)]);
    return values;
  }
  if (role != Qt::ToolTipRole && role != Qt::AccessibleTextRole) return {};
  QStringList shares;
  for (const analysis::Phase phase : phases_) {
    const std::int64_t ns = totals_[rank][static_cast<std::size_t>(phase)];
    if (ns > 0) shares << phase_text(phase) + " " + share_text(double(ns) / double(sums_[rank]));
  }
  return shares.join(role == Qt::ToolTipRole ? "\n" : ", ");
}

QVariant BreakdownModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  const bool left = section == rank_column || section == bar_column;
  if (role == Qt::TextAlignmentRole) return int((left ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
  if (section < first_phase_column) {
    if (role != Qt::DisplayRole) return {};
    return section == rank_column  ? "Rank"
           : section == bar_column ? "Share of time"
           : whole_                ? "Wall time"
                                   : "Selected";
  }
  const auto phase = phases_[static_cast<std::size_t>(section - first_phase_column)];
  if (role == phase_role) return static_cast<int>(phase);
  return role == Qt::DisplayRole ? QVariant(phase_text(phase)) : QVariant();
}

BreakdownPanel::BreakdownPanel(Document& document, Selection& selection)
    : document_(document), selection_(selection), task_(document.background()), model_(document.run()) {
  title_ = new QLabel;
  title_->setContentsMargins(12, 8, 12, 4);
  QFont bold = title_->font();
  bold.setBold(true);
  title_->setFont(bold);

  view_ = new QTableView;
  view_->setModel(&model_);
  view_->setHorizontalHeader(new breakdown::PhaseHeader(Qt::Horizontal));
  view_->setAccessibleName("Time of each rank by phase");
  view_->setFrameShape(QFrame::NoFrame);
  view_->setFocusPolicy(Qt::TabFocus);
  view_->setTabKeyNavigation(false);  // Tab goes on to the next panel; the arrow keys move in the table
  view_->setShowGrid(false);
  view_->setWordWrap(false);
  view_->verticalHeader()->hide();
  view_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
  view_->verticalHeader()->setDefaultSectionSize(36);
  view_->horizontalHeader()->setHighlightSections(false);
  view_->horizontalHeader()->setMinimumSectionSize(48);
  view_->horizontalHeader()->setDefaultSectionSize(48);  // widen_columns() makes none narrower
  view_->horizontalHeader()->setSectionResizeMode(BreakdownModel::bar_column, QHeaderView::Stretch);
  view_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  view_->setSelectionMode(QAbstractItemView::NoSelection);
  view_->setItemDelegate(new breakdown::ShareDelegate(view_));
  view_->setItemDelegateForColumn(BreakdownModel::bar_column, new breakdown::BarDelegate(view_));

  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(title_);
  layout->addWidget(view_);
  const auto go_to = [this](const QModelIndex& index) { selection_.go_to({.rank = model_.rank_of(index.row())}); };
  connect(view_, &QTableView::clicked, this, go_to);
  connect(view_, &QTableView::activated, this, go_to);
  connect(&selection, &Selection::range_changed, this, &BreakdownPanel::fill);
  connect(&document, &Document::analysed, this, [this] {
    if (!selection_.range()) fill();
  });
  fill();
}

void BreakdownPanel::fill() {
  const Part part{selection_.range(), selection_.ranks()};
  if (part.range) {
    // Beside the UI thread, so that dragging a range over many ranks stays smooth.
    return task_.start(
        [run = document_.shared_run(), part](const Ticket&) { return breakdown::totals_between(*run, *part.range); },
        [this, part](std::vector<BreakdownModel::Totals> totals) { show(std::move(totals), part); });
  }
  task_.cancel();
  std::vector<BreakdownModel::Totals> totals;
  if (const Insight* insight = document_.insight()) {
    for (const auto& rank : insight->figures.per_rank) totals.push_back(rank.phase_ns);
  } else {
    for (const RankIndex& rank : document_.run().ranks) totals.push_back(rank.phases->totals());
  }
  show(std::move(totals), {});
}

void BreakdownPanel::show(std::vector<BreakdownModel::Totals> totals, const Part& part) {
  model_.show(std::move(totals), !part.range, part.ranks);
  title_->setText(part.range ? "Phases " + part_text(part) : "Phases of each rank, whole run");
  widen_columns(*view_, view_->width());
  keep_bar_visible();
}

// The bar takes the room that the figures leave, and a least width where they leave none: then the table scrolls.
void BreakdownPanel::keep_bar_visible() {
  constexpr int least = 160;
  QHeaderView& header = *view_->horizontalHeader();
  int figures = 0;
  for (int column = 0; column < model_.columnCount(); ++column) {
    if (column != BreakdownModel::bar_column) figures += view_->columnWidth(column);
  }
  const bool stretch = figures + least <= view_->viewport()->width();
  header.setSectionResizeMode(BreakdownModel::bar_column, stretch ? QHeaderView::Stretch : QHeaderView::Interactive);
  if (!stretch) view_->setColumnWidth(BreakdownModel::bar_column, least);
}

void BreakdownPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  keep_bar_visible();
}

}  // namespace paceline::viewer
