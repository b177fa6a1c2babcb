// SPDX-License-Identifier: Apache-2.0
#include "viewer/window/loading_page.h"

#include <QPainter>
#include <QPushButton>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

namespace paceline::viewer {
namespace loading_page {

constexpr int percent_role = Qt::UserRole;

// A rank's name over a bar that is as long as its share.
class RankDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;

  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const int percent = index.data(percent_role).toInt();
    const QRect box = option.rect.adjusted(0, 0, 0, -1);
    QColor done = option.palette.color(QPalette::Highlight);
    done.setAlpha(60);
    painter->fillRect(QRect(box.left(), box.top(), box.width() * percent / 100, box.height()), done);
    painter->setPen(option.palette.color(QPalette::Text));
    painter->drawText(box.adjusted(6, 0, -6, 0), Qt::AlignVCenter | Qt::AlignLeft, index.data().toString());
    const QString text = percent < 100 ? QString("%1 %").arg(percent) : QString("loaded");
    painter->drawText(box.adjusted(6, 0, -6, 0), Qt::AlignVCenter | Qt::AlignRight, text);
  }
};

}  // namespace loading_page

LoadingPage::LoadingPage(const QString& path) {
  auto* layout = new QVBoxLayout(this);
  layout->setAlignment(Qt::AlignCenter);
  layout->setSpacing(12);
  layout->addWidget(new QLabel("Opening " + path.toHtmlEscaped()));
  bar_ = new QProgressBar;
  bar_->setMinimumWidth(420);
  bar_->setRange(0, 0);  // moves to and fro until the first percent is read
  layout->addWidget(bar_);
  ranks_ = new QListWidget;
  ranks_->setAccessibleName("Ranks");
  ranks_->setItemDelegate(new loading_page::RankDelegate(ranks_));
  ranks_->setUniformItemSizes(true);
  ranks_->setMinimumHeight(60);
  ranks_->hide();
  layout->addWidget(ranks_);
  auto* cancel = new QPushButton("Cancel");
  layout->addWidget(cancel, 0, Qt::AlignRight);
  connect(cancel, &QPushButton::clicked, this, &LoadingPage::cancelled);
}

void LoadingPage::show_progress(int percent) {
  if (percent <= 0) return;
  bar_->setRange(0, 100);
  bar_->setValue(percent);
}

void LoadingPage::show_rank(const QString& name, int percent) {
  QListWidgetItem*& row = rows_[name];
  if (row == nullptr) {
    row = new QListWidgetItem(name, ranks_);
    ranks_->show();
  }
  row->setData(loading_page::percent_role, percent);
}

}  // namespace paceline::viewer
