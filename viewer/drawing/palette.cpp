// SPDX-License-Identifier: Apache-2.0
#include "viewer/drawing/palette.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "viewer/drawing/colour_space.h"

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
  Theme theme = palette.color(QPalette::Window).lightness() < 128 ? night() : light();
  theme.chosen = chosen_colours();
  return theme;
}

namespace palette {

struct PhaseColour {
  QRgb light, dark;
};
// By the numbers of Phase.
constexpr PhaseColour phases[] = {
    {0xff656c77, 0xff6e7680},  // startup
    {0xffe69f00, 0xffe69f00},  // preprocess
    {0xff56b4e9, 0xff56b4e9},  // forward
    {0xff0072b2, 0xff077bc2},  // backward
    {0xff009e73, 0xff05a867},  // optimizer
    {0xffd55e00, 0xffd55e00},  // communication
    {0xffcc79a7, 0xffcc79a7},  // evaluate
    {0xff882255, 0xff7d116f},  // checkpoint
    {0xfff0e442, 0xfff0e442},  // copy
    {0xff7a5230, 0xff865d3b},  // launch
    {0xffebeff4, 0xff343b44},  // idle
    {0xffb9c0ca, 0xff565f6b},  // other
};
static_assert(std::size(phases) == analysis::phase_count);

}  // namespace palette

QRgb phase_colour(Phase phase, const Theme& theme) {
  const auto number = static_cast<std::size_t>(phase);
  if (theme.chosen != nullptr && theme.chosen->phases[number] != 0) return theme.chosen->phases[number];
  return theme.dark ? palette::phases[number].dark : palette::phases[number].light;
}

QString phase_text(Phase phase) {
  const std::string_view name = analysis::phase_name(phase);
  return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
}

namespace palette {

std::optional<QRgb> chosen_for(std::string_view name, const Theme& theme) {
  if (theme.chosen == nullptr) return std::nullopt;
  const auto found = theme.chosen->names.find(name);
  return found != theme.chosen->names.end() ? std::optional(found->second) : std::nullopt;
}

}  // namespace palette

QRgb name_colour(std::string_view name, const Theme& theme) {
  if (const auto chosen = palette::chosen_for(name, theme)) return *chosen;
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  unsigned numbers = 0;                     // 1 and 0 of layer1.0.conv count, whatever their lengths
  bool in_number = false;
  unsigned number = 0;
  const auto end_number = [&] {
    if (in_number) numbers = numbers * 3 + number;
    in_number = false;
    number = 0;
  };
  for (const char c : name) {
    if (c >= '0' && c <= '9') {
      in_number = true;
      number = number * 10 + static_cast<unsigned>(c - '0');
      continue;
    }
    end_number();
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  end_number();
  hash ^= hash >> 29;
  // The chroma is about half of that of the phases, so that these stand out. Neighbouring numbers differ in lightness.
  constexpr unsigned hues = 20, steps = 5;
  const double hue = static_cast<double>(hash % hues) / hues, step = numbers % steps;
  return theme.dark ? from_oklch(0.36 + 0.035 * step, 0.05, hue) : from_oklch(0.74 + 0.035 * step, 0.05, hue);
}

double contrast(QRgb a, QRgb b) {
  const auto luminance = [](QRgb colour) {
    return 0.2126 * linear_light(qRed(colour)) + 0.7152 * linear_light(qGreen(colour)) +
           0.0722 * linear_light(qBlue(colour));
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

QRgb kind_colour(const analysis::Trace& trace, const analysis::PhaseTable& rules, analysis::KindId kind,
                 const Theme& theme) {
  const std::string& name = trace.names[trace.kinds[kind].name];
  if (const auto chosen = palette::chosen_for(name, theme)) return *chosen;
  if (const auto phase = rules.phase(kind); phase && *phase != Phase::other) return phase_colour(*phase, theme);
  return rules.iteration(kind) ? theme.container : name_colour(name, theme);
}

}  // namespace paceline::viewer
