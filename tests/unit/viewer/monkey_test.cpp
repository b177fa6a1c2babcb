// SPDX-License-Identifier: Apache-2.0
// Random input to a window with a run: nothing crashes, and the view stays within the run. The seeds and the number of
// actions are fixed; PACELINE_MONKEY_SEED and PACELINE_MONKEY_SECONDS choose another seed and a longer time.
#include <QApplication>
#include <QDialog>
#include <QElapsedTimer>
#include <QFileDialog>
#include <QMenu>
#include <QPointer>
#include <QTabBar>
#include <QTimer>
#include <QWheelEvent>
#include <cstdlib>
#include <iostream>
#include <random>
#include <vector>

#include "analysis/trace/builder.h"
#include "tests/unit/viewer/page.h"
#include "viewer/session/actions.h"
#include "viewer/window/command_palette.h"

namespace paceline::viewer {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Each seed is a test of its own, so that ctest runs them side by side.
std::vector<std::uint64_t> seeds() {
  const std::uint64_t wanted = number_from("PACELINE_MONKEY_SEED", 0);
  return wanted > 0 ? std::vector{wanted} : std::vector<std::uint64_t>{1, 3};
}

// A run with whatever a trace may have: a call of a kernel, marks, messages, counters, and time that was not recorded.
std::shared_ptr<const viewer::Run> colourful_run() {
  static const auto run = [] {
    analysis::TraceBuilder builder;
    for (int number = 0; number < 3; ++number) {
      analysis::RankBuilder& rank = builder.add_rank(number, 3);
      analysis::TrackBuilder& main = rank.add_main_thread();
      analysis::TrackBuilder& stream = rank.add_track(analysis::TrackKind::stream, "GPU 0 stream 7");
      analysis::TrackBuilder& memory = rank.add_counter("memory", "bytes", "", false);
      for (int i = 0; i < 40; ++i) {
        const std::int64_t start = i * 10'000'000 + number * 1'000'000;
        main.push(start, "iteration", "paceline.trainer", "iteration");
        main.add_slice(start + 100'000, start + 200'000, "cudaLaunchKernel", "cuda", "launch");
        main.argument("correlation", 1 + i);
        stream.add_slice(start + 500'000, start + 4'000'000, "sgemm_128x64", "cuda", "kernel");
        stream.argument("correlation", 1 + i);
        main.add_mark(start + 5'000'000, "mark", "paceline.trainer", "mark");
        main.pop(start + 9'000'000);
        memory.add_sample(start, 1e9 + 1e7 * (i % 7));
      }
    }
    return index_run("colourful", builder.finish());
  }();
  return run;
}

std::shared_ptr<const viewer::Run> run_for(std::uint64_t seed) {
  static const auto twenty =
      index_run("twenty", simulate({.ranks = 20, .iterations = 8, .layers = true, .hosts = 3, .slow_rank = 7}));
  return seed % 3 == 1 ? four_ranks() : seed % 3 == 2 ? twenty : colourful_run();
}

class Monkey : public Page, public testing::WithParamInterface<std::uint64_t> {
 protected:
  Monkey() : Page(run_for(GetParam())), random_(GetParam()) {}

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
    const auto [chosen, at] = somewhere();
    const QPointer<QWidget> widget(chosen);
    // Input reaches a window only after it is laid out. Qt 6.4 crashes if a tab of docks is dragged that are gone.
    if (qobject_cast<QTabBar*>(chosen) != nullptr) QCoreApplication::processEvents();
    if (widget == nullptr || !widget->isVisible()) return;
    const Qt::KeyboardModifiers held = modifiers();
    if (below(4) == 0) return QTest::mouseDClick(widget, Qt::LeftButton, held, at);
    QTest::mousePress(widget, Qt::LeftButton, held, at);
    if (widget != nullptr && below(2) == 0) {
      const QPoint to = at + QPoint(below(400) - 200, below(200) - 100);
      QMouseEvent move(QEvent::MouseMove, QPointF(to), widget->mapToGlobal(QPointF(to)), Qt::NoButton, Qt::LeftButton,
                       held);
      QCoreApplication::sendEvent(widget, &move);
    }
    if (widget != nullptr) QTest::mouseRelease(widget, Qt::LeftButton, held, at);
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
    const TimeRange view = state().time.axis().visible(), whole = state().time.axis().whole();
    ASSERT_GE(view.begin_ns, whole.begin_ns);
    ASSERT_LE(view.end_ns, whole.end_ns);
    ASSERT_GT(view.length(), 0);
    if (const auto selected = state().selection.slice()) {
      ASSERT_LT(selected->slice, slices_of(page->run(), *selected).size());
    }
  }

  std::mt19937_64 random_;
};

TEST_P(Monkey, DoesNotCrashTheWindow) {
  constexpr int actions = 1000;
  const auto most_ms = 1000 * static_cast<qint64>(number_from("PACELINE_MONKEY_SECONDS", 0));
  std::cout << "seed " << GetParam() << std::endl;  // seen even if the next line crashes
  QAction* quit = nullptr;                          // the keys of these would end the test
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
    ASSERT_NO_FATAL_FAILURE(check()) << "action " << i;
    ASSERT_EQ(window.current_page(), page);
  }
  finish();
}

INSTANTIATE_TEST_SUITE_P(Of, Monkey, testing::ValuesIn(seeds()));

}  // namespace
}  // namespace paceline::viewer
