// SPDX-License-Identifier: Apache-2.0
#include "viewer/window/shortcuts.h"

#include <QDialogButtonBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QScreen>
#include <QScrollArea>
#include <QVBoxLayout>
#include <memory>
#include <vector>

#include "viewer/drawing/labels.h"
#include "viewer/session/actions.h"

namespace paceline::viewer {
namespace shortcut_sheet {

constexpr int columns = 3, column_width = 424, keys_width = 122;

// Of a table: one for the keys with the same effect, below the title of its section if it is the first.
std::vector<QString> rows() {
  std::vector<QString> rows;
  const char* title = "";
  const auto table = action_table();
  for (std::size_t i = 0; i < table.size(); ++i) {
    QString above;
    if (title != QString(table[i].section)) {
      title = table[i].section;
      above = QString("<tr><td colspan='2' style='padding-top:6px'><b>%1</b></td></tr>").arg(title);
    }
    QStringList keys{keys_text(table[i])};
    for (; i + 1 < table.size() && table[i].help == QString(table[i + 1].help); ++i) keys << keys_text(table[i + 1]);
    rows.push_back(above + QString("<tr><td width='%1' style='padding-right:8px'>%2</td><td>%3</td></tr>")
                               .arg(keys_width)
                               .arg(keys.join(", ").toHtmlEscaped(), table[i].help));
  }
  return rows;
}

QLabel* column_of(const QString& rows) {
  auto* text = new QLabel("<table cellspacing='0' cellpadding='0'>" + rows + "</table>");
  text->setFont(with_size(text->font(), 12));
  text->setTextFormat(Qt::RichText);
  text->setWordWrap(true);
  text->setFixedSize(column_width, text->heightForWidth(column_width));
  return text;
}

}  // namespace shortcut_sheet

// In columns of one height, so that it fits a screen of 1366 × 768 pixels.
ShortcutSheet::ShortcutSheet(QWidget* parent) : QDialog(parent) {
  using namespace shortcut_sheet;
  constexpr int title_height = 40;
  setWindowTitle("Keys and mouse moves");
  const std::vector<QString> rows = shortcut_sheet::rows();
  std::vector<int> end_y;  // of each row, below each other
  for (const QString& row : rows) {
    const std::unique_ptr<QLabel> alone(column_of(row));
    end_y.push_back(alone->height() + (end_y.empty() ? 0 : end_y.back()));
  }
  auto* layout_of_columns = new QHBoxLayout;
  layout_of_columns->setSpacing(16);
  std::size_t next = 0;
  for (int column = 1; column <= columns; ++column) {
    QString text;
    while (next < rows.size() && end_y[next] <= end_y.back() * column / columns) text += rows[next++];
    layout_of_columns->addWidget(column_of(text), 0, Qt::AlignTop);
  }
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* sheet = new QWidget;
  sheet->setLayout(layout_of_columns);
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
