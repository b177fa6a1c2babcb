// SPDX-License-Identifier: Apache-2.0
#include "viewer/drawing/state_strip.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "analysis/trace/state_cursor.h"
#include "viewer/drawing/labels.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {

using analysis::CpuTimes;
using analysis::ThreadState;
using analysis::ThreadStates;

namespace state_strip {

struct StateLooks {
  const char* text;
  QRgb light, dark;
  double CpuTimes::*time_ns;
};
// By the numbers of ThreadState. Strong where a thread had no CPU, pale where it had nothing to do. Their lightness
// alone tells them apart.
constexpr StateLooks states[] = {{"running", 0xff3f9b6b, 0xff2f9a70, &CpuTimes::running_ns},
                                 {"waiting for a CPU", 0xff9c0019, 0xffffb8a8, &CpuTimes::waiting_ns},
                                 {"blocked", 0xffdfe4ea, 0xff343b44, &CpuTimes::blocked_ns}};

const StateLooks& looks_of(ThreadState state) { return states[static_cast<std::size_t>(state)]; }

}  // namespace state_strip

QRgb state_colour(ThreadState state, const Theme& theme) {
  const auto& looks = state_strip::looks_of(state);
  return theme.dark ? looks.dark : looks.light;
}

QString state_text(ThreadState state) { return state_strip::looks_of(state).text; }

double time_in(const CpuTimes& times, ThreadState state) { return times.*state_strip::looks_of(state).time_ns; }

namespace state_strip {

QRgb* line(QImage& image, int y) { return reinterpret_cast<QRgb*>(image.scanLine(y)); }

// How many entries of a thread are in view.
std::size_t entries_in(const ThreadStates& states, const TimeRange& view) {
  const auto first = std::ranges::lower_bound(states.time_ns, static_cast<std::int64_t>(view.begin_ns));
  const auto last = std::lower_bound(first, states.time_ns.end(), static_cast<std::int64_t>(view.end_ns));
  return static_cast<std::size_t>(last - first);
}

// Narrower bins would show a moiré pattern of switches against columns, as in the strip of phases.
int bin_width(std::size_t entries, const TimeAxis& axis) {
  const auto width = static_cast<std::size_t>(axis.width());
  // Each bin has a nanosecond at least.
  const int least = static_cast<int>(std::ceil(std::max(1.0, 1 / axis.ns_per_pixel())));
  return 2 * entries <= width ? least : static_cast<int>(std::clamp<std::size_t>(24 * width / entries, 2, 12));
}

// The samples that a time is not after.
std::size_t first_from(const analysis::StackSamples& samples, std::size_t from, double time_ns) {
  const auto begin = samples.time_ns.begin() + static_cast<std::ptrdiff_t>(from);
  return static_cast<std::size_t>(std::lower_bound(begin, samples.time_ns.end(), std::int64_t(std::ceil(time_ns))) -
                                  samples.time_ns.begin());
}

}  // namespace state_strip

void draw_states(QImage& image, int height, std::span<const StripStates> threads, const TimeAxis& axis,
                 const Theme& theme) {
  constexpr std::size_t entries_for_few = 4 * states_step;  // in a column, so that it has at least four of the few
  auto from = static_cast<std::int64_t>(axis.time_at(0));
  std::vector<analysis::StateCursor> cursors;
  std::size_t most = 0;
  for (const auto& [all, few] : threads) {
    const std::size_t entries = state_strip::entries_in(*all, axis.visible());
    const bool many = entries > entries_for_few * static_cast<std::size_t>(axis.width());
    cursors.emplace_back(many ? *few : *all, from);
    most = std::max(most, entries);
  }
  std::vector<QRgb*> lines;  // from the bottom to the top
  for (int y = image.height() - 1; y >= image.height() - height; --y) lines.push_back(state_strip::line(image, y));
  const int bin = state_strip::bin_width(most, axis);
  for (int x = 0; x < axis.width(); x += bin) {
    const int end = std::min(x + bin, axis.width());
    const auto to = static_cast<std::int64_t>(axis.time_at(end));
    CpuTimes times;
    for (analysis::StateCursor& cursor : cursors) {
      const CpuTimes of = cursor.until(to);
      times.running_ns += of.running_ns, times.waiting_ns += of.waiting_ns, times.blocked_ns += of.blocked_ns;
    }
    const auto whole = static_cast<double>(std::max<std::int64_t>(to - std::exchange(from, to), 1));
    double sum = 0;
    std::size_t filled = 0;
    for (const ThreadState state : state_order) {
      sum += time_in(times, state);
      const auto top = std::min(lines.size(), static_cast<std::size_t>(sum / whole * height + 0.5));
      const QRgb colour = state_colour(state, theme);
      for (; filled < top; ++filled) std::fill(lines[filled] + x, lines[filled] + end, colour);
    }
  }
}

void draw_samples(QImage& image, int height, const analysis::StackSamples& samples, const TimeAxis& axis, QRgb colour) {
  std::vector<QRgb*> lines;
  for (int y = 0; y < height; ++y) lines.push_back(state_strip::line(image, y));
  std::size_t at = state_strip::first_from(samples, 0, axis.time_at(0));
  while (at < samples.size()) {
    const int x = static_cast<int>(axis.x_of(static_cast<double>(samples.time_ns[at])));
    if (x >= axis.width()) return;
    for (QRgb* one : lines) one[x] = colour;
    at = state_strip::first_from(samples, at + 1, axis.time_at(x + 1));
  }
}

std::optional<StateStretch> state_at(const ThreadStates& states, double time_ns) {
  if (!states.exact) return std::nullopt;
  const auto time = static_cast<std::int64_t>(time_ns);
  const auto after = std::ranges::upper_bound(states.time_ns, time);
  if (after == states.time_ns.begin() || after == states.time_ns.end()) return std::nullopt;
  const auto next = static_cast<std::size_t>(after - states.time_ns.begin());
  StateStretch stretch{.state = ThreadState::blocked, .start_ns = *(after - 1), .end_ns = *after};
  if (states.running_ns[next] > states.running_ns[next - 1]) stretch.state = ThreadState::running;
  if (states.waiting_ns[next] > states.waiting_ns[next - 1]) stretch.state = ThreadState::waiting;
  return stretch;
}

QString state_lines(const CpuTimes& times) {
  QString lines;
  for (const ThreadState state : state_order) {
    const double ns = time_in(times, state);
    if (ns < 0.5) continue;
    lines += tooltip_line(state_text(state),
                          QString("%1, %2").arg(duration_text(std::llround(ns)), share_text(ns / times.known_ns)));
  }
  return lines;
}

}  // namespace paceline::viewer
