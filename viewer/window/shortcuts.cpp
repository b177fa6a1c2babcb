// SPDX-License-Identifier: Apache-2.0
#include "viewer/window/shortcuts.h"

#include <QDialogButtonBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QScreen>
#include <QScrollArea>
#include <QVBoxLayout>
#include <vector>

#include "viewer/session/actions.h"

namespace paceline::viewer {
namespace shortcut_sheet {

struct Section {
  QString html;  // rows of a table
  int lines = 0;
};

std::vector<Section> sections() {
  std::vector<Section> sections;
  const char* title = "";
  const auto table = action_table();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (title != QString(table[i].section)) {
      title = table[i].section;
      sections.push_back({QString("<tr><td colspan='2' style='padding-top:8px'><b>%1</b></td></tr>").arg(title), 2});
    }
    QStringList keys{keys_text(table[i])};
    for (; i + 1 < table.size() && table[i].help == QString(table[i + 1].help); ++i) keys << keys_text(table[i + 1]);
    sections.back().html += QString("<tr><td style='padding-right:16px; white-space:nowrap'>%1</td><td>%2</td></tr>")
                                .arg(keys.join(", ").toHtmlEscaped(), table[i].help);
    ++sections.back().lines;
  }
  return sections;
}

}  // namespace shortcut_sheet

// In columns, so that it fits a screen of 1080 lines.
ShortcutSheet::ShortcutSheet(QWidget* parent) : QDialog(parent) {
  constexpr int most_columns = 3, column_width = 590, title_height = 40;
  setWindowTitle("Keys and mouse moves");
  const auto sections = shortcut_sheet::sections();
  int lines = 0;
  for (const auto& section : sections) lines += section.lines;
  auto* columns = new QHBoxLayout;
  columns->setSpacing(32);
  std::size_t next = 0;
  int placed = 0;
  for (int column = 1; column <= most_columns && next < sections.size(); ++column) {
    QString html = "<table cellspacing='0' cellpadding='1'>";
    // A section goes to the column in which its middle is, if all columns are equally long.
    while (next < sections.size() &&
           (column == most_columns || placed + sections[next].lines / 2 <= lines * column / most_columns)) {
      html += sections[next].html;
      placed += sections[next++].lines;
    }
    auto* text = new QLabel(html + "</table>");
    text->setTextFormat(Qt::RichText);
    text->setWordWrap(true);
    text->setFixedSize(column_width, text->heightForWidth(column_width));
    columns->addWidget(text, 0, Qt::AlignTop);
  }
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* sheet = new QWidget;
  sheet->setLayout(columns);
  auto* area = new QScrollArea;  // for lower and narrower screens
  area->setFrameShape(QFrame::NoFrame);
  area->setWidgetResizable(true);
  area->setWidget(sheet);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(20, 12, 20, 14);
  layout->addWidget(area);
  layout->addWidget(buttons);
  const QMargins around = layout->contentsMargins();
  const QSize frame(around.left() + around.right(), around.top() + around.bottom() + layout->spacing());
  const QSize whole = sheet->sizeHint() + frame + QSize(0, buttons->sizeHint().height());
  resize(whole.boundedTo(screen()->availableSize() - QSize(0, title_height)));
}

}  // namespace paceline::viewer
