// A rank's phases as one strip. Intervals that are wide enough are drawn one by one. If they are too narrow, every
// column stacks the shares of the phases in its range of time, so that a whole run still shows where its time went.
#pragma once

#include <QPainter>
#include <QRect>
#include <QString>
#include <vector>

#include "viewer/drawing/labels.h"
#include "viewer/drawing/palette.h"
#include "viewer/session/run.h"
#include "viewer/session/time_axis.h"

namespace paceline::viewer {

// `axis` is as wide as `rect`. Draws no labels if `labels` is false.
DrawCounts paint_phases(QPainter& painter, const RankIndex& rank, const TimeAxis& axis, const QRect& rect,
                        const Theme& theme, bool labels);

// Draws the intervals in which events were lost: hatched in grey, at least two pixels wide, so that nobody takes them
// for a phase.
DrawCounts paint_losses(QPainter& painter, const std::vector<analysis::LostInterval>& losses, const TimeAxis& axis,
                        const QRect& rect, const Theme& theme, bool labels);
// Draws the pattern alone, as the legend shows it.
void paint_hatching(QPainter& painter, const QRect& box, const Theme& theme);

// "1,234 events lost", or "events lost" where the number is not known.
QString loss_text(const analysis::LostInterval& loss);

}  // namespace paceline::viewer
