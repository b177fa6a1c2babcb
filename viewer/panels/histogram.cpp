// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/histogram.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "viewer/drawing/labels.h"
#include "viewer/drawing/palette.h"
#include "viewer/panels/table_panel.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace histogram {

constexpr int title_height = 26, axis_height = 20, margin = 14, bars_of_a_power = 16;

struct Quantile {
  const char* name;
  double q;
};
constexpr Quantile quantiles[] = {{"median", 0.5}, {"p95", 0.95}, {"p99", 0.99}};

}  // namespace histogram

int Durations::bar_of(std::int64_t ns) {
  return int(std::floor(std::log2(double(std::max<std::int64_t>(ns, 1))) * histogram::bars_of_a_power));
}
double Durations::begin_of(int bar) { return std::exp2(double(bar) / histogram::bars_of_a_power); }
double Durations::place_of(double ns) const {
  return std::log2(std::max(ns, 1.0)) * histogram::bars_of_a_power - first;
}

Durations durations_in(const Run& run, analysis::NameId name, const Part& part, const Ticket& ticket) {
  constexpr std::size_t powers = 64;
  std::vector<Durations::Bar> bars(powers * histogram::bars_of_a_power);
  Durations found;
  const auto& kinds = run.trace.kinds;
  each_slice_in(run, part, ticket, [&](const SliceRef& ref, analysis::KindId kind, std::int64_t ns) {
    if (kinds[kind].name != name) return;
    found.sketch.add(ns);
    Durations::Bar& bar = bars[std::size_t(Durations::bar_of(ns))];
    ++bar.count;
    if (ns > bar.longest_ns) bar.longest_ns = ns, bar.longest = ref;
  });
  if (found.sketch.count() == 0) return found;
  found.first = Durations::bar_of(found.sketch.minimum_ns());
  found.bars.assign(bars.begin() + found.first, bars.begin() + Durations::bar_of(found.sketch.maximum_ns()) + 1);
  return found;
}

Histogram::Histogram(Document& document, Selection& selection) : LazyPanel(document, selection) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName("Durations of the slices of one name");
  setMinimumSize(200, 80);
  connect(&selection, &Selection::slices_changed, this, [this] { set_stale(); });
  connect(&selection, &Selection::range_changed, this, [this] { set_stale(); });
}

void Histogram::refresh() {
  const auto selected = selection_.slice();
  task_.cancel();
  durations_ = {};
  cursor_.reset();
  update();
  if (!selected || selected->mark) {
    status_ = "Select a slice: this panel shows how long all slices of its name took.";
    return;
  }
  status_ = "computing…";
  const analysis::NameId name = kind_of(document_.run(), *selected).name;
  task_.start([run = document_.shared_run(), name,
               part = selected_part()](const Ticket& ticket) { return durations_in(*run, name, part, ticket); },
              [this, name, part = selected_part()](Durations found) {
                durations_ = std::move(found);
                const auto& sketch = durations_.sketch;
                status_ = QString("%1: %2%3")
                              .arg(shown_name(document_.run().trace.names[name], 60),
                                   plural_text(sketch.count(), "slice ", "slices "), part_text(part));
                if (sketch.count() > 0) {
                  status_ += QString("   shortest %1").arg(duration_text(sketch.minimum_ns()));
                  for (const auto& [text, q] : histogram::quantiles) {
                    status_ += QString("   %1 %2").arg(text, duration_text(std::int64_t(sketch.quantile_ns(q))));
                  }
                  status_ += QString("   longest %1").arg(duration_text(sketch.maximum_ns()));
                }
                setAccessibleDescription(status_);
                update();
              });
}

QRect Histogram::bar(std::size_t i) const {
  using namespace histogram;
  const double room = double(std::max(1, width() - 2 * margin)) / double(durations_.bars.size());
  std::uint64_t most = 1;
  for (const auto& one : durations_.bars) most = std::max(most, one.count);
  const int bottom = height() - axis_height, whole = std::max(1, bottom - title_height - 14);
  // A bar of a single slice beside one of a million is still seen.
  const std::uint64_t count = durations_.bars[i].count;
  const int tall = count == 0 ? 0 : std::max(2, int(double(whole) * double(count) / double(most)));
  const int left = margin + int(room * double(i)), right = margin + int(room * double(i + 1));
  return {left, bottom - tall, std::max(1, right - left - 1), tall};
}

std::optional<std::size_t> Histogram::at(const QPoint& position) const {
  const auto count = durations_.bars.size();
  const int room = width() - 2 * histogram::margin, x = position.x() - histogram::margin;
  if (count == 0 || x < 0 || x >= room || position.y() < histogram::title_height) return std::nullopt;
  return std::min(count - 1, std::size_t(x) * count / std::size_t(room));
}

QString Histogram::text_of(std::size_t i) const {
  const int number = durations_.first + int(i);
  return QString("%1 of %2 to %3")
      .arg(plural_text(durations_.bars[i].count, "slice", "slices"),
           duration_text(std::int64_t(std::ceil(Durations::begin_of(number)))),
           duration_text(std::int64_t(std::ceil(Durations::begin_of(number + 1)))));
}

QString Histogram::tip_at(const QPoint& position) const {
  const auto bar = at(position);
  return bar ? text_of(*bar) : QString();
}

void Histogram::paintEvent(QPaintEvent*) {
  using namespace histogram;
  const Theme theme = Theme::of(palette());
  QPainter painter(this);
  painter.fillRect(rect(), QColor(theme.background));
  painter.setFont(with_size(font(), 11));
  painter.setPen(QColor(theme.faint_text));
  painter.drawText(QRect(12, 0, width() - 24, title_height), Qt::AlignVCenter | Qt::AlignLeft,
                   painter.fontMetrics().elidedText(status_, Qt::ElideRight, width() - 24));
  if (durations_.bars.empty()) return;
  const QColor fill(palette().color(QPalette::Highlight));
  for (std::size_t i = 0; i < durations_.bars.size(); ++i) painter.fillRect(bar(i), fill);
  const int bottom = height() - axis_height;
  painter.fillRect(margin, bottom, width() - 2 * margin, 1, QColor(theme.row_line));
  const double room = double(width() - 2 * margin) / double(durations_.bars.size());
  const auto column = [&](double ns) { return margin + int(std::lround(durations_.place_of(ns) * room)); };
  int free_from = 0;
  for (std::size_t i = 0; i <= durations_.bars.size(); ++i) {  // the durations below the bars' edges
    const int x = margin + int(room * double(i));
    const QString text = duration_text(std::int64_t(std::ceil(Durations::begin_of(durations_.first + int(i)))));
    const int text_width = painter.fontMetrics().horizontalAdvance(text);
    if (x - text_width / 2 < free_from || x + text_width / 2 > width()) continue;
    painter.fillRect(x, bottom, 1, 4, QColor(theme.faint_text));
    painter.drawText(QRect(x - text_width / 2, bottom + 3, text_width + 2, axis_height - 3), Qt::AlignCenter, text);
    free_from = x + text_width / 2 + 16;
  }
  for (const auto& [text, q] : quantiles) {
    const int x = column(durations_.sketch.quantile_ns(q));
    painter.fillRect(x, title_height, 1, bottom - title_height, QColor(theme.crosshair));
    painter.drawText(QRect(x + 3, title_height - 4, 60, 16), Qt::AlignVCenter | Qt::AlignLeft, text);
  }
  if (const auto selected = selection_.slice(); selected && !selected->mark) {
    const int x = column(double(slices_of(document_.run(), *selected).duration_ns[selected->slice]));
    const QPoint triangle[] = {{x - 5, bottom + 7}, {x + 5, bottom + 7}, {x, bottom}};
    painter.setBrush(QColor(theme.selection));
    painter.setPen(Qt::NoPen);
    painter.drawPolygon(triangle, 3);
  }
  if (cursor_ && hasFocus()) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(QColor(theme.selection), 1));
    painter.drawRect(bar(*cursor_).adjusted(0, -1, 0, 0));
  }
}

void Histogram::set_cursor(std::size_t bar) {
  cursor_ = bar;
  setAccessibleDescription(text_of(bar));
  update();
}

void Histogram::go_to(std::size_t bar) {
  const Durations::Bar found = durations_.bars[bar];  // the selection computes the bars anew
  if (found.count > 0) selection_.go_to({.slice = found.longest});
}

void Histogram::mousePressEvent(QMouseEvent* event) {
  if (const auto pressed = at(event->position().toPoint())) go_to(*pressed);
}

void Histogram::keyPressEvent(QKeyEvent* event) {
  const std::size_t count = durations_.bars.size();
  const std::size_t bar = cursor_.value_or(0);
  if (count > 0 && event->key() == Qt::Key_Right) return set_cursor(cursor_ ? std::min(bar + 1, count - 1) : 0);
  if (count > 0 && event->key() == Qt::Key_Left) return set_cursor(bar > 0 ? bar - 1 : 0);
  if (count > 0 && (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter)) return go_to(bar);
  LazyPanel::keyPressEvent(event);
}

}  // namespace paceline::viewer
