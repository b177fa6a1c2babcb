// SPDX-License-Identifier: Apache-2.0
// "Go to": what a text may mean, and where it leads.
#include <gtest/gtest.h>

#include <QLabel>
#include <QListWidget>
#include <cmath>

#include "tests/unit/viewer/user.h"
#include "viewer/panels/search.h"
#include "viewer/session/destination.h"
#include "viewer/window/go_to_dialog.h"

namespace paceline::viewer {
namespace {

QStringList meanings(const QString& text, bool names = true) {
  QStringList texts;
  for (const Destination& one : destinations(*four_ranks(), text, names).found) texts << one.text;
  return texts;
}

QString missing(const QString& text, bool names = true) { return destinations(*four_ranks(), text, names).missing; }

// Types the text into the dialog, and presses the key there.
void go(User& user, const QString& text, Qt::Key key = Qt::Key_Return) {
  user.answer<GoToDialog>([=](GoToDialog& dialog) {
    QTest::keyClicks(dialog.findChild<QLineEdit*>(), text);
    QTest::keyClick(dialog.findChild<QLineEdit*>(), key);
  });
  user.press("Ctrl+G");
}

TEST(GoTo, CompletesTimesIterationsRanksAndNames) {
  EXPECT_EQ(meanings("iteration 5"), QStringList{"Iteration 5"});
  EXPECT_EQ(meanings("It5"), QStringList{"Iteration 5"});
  EXPECT_EQ(meanings("rank 3"), QStringList{"Rank 3"});
  EXPECT_EQ(meanings("rank", false), (QStringList{"Rank 0", "Rank 1", "Rank 2", "Rank 3"}));
  EXPECT_EQ(meanings("300 ms"), QStringList{"Time 300 ms"});
  EXPECT_EQ(meanings("0.3"), QStringList{"Time 0.3 s"});
  EXPECT_EQ(meanings("3", false), (QStringList{"Iteration 3", "Rank 3"})) << "3 s is after the end";
  EXPECT_EQ(meanings("0", false), (QStringList{"Iteration 0", "Rank 0", "Time 0 s"}));
  EXPECT_EQ(meanings("backward").front(), "backward");
  const QStringList part = meanings("ward");
  EXPECT_EQ(part.front(), "All names with \"ward\"");
  EXPECT_TRUE(part.contains("forward") && part.contains("backward")) << part.join(", ").toStdString();
  EXPECT_TRUE(meanings("").isEmpty());
  EXPECT_TRUE(meanings("backward", false).isEmpty());
}

TEST(GoTo, SaysWhyNothingIsFound) {
  EXPECT_EQ(missing(""), "");
  EXPECT_EQ(missing("iteration 99"), "The run has the iterations 0 to 7.");
  EXPECT_EQ(missing("rank 4"), "The run has the ranks 0 to 3.");
  EXPECT_TRUE(missing("50 s").startsWith("The run lasts from ")) << missing("50 s").toStdString();
  EXPECT_EQ(missing("-1 ms"), missing("50 s"));
  EXPECT_EQ(missing("no such thing"), "No slice has a name with \"no such thing\".");
  EXPECT_EQ(missing("nonsense", false), "\"nonsense\" is no time, iteration or rank.");
}

TEST(GoTo, ShowsATimeWithAMarkThatEscapeRemoves) {
  User user;
  user.state().time.show_all();
  go(user, "300 ms");
  EXPECT_NEAR((user.view().begin_ns + user.view().end_ns) / 2, 3e8, 1);
  EXPECT_EQ(user.state().time.marked_time(), 3e8);
  const auto marked = [&] {
    const QImage image = user.timeline->viewport()->grab().toImage();
    const int x = user.timeline->geometry().x_of(3e8);
    int pixels = 0;
    for (int y = 0; y < image.height(); ++y) {
      pixels += image.pixel(x, y) == Theme::of(user.timeline->palette()).selection;
    }
    return pixels == image.height();
  };
  EXPECT_TRUE(marked());
  user.window.activateWindow();
  ASSERT_TRUE(QTest::qWaitForWindowActive(&user.window));
  EXPECT_EQ(QApplication::focusWidget(), user.timeline) << "which has the keys again";
  user.press("Esc");
  EXPECT_FALSE(user.state().time.marked_time());
  EXPECT_FALSE(marked());
}

TEST(GoTo, UnfoldsARank) {
  User user;
  user.state().arrangement.set_all_collapsed(true);
  go(user, "rank 2");
  EXPECT_FALSE(user.state().arrangement.collapsed(2));
  EXPECT_TRUE(user.state().arrangement.collapsed(1));
}

TEST(GoTo, SearchesForANameAndGoesToItsFirstSlice) {
  User user;
  go(user, "optimizer");
  EXPECT_EQ(user.selected_name().substr(0, 9), "optimizer");
  EXPECT_GT(user.page->findChild<SearchBar*>()->hits().found.size(), 1u);
}

TEST(GoTo, TakesTheEntryThatTheArrowKeysChose) {
  User user;
  user.answer<GoToDialog>([](GoToDialog& dialog) {
    auto* field = dialog.findChild<QLineEdit*>();
    QTest::keyClicks(field, "1");
    QTest::keyClick(field, Qt::Key_Down);
    EXPECT_EQ(dialog.findChild<QListWidget*>()->currentItem()->text(), "Rank 1");
    QTest::keyClick(field, Qt::Key_Return);
  });
  user.state().arrangement.set_all_collapsed(true);
  user.press("Ctrl+G");
  EXPECT_FALSE(user.state().arrangement.collapsed(1));
  EXPECT_FALSE(user.state().selection.range()) << "not iteration 1";
}

TEST(GoTo, ShowsOneLineForWhatIsNotFoundAndStaysOpen) {
  User user;
  const TimeRange before = user.view();
  user.answer<GoToDialog>([](GoToDialog& dialog) {
    auto* field = dialog.findChild<QLineEdit*>();
    QTest::keyClicks(field, "rank 99");
    EXPECT_EQ(dialog.message(), "The run has the ranks 0 to 3.");
    EXPECT_TRUE(dialog.findChild<QLabel*>()->isVisible());
    QTest::keyClick(field, Qt::Key_Return);
    EXPECT_TRUE(dialog.isVisible());
    QTest::keyClick(field, Qt::Key_Escape);
  });
  user.press("Ctrl+G");
  EXPECT_EQ(user.view(), before);
}

TEST(GoTo, SelectsAnIterationOfBothComparedRuns) {
  Window window;
  ComparisonPage* page = window.show_comparison(four_ranks(), four_ranks());
  window.show();
  page->finish();
  const Destinations five = destinations(*four_ranks(), "iteration 5", false);
  ASSERT_EQ(five.found.size(), 1u);
  go_to(page->state_of_a(), five.found.front());
  EXPECT_EQ(page->coupling().selected_iteration(), 5);
  EXPECT_TRUE(page->state_of_b().selection.range());
  page->finish();
}

}  // namespace
}  // namespace paceline::viewer
