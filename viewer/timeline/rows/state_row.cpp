// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/rows/state_row.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/trace/stack_frames.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace state_row {

constexpr int strip_height = 8, labelled_height = 14, tick_height = 4;

bool has_states(const analysis::Track& track) { return !track.states.empty() || track.stacks.size() > 0; }

}  // namespace state_row

StateRow::StateRow(Document& document, std::size_t rank, std::vector<std::size_t> tracks, Hidden hidden, bool labelled)
    : Row(document, rank, hidden), tracks_(std::move(tracks)), labelled_(labelled) {
  for (const std::size_t t : tracks_) {
    states_.push_back({&track(t).states, &index().few_states[t]});
    sampled_ = sampled_ || track(t).stacks.size() > 0;
  }
}

Row::Height StateRow::height() const {
  const int strip = labelled_ ? state_row::labelled_height : state_row::strip_height;
  return {0, strip + (sampled_ ? state_row::tick_height : 0)};
}

bool StateRow::shown() const {
  if (!kinds_) return true;
  return std::ranges::any_of(tracks_, [&](std::size_t t) {
    return std::ranges::any_of(index().kinds[t], [&](analysis::KindId kind) { return (*kinds_)[kind]; });
  });
}

QImage StateRow::drawn(const RowCanvas& canvas) const {
  QImage image(canvas.axis.width(), canvas.height, QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::transparent);
  const int ticks = sampled_ ? state_row::tick_height : 0;
  draw_states(image, canvas.height - ticks, states_, canvas.axis, canvas.theme);
  for (const std::size_t t : tracks_) {
    if (ticks > 0) draw_samples(image, ticks - 1, track(t).stacks, canvas.axis, canvas.theme.faint_text);
  }
  return image;
}

void StateRow::look_up(const RowCanvas& canvas) { drawn_ = drawn(canvas); }

void StateRow::paint(RowCanvas& canvas) {
  const QImage image = drawn_.isNull() ? drawn(canvas) : std::exchange(drawn_, {});
  canvas.painter.drawImage(QPoint(0, canvas.y), image);
  ++canvas.counts.rectangles;
}

void StateRow::paint_header(RowCanvas& canvas, const Arrangement&) {
  if (labelled_) paint_track_label(canvas, name(), false, canvas.name_box());
}

QString StateRow::header_tooltip(const Arrangement&) const {
  QString lines;
  for (const std::size_t t : tracks_) {
    const auto& states = track(t).states;
    if (states.empty()) continue;
    if (tracks_.size() > 1) lines += tooltip_line(shown_name(track(t).label).toHtmlEscaped(), "");
    lines += state_lines(cpu_times(states, states.time_ns.front(), states.time_ns.back()));
  }
  return viewer::tooltip(name() + ": states in the whole run", lines);
}

std::optional<StateStretch> StateRow::stretch_at(double time_ns) const {
  for (const StripStates& states : states_) {
    if (const auto stretch = state_at(*states.all, time_ns)) return stretch;
  }
  return std::nullopt;
}

// The sample that is nearest to the point, within 3 pixels.
QString StateRow::sample_lines(const RowPoint& point) const {
  constexpr std::size_t most_frames = 10;
  const double middle = point.time_ns + 0.5 * point.ns_per_pixel;
  const analysis::StackSamples* samples = nullptr;
  std::size_t nearest = 0;
  double distance = 3 * point.ns_per_pixel;
  for (const std::size_t t : tracks_) {
    const auto& times = track(t).stacks.time_ns;
    const auto after = std::ranges::lower_bound(times, static_cast<std::int64_t>(middle));
    for (const auto& at : {after, after == times.begin() ? after : after - 1}) {
      if (at == times.end() || std::abs(double(*at) - middle) > distance) continue;
      distance = std::abs(double(*at) - middle);
      samples = &track(t).stacks;
      nearest = static_cast<std::size_t>(at - times.begin());
    }
  }
  if (samples == nullptr) return {};
  QString title = time_text(double(samples->time_ns[nearest]), point.ns_per_pixel, point.end_ns);
  if (const auto stretch = stretch_at(double(samples->time_ns[nearest]))) title += ", " + state_text(stretch->state);
  QString lines = tooltip_line("sample", title);
  const auto frames = frames_of(run().trace.stacks, samples->stack[nearest]);
  if (frames.empty()) return lines + tooltip_line("", "no function is known");
  for (std::size_t i = 0; i < std::min(most_frames, frames.size()); ++i) {
    lines += tooltip_line(i == 0   ? "in"
                          : i == 1 ? "called by"
                                   : "",
                          frame_text(run().trace, frames[frames.size() - 1 - i]));
  }
  if (frames.size() > most_frames) {
    lines += tooltip_line("", "and " + plural_text(frames.size() - most_frames, "more function", "more functions"));
  }
  return lines;
}

QString StateRow::tooltip(const RowPoint& point) {
  const QString sample = sample_lines(point);
  const auto begin = static_cast<std::int64_t>(point.time_ns);
  const auto end = std::max(begin + 1, static_cast<std::int64_t>(point.time_ns + point.ns_per_pixel));
  const auto stretch = stretch_at(point.time_ns);
  if (stretch && stretch->end_ns >= end) {
    return viewer::tooltip(
        name() + ": " + state_text(stretch->state),
        tooltip_line("duration", duration_text(stretch->end_ns - stretch->start_ns)) +
            tooltip_line("start", time_text(double(stretch->start_ns), point.ns_per_pixel, point.end_ns)) + sample);
  }
  // Several states share the column, or only sums are known: the shares over ten columns say more than those of one.
  const auto margin = static_cast<std::int64_t>(4.5 * point.ns_per_pixel);
  for (const StripStates& states : states_) {
    const auto times = cpu_times(*states.all, begin - margin, end + margin);
    if (times.known_ns <= 0) continue;
    return viewer::tooltip(name() + ": states in " + duration_text(std::llround(times.known_ns)),
                           state_lines(times) + sample);
  }
  return sample.isEmpty() ? QString() : viewer::tooltip(name(), sample);
}

std::optional<analysis::TimeInterval> StateRow::interval_around(double time_ns) const {
  const auto stretch = stretch_at(time_ns);
  if (!stretch) return std::nullopt;
  return analysis::TimeInterval{stretch->start_ns, stretch->end_ns};
}

void add_state_row(Document& document, std::size_t rank, const std::vector<std::size_t>& tracks, Rows& rows) {
  const auto& all = document.run().trace.ranks[rank].tracks;
  if (std::ranges::none_of(tracks, [&](std::size_t t) { return state_row::has_states(all[t]); })) return;
  rows.push_back(std::make_unique<StateRow>(document, rank, tracks, Row::Hidden::with_rank, false));
}

// Threads of which only the states are known: of a library, say. They are shown with the counters where there are any.
void add_state_rows(Document& document, std::size_t rank, Rows& rows) {
  const auto& graphs = document.run().ranks[rank].graphs;
  const bool counted = std::ranges::any_of(graphs, [](const CounterGraph& graph) { return !graph.empty(); });
  const auto& tracks = document.run().trace.ranks[rank].tracks;
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    const bool sliced = tracks[t].slices.size() > 0 || tracks[t].marks.size() > 0;
    if (sliced || !state_row::has_states(tracks[t])) continue;
    rows.push_back(std::make_unique<StateRow>(document, rank, std::vector{t},
                                              counted ? Row::Hidden::with_counters : Row::Hidden::with_rank, true));
  }
}

}  // namespace paceline::viewer
