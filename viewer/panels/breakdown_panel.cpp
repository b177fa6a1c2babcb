#include "viewer/panels/breakdown_panel.h"

#include <QEvent>
#include <QFontMetrics>
#include <QHeaderView>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>
#include <numeric>

#include "viewer/drawing/palette.h"
#include "viewer/drawing/time_text.h"
#include "viewer/panels/legend.h"

namespace paceline::viewer {
namespace {

using Totals = std::array<std::int64_t, analysis::phase_count>;

const QString none = "–";

enum Column { rank_column, total_column, bar_column, first_phase_column };

QString name_of(analysis::Phase phase) {
  const std::string_view name = analysis::phase_name(phase);
  return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
}

// One bar of all phases, stacked; the same length stands for the same time in every row.
class BarDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const QVariantList values = index.data(Qt::UserRole).toList();
    const double longest = index.data(Qt::UserRole + 1).toDouble();
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
    painter->drawText(QRect(box.left(), box.top(), box.width(), two ? middle - box.top() : box.height()),
                      side | Qt::AlignVCenter, lines.front());
    if (!two) return;
    painter->setPen(QColor(theme.faint_text));
    painter->drawText(QRect(box.left(), middle, box.width(), box.bottom() - middle), side | Qt::AlignVCenter,
                      lines.back());
  }

  static constexpr int margin = 8;
};

// Names the columns; those of the phases carry their colour.
class PhaseHeader : public QHeaderView {
 public:
  using QHeaderView::QHeaderView;

  static constexpr int colour_role = Qt::UserRole;

  QSize sizeHint() const override { return {QHeaderView::sizeHint().width(), 30}; }

 protected:
  void paintSection(QPainter* painter, const QRect& rect, int section) const override {
    const Theme theme = Theme::of(palette());
    painter->fillRect(rect, QColor(theme.background));
    painter->fillRect(rect.left(), rect.bottom(), rect.width(), 1, QColor(theme.row_line));
    const auto alignment = model()->headerData(section, orientation(), Qt::TextAlignmentRole).value<int>();
    painter->setPen(QColor(theme.faint_text));
    painter->drawText(rect.adjusted(8, 2, -8, -5), alignment,
                      model()->headerData(section, orientation(), Qt::DisplayRole).toString());
    if (const QVariant colour = model()->headerData(section, orientation(), colour_role); colour.isValid()) {
      painter->fillRect(rect.left() + 8, rect.bottom() - 3, rect.width() - 16, 3, colour.value<QColor>());
    }
  }
};

}  // namespace

BreakdownPanel::BreakdownPanel(std::shared_ptr<const Run> run, QWidget* parent)
    : QWidget(parent), run_(std::move(run)), phases_(phases_present(*run_)) {
  title_ = new QLabel;
  title_->setContentsMargins(12, 8, 12, 4);
  QFont bold = title_->font();
  bold.setBold(true);
  title_->setFont(bold);

  table_ =
      new QTableWidget(static_cast<int>(run_->ranks.size()), first_phase_column + static_cast<int>(phases_.size()));
  table_->setHorizontalHeader(new PhaseHeader(Qt::Horizontal));
  table_->setAccessibleName("Time of each rank by phase");
  table_->setFrameShape(QFrame::NoFrame);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setFocusPolicy(Qt::TabFocus);
  table_->setShowGrid(false);
  table_->setWordWrap(false);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setDefaultSectionSize(36);
  table_->horizontalHeader()->setHighlightSections(false);
  table_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  table_->setSelectionMode(QAbstractItemView::NoSelection);
  table_->setItemDelegate(new ShareDelegate(table_));
  table_->setItemDelegateForColumn(bar_column, new BarDelegate(table_));

  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(title_);
  layout->addWidget(table_);
  fill();
}

void BreakdownPanel::show_range(std::optional<TimeRange> range) {
  range_ = range;
  fill();
}

void BreakdownPanel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) fill();
}

void BreakdownPanel::fill() {
  const Theme theme = Theme::of(palette());
  title_->setText(range_ ? QString("Phases in the selected %1").arg(duration_text(std::int64_t(range_->length())))
                         : QString("Phases of each rank, whole run"));
  QStringList headers{"Rank", range_ ? "Selected" : "Wall time", "Share of time"};
  for (const analysis::Phase phase : phases_) headers << name_of(phase);
  table_->setHorizontalHeaderLabels(headers);
  for (int column = 0; column < static_cast<int>(phases_.size()); ++column) {
    auto* header = table_->horizontalHeaderItem(first_phase_column + column);
    header->setData(PhaseHeader::colour_role, QColor(phase_colour(phases_[static_cast<std::size_t>(column)], theme)));
    header->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  }
  table_->horizontalHeaderItem(rank_column)->setTextAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->horizontalHeaderItem(total_column)->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  table_->horizontalHeaderItem(bar_column)->setTextAlignment(Qt::AlignLeft | Qt::AlignVCenter);

  std::vector<Totals> totals;
  std::int64_t longest = 0;
  for (const RankIndex& rank : run_->ranks) {
    totals.push_back(range_ ? rank.totals.between(static_cast<std::int64_t>(range_->begin_ns),
                                                  static_cast<std::int64_t>(range_->end_ns))
                            : rank.phases.total_ns);
    longest = std::max(longest, std::accumulate(totals.back().begin(), totals.back().end(), std::int64_t{0}));
  }
  for (int row = 0; row < static_cast<int>(totals.size()); ++row) {
    const Totals& of = totals[static_cast<std::size_t>(row)];
    const std::int64_t sum = std::accumulate(of.begin(), of.end(), std::int64_t{0});
    const auto put = [&](int column, const QString& text, Qt::Alignment alignment) {
      auto* item = new QTableWidgetItem(text);
      item->setTextAlignment(alignment | Qt::AlignVCenter);
      table_->setItem(row, column, item);
      return item;
    };
    put(rank_column, QString("Rank %1").arg(run_->trace.ranks[static_cast<std::size_t>(row)].rank), Qt::AlignLeft);
    put(total_column, duration_text(sum), Qt::AlignRight);
    auto* bar = put(bar_column, {}, Qt::AlignLeft);
    QVariantList values;
    for (const analysis::Phase phase : phase_order)
      values << static_cast<qlonglong>(of[static_cast<std::size_t>(phase)]);
    bar->setData(Qt::UserRole, values);
    bar->setData(Qt::UserRole + 1, static_cast<qlonglong>(longest));
    QStringList shares;
    for (int i = 0; i < static_cast<int>(phases_.size()); ++i) {
      const analysis::Phase phase = phases_[static_cast<std::size_t>(i)];
      const std::int64_t ns = of[static_cast<std::size_t>(phase)];
      const double share = sum > 0 ? static_cast<double>(ns) / static_cast<double>(sum) : 0;
      put(first_phase_column + i, ns == 0 ? QString(none) : QString("%1\n%2").arg(duration_text(ns), share_text(share)),
          Qt::AlignRight);
      if (ns > 0) shares << QString("%1 %2").arg(name_of(phase), share_text(share));
    }
    bar->setToolTip(shares.join("\n"));
    bar->setData(Qt::AccessibleTextRole, shares.join(", "));
  }
  const QFontMetrics metrics(table_->font());
  const auto fit = [&](int column, int room) {
    int width = metrics.horizontalAdvance(headers[column]) + room;
    for (int row = 0; row < table_->rowCount(); ++row) {
      for (const QString& line : table_->item(row, column)->text().split('\n')) {
        width = std::max(width, metrics.horizontalAdvance(line) + 18);
      }
    }
    table_->setColumnWidth(column, width);
  };
  fit(rank_column, 20);
  fit(total_column, 18);
  for (int column = first_phase_column; column < table_->columnCount(); ++column) fit(column, 18);
  table_->horizontalHeader()->setMinimumSectionSize(48);
  table_->horizontalHeader()->setSectionResizeMode(bar_column, QHeaderView::Stretch);
}

}  // namespace paceline::viewer
