// SPDX-License-Identifier: Apache-2.0
// What the scheduler did with a thread, as a strip: each column stacks the shares of waiting for a CPU, running and
// being blocked in its range of time. A column within one state is of one colour. Where only sums were recorded, the
// shares are those of the time between two readings.
#pragma once

#include <QImage>
#include <QString>
#include <optional>
#include <span>

#include "analysis/trace/state_stretches.h"
#include "viewer/drawing/palette.h"
#include "viewer/session/run.h"
#include "viewer/session/time_axis.h"

namespace paceline::viewer {

// From the bottom of a strip to its top.
inline constexpr analysis::ThreadState state_order[] = {analysis::ThreadState::waiting, analysis::ThreadState::running,
                                                        analysis::ThreadState::blocked};

QRgb state_colour(analysis::ThreadState state, const Theme& theme);
QString state_text(analysis::ThreadState state);  // "waiting for a CPU"
double time_in(const analysis::CpuTimes& times, analysis::ThreadState state);

// The states of a thread, and one of states_step entries of them.
struct StripStates {
  const analysis::ThreadStates *all, *few;
};

// Draws the strip of these threads into the lowest `height` lines of the image, which is as wide as the axis; leaves
// time without known states as it is. May be called in any thread. Cost: threads × columns × log n.
void draw_states(QImage& image, int height, std::span<const StripStates> threads, const TimeAxis& axis,
                 const Theme& theme);
// Draws a tick into the uppermost `height` lines of each column that has a sample. Cost: columns × log n.
void draw_samples(QImage& image, int height, const analysis::StackSamples& samples, const TimeAxis& axis, QRgb colour);

// What a thread did at a time, and for how long.
struct StateStretch {
  analysis::ThreadState state = analysis::ThreadState::running;
  std::int64_t start_ns = 0, end_ns = 0;
};
// Nothing where that is not known: outside of the states, and where only sums were recorded. O(log n).
std::optional<StateStretch> state_at(const analysis::ThreadStates& states, double time_ns);

// "running", "1.20 ms, 43 %": lines of a tooltip, one for each state that occurred.
QString state_lines(const analysis::CpuTimes& times);

}  // namespace paceline::viewer
