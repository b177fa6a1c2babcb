// SPDX-License-Identifier: Apache-2.0
// Asks which two runs are to be compared: open ones, those that were opened before, or others.
#pragma once

#include <QComboBox>
#include <QDialog>
#include <QPushButton>
#include <QStringList>

namespace paceline::viewer {

class ChooseRuns : public QDialog {
  Q_OBJECT

 public:
  // `known`: the paths to choose from, that of run A first, then that of run B.
  explicit ChooseRuns(const QStringList& known, QWidget* parent = nullptr);

  QString a() const { return a_->currentText().trimmed(); }
  QString b() const { return b_->currentText().trimmed(); }

 private:
  QComboBox* make_field(const QString& name, const QStringList& known, int row);
  void check();

  QComboBox *a_, *b_;
  QPushButton* compare_ = nullptr;
};

}  // namespace paceline::viewer
