// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/report_text.h"

#include <QFontMetricsF>
#include <QPlainTextDocumentLayout>
#include <QStringList>
#include <QTextBlock>
#include <QTextCursor>
#include <QTextLayout>
#include <algorithm>
#include <utility>
#include <vector>

#include "analysis/report/outline.h"
#include "analysis/report/renderings/text_parts.h"
#include "analysis/report/sentences.h"
#include "analysis/text/labels.h"

namespace paceline::viewer {
namespace report_text {

constexpr int unwrapped = 1;  // the state of blocks that are one line, however long it is

// Lays out each block when it is first shown, as its base class does. Lines of tables are not wrapped.
class Layout : public QPlainTextDocumentLayout {
 public:
  explicit Layout(QTextDocument* document) : QPlainTextDocumentLayout(document) {}

  void set_widest(double pixels) { widest_ = pixels; }

  QSizeF documentSize() const override {
    const QSizeF size = QPlainTextDocumentLayout::documentSize();
    return {std::max(size.width(), widest_ + 2 * document()->documentMargin()), size.height()};
  }
  QRectF blockBoundingRect(const QTextBlock& block) const override {
    if (block.isValid() && block.userState() == unwrapped && block.layout()->lineCount() == 0) lay_out(block);
    return QPlainTextDocumentLayout::blockBoundingRect(block);
  }

 private:
  void lay_out(const QTextBlock& block) const {
    QTextOption option = document()->defaultTextOption();
    option.setWrapMode(QTextOption::NoWrap);
    QTextLayout& layout = *block.layout();
    layout.setTextOption(option);
    layout.beginLayout();
    QTextLine line = layout.createLine();
    if (line.isValid()) {
      line.setLeadingIncluded(true);
      line.setLineWidth(widest_);
      line.setPosition({document()->documentMargin(), 0});
    }
    layout.endLayout();
  }

  double widest_ = 0;  // line of a table
};

// One line, without characters that could deceive.
QString text_of(const std::string& text) {
  return QString::fromStdString(analysis::printable_lines(text)).replace('\n', ' ');
}

class Writer {
 public:
  Writer(QTextDocument& document, const QFont& font, QFont fixed) : cursor_(&document), text_font_(font) {
    if (font.pixelSize() > 0) {
      fixed.setPixelSize(font.pixelSize());
    } else {
      fixed.setPointSizeF(font.pointSizeF());
    }
    column_width_ = QFontMetricsF(fixed).horizontalAdvance('0');
    fixed_.setFont(fixed);
    plain_.setFont(font);
    cursor_.beginEditBlock();
  }

  void write(const analysis::Report& report) {
    const analysis::Outline outline = analysis::outline_of(report, analysis::Table::Place::documents);
    add_heading(0, "Paceline report");
    begin_block(0);
    begin_block(0);
    add_words(text_of(report.verdict.state), true);
    add_words(" " + text_of(report.verdict.change));
    bool drawn = false;
    for (const analysis::Chart& chart : outline.picture) {
      if (chart.bars.empty()) continue;
      if (!std::exchange(drawn, true)) add_heading(1, "The picture");
      begin_block(0);
      const QString bars = QString::fromStdString(analysis::printable_lines(analysis::bars_text(chart)));
      for (const QString& line : bars.split('\n')) add_fixed(line, fixed_);
    }
    add_findings(report, 1, "Reasons, by what they cost a rank (costs overlap)", outline.reasons, true);
    if (!outline.changes.empty()) add_heading(1, "Changes that pay");
    add_tables(outline.changes);
    if (!outline.tables.empty() || !outline.remarks.empty()) add_heading(1, "Details of the scaling");
    add_tables(outline.tables);
    add_findings(report, 2, "About these figures", outline.remarks, false);
    for (std::size_t r = 0; r < report.runs.size(); ++r) {
      add_heading(1, report.runs[r].name);
      begin_block(0);
      add_words(text_of(analysis::run_summary(report.runs[r])));
      add_tables(outline.runs[r].tables);
      add_findings(report, 2, "About this run", outline.runs[r].findings, false);
    }
    cursor_.endEditBlock();
  }

  double widest() const { return column_width_ * double(most_columns_); }

 private:
  void begin_block(int state) {
    if (!std::exchange(first_, false)) cursor_.insertBlock();
    cursor_.block().setUserState(state);
  }

  void add_fixed(const QString& text, const QTextCharFormat& format) {
    begin_block(unwrapped);
    cursor_.insertText(text, format);
    most_columns_ = std::max(most_columns_, text.size());
  }

  // `level`: 0 for the title.
  void add_heading(std::size_t level, const std::string& text) {
    constexpr double sizes[] = {1.6, 1.35, 1.1};
    QTextCharFormat format = plain_;
    QFont font = text_font_;
    font.setBold(true);
    if (font.pixelSize() > 0) {
      font.setPixelSize(int(sizes[level] * font.pixelSize()));
    } else {
      font.setPointSizeF(sizes[level] * font.pointSizeF());
    }
    format.setFont(font);
    if (level > 0) begin_block(0);
    begin_block(0);
    cursor_.insertText(text_of(text), format);
  }

  void add_words(const QString& text, bool bold = false) {
    QTextCharFormat format = plain_;
    format.setFontWeight(bold ? QFont::Bold : QFont::Normal);
    cursor_.insertText(text, format);
  }

  void add_findings(const analysis::Report& report, std::size_t level, const char* heading,
                    const std::vector<analysis::Finding>& findings, bool with_costs) {
    if (findings.empty()) return;
    add_heading(level, heading);
    for (const analysis::Finding& finding : findings) {
      const bool problem = finding.severity == analysis::Severity::problem;
      begin_block(0);
      add_words("•  ");
      if (finding.severity != analysis::Severity::info) add_words(problem ? "Problem: " : "Warning: ", true);
      add_words(text_of((with_costs ? analysis::reason_prefix(report, finding) : "") + finding.text));
    }
  }

  void add_tables(const std::vector<analysis::Table>& tables) {
    for (const analysis::Table& table : tables) {
      add_heading(2, table.title);
      add_table(table);
      if (table.note.empty()) continue;
      begin_block(0);
      add_words(text_of(table.note));
    }
  }

  void add_table(const analysis::Table& table) {
    std::vector<QStringList> rows(1);
    for (const std::string& column : table.columns) rows[0] << text_of(column);
    for (const auto& cells : table.rows) {
      QStringList& row = rows.emplace_back();
      for (const std::string& cell : cells) row << text_of(cell);
    }
    std::vector<qsizetype> widths(table.columns.size());
    for (const QStringList& row : rows) {
      for (std::size_t c = 0; c < widths.size(); ++c) widths[c] = std::max(widths[c], row.value(qsizetype(c)).size());
    }
    QTextCharFormat format = fixed_;
    format.setFontWeight(QFont::Bold);
    for (const QStringList& row : rows) {
      QString text;
      for (std::size_t c = 0; c < widths.size(); ++c) {
        const QString cell = row.value(qsizetype(c));
        text += (table.is_text(c) ? cell.leftJustified(widths[c]) : cell.rightJustified(widths[c])) + "   ";
      }
      while (text.endsWith(' ')) text.chop(1);
      add_fixed(text, format);
      format = fixed_;
    }
  }

  QTextCursor cursor_;
  QFont text_font_;
  QTextCharFormat plain_, fixed_;
  double column_width_ = 0;
  qsizetype most_columns_ = 0;
  bool first_ = true;
};

}  // namespace report_text

std::unique_ptr<QTextDocument> report_document(const analysis::Report& report, const QFont& font, QFont fixed) {
  auto document = std::make_unique<QTextDocument>();
  document->setUndoRedoEnabled(false);
  document->setDefaultFont(font);
  document->setDocumentMargin(8);
  auto* layout = new report_text::Layout(document.get());
  report_text::Writer writer(*document, font, fixed);
  writer.write(report);
  layout->set_widest(writer.widest());
  document->setDocumentLayout(layout);
  return document;
}

}  // namespace paceline::viewer
