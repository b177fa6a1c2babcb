// Random input to a window with a run: nothing crashes, and the view stays within the run. The seed and the number of
// actions are fixed; PACELINE_MONKEY_SEED and PACELINE_MONKEY_SECONDS make another and a longer run.
#include <QApplication>
#include <QDialog>
#include <QElapsedTimer>
#include <QFileDialog>
#include <QMenu>
#include <QTimer>
#include <QWheelEvent>
#include <cstdlib>
#include <random>

#include "tests/unit/viewer/page.h"
#include "viewer/session/actions.h"
#include "viewer/window/command_palette.h"

namespace paceline::viewer {
namespace {

class Monkey : public Page {
 protected:
  explicit Monkey(std::uint64_t seed) : random_(seed) {}
  Monkey() : Monkey(seed()) {}

  static std::uint64_t seed() {
    const char* text = std::getenv("PACELINE_MONKEY_SEED");
    return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
  }
  int below(int end) { return std::uniform_int_distribution(0, end - 1)(random_); }
  Qt::KeyboardModifiers modifiers() {
    constexpr Qt::KeyboardModifier all[] = {Qt::NoModifier, Qt::NoModifier, Qt::ShiftModifier, Qt::ControlModifier};
    return all[below(4)];
  }

  // A widget that can be seen, and a point in it.
  std::pair<QWidget*, QPoint> somewhere() {
    QWidget* within = QApplication::activeModalWidget() ? QApplication::activeModalWidget() : &window;
    QList<QWidget*> seen{within};
    for (QWidget* widget : within->findChildren<QWidget*>()) {
      if (widget->isVisible() && widget->width() > 0 && widget->height() > 0) seen << widget;
    }
    QWidget* widget = seen[below(int(seen.size()))];
    return {widget, {below(std::max(1, widget->width())), below(std::max(1, widget->height()))}};
  }

  void click() {
    const auto [widget, at] = somewhere();
    const Qt::KeyboardModifiers held = modifiers();
    if (below(4) == 0) return QTest::mouseDClick(widget, Qt::LeftButton, held, at);
    QTest::mousePress(widget, Qt::LeftButton, held, at);
    if (below(2) == 0) {
      const QPoint to = at + QPoint(below(400) - 200, below(200) - 100);
      QMouseEvent move(QEvent::MouseMove, QPointF(to), widget->mapToGlobal(QPointF(to)), Qt::NoButton, Qt::LeftButton,
                       held);
      QCoreApplication::sendEvent(widget, &move);
    }
    QTest::mouseRelease(widget, Qt::LeftButton, held, at);
  }

  void turn_wheel() {
    const auto [widget, at] = somewhere();
    QWheelEvent event(at, widget->mapToGlobal(QPointF(at)), {}, {0, below(2) == 0 ? 120 : -120}, Qt::NoButton,
                      modifiers(), Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(widget, &event);
  }

  void press_key() {
    constexpr Qt::Key keys[] = {Qt::Key_Left, Qt::Key_Right,  Qt::Key_Up,    Qt::Key_Down,   Qt::Key_PageUp,
                                Qt::Key_Tab,  Qt::Key_Return, Qt::Key_Space, Qt::Key_Escape, Qt::Key_PageDown};
    QWidget* focus = QApplication::focusWidget() ? QApplication::focusWidget() : &window;
    if (below(3) > 0) return QTest::keyClick(focus, keys[below(int(std::size(keys)))], modifiers());
    QTest::keyClick(focus, char('a' + below(26)));
  }

  // Everything in the table but what would leave the run or wait for a person.
  void act() {
    const auto table = action_table();
    const Action& action = table[std::size_t(below(int(table.size())))];
    if (action.view != nullptr) action.view(state());
  }

  void close_dialogs() {
    for (QWidget* widget : QApplication::topLevelWidgets()) {
      if (widget != &window && widget->isVisible() && below(3) == 0) widget->close();
    }
  }

  void check() {
    const TimeRange view = state().axis().visible(), whole = state().axis().whole();
    ASSERT_GE(view.begin_ns, whole.begin_ns);
    ASSERT_LE(view.end_ns, whole.end_ns);
    ASSERT_GT(view.length(), 0);
    if (const auto selected = state().selected()) {
      ASSERT_LT(selected->slice, slices_of(page->run(), *selected).size());
    }
  }

  std::mt19937_64 random_;
};

TEST_F(Monkey, DoesNotCrashTheWindow) {
  constexpr int actions = 400;
  const char* text = std::getenv("PACELINE_MONKEY_SECONDS");
  const qint64 most_ms = text == nullptr ? 0 : std::strtoll(text, nullptr, 10) * 1000;
  QAction* quit = nullptr;  // the keys of these would end the test
  for (QAction* entry : window.findChildren<QAction*>()) {
    if (entry->text().startsWith("&Close") || entry->text().startsWith("Open") || entry->text().startsWith("&Open") ||
        entry->text().startsWith("Export") || entry->text().startsWith("E&xport") ||
        entry->text().startsWith("&Save") || entry->text().startsWith("Co&mpare")) {
      entry->setEnabled(false);
    }
    if (entry->text() == "&Quit") quit = entry;
  }
  ASSERT_NE(quit, nullptr);
  quit->setEnabled(false);
  QElapsedTimer clock;
  clock.start();
  // Dialogs have event loops of their own; a timer acts in them, too.
  QTimer in_dialogs;
  QObject::connect(&in_dialogs, &QTimer::timeout, [&] {
    if (QWidget* dialog = QApplication::activeModalWidget()) {
      // What the palette chooses may close the run, and a dialog for files may write one.
      if (qobject_cast<CommandPalette*>(dialog) == nullptr && qobject_cast<QFileDialog*>(dialog) == nullptr) click();
      if (below(5) == 0) dialog->close();
    }
    if (QWidget* menu = QApplication::activePopupWidget()) menu->close();
  });
  in_dialogs.start(5);
  for (int i = 0; i < actions || clock.elapsed() < most_ms; ++i) {
    switch (below(5)) {
      case 0:
        click();
        break;
      case 1:
        turn_wheel();
        break;
      case 2:
        press_key();
        break;
      case 3:
        act();
        break;
      default:
        window.resize(500 + below(1200), 400 + below(700));
    }
    if (below(8) == 0) QCoreApplication::processEvents();
    close_dialogs();
    ASSERT_NO_FATAL_FAILURE(check()) << "action " << i << " of seed " << seed();
    ASSERT_EQ(window.current_page(), page);
  }
  finish();
}

}  // namespace
}  // namespace paceline::viewer
