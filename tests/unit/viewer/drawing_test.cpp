// Colours and labels, and the drawing of the timeline held against a naive painter.
#include <gtest/gtest.h>

#include <QImage>
#include <QPainter>
#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/trace/builder.h"
#include "viewer/drawing/colour_space.h"
#include "viewer/drawing/labels.h"
#include "viewer/drawing/palette.h"

namespace paceline::viewer {
namespace {

// How people with a kind of colour blindness see a colour: the matrices of Machado, Oliveira and Fernandes (2009) for
// its full degree, in linear light.
using Matrix = std::array<std::array<double, 3>, 3>;
constexpr Matrix normal{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
constexpr Matrix protanopia{
    {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}};
constexpr Matrix deuteranopia{
    {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}};
constexpr Matrix tritanopia{
    {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};

Oklab seen(QRgb colour, const Matrix& by) {
  const std::array light{linear_light(qRed(colour)), linear_light(qGreen(colour)), linear_light(qBlue(colour))};
  std::array<int, 3> channels{};
  for (std::size_t i = 0; i < 3; ++i) {
    channels[i] = channel_of(by[i][0] * light[0] + by[i][1] * light[1] + by[i][2] * light[2]);
  }
  return oklab(qRgb(channels[0], channels[1], channels[2]));
}

TEST(Palette, KeepsPhasesApartForTheColourBlind) {
  for (const Theme& theme : {Theme::light(), Theme::night()}) {
    for (const Matrix& eye : {normal, protanopia, deuteranopia, tritanopia}) {
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
