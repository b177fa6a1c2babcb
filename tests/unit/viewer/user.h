// SPDX-License-Identifier: Apache-2.0
// A user at a window with a run: presses keys, moves the mouse, answers dialogs. Every action of the table has a check
// that does what its line describes and looks at the effect.
#pragma once

#include <QAbstractButton>
#include <QApplication>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QKeySequence>
#include <QLineEdit>
#include <QMouseEvent>
#include <QTimer>
#include <QWheelEvent>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "tests/unit/viewer/page.h"
#include "viewer/timeline/timeline_widget.h"

namespace paceline::viewer {

class User : public Page {
 public:
  explicit User(std::shared_ptr<const viewer::Run> run = four_ranks(), QSize size = {1400, 900})
      : Page(std::move(run), size) {
    window.activateWindow();
    EXPECT_TRUE(QTest::qWaitForWindowActive(&window)) << "only an active window has keys";
    timeline = page->findChild<TimelineWidget*>();
    timeline->setFocus();
  }
  using Page::finish;
  using Page::first_named;
  using Page::open;
  using Page::page;
  using Page::state;
  using Page::window;

  TimeRange view() { return state().time.axis().visible(); }
  double length() { return view().length(); }
  const SliceRef& select(const char* name, std::size_t rank = 0) {
    chosen_ = first_named(name, rank);
    state().selection.select(chosen_);
    return chosen_;
  }
  std::string selected_name() {
    const auto selected = state().selection.slice();
    return selected ? page->run().trace.names[kind_of(page->run(), *selected).name] : std::string();
  }

  // Where the keyboard is; `keys` as in the table of actions, of which the first alternative is pressed.
  void press(const QString& keys) {
    QWidget* focus = QApplication::focusWidget();
    const QKeyCombination key = QKeySequence(keys.section(' ', 0, 0))[0];
    QTest::keyClick(focus != nullptr ? focus : &window, key.key(), key.keyboardModifiers());
    finish();
  }

  // Points of the timeline.
  QPoint at(double share, int y) { return {state().time.names_width() + int(share * state().time.axis().width()), y}; }
  int strip_y(std::size_t rank) { return timeline->geometry().y_of(timeline->rows().rows_of(rank).front().y) + 4; }
  QPoint middle_of(const SliceRef& slice) { return timeline->geometry().box_of(slice)->center(); }
  void click(QPoint point, Qt::KeyboardModifiers held = {}) {
    QTest::mouseClick(timeline->viewport(), Qt::LeftButton, held, point);
    finish();
  }
  void drag(QPoint from, QPoint to, Qt::KeyboardModifiers held = {}) {
    QWidget* widget = timeline->viewport();
    QTest::mousePress(widget, Qt::LeftButton, held, from);
    for (const int quarter : {1, 2, 3, 4}) {
      const QPointF point(from + (to - from) * quarter / 4);
      QMouseEvent move(QEvent::MouseMove, point, widget->mapToGlobal(point), Qt::NoButton, Qt::LeftButton, held);
      QCoreApplication::sendEvent(widget, &move);
    }
    QTest::mouseRelease(widget, Qt::LeftButton, held, to);
    finish();
  }
  void turn_wheel(QPoint point, int steps, Qt::KeyboardModifiers held = {}) {
    QWidget* widget = timeline->viewport();
    QWheelEvent event(point, widget->mapToGlobal(QPointF(point)), {}, {0, 120 * steps}, Qt::NoButton, held,
                      Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(widget, &event);
    finish();
  }

  // Answers the next dialog of this kind, which opens within the next action.
  template <class Dialog>
  void answer(std::function<void(Dialog&)> how) {
    auto* waiting = new QTimer(&window);
    QObject::connect(waiting, &QTimer::timeout, waiting, [waiting, how] {
      auto* dialog = dynamic_cast<Dialog*>(QApplication::activeModalWidget());
      if (dialog == nullptr) return;
      waiting->stop();
      waiting->deleteLater();
      how(*dialog);
      EXPECT_FALSE(dialog->isVisible()) << "the answer is not accepted";
      if (dialog->isVisible()) dialog->reject();
    });
    waiting->start(5);
  }
  // Enters the name in the next dialog for files, and accepts it.
  void choose(const QString& path) {
    answer<QFileDialog>([path](QFileDialog& dialog) {
      dialog.findChild<QLineEdit*>("fileNameEdit")->setText(path);
      auto* buttons = dialog.findChild<QDialogButtonBox*>();
      for (QAbstractButton* button : buttons->buttons()) {
        if (buttons->buttonRole(button) == QDialogButtonBox::AcceptRole) return button->click();
      }
    });
  }

  TimelineWidget* timeline;

 private:
  void TestBody() override {}  // a test has users

  SliceRef chosen_;
};

// By the keys of the action, as they stand in the table. A check does what the table describes.
using ActionChecks = std::map<std::string, void (*)(const QString& keys)>;

const ActionChecks& checks_of_moves();   // the timeline: time and rows
const ActionChecks& checks_of_slices();  // the timeline: selecting
const ActionChecks& checks_of_mouse();
const ActionChecks& checks_of_files();  // runs, exports, dialogs

}  // namespace paceline::viewer
