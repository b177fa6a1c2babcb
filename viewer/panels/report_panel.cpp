#include "viewer/panels/report_panel.h"

#include <QCoreApplication>
#include <QTextDocument>
#include <QThread>
#include <memory>
#include <utility>

#include "analysis/report/render.h"

namespace paceline::viewer {

ReportPanel::ReportPanel(Document& document, ViewState&) : document_(document), task_(document.background()) {
  setAccessibleName("Report");
  setFrameShape(QFrame::NoFrame);
  setOpenLinks(false);
  setPlaceholderText("The report is being computed…");
  connect(&document, &Document::reported, this, &ReportPanel::fill);
}

void ReportPanel::showEvent(QShowEvent* event) {
  QTextBrowser::showEvent(event);
  document_.want_report();
  fill();
}

void ReportPanel::fill() {
  if (!document_.report() || !isVisible() || std::exchange(filled_, true)) return;
  // A worker lays the text out, which takes long for many ranks.
  task_.start(
      [report = document_.report()](const Ticket&) {
        auto text = std::make_shared<QTextDocument>();
        text->setMarkdown(QString::fromStdString(analysis::render_markdown(*report)));
        text->moveToThread(QCoreApplication::instance()->thread());
        return text;
      },
      [this](const std::shared_ptr<QTextDocument>& text) {
        text->setDefaultFont(font());
        setDocument(text->clone(this));
      });
}

}  // namespace paceline::viewer
