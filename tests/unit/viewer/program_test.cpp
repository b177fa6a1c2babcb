// SPDX-License-Identifier: Apache-2.0
// paceline-view as a program: pictures without a display, and its error messages.
#include <gtest/gtest.h>

#include <QFile>
#include <QFileInfo>
#include <QImage>
#include <QProcess>
#include <QRegularExpression>
#include <QTemporaryDir>

#include "profiler/format/writer.h"
#include "viewer/drawing/labels.h"
#include "viewer/drawing/palette.h"

namespace paceline::viewer {
namespace {

struct Outcome {
  int status = -1;
  QStringList errors;  // lines on standard error
};

Outcome run_program(const QStringList& arguments, const char* platform = nullptr) {
  QProcess program;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  for (const char* variable : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) environment.remove(variable);
  environment.remove("XDG_RUNTIME_DIR");  // Qt would print a warning
  if (platform != nullptr) environment.insert("QT_QPA_PLATFORM", platform);
  program.setProcessEnvironment(environment);
  program.start(PACELINE_VIEW, arguments);
  if (!program.waitForFinished(60'000)) return {};
  return {program.exitStatus() == QProcess::NormalExit ? program.exitCode() : -1,
          QString::fromUtf8(program.readAllStandardError()).split('\n', Qt::SkipEmptyParts)};
}

class ProgramTest : public testing::Test {
 protected:
  // 100 ms: forward to 25, backward to 75, optimizer to the end.
  void SetUp() override {
    format::TraceWriter writer({.pid = 7,
                                .ticks_per_second = 1e9,
                                .start_utc_ns = 1'700'000'000'000'000'000,
                                .process_start_utc_ns = 1'700'000'000'000'000'000,
                                .rank = 0,
                                .world_size = 1,
                                .host = "node1",
                                .boot_id = "boot",
                                .command = {},
                                .environment = {}});
    std::uint64_t now = 0;
    for (const auto& [name, until] :
         {std::pair("forward", 25), std::pair("backward", 75), std::pair("optimizer", 100)}) {
      writer.add(0, now, format::EventType::push, writer.scope(name, "paceline.trainer", name));
      now = static_cast<std::uint64_t>(until) * 1'000'000;
      writer.add(0, now, format::EventType::pop, writer.domain("paceline.trainer"));
    }
    writer.write((directory.path() + "/rank0.pace").toStdString());
    picture = directory.path() + "/picture.png";
  }

  // Whether the phase's colour is in the upper third of the picture, above legend and panels, at this share of the
  // timeline's width.
  bool has_colour(const QImage& image, analysis::Phase phase, double share) const {
    const int left = header_width;
    const int x = left + static_cast<int>(share * (image.width() - left));
    const QRgb wanted = phase_colour(phase, Theme::light());
    for (int y = 0; y < image.height() / 3; ++y) {
      if (image.pixel(x, y) == wanted) return true;
    }
    return false;
  }

  QTemporaryDir directory;
  QString picture;
};

TEST_F(ProgramTest, DrawsAPictureWithThePhasesWhereTheyAre) {
  const Outcome outcome = run_program({"--screenshot", picture, "--size", "1200x700", directory.path()});
  ASSERT_EQ(outcome.status, 0) << outcome.errors.join('\n').toStdString();
  EXPECT_EQ(outcome.errors, QStringList{"paceline-view: no display, drawing off screen"});
  const QImage image(picture);
  ASSERT_EQ(image.size(), QSize(1200, 700));
  using analysis::Phase;
  EXPECT_TRUE(has_colour(image, Phase::forward, 0.12));
  EXPECT_FALSE(has_colour(image, Phase::backward, 0.12));
  EXPECT_TRUE(has_colour(image, Phase::backward, 0.5));
  EXPECT_FALSE(has_colour(image, Phase::forward, 0.5));
  EXPECT_TRUE(has_colour(image, Phase::optimizer, 0.9));
}

TEST_F(ProgramTest, PrintsNothingIfTheOffscreenPlatformIsRequested) {
  const Outcome outcome = run_program({"--screenshot", picture, directory.path()}, "offscreen");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.errors, QStringList{}) << outcome.errors.join('\n').toStdString();
}

TEST_F(ProgramTest, DrawsTheRequestedRange) {
  const Outcome outcome = run_program({"--screenshot", picture, "--from", "0.03", "--to", "70ms", directory.path()});
  ASSERT_EQ(outcome.status, 0) << outcome.errors.join('\n').toStdString();
  const QImage image(picture);
  EXPECT_EQ(image.size(), QSize(1600, 900));
  for (const double share : {0.1, 0.5, 0.8}) EXPECT_TRUE(has_colour(image, analysis::Phase::backward, share));
}

TEST_F(ProgramTest, GoesToThePlaceOfAnOptionAndOfALink) {
  const QString link = "paceline:" + directory.path() + "?at=50 ms";
  for (const QStringList& place : {QStringList{"--at", "50 ms", directory.path()}, QStringList{link}}) {
    const Outcome outcome = run_program(QStringList{"--screenshot", picture} + place);
    ASSERT_EQ(outcome.status, 0) << outcome.errors.join('\n').toStdString();
    const QImage image(picture);
    for (const double share : {0.1, 0.5, 0.8}) EXPECT_TRUE(has_colour(image, analysis::Phase::backward, share));
  }
  const Outcome outcome = run_program({"--screenshot", picture, "--at", "rank 7", directory.path()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(outcome.errors.last().contains("--at: The run has the ranks 0 to 0"))
      << outcome.errors.last().toStdString();
}

TEST_F(ProgramTest, DrawsTheComparisonAndTheListOfMergedFiles) {
  Outcome outcome = run_program(
      {"--compare", "--screenshot", picture, "--size", "1000x700", directory.path(), directory.path() + "/rank0.pace"});
  EXPECT_EQ(outcome.status, 0) << outcome.errors.join('\n').toStdString();
  EXPECT_EQ(QImage(picture).size(), QSize(1000, 700));
  outcome = run_program({"--merge", "--align", "recorded", "--screenshot", picture, "--size", "900x400",
                         directory.path(), directory.path() + "/rank0.pace"});
  EXPECT_EQ(outcome.status, 0) << outcome.errors.join('\n').toStdString();
  EXPECT_EQ(QImage(picture).size(), QSize(900, 400));
}

TEST_F(ProgramTest, DrawsAnSvgWhoseTextIsText) {
  picture = directory.path() + "/picture.svg";
  const Outcome outcome = run_program({"--screenshot", picture, directory.path()}, "offscreen");
  ASSERT_EQ(outcome.status, 0) << outcome.errors.join('\n').toStdString();
  QFile file(picture);
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  const QString svg = QString::fromUtf8(file.readAll());
  for (const char* text : {"Rank 0", "backward", "optimizer", "Phases"}) {
    EXPECT_TRUE(svg.contains(QRegularExpression(QString(">\\s*%1[^<]*</text>").arg(text)))) << text;
  }
}

TEST_F(ProgramTest, PrintsOneLineForEachError) {
  const QString nowhere = directory.path() + "/nowhere";
  Outcome outcome = run_program({"--screenshot", picture, nowhere});
  EXPECT_EQ(outcome.status, 1);
  ASSERT_EQ(outcome.errors.size(), 1);
  EXPECT_TRUE(outcome.errors[0].contains(nowhere)) << outcome.errors[0].toStdString();
  EXPECT_FALSE(QFileInfo::exists(picture));

  outcome = run_program({"--screenshot", picture, "--select", "sideward", directory.path()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(outcome.errors.last().contains("sideward"));

  outcome = run_program({directory.path()});
  EXPECT_EQ(outcome.status, 1);
  ASSERT_EQ(outcome.errors.size(), 1);
  EXPECT_TRUE(outcome.errors[0].contains("--screenshot")) << "the remedy";
}

TEST_F(ProgramTest, HasAnExitStatusForWrongUsageAndOneForFailure) {
  EXPECT_EQ(run_program({"--no-such-option"}).status, 2);
  EXPECT_EQ(run_program({"--screenshot", picture, "--size", "huge", directory.path()}).status, 2);
  EXPECT_EQ(run_program({"--screenshot", picture, "--from", "soon", directory.path()}).status, 2);
  EXPECT_EQ(run_program({"--screenshot", picture}).status, 2);
  EXPECT_EQ(run_program({"--screenshot", picture, "--panel", "Weather", directory.path()}).status, 2);
  EXPECT_EQ(run_program({"--compare", directory.path()}).status, 2);
  EXPECT_EQ(run_program({"--compare", "--panel", "Names", directory.path(), directory.path()}).status, 2);
  EXPECT_EQ(run_program({"--merge"}).status, 2);
  EXPECT_EQ(run_program({"--align", "guess", directory.path()}).status, 2);
  EXPECT_EQ(run_program({"--processes", "some", directory.path()}).status, 2);
  EXPECT_EQ(run_program({"--processes", "one", "--follow", directory.path()}).status, 2);
  EXPECT_EQ(run_program({"--help"}).status, 0);
  EXPECT_EQ(run_program({"--version"}).status, 0);
}

}  // namespace
}  // namespace paceline::viewer
