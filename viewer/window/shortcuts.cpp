#include "viewer/window/shortcuts.h"

#include <QDialogButtonBox>
#include <QLabel>
#include <QVBoxLayout>

namespace paceline::viewer {
namespace {

struct Entry {
  const char *keys, *does;
};

// Entries without keys are headings.
constexpr Entry entries[] = {
    {"", "Move"},
    {"Wheel", "zoom where the pointer is"},
    {"Ctrl + wheel", "zoom in fine steps"},
    {"Shift + wheel, drag", "move through time"},
    {"Alt + wheel, wheel over the names", "scroll the rows"},
    {"W S", "zoom in and out at the pointer"},
    {"A D", "earlier, later"},
    {"Page up, page down", "scroll the rows"},
    {"Home, End", "begin and end of the run"},
    {"F", "show the whole run"},
    {"[ ]", "previous and next iteration"},
    {"Backspace", "back to the view before"},
    {"", "Select and measure"},
    {"Click", "select a slice"},
    {"Double click, Enter", "zoom to a slice or a phase"},
    {"Shift + drag", "measure; the panel shows the phases of that stretch"},
    {"Z", "zoom to what is selected"},
    {"← →", "previous and next slice of the same level"},
    {"↑ ↓", "the slice around, the first slice inside"},
    {"Esc", "select nothing"},
    {"", "Find and show"},
    {"Ctrl + F", "find by name in the whole run"},
    {"Enter, Shift + Enter", "next and previous hit"},
    {"Click on a rank's name", "fold and unfold its tracks"},
    {"Ctrl + E, Ctrl + Shift + E", "unfold and fold all ranks"},
    {"Click on \"CPU time\"", "unfold and fold a rank's counters"},
    {"Ctrl + U, Ctrl + Shift + U", "unfold and fold all counters"},
    {"Ctrl + O", "open a run"},
    {"?", "this sheet"},
};

}  // namespace

ShortcutSheet::ShortcutSheet(QWidget* parent) : QDialog(parent) {
  setWindowTitle("Keys and mouse moves");
  QString html = "<table cellspacing='0' cellpadding='3'>";
  for (const Entry& entry : entries) {
    const QString keys = QString::fromUtf8(entry.keys).toHtmlEscaped(), does = QString::fromUtf8(entry.does);
    html += keys.isEmpty() ? QString("<tr><td colspan='2' style='padding-top:10px'><b>%1</b></td></tr>").arg(does)
                           : QString("<tr><td style='padding-right:24px'>%1</td><td>%2</td></tr>").arg(keys, does);
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
