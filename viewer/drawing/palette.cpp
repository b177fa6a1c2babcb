#include "viewer/drawing/palette.h"

#include <algorithm>
#include <cmath>

namespace paceline::viewer {

using analysis::Phase;

Theme Theme::light() {
  return {.dark = false,
          .background = 0xffffffff,
          .row = 0xfff8f9fb,
          .row_line = 0xffe4e7ec,
          .header = 0xfff2f4f7,
          .header_text = 0xff1f2733,
          .faint_text = 0xff5b6472,
          .text = 0xff1f2733,
          .grid = 0xffe9ecf0,
          .ruler = 0xfff8f9fb,
          .container = 0xffd5dbe4,
          .selection = 0xff111827,
          .crosshair = 0xff8a94a3};
}

Theme Theme::night() {
  return {.dark = true,
          .background = 0xff16191d,
          .row = 0xff1a1e23,
          .row_line = 0xff2b3138,
          .header = 0xff1f242a,
          .header_text = 0xffe6e9ee,
          .faint_text = 0xff98a2b0,
          .text = 0xffe6e9ee,
          .grid = 0xff262c33,
          .ruler = 0xff1a1e23,
          .container = 0xff3d4651,
          .selection = 0xffffffff,
          .crosshair = 0xff7c8694};
}

Theme Theme::of(const QPalette& palette) {
  return palette.color(QPalette::Window).lightness() < 128 ? night() : light();
}

QRgb phase_colour(Phase phase, const Theme& theme) {
  switch (phase) {
    case Phase::startup:
      return theme.dark ? 0xff7f8791 : 0xff8a919c;
    case Phase::preprocess:
      return 0xffe69f00;
    case Phase::forward:
      return 0xff56b4e9;
    case Phase::backward:
      return theme.dark ? 0xff1a84c7 : 0xff0072b2;
    case Phase::optimizer:
      return 0xff009e73;
    case Phase::communication:
      return 0xffd55e00;
    case Phase::evaluate:
      return 0xffcc79a7;
    case Phase::checkpoint:
      return 0xff882255;
    case Phase::copy:
      return 0xfff0e442;
    case Phase::launch:
      return 0xff999933;
    case Phase::idle:
      return theme.dark ? 0xff343b44 : 0xffdfe3e8;
    case Phase::other:
      return theme.dark ? 0xff565f6b : 0xffb9c0ca;
  }
  return 0xffb9c0ca;
}

QString phase_text(Phase phase) {
  const std::string_view name = analysis::phase_name(phase);
  return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
}

QRgb name_colour(std::string_view name, const Theme& theme) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : name) {
    if (c >= '0' && c <= '9') continue;
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  hash ^= hash >> 29;
  // Soft colours, so that the phases stand out.
  const int hue = static_cast<int>(hash % 24) * 15;
  const int step = static_cast<int>(hash / 24 % 3);
  return theme.dark ? QColor::fromHsl(hue, 60 + 15 * step, 92 + 12 * step).rgb()
                    : QColor::fromHsl(hue, 90 + 25 * step, 196 - 12 * step).rgb();
}

double contrast(QRgb a, QRgb b) {
  const auto luminance = [](QRgb colour) {
    const auto linear = [](int channel) {
      const double share = channel / 255.0;
      return share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(qRed(colour)) + 0.7152 * linear(qGreen(colour)) + 0.0722 * linear(qBlue(colour));
  };
  const auto [low, high] = std::minmax({luminance(a), luminance(b)});
  return (high + 0.05) / (low + 0.05);
}

QRgb text_colour_on(QRgb background) {
  // Soft black where it is readable. One of black and white always has a contrast of at least 4.58.
  for (const QRgb text : {0xff15191fu, 0xffffffffu, 0xff000000u}) {
    if (contrast(text, background) >= 4.5) return text;
  }
  return 0xff000000;
}

QRgb SliceColours::look_up(analysis::KindId kind) {
  if (const auto phase = rules_.phase(kind); phase && *phase != Phase::other) return phase_colour(*phase, theme_);
  const analysis::Kind& parts = trace_.kinds[kind];
  return rules_.iteration(kind) ? theme_.container : name_colour(trace_.names[parts.name], theme_);
}

}  // namespace paceline::viewer
