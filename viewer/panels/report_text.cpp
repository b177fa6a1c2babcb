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

// The cells between the bars of a line of a table.
QStringList cells_of(const QString& line) {
  QStringList cells;
  QString cell;
  for (qsizetype i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) {
      cell += line[++i];
    } else if (line[i] == '|') {
      cells << cell.trimmed();
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  return cells;
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

  void write(const QStringList& lines) {
    for (qsizetype i = 0; i < lines.size(); ++i) {
      const QString& line = lines[i];
      if (line.startsWith("```")) {
        for (++i; i < lines.size() && !lines[i].startsWith("```"); ++i) add_fixed(lines[i], fixed_);
      } else if (line.startsWith('|')) {
        QStringList table;
        for (; i < lines.size() && lines[i].startsWith('|'); ++i) table << lines[i];
        --i;
        add_table(table);
      } else if (line.startsWith('#')) {
        add_heading(line);
      } else if (line.startsWith("- ")) {
        begin_block(0);
        add_words("•  " + line.mid(2));
      } else {
        begin_block(0);
        add_words(line);
      }
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

  void add_heading(const QString& line) {
    const auto level = line.indexOf(' ');
    QTextCharFormat format = plain_;
    QFont font = text_font_;
    font.setBold(true);
    constexpr double sizes[] = {1.6, 1.35, 1.1};
    const double size = sizes[std::clamp<qsizetype>(level - 1, 0, 2)];
    if (font.pixelSize() > 0) {
      font.setPixelSize(int(size * font.pixelSize()));
    } else {
      font.setPointSizeF(size * font.pointSizeF());
    }
    format.setFont(font);
    begin_block(0);
    cursor_.insertText(without_escapes(line.mid(level + 1)), format);
  }

  // Every second piece between double asterisks is bold.
  void add_words(const QString& text) {
    QTextCharFormat format = plain_;
    bool bold = false;
    for (const QString& piece : text.split("**")) {
      format.setFontWeight(bold ? QFont::Bold : QFont::Normal);
      cursor_.insertText(without_escapes(piece), format);
      bold = !bold;
    }
  }

  // The second line has the alignment of the columns.
  void add_table(const QStringList& lines) {
    std::vector<QStringList> rows;
    for (const QString& line : lines) rows.push_back(cells_of(line));
    if (rows.size() < 2) return;
    const QStringList alignment = rows[1];
    rows.erase(rows.begin() + 1);
    std::vector<qsizetype> widths;
    for (const QStringList& row : rows) {
      widths.resize(std::max<std::size_t>(widths.size(), std::size_t(row.size())));
      for (qsizetype c = 0; c < row.size(); ++c) {
        widths[std::size_t(c)] = std::max(widths[std::size_t(c)], row[c].size());
      }
    }
    QTextCharFormat format = fixed_;
    format.setFontWeight(QFont::Bold);
    for (const QStringList& row : rows) {
      QString text;
      for (qsizetype c = 0; c < row.size(); ++c) {
        const bool right = alignment.value(c).endsWith(':');
        text += right ? row[c].rightJustified(widths[std::size_t(c)]) : row[c].leftJustified(widths[std::size_t(c)]);
        text += "   ";
      }
      while (text.endsWith(' ')) text.chop(1);
      add_fixed(text, format);
      format = fixed_;
    }
  }

  static QString without_escapes(const QString& text) {
    QString out;
    for (qsizetype i = 0; i < text.size(); ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      out += text[i];
    }
    return out;
  }

  QTextCursor cursor_;
  QFont text_font_;
  QTextCharFormat plain_, fixed_;
  double column_width_ = 0;
  qsizetype most_columns_ = 0;
  bool first_ = true;
};

}  // namespace report_text

std::unique_ptr<QTextDocument> report_document(const std::string& markdown, const QFont& font, QFont fixed) {
  auto document = std::make_unique<QTextDocument>();
  document->setUndoRedoEnabled(false);
  document->setDefaultFont(font);
  document->setDocumentMargin(8);
  auto* layout = new report_text::Layout(document.get());
  report_text::Writer writer(*document, font, std::move(fixed));
  writer.write(QString::fromStdString(markdown).trimmed().split('\n'));
  layout->set_widest(writer.widest());
  document->setDocumentLayout(layout);
  return document;
}

}  // namespace paceline::viewer
