// SPDX-License-Identifier: Apache-2.0
// Whether a panel is in sight. A dock behind another tab counts as visible for Qt, but its place is outside the window.
#pragma once

#include <QDockWidget>
#include <QWidget>
#include <functional>
#include <utility>

namespace paceline::viewer {

// Member of a panel, which reports its showEvent(). Calls `came` whenever the panel may have come into sight.
class Sight {
 public:
  Sight(QWidget& panel, std::function<void()> came) : panel_(panel), came_(std::move(came)) {}

  bool in_sight() const {
    const QRect place(panel_.mapTo(panel_.window(), QPoint(0, 0)), panel_.size());
    return panel_.isVisible() && panel_.window()->rect().intersects(place);
  }

  void shown() {
    const auto look = [this] {
      if (in_sight()) came_();
    };
    if (dock_ == nullptr) {
      for (QWidget* outer = panel_.parentWidget(); outer != nullptr && dock_ == nullptr;
           outer = outer->parentWidget()) {
        dock_ = qobject_cast<QDockWidget*>(outer);
      }
      if (dock_ == nullptr) return look();
      QObject::connect(dock_, &QDockWidget::visibilityChanged, &panel_, look);
    }
    QMetaObject::invokeMethod(&panel_, look, Qt::QueuedConnection);  // the dock gets its place after it is shown
  }

 private:
  QWidget& panel_;
  std::function<void()> came_;
  QDockWidget* dock_ = nullptr;  // that the panel is in
};

}  // namespace paceline::viewer
