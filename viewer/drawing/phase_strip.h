// SPDX-License-Identifier: Apache-2.0
// A rank's phases as one strip. Intervals that are wide enough are drawn one by one. If they are too narrow, every
// column stacks the shares of the phases in its range of time, so that a whole run still shows where its time went.
//
// Communication has two parts: waiting for the last rank is pale and hatched, the transfer is solid.
#pragma once

#include <QImage>
#include <QPainter>
#include <QRect>
#include <QString>
#include <span>
#include <vector>

#include "viewer/drawing/labels.h"
#include "viewer/drawing/palette.h"
#include "viewer/session/insight.h"
#include "viewer/session/run.h"
#include "viewer/session/time_axis.h"

namespace paceline::viewer {

// `axis` is as wide as `rect`. Draws no labels if `labels` is nullptr. `waits` is nullptr until the run is analysed.
// `shares` is what shares_of() returned for the same view, or null, in which case it is found here.
DrawCounts paint_phases(QPainter& painter, const RankIndex& rank, const WaitTimeline* waits, const TimeAxis& axis,
                        const QRect& rect, const Theme& theme, LabelTexts* labels, const QImage& shares = {});

// The picture of the shares, of this height; null where paint_phases() draws the intervals one by one. May be called in
// any thread.
QImage shares_of(const RankIndex& rank, const WaitTimeline* waits, const TimeAxis& axis, int height,
                 const Theme& theme);

// The shares of the phases of these ranks, at least one, in bins of `bin` columns. May be called in any thread. `waits`
// is as Insight::waits, or empty; `ranks` are indices. Cost: ranks × bins × log n.
QImage phase_shares(const Run& run, std::span<const std::size_t> ranks, std::span<const WaitTimeline> waits,
                    const TimeAxis& axis, int height, const Theme& theme, int bin);

// Draws the stretches of which the trace does not hold everything: hatched in grey, at least two pixels wide, so that
// nobody takes them for a phase.
DrawCounts paint_unrecorded(QPainter& painter, const std::vector<Unrecorded>& stretches, const TimeAxis& axis,
                            const QRect& rect, const Theme& theme, bool labels);
// "60.10 ms for rank 5"
QString waited_text(const Run& run, const Wait& wait);

// Draws the pattern of that alone, and that of waiting, as the legend shows them.
void paint_hatching(QPainter& painter, const QRect& box, const Theme& theme);
void paint_waiting(QPainter& painter, const QRect& box, const Theme& theme);

}  // namespace paceline::viewer
