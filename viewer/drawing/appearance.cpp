// SPDX-License-Identifier: Apache-2.0
#include "viewer/drawing/appearance.h"

#include <QPalette>
#include <QProxyStyle>

namespace paceline::viewer {
namespace {

QPalette palette_of(bool dark) {
  const auto pick = [&](QRgb light, QRgb night) { return QColor(dark ? night : light); };
  QPalette palette;
  palette.setColor(QPalette::Window, pick(0xfff5f6f8, 0xff1f242a));
  palette.setColor(QPalette::WindowText, pick(0xff1f2733, 0xffe6e9ee));
  palette.setColor(QPalette::Base, pick(0xffffffff, 0xff16191d));
  palette.setColor(QPalette::AlternateBase, pick(0xfff8f9fb, 0xff1a1e23));
  palette.setColor(QPalette::Text, pick(0xff1f2733, 0xffe6e9ee));
  palette.setColor(QPalette::PlaceholderText, pick(0xff6b7482, 0xff8c96a4));
  palette.setColor(QPalette::Button, pick(0xfff2f4f7, 0xff262c33));
  palette.setColor(QPalette::ButtonText, pick(0xff1f2733, 0xffe6e9ee));
  palette.setColor(QPalette::ToolTipBase, pick(0xffffffff, 0xff2b3138));
  palette.setColor(QPalette::ToolTipText, pick(0xff1f2733, 0xffe6e9ee));
  palette.setColor(QPalette::Highlight, pick(0xff2563a8, 0xff3272b8));
  palette.setColor(QPalette::HighlightedText, QColor(0xffffffff));
  palette.setColor(QPalette::Light, pick(0xffffffff, 0xff3a424c));
  palette.setColor(QPalette::Midlight, pick(0xffeef0f3, 0xff333a43));
  palette.setColor(QPalette::Mid, pick(0xffc9ced6, 0xff2b3138));
  palette.setColor(QPalette::Dark, pick(0xffa9b0ba, 0xff111418));
  palette.setColor(QPalette::Shadow, pick(0xff6b7482, 0xff000000));
  // Also the colour of files that are left out, with the reasons: it has to be readable.
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
    palette.setColor(QPalette::Disabled, role, pick(0xff5b6472, 0xffa8b0bc));
  }
  return palette;
}

// Less room beside the titles of tabs, so that those of all panels fit into a window of 1366 pixels.
class NarrowTabs : public QProxyStyle {
 public:
  explicit NarrowTabs(const QString& name) : QProxyStyle(name) { setObjectName(name); }
  int pixelMetric(PixelMetric metric, const QStyleOption* option, const QWidget* widget) const override {
    return metric == PM_TabBarTabHSpace ? 10 : QProxyStyle::pixelMetric(metric, option, widget);
  }
};

}  // namespace

void apply_theme(const QString& theme) {
  static const QString desktop_style = QApplication::style()->objectName();
  static const QPalette desktop_palette = QApplication::palette();
  if (theme != "light" && theme != "dark") {
    QApplication::setStyle(new NarrowTabs(desktop_style));
    return QApplication::setPalette(desktop_palette);
  }
  QApplication::setStyle(new NarrowTabs("fusion"));
  QApplication::setPalette(palette_of(theme == "dark"));
}

}  // namespace paceline::viewer
