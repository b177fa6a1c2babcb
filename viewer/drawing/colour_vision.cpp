// SPDX-License-Identifier: Apache-2.0
#include "viewer/drawing/colour_vision.h"

#include <algorithm>
#include <array>
#include <limits>

namespace paceline::viewer {
namespace colour_vision {

using Matrix = std::array<std::array<double, 3>, 3>;
constexpr Matrix matrices[] = {
    {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
    {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}},
    {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}},
    {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}};

}  // namespace colour_vision

Oklab seen(QRgb colour, Vision by) {
  const colour_vision::Matrix& matrix = colour_vision::matrices[static_cast<std::size_t>(by)];
  const std::array light{linear_light(qRed(colour)), linear_light(qGreen(colour)), linear_light(qBlue(colour))};
  std::array<int, 3> channels{};
  for (std::size_t i = 0; i < 3; ++i) {
    channels[i] = channel_of(matrix[i][0] * light[0] + matrix[i][1] * light[1] + matrix[i][2] * light[2]);
  }
  return oklab(qRgb(channels[0], channels[1], channels[2]));
}

double distance_for_all(QRgb a, QRgb b) {
  double least = std::numeric_limits<double>::max();
  for (const Vision vision : all_visions) least = std::min(least, distance(seen(a, vision), seen(b, vision)));
  return least;
}

std::vector<QRgb> suggested_colours(std::span<const QRgb> in_use, std::size_t count) {
  struct Candidate {
    QRgb colour;
    double distance;  // to the nearest colour in use
  };
  std::vector<Candidate> candidates;
  for (const double lightness : {0.45, 0.55, 0.65, 0.75, 0.85}) {
    for (const double chroma : {0.08, 0.13}) {
      for (int hue = 0; hue < 18; ++hue) {
        Candidate one{from_oklch(lightness, chroma, hue / 18.0), std::numeric_limits<double>::max()};
        for (const QRgb used : in_use) one.distance = std::min(one.distance, distance_for_all(one.colour, used));
        candidates.push_back(one);
      }
    }
  }
  std::vector<QRgb> suggested;
  while (suggested.size() < count) {
    const QRgb best = std::ranges::max_element(candidates, {}, &Candidate::distance)->colour;
    suggested.push_back(best);
    for (Candidate& one : candidates) one.distance = std::min(one.distance, distance_for_all(one.colour, best));
  }
  return suggested;
}

}  // namespace paceline::viewer
