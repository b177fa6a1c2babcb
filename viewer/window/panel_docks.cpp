// SPDX-License-Identifier: Apache-2.0
#include "viewer/window/panel_docks.h"

#include <QPlainTextEdit>
#include <QTabBar>
#include <utility>

namespace paceline::viewer {

PanelDocks::PanelDocks(QWidget* central) {
  setWindowFlags(Qt::Widget);
  setDocumentMode(true);
  setDockOptions(AllowTabbedDocks | AllowNestedDocks | GroupedDragging);
  setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
  setCentralWidget(central);
}

QDockWidget* PanelDocks::add(const QString& title, QWidget* panel) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName(title);  // its name in a saved layout
  dock->setWidget(panel);
  return dock;
}

void PanelDocks::add_tab(const QString& title, QWidget* panel) {
  QDockWidget* dock = add(title, panel);
  dock->setTitleBarWidget(new QWidget(dock));  // its tab shows the title
  if (tabs_.empty()) {
    addDockWidget(Qt::BottomDockWidgetArea, dock);
  } else {
    tabifyDockWidget(tabs_.back(), dock);
  }
  tabs_.push_back(dock);
  tabs_.front()->raise();
}

void PanelDocks::add_right(const QString& title, QWidget* panel) {
  right_ = add(title, panel);
  right_->setTitleBarWidget(new QWidget(right_));  // the panel has a title of its own
  addDockWidget(Qt::BottomDockWidgetArea, right_, Qt::Horizontal);
}

void PanelDocks::bring(const QString& title) {
  auto* dock = findChild<QDockWidget*>(title, Qt::FindDirectChildrenOnly);
  if (dock == nullptr) return;
  dock->show();
  dock->raise();
  auto* editor = qobject_cast<QPlainTextEdit*>(dock->widget()->focusProxy());
  if (editor != nullptr && !editor->isReadOnly()) editor->setFocus();  // what there is to type into has the keyboard
}

void PanelDocks::set_shown(bool shown) {
  if (shown == hidden_layout_.isEmpty()) return;
  if (shown) {
    restoreState(std::exchange(hidden_layout_, {}));
  } else {
    hidden_layout_ = saveState();
    for (QDockWidget* dock : findChildren<QDockWidget*>(QString(), Qt::FindDirectChildrenOnly)) dock->hide();
    // Qt hides them later. Until then a drag of a tab, which belongs to no dock any more, would crash in Qt.
    for (QTabBar* bar : findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly)) bar->hide();
  }
}

void PanelDocks::restore(const QByteArray& layout) {
  sized_ = true;
  if (hidden_layout_.isEmpty()) {
    restoreState(layout);
  } else {
    hidden_layout_ = layout;
  }
}

void PanelDocks::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  for (QTabBar* bar : findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly)) {
    bar->setElideMode(Qt::ElideNone);  // a narrow window scrolls them
    bar->setUsesScrollButtons(true);
    QFont small = bar->font();
    small.setPixelSize(11);
    bar->setFont(small);
  }
  if (std::exchange(sized_, true) || tabs_.empty()) return;
  constexpr int width_of_tabs = 1035, width_beside_them = 565, height_of_docks = 250;
  resizeDocks({tabs_.front()}, {height_of_docks}, Qt::Vertical);
  if (right_ != nullptr) resizeDocks({tabs_.front(), right_}, {width_of_tabs, width_beside_them}, Qt::Horizontal);
}

}  // namespace paceline::viewer
