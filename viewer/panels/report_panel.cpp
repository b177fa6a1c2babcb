#include "viewer/panels/report_panel.h"

#include <QCoreApplication>
#include <QTextDocument>
#include <QThread>
#include <memory>
#include <utility>

#include "analysis/report/render.h"

namespace paceline::viewer {

ReportPanel::ReportPanel(Document& document, ViewState&)
    : document_(document), task_(document.background()), sight_(*this, [this] {
        document_.want_report();
        fill();
      }) {
  setAccessibleName("Report");
  setFrameShape(QFrame::NoFrame);
  setOpenLinks(false);
  setPlaceholderText("The report is being computed…");
  connect(&document, &Document::reported, this, &ReportPanel::fill);
}

void ReportPanel::showEvent(QShowEvent* event) {
  QTextBrowser::showEvent(event);
  sight_.shown();
}

void ReportPanel::fill() {
  if (!document_.report() || !sight_.in_sight() || std::exchange(filled_, true)) return;
  // A worker lays the text out, which takes long for many ranks.
  task_.start(
      [report = document_.report(), font = font()](const Ticket&) {
        auto text = std::make_unique<QTextDocument>();
        text->setDefaultFont(font);
        text->setMarkdown(QString::fromStdString(analysis::render_markdown(*report)));
        text->moveToThread(QCoreApplication::instance()->thread());
        return text;
      },
      [this](std::unique_ptr<QTextDocument> text) {
        text->setParent(this);
        setDocument(text.release());
      });
}

}  // namespace paceline::viewer
