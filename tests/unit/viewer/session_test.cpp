// SPDX-License-Identifier: Apache-2.0
// The table of actions, and the work beside the UI thread.
#include <gtest/gtest.h>

#include <QKeySequence>
#include <QSignalSpy>
#include <QStringList>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "viewer/session/actions.h"
#include "viewer/session/background.h"
#include "viewer/session/run.h"

namespace paceline::viewer {
namespace {

TEST(ClockError, IsNotKnownWhereTheToolGivesNoBound) {
  const auto text_of = [](int ranks, const char* format, double error_ns) {
    viewer::Run run;
    for (int rank = 0; rank < ranks; ++rank) run.trace.ranks.emplace_back().format = format;
    run.clock_error_ns = error_ns;
    return clock_error_text(run);
  };
  EXPECT_EQ(text_of(1, "pace", 1900), "");
  EXPECT_EQ(text_of(2, "pace", 0), "");
  EXPECT_EQ(text_of(2, "pace", 1900), "at most 1.900 µs");
  EXPECT_EQ(text_of(2, "pace", 32e9), "at most 32.00 s");
  EXPECT_EQ(text_of(2, "otf2", 1900), "at most 1.900 µs");
  EXPECT_EQ(text_of(2, "otf2", 16e9), "not known");
}

TEST(Actions, HaveDifferentKeysAndAHelpText) {
  QStringList known;
  for (const Action& action : action_table()) {
    EXPECT_STRNE(action.help, "");
    EXPECT_STRNE(action.keys, "") << action.help;
    const bool by_mouse = action.input == Action::Input::mouse;
    EXPECT_EQ(by_mouse, action.view == nullptr && action.window == WindowAction::none) << action.help;
    if (by_mouse) continue;
    for (const QString& key : QString(action.keys).split(' ')) {
      ASSERT_EQ(QKeySequence(key).count(), 1) << key.toStdString();
      const QString name = QKeySequence(key).toString();
      EXPECT_FALSE(known.contains(name)) << name.toStdString();
      known << name;
    }
  }
}

TEST(Actions, OfTheTimelineAreFoundByTheirKey) {
  for (const Action& action : action_table()) {
    if (action.input != Action::Input::timeline) continue;
    for (const QString& key : QString(action.keys).split(' ')) {
      EXPECT_EQ(timeline_action(QKeySequence(key)[0]), &action) << key.toStdString();
    }
  }
  EXPECT_EQ(timeline_action(QKeyCombination(Qt::Key_F35)), nullptr);
  EXPECT_EQ(timeline_action(Qt::AltModifier | Qt::Key_BracketRight),
            timeline_action(QKeyCombination(Qt::Key_BracketRight)))
      << "keyboards on which a bracket needs a modifier";
  EXPECT_NE(timeline_action(Qt::ShiftModifier | Qt::Key_Down), timeline_action(QKeyCombination(Qt::Key_Down)));
}

TEST(Background, DeliversOnlyTheLatestAnswer) {
  Background background;
  Task task(background);
  std::vector<int> delivered;
  for (int question = 0; question < 50; ++question) {
    task.start([question](const Ticket&) { return question; }, [&](int answer) { delivered.push_back(answer); });
    EXPECT_TRUE(task.busy());
  }
  background.finish();
  EXPECT_EQ(delivered, std::vector{49});
  EXPECT_FALSE(task.busy());
}

TEST(Background, CancelsTheWorkOfATaskThatIsGone) {
  Background background;
  std::atomic<bool> started = false, stopped = false;
  bool delivered = false;
  {
    Task task(background);
    task.start(
        [&](const Ticket& ticket) {
          started = true;
          while (!ticket.cancelled()) std::this_thread::yield();
          stopped = true;
          return 0;
        },
        [&](int) { delivered = true; });
    while (!started) std::this_thread::yield();
  }
  background.finish();
  EXPECT_TRUE(stopped);
  EXPECT_FALSE(delivered);
}

TEST(Background, StopsItsWorkersWhenItIsClosed) {
  std::atomic<bool> started = false;
  std::optional<Background> background(std::in_place);
  Task task(*background);
  task.start(
      [&](const Ticket& ticket) {
        started = true;
        while (!ticket.cancelled()) std::this_thread::yield();
        return 0;
      },
      [](int) { ADD_FAILURE() << "delivered after the end"; });
  while (!started) std::this_thread::yield();
  background.reset();
}

TEST(Background, ReportsAnException) {
  Background background;
  Task task(background);
  QSignalSpy failed(&background, &Background::failed);
  task.start([](const Ticket&) -> int { throw std::runtime_error("no memory"); },
             [](int) { ADD_FAILURE() << "there is no answer"; });
  background.finish();
  ASSERT_EQ(failed.count(), 1);
  EXPECT_EQ(failed[0][0].toString(), "no memory");
}

}  // namespace
}  // namespace paceline::viewer
