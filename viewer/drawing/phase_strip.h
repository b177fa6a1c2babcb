// A rank's phases as one strip. Where the intervals are wide enough each is drawn; where they are not, every column
// shows the shares of the phases in its stretch of time, stacked, so that a whole run still says where its time went.
#pragma once

#include <QPainter>
#include <QRect>
#include <QString>
#include <vector>

#include "viewer/drawing/palette.h"
#include "viewer/session/run.h"
#include "viewer/session/time_axis.h"

namespace paceline::viewer {

// What painting took, in calls of the painter; tests hold it against the number of pixels.
struct DrawCounts {
  std::size_t rectangles = 0, labels = 0;
  DrawCounts& operator+=(const DrawCounts& more) {
    rectangles += more.rectangles;
    labels += more.labels;
    return *this;
  }
};

// `axis` is as wide as `rect`. Labels are left out where `labels` is false.
DrawCounts paint_phases(QPainter& painter, const RankIndex& rank, const TimeAxis& axis, const QRect& rect,
                        const Theme& theme, bool labels);

// Stretches in which events were lost: hatched in grey, at least two pixels wide, so that no phase is taken for them.
DrawCounts paint_losses(QPainter& painter, const std::vector<analysis::LostInterval>& losses, const TimeAxis& axis,
                        const QRect& rect, const Theme& theme, bool labels);
// The pattern alone, as the legend shows it.
void paint_hatching(QPainter& painter, const QRect& box, const Theme& theme);

// "1,234 events lost", or "events lost" where the number is not known.
QString loss_text(const analysis::LostInterval& loss);

// Text centred in height, from the left edge, elided to fit; nothing where not even two letters would. Returns whether
// something was drawn.
bool paint_label(QPainter& painter, const QRect& rect, const QString& text, QRgb background);

}  // namespace paceline::viewer
