// SPDX-License-Identifier: Apache-2.0
#include "viewer/window/picker.h"

#include <QCoreApplication>
#include <QKeyEvent>
#include <QVBoxLayout>

namespace paceline::viewer {

Picker::Picker(const QString& title, const QString& prompt, const QString& list, QWidget* parent) : QDialog(parent) {
  setWindowTitle(title);
  resize(520, 420);
  text_ = new QLineEdit;
  text_->setPlaceholderText(prompt);
  text_->setAccessibleName(prompt);
  text_->installEventFilter(this);
  list_ = new QListWidget;
  list_->setAccessibleName(list);
  list_->setUniformItemSizes(true);
  message_ = new QLabel;
  message_->setTextFormat(Qt::PlainText);
  message_->setWordWrap(true);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(text_);
  layout->addWidget(list_, 1);
  layout->addWidget(message_);
  connect(text_, &QLineEdit::textChanged, this, &Picker::refill);
  connect(list_, &QListWidget::itemActivated, this, &Picker::take);
  connect(list_, &QListWidget::itemClicked, this, &Picker::take);
}

void Picker::refill() {
  list_->clear();
  message_->clear();
  fill(text_->text());
  list_->setCurrentRow(0);
  message_->setVisible(!message_->text().isEmpty());
}

void Picker::add(const QString& text, std::size_t number, const QString& tooltip) {
  auto* item = new QListWidgetItem(text, list_);
  item->setToolTip(tooltip);
  item->setData(Qt::UserRole, static_cast<qulonglong>(number));
}

void Picker::take() {
  const QListWidgetItem* item = list_->currentItem();
  if (item == nullptr) return;
  taken_ = item->data(Qt::UserRole).toULongLong();
  accept();
}

bool Picker::eventFilter(QObject* watched, QEvent* event) {
  if (watched == text_ && event->type() == QEvent::KeyPress) {
    switch (static_cast<QKeyEvent*>(event)->key()) {
      case Qt::Key_Up:
      case Qt::Key_Down:
      case Qt::Key_PageUp:
      case Qt::Key_PageDown:
        QCoreApplication::sendEvent(list_, event);
        return true;
      case Qt::Key_Return:
      case Qt::Key_Enter:
        take();
        return true;
      default:
        break;
    }
  }
  return QDialog::eventFilter(watched, event);
}

}  // namespace paceline::viewer
