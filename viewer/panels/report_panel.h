// SPDX-License-Identifier: Apache-2.0
// The report of the run, as `paceline report` writes it: verdict, reasons, changes that pay, and all tables. A field
// finds words in it.
#pragma once

#include <QLineEdit>
#include <QPlainTextEdit>
#include <QWidget>

#include "viewer/panels/sight.h"
#include "viewer/session/document.h"
#include "viewer/session/view_state.h"

namespace paceline::viewer {

class ReportPanel : public QWidget {
  Q_OBJECT

 public:
  ReportPanel(Document& document, ViewState& state);

  QPlainTextEdit& text() { return *text_; }

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void fill();  // once the report is there and the panel is seen
  // Selects the next place of the words in the field, and begins at the other end after the last one.
  void find();

  Document& document_;
  Task task_;
  bool filled_ = false;
  QPlainTextEdit* text_;
  QLineEdit* words_;
  Sight sight_;
};

}  // namespace paceline::viewer
