// SPDX-License-Identifier: Apache-2.0
// Colours by lightness, chroma and hue as people see them: Björn Ottosson's Oklab (2020). Equal distances look about
// equally different, and a hue keeps its look when the lightness changes.
#pragma once

#include <QColor>

namespace paceline::viewer {

struct Oklab {
  double lightness = 0;  // 0 is black, 1 is white
  double a = 0, b = 0;   // greenish to reddish, bluish to yellowish

  double chroma() const;
};

Oklab oklab(QRgb colour);
// Clipped to what a screen can show. The hue is in turns: 0.75 is a quarter before a whole turn.
QRgb from_oklch(double lightness, double chroma, double hue);
double distance(const Oklab& a, const Oklab& b);

// Linear light of a channel from 0 to 255, and back.
double linear_light(int channel);
int channel_of(double linear);

}  // namespace paceline::viewer
