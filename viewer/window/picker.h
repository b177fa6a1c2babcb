// SPDX-License-Identifier: Apache-2.0
// A dialog with a field and a list that follows what the user types. The arrow keys move in the list while the keyboard
// is in the field, and Enter or a click takes an entry.
#pragma once

#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <optional>

namespace paceline::viewer {

class Picker : public QDialog {
  Q_OBJECT

 public:
  // `prompt`: what to type; `list`: what the entries are, for screen readers.
  Picker(const QString& title, const QString& prompt, const QString& list, QWidget* parent);

  // One line below the list; empty if there is nothing to say.
  QString message() const { return message_->text(); }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

  // Fills the list for the text. To be called once by the constructor of the class that has it.
  virtual void fill(const QString& text) = 0;
  void refill();
  void add(const QString& text, std::size_t number, const QString& tooltip = {});
  void set_message(const QString& text) { message_->setText(text); }
  // The number of the entry that was taken; nothing if the dialog was closed without one.
  std::optional<std::size_t> taken() const { return taken_; }

 private:
  void take();

  QLineEdit* text_;
  QListWidget* list_;
  QLabel* message_;
  std::optional<std::size_t> taken_;
};

}  // namespace paceline::viewer
