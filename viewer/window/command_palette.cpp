// SPDX-License-Identifier: Apache-2.0
#include "viewer/window/command_palette.h"

#include <QCoreApplication>
#include <QKeyEvent>
#include <QVBoxLayout>
#include <algorithm>

namespace paceline::viewer {
namespace command_palette {

QString text_of(const Action& action) {
  QString text = *action.text != '\0' ? QString(action.text).remove('&') : QString(action.help);
  text[0] = text[0].toUpper();
  return text;
}

// What the words are looked for in.
QString searched_of(const Action& action) {
  return QString("%1 %2 %3").arg(action.section, text_of(action), action.help);
}

}  // namespace command_palette

CommandPalette::CommandPalette(QWidget* parent) : QDialog(parent) {
  setWindowTitle("Find an action");
  resize(520, 420);
  text_ = new QLineEdit;
  text_->setPlaceholderText("Words of an action");
  text_->setAccessibleName("Words of an action");
  text_->installEventFilter(this);
  list_ = new QListWidget;
  list_->setAccessibleName("Actions");
  list_->setUniformItemSizes(true);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(text_);
  layout->addWidget(list_, 1);
  connect(text_, &QLineEdit::textChanged, this, &CommandPalette::fill);
  connect(list_, &QListWidget::itemActivated, this, &CommandPalette::choose);
  connect(list_, &QListWidget::itemClicked, this, &CommandPalette::choose);
  fill();
}

void CommandPalette::fill() {
  list_->clear();
  const QStringList words = text_->text().split(' ', Qt::SkipEmptyParts);
  const auto table = action_table();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].input == Action::Input::mouse) continue;
    const QString searched = command_palette::searched_of(table[i]);
    const bool fits =
        std::ranges::all_of(words, [&](const QString& word) { return searched.contains(word, Qt::CaseInsensitive); });
    if (!fits) continue;
    auto* item =
        new QListWidgetItem(QString("%1   (%2)").arg(command_palette::text_of(table[i]), keys_text(table[i])), list_);
    item->setToolTip(table[i].help);
    item->setData(Qt::UserRole, static_cast<qulonglong>(i));
  }
  list_->setCurrentRow(0);
}

void CommandPalette::choose() {
  const QListWidgetItem* item = list_->currentItem();
  if (item == nullptr) return;
  chosen_ = &action_table()[item->data(Qt::UserRole).toULongLong()];
  accept();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
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
        choose();
        return true;
      default:
        break;
    }
  }
  return QDialog::eventFilter(watched, event);
}

}  // namespace paceline::viewer
