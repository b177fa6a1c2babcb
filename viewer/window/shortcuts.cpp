#include "viewer/window/shortcuts.h"

#include <QDialogButtonBox>
#include <QLabel>
#include <QVBoxLayout>

#include "viewer/session/actions.h"

namespace paceline::viewer {

ShortcutSheet::ShortcutSheet(QWidget* parent) : QDialog(parent) {
  setWindowTitle("Keys and mouse moves");
  QString html = "<table cellspacing='0' cellpadding='2'>";
  const char* section = "";
  const auto table = action_table();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (section != QString(table[i].section)) {
      section = table[i].section;
      html += QString("<tr><td colspan='2' style='padding-top:8px'><b>%1</b></td></tr>").arg(section);
    }
    QStringList keys{keys_text(table[i])};
    for (; i + 1 < table.size() && table[i].help == QString(table[i + 1].help); ++i) keys << keys_text(table[i + 1]);
    html += QString("<tr><td style='padding-right:24px'>%1</td><td>%2</td></tr>")
                .arg(keys.join(", ").toHtmlEscaped(), table[i].help);
  }
  auto* text = new QLabel(html + "</table>");
  text->setTextFormat(Qt::RichText);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(20, 12, 20, 14);
  layout->addWidget(text);
  layout->addWidget(buttons);
}

}  // namespace paceline::viewer
