// The report of the run, as `paceline report` writes it: verdict, reasons, changes that pay, and all tables.
#pragma once

#include <QTextBrowser>

#include "viewer/panels/sight.h"
#include "viewer/session/document.h"
#include "viewer/session/view_state.h"

namespace paceline::viewer {

class ReportPanel : public QTextBrowser {
  Q_OBJECT

 public:
  ReportPanel(Document& document, ViewState& state);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void fill();  // once the report is there and the panel is seen

  Document& document_;
  Task task_;
  bool filled_ = false;
  Sight sight_;
};

}  // namespace paceline::viewer
