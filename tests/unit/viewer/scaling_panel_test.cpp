// SPDX-License-Identifier: Apache-2.0
// The panel that compares several runs.
#include <QFile>
#include <QPushButton>
#include <QTemporaryDir>
#include <algorithm>

#include "tests/unit/analysis/rank_file.h"
#include "tests/unit/viewer/user.h"
#include "viewer/drawing/palette.h"
#include "viewer/panels/scaling_panel.h"

namespace paceline::viewer {
namespace {

class Scaling : public Page {
 protected:
  void SetUp() override {
    panel = open<ScalingPanel>("Scaling");
    ASSERT_NE(panel, nullptr);
  }
  QString table() const {
    const QString name = directory.path() + "/runs.csv";
    QFile file(name);
    EXPECT_TRUE(file.open(QIODevice::WriteOnly));
    file.write("ranks,epochs,images,seconds\n1,2,10000,100\n2,2,10000,52\n4,2,10000,30\n8,2,10000,20\n");
    return name;
  }
  void write_run(const QString& name, int ranks) {
    analysis::write_run(simulate({.ranks = ranks, .iterations = 3, .layers = false}),
                        (directory.path() + "/" + name).toStdString());
  }

  ScalingPanel* panel = nullptr;
  QTemporaryDir directory;
};

TEST_F(Scaling, ExplainsItselfWhileThereIsOneRun) {
  EXPECT_EQ(panel->report(), nullptr);
  EXPECT_TRUE(panel->text().contains("Add runs of the same work")) << panel->text().toStdString();
}

TEST_F(Scaling, ShowsSpeedUpAndEfficiency) {
  panel->add(table());
  finish();
  ASSERT_NE(panel->report(), nullptr);
  const auto& points = panel->report()->scaling.points;
  const auto four =
      std::ranges::find_if(points, [](const auto& point) { return point.ranks == 4 && point.images > 0; });
  ASSERT_NE(four, points.end());
  EXPECT_NEAR(four->speedup.value_or(0), 100.0 / 30, 1e-9);
  EXPECT_TRUE(panel->text().contains("3.33")) << panel->text().toStdString();
  EXPECT_TRUE(panel->text().contains("83")) << "the efficiency in percent";
}

TEST_F(Scaling, DrawsThePointsBelowTheIdealLine) {
  panel->add(table());
  finish();
  SpeedUpChart* chart = nullptr;
  for (QObject* child : panel->children()) {
    if (auto* found = dynamic_cast<SpeedUpChart*>(child)) chart = found;
  }
  ASSERT_NE(chart, nullptr);
  const QImage picture = chart->grab().toImage();
  const QRgb colour = phase_colour(analysis::Phase::communication, Theme::light());
  for (const auto& [ranks, seconds] : {std::pair(2, 52.0), {4, 30.0}, {8, 20.0}}) {
    EXPECT_EQ(picture.pixel(chart->place_of(ranks, 100 / seconds).toPoint()), colour) << ranks;
    EXPECT_GT(chart->place_of(ranks, 100 / seconds).y(), chart->place_of(ranks, ranks).y());
  }
}

TEST_F(Scaling, ReadsTheRunsOfADirectoryOnce) {
  write_run("runs/ranks-1", 1);
  write_run("runs/ranks-2", 2);
  panel->add(directory.path() + "/runs");
  panel->add(directory.path() + "/runs/ranks-1");
  finish();
  ASSERT_NE(panel->report(), nullptr);
  std::vector<int> ranks;
  for (const auto& run : panel->report()->runs) ranks.push_back(run.ranks);
  EXPECT_EQ(ranks, (std::vector{4, 1, 2})) << "the run of the page first";
}

TEST_F(Scaling, NamesARunThatCannotBeRead) {
  panel->add("/no/such/run");
  finish();
  EXPECT_TRUE(panel->text().contains("/no/such/run")) << panel->text().toStdString();
  EXPECT_EQ(panel->report(), nullptr);
}

TEST(ScalingDialogs, AddADirectoryAndATable) {
  const QTemporaryDir directory;
  analysis::write_run(simulate({.ranks = 2, .iterations = 3, .layers = false}),
                      (directory.path() + "/ranks-2").toStdString());
  User user;
  auto* panel = user.open<ScalingPanel>("Scaling");
  const auto click = [&](const QString& text) {
    for (QPushButton* button : panel->findChildren<QPushButton*>()) {
      if (button->text() == text) QTest::mouseClick(button, Qt::LeftButton);
    }
    user.finish();
  };
  user.choose(directory.path() + "/ranks-2");
  click("Add runs…");
  ASSERT_NE(panel->report(), nullptr);
  EXPECT_EQ(panel->report()->runs.size(), 2u);
  QFile file(directory.path() + "/runs.csv");
  ASSERT_TRUE(file.open(QIODevice::WriteOnly));
  file.write("ranks,epochs,images,seconds\n1,2,10000,100\n");
  file.close();
  user.choose(file.fileName());
  click("Add a table of runs…");
  EXPECT_EQ(panel->report()->scaling_runs.size(), 3u);
  click("Clear");
  EXPECT_EQ(panel->report(), nullptr);
}

}  // namespace
}  // namespace paceline::viewer
