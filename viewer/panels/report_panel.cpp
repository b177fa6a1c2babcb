// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/report_panel.h"

#include <QCoreApplication>
#include <QFontDatabase>
#include <QTextDocument>
#include <QVBoxLayout>
#include <memory>
#include <utility>

#include "viewer/panels/report_text.h"

namespace paceline::viewer {

ReportPanel::ReportPanel(Document& document, ViewState&)
    : document_(document), task_(document.background()), sight_(*this, [this] {
        document_.want_report();
        fill();
      }) {
  words_ = new QLineEdit;
  words_->setPlaceholderText("Find in the report");
  words_->setAccessibleName("Find in the report");
  words_->setClearButtonEnabled(true);
  words_->setMaximumWidth(320);
  text_ = new QPlainTextEdit;
  text_->setAccessibleName("Report");
  text_->setReadOnly(true);
  text_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  text_->setTabChangesFocus(true);
  text_->setFrameShape(QFrame::NoFrame);
  text_->setPlaceholderText("The report is being computed…");
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 4, 0, 0);
  layout->setSpacing(4);
  layout->addWidget(words_);
  layout->addWidget(text_, 1);
  setFocusProxy(text_);
  connect(words_, &QLineEdit::returnPressed, this, [this] { find(); });
  connect(words_, &QLineEdit::textChanged, this, [this] {
    // The place that is selected stays if it goes on with what was typed.
    QTextCursor from = text_->textCursor();
    from.setPosition(from.selectionStart());
    text_->setTextCursor(from);
    find();
  });
  connect(&document, &Document::reported, this, &ReportPanel::fill);
}

void ReportPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  sight_.shown();
}

void ReportPanel::find() {
  if (words_->text().isEmpty() || text_->find(words_->text())) return;
  const QTextCursor before = text_->textCursor();
  text_->moveCursor(QTextCursor::Start);
  if (!text_->find(words_->text())) text_->setTextCursor(before);
}

void ReportPanel::fill() {
  if (!document_.report() || !sight_.in_sight() || std::exchange(filled_, true)) return;
  task_.start(
      [report = document_.report(), font = font(),
       fixed = QFontDatabase::systemFont(QFontDatabase::FixedFont)](const Ticket&) {
        std::unique_ptr<QTextDocument> text = report_document(*report, font, fixed);
        text->moveToThread(QCoreApplication::instance()->thread());
        return text;
      },
      [this](std::unique_ptr<QTextDocument> text) {
        text->setParent(text_);
        text_->setDocument(text.release());
      });
}

}  // namespace paceline::viewer
