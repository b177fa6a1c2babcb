// SPDX-License-Identifier: Apache-2.0
// How people with a kind of colour blindness see colours, and colours that all of them can tell apart.
#pragma once

#include <QColor>
#include <span>
#include <vector>

#include "viewer/drawing/colour_space.h"

namespace paceline::viewer {

enum class Vision { normal, protanopia, deuteranopia, tritanopia };
inline constexpr Vision all_visions[] = {Vision::normal, Vision::protanopia, Vision::deuteranopia, Vision::tritanopia};

// By the matrices of Machado, Oliveira and Fernandes (2009), for the full degree.
Oklab seen(QRgb colour, Vision by);

// The smallest distance of two colours over all kinds of vision.
double distance_for_all(QRgb a, QRgb b);

// Strong colours that differ from those in use and from each other for everybody; the one that differs most first.
// About 0.1 s.
std::vector<QRgb> suggested_colours(std::span<const QRgb> in_use, std::size_t count = 8);

}  // namespace paceline::viewer
