// SPDX-License-Identifier: Apache-2.0
// Colours and labels, and the drawing of the timeline held against a naive painter.
#include <gtest/gtest.h>

#include <QImage>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "analysis/trace/builder.h"
#include "viewer/drawing/colour_space.h"
#include "viewer/drawing/colour_vision.h"
#include "viewer/drawing/gpu_strip.h"
#include "viewer/drawing/labels.h"
#include "viewer/drawing/palette.h"

namespace paceline::viewer {
namespace {

TEST(Palette, KeepsPhasesApartForTheColourBlind) {
  for (const Theme& theme : {Theme::light(), Theme::night()}) {
    for (const Vision eye : all_visions) {
      for (const analysis::Phase a : phase_order) {
        for (const analysis::Phase b : phase_order) {
          if (a == b) continue;
          EXPECT_GE(distance(seen(phase_colour(a, theme), eye), seen(phase_colour(b, theme), eye)), 0.07)
              << analysis::phase_name(a) << " and " << analysis::phase_name(b) << (theme.dark ? ", dark" : ", light");
        }
      }
    }
  }
}

TEST(Palette, NamesAreLessColourfulThanPhases) {
  for (const Theme& theme : {Theme::light(), Theme::night()}) {
    double least = 1, most = 0;
    for (const analysis::Phase phase : phase_order) {
      const double chroma = oklab(phase_colour(phase, theme)).chroma();
      if (chroma > 0.03) least = std::min(least, chroma);  // the others are greys
    }
    for (int i = 0; i < 500; ++i)
      most = std::max(most, oklab(name_colour(std::to_string(i) + char('a' + i % 26), theme)).chroma());
    EXPECT_LT(most, 0.055);
    EXPECT_GT(least, most + 0.015);
  }
}

TEST(Palette, DigitsVaryTheLightnessOfAHue) {
  for (const Theme& theme : {Theme::light(), Theme::night()}) {
    const Oklab one = oklab(name_colour("layer1.0.conv1", theme)), two = oklab(name_colour("layer1.0.conv2", theme));
    EXPECT_GT(std::abs(one.lightness - two.lightness), 0.025);
    EXPECT_NEAR(std::atan2(one.b, one.a), std::atan2(two.b, two.a), 0.15) << "the hue is the same";
    EXPECT_NE(name_colour("layer1.0.conv1", theme), name_colour("layer1.0.bn1", theme));
    EXPECT_EQ(name_colour("layer1.0.conv1", theme), name_colour("layer1.0.conv1", theme));
  }
}

TEST(Oklab, GoesBothWays) {
  for (const QRgb colour : {0xff000000u, 0xffffffffu, 0xffd55e00u, 0xff0072b2u, 0xff7a5230u}) {
    const Oklab lab = oklab(colour);
    const double hue = std::atan2(lab.b, lab.a) / (2 * M_PI);
    const QRgb back = from_oklch(lab.lightness, lab.chroma(), hue);
    EXPECT_LE(std::abs(qRed(back) - qRed(colour)), 1);
    EXPECT_LE(std::abs(qGreen(back) - qGreen(colour)), 1);
    EXPECT_LE(std::abs(qBlue(back) - qBlue(colour)), 1);
  }
  EXPECT_NEAR(oklab(0xffffffff).lightness, 1, 1e-4);
}

TEST(GpuStrip, DividesCommunicationIntoWhatComputationHidesAndTheRest) {
  const GpuStrip strip({.compute = {{0, 1000}}, .communication = {{500, 1500}}, .all = {{0, 1500}}});
  const auto whole = strip.between(0, 2000), inside = strip.between(250, 750);
  EXPECT_EQ(whole.compute, 1000);
  EXPECT_EQ(whole.hidden, 500);
  EXPECT_EQ(whole.exposed, 500);
  EXPECT_EQ(whole.idle, 500);
  EXPECT_EQ(inside.compute, 500);
  EXPECT_EQ(inside.hidden, 250);
  EXPECT_EQ(inside.exposed, 0);
  EXPECT_EQ(inside.idle, 0);
  EXPECT_TRUE(GpuStrip({}).empty());

  // The upper lane is computation, the lower one communication: pale, then strong.
  TimeAxis axis(0, 2000);
  axis.set_width(200);
  QImage image(200, 9, QImage::Format_RGB32);
  const Theme theme = Theme::light();
  {
    QPainter painter(&image);
    strip.paint(painter, axis, image.rect(), theme);
  }
  const auto at = [&](double time_ns, int y) { return image.pixel(static_cast<int>(axis.x_of(time_ns)), y); };
  const QRgb exposed = phase_colour(analysis::Phase::communication, theme);
  EXPECT_EQ(at(500, 2), phase_colour(analysis::Phase::forward, theme));
  EXPECT_EQ(at(1200, 2), theme.background);
  EXPECT_EQ(at(250, 6), theme.background);
  EXPECT_EQ(at(750, 6), blend(exposed, theme.background, 40));
  EXPECT_EQ(at(1200, 6), exposed);
}

TEST(Labels, LeaveOutBeginningsThatNamesShare) {
  analysis::TraceBuilder builder;
  analysis::TrackBuilder& main = builder.add_rank(0).add_main_thread();
  std::int64_t at = 0;
  for (const char* name : {"MPI_Send", "MPI_Recv", "MPI_Allreduce", "layer1.0.conv1", "layer1.0.conv2", "layer1.0.bn1",
                           "layer1.1.bn1", "std::sort", "forward_pass"}) {
    main.add_slice(at, at + 10, name);
    at += 10;
  }
  const analysis::Trace trace = builder.finish();
  const CommonPrefixes prefixes(trace);
  const QString dots(QChar(0x2026));
  EXPECT_EQ(prefixes.shortened("MPI_Allreduce"), QStringList{dots + "Allreduce"});
  EXPECT_EQ(prefixes.shortened("layer1.0.conv2"), (QStringList{dots + "0.conv2", dots + "conv2"}));
  EXPECT_EQ(prefixes.shortened("forward_pass"), QStringList()) << "no other name begins like this";
  EXPECT_EQ(prefixes.shortened("std::sort"), QStringList());
}

TEST(Labels, OfSlicesAreCutInTheMiddle) {
  // What is drawn at the end of a box that has room for half of the text.
  const auto end_of = [](const char* text, Qt::TextElideMode cut) {
    QImage image(70, 20, QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    EXPECT_TRUE(paint_label(painter, image.rect(), text, 0xffffffff, cut));
    painter.end();
    return image.copy(50, 0, 20, 20);
  };
  EXPECT_NE(end_of("convolution_a_12", Qt::ElideMiddle), end_of("convolution_a_77", Qt::ElideMiddle));
  EXPECT_EQ(end_of("convolution_a_12", Qt::ElideRight), end_of("convolution_a_77", Qt::ElideRight));
}

}  // namespace
}  // namespace paceline::viewer
