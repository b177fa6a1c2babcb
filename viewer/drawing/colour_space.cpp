// SPDX-License-Identifier: Apache-2.0
#include "viewer/drawing/colour_space.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace paceline::viewer {

double Oklab::chroma() const { return std::hypot(a, b); }

double linear_light(int channel) {
  const double share = channel / 255.0;
  return share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
}

int channel_of(double linear) {
  const double light = std::clamp(linear, 0.0, 1.0);
  const double share = light <= 0.0031308 ? 12.92 * light : 1.055 * std::pow(light, 1 / 2.4) - 0.055;
  return static_cast<int>(std::lround(255 * share));
}

Oklab oklab(QRgb colour) {
  const double r = linear_light(qRed(colour)), g = linear_light(qGreen(colour)), b = linear_light(qBlue(colour));
  const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

QRgb from_oklch(double lightness, double chroma, double hue) {
  const double a = chroma * std::cos(2 * std::numbers::pi * hue), b = chroma * std::sin(2 * std::numbers::pi * hue);
  const auto cube = [](double x) { return x * x * x; };
  const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
  const double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
  const double s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
  return qRgb(channel_of(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
              channel_of(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
              channel_of(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s));
}

double distance(const Oklab& a, const Oklab& b) {
  return std::sqrt((a.lightness - b.lightness) * (a.lightness - b.lightness) + (a.a - b.a) * (a.a - b.a) +
                   (a.b - b.b) * (a.b - b.b));
}

}  // namespace paceline::viewer
