// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/heat_map.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <tuple>

#include "viewer/drawing/labels.h"
#include "viewer/drawing/palette.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace heat_map {

constexpr int title_height = 26, names_width = 64, numbers_height = 18, margin = 10;
constexpr QRgb late = 0xffd55e00, early = 0xff0072b2;

void take_lateness(const analysis::LatenessTable& table, HeatValues& values) {
  values.lateness = true;
  values.numbers = table.numbers;
  for (std::size_t rank = 0; rank < values.ranks; ++rank) {
    for (std::size_t i = 0; i < table.iterations(); ++i) values.ns.push_back(table.late_ns[i * table.ranks + rank]);
  }
}

// Each iteration beside the median of all ranks and iterations.
void take_durations(const analysis::RunAnalysis& figures, HeatValues& values) {
  values.numbers = figures.iterations.numbers;
  values.ns.assign(values.ranks * values.numbers.size(), 0);
  for (std::size_t rank = 0; rank < values.ranks; ++rank) {
    for (const analysis::Iteration& iteration : figures.per_rank[rank].iterations) {
      const auto at = std::ranges::lower_bound(values.numbers, iteration.number);
      if (at == values.numbers.end() || *at != iteration.number || !iteration.finished) continue;
      values.ns[rank * values.numbers.size() + std::size_t(at - values.numbers.begin())] =
          double(iteration.duration_ns - figures.iterations.median_ns);
    }
  }
}

// The largest value of the cells that share a pixel, so that a single late rank stays visible.
QImage image_of(const HeatValues& values, const Theme& theme) {
  constexpr std::size_t most_rows = 1024, most_columns = 4096;
  const std::size_t columns = values.numbers.size();
  const std::size_t width = std::min(columns, most_columns), height = std::min(values.ranks, most_rows);
  QImage image(int(width), int(height), QImage::Format_RGB32);
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      double most = 0;
      for (std::size_t rank = y * values.ranks / height; rank < (y + 1) * values.ranks / height; ++rank) {
        for (std::size_t column = x * columns / width; column < (x + 1) * columns / width; ++column) {
          if (std::abs(values.at(rank, column)) > std::abs(most)) most = values.at(rank, column);
        }
      }
      const int percent =
          values.full_ns > 0 ? int(std::lround(100 * std::min(1.0, std::abs(most) / values.full_ns))) : 0;
      image.setPixel(int(x), int(y), blend(most > 0 ? late : early, theme.background, percent));
    }
  }
  return image;
}

}  // namespace heat_map

HeatValues heat_values(const analysis::RunAnalysis& figures) {
  HeatValues values;
  values.ranks = figures.per_rank.size();
  if (figures.lateness_table.iterations() > 0) {
    heat_map::take_lateness(figures.lateness_table, values);
  } else {
    heat_map::take_durations(figures, values);
  }
  std::vector<double> sizes;
  for (const double ns : values.ns) sizes.push_back(std::abs(ns));
  if (sizes.empty()) return values;
  const auto at = sizes.begin() + std::ptrdiff_t(0.99 * double(sizes.size() - 1));
  std::ranges::nth_element(sizes, at);
  values.full_ns = *at > 0 ? *at : *std::ranges::max_element(sizes);
  return values;
}

HeatMap::HeatMap(Document& document, Selection& selection) : LazyPanel(document, selection) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName("Lateness of each rank in each iteration");
  setMinimumSize(200, 80);
  connect(&document, &Document::analysed, this, [this] { set_stale(); });
}

void HeatMap::refresh() {
  if (document_.insight() == nullptr) return;
  dark_ = Theme::of(palette()).dark;
  task_.start(
      [insight = document_.shared_insight(), theme = Theme::of(palette())](const Ticket&) {
        HeatValues values = heat_values(insight->figures);
        QImage image = values.ns.empty() ? QImage() : heat_map::image_of(values, theme);
        return std::pair(std::move(values), std::move(image));
      },
      [this](std::pair<HeatValues, QImage> made) {
        std::tie(values_, image_) = std::move(made);
        status_ = empty() ? QString("No iteration was finished by all ranks, so there is nothing to compare.")
                          : QString("%1. Orange: %2; blue: %3. Full colour: %4 and more.")
                                .arg(values_.lateness ? "Arrival at collectives, beside the median rank"
                                                      : "Duration of each iteration, beside the median",
                                     values_.lateness ? "late" : "slower", values_.lateness ? "early" : "faster",
                                     duration_text(std::int64_t(values_.full_ns)));
        update();
      });
}

QRect HeatMap::area() const {
  using namespace heat_map;
  return QRect(names_width, title_height, std::max(1, width() - names_width - margin),
               std::max(1, height() - title_height - numbers_height));
}

QRect HeatMap::cell(std::size_t rank, std::size_t column) const {
  const QRect box = area();
  const auto edge = [](int begin, int length, std::size_t at, std::size_t of) {
    return begin + int(double(length) * double(at) / double(of));
  };
  const int left = edge(box.left(), box.width(), column, values_.numbers.size());
  const int top = edge(box.top(), box.height(), rank, values_.ranks);
  return {QPoint(left, top),
          QPoint(std::max(left, edge(box.left(), box.width(), column + 1, values_.numbers.size()) - 1),
                 std::max(top, edge(box.top(), box.height(), rank + 1, values_.ranks) - 1))};
}

std::optional<HeatMap::Cell> HeatMap::at(const QPoint& position) const {
  const QRect box = area();
  if (empty() || !box.contains(position)) return std::nullopt;
  return Cell(std::size_t(position.y() - box.top()) * values_.ranks / std::size_t(box.height()),
              std::size_t(position.x() - box.left()) * values_.numbers.size() / std::size_t(box.width()));
}

QString HeatMap::text_of(const Cell& cell) const {
  const double ns = values_.at(cell.first, cell.second);
  const QString word = values_.lateness ? (ns > 0 ? "late" : "early") : (ns > 0 ? "slower" : "faster");
  return QString("Rank %1, iteration %2: %3 %4")
      .arg(document_.run().trace.ranks[cell.first].rank)
      .arg(values_.numbers[cell.second])
      .arg(duration_text(std::llround(std::abs(ns))), word);
}

bool HeatMap::event(QEvent* event) {
  if (event->type() == QEvent::PaletteChange && dark_ != Theme::of(palette()).dark) set_stale();
  return LazyPanel::event(event);
}

QString HeatMap::tip_at(const QPoint& position) const {
  const auto cell = at(position);
  return cell ? text_of(*cell) : QString();
}

void HeatMap::paintEvent(QPaintEvent*) {
  using namespace heat_map;
  const Theme theme = Theme::of(palette());
  QPainter painter(this);
  painter.fillRect(rect(), QColor(theme.background));
  painter.setFont(with_size(font(), 11));
  painter.setPen(QColor(theme.faint_text));
  painter.drawText(QRect(12, 0, width() - 24, title_height), Qt::AlignVCenter | Qt::AlignLeft,
                   painter.fontMetrics().elidedText(status_, Qt::ElideRight, width() - 24));
  if (empty()) return;
  const QRect box = area();
  painter.drawImage(box, image_);
  // As many names and numbers as there is room for.
  const int line = painter.fontMetrics().height();
  const std::size_t lines = std::max<std::size_t>(1, std::size_t(box.height() / line));
  const std::size_t every = (values_.ranks + lines - 1) / lines;
  for (std::size_t rank = 0; rank < values_.ranks; rank += every) {
    const QRect row = cell(rank, 0);
    painter.drawText(QRect(0, row.center().y() - line / 2, names_width - 8, line), Qt::AlignRight | Qt::AlignVCenter,
                     QString("Rank %1").arg(document_.run().trace.ranks[rank].rank));
  }
  int free_from = 0;
  for (std::size_t column = 0; column < values_.numbers.size(); ++column) {
    const QRect place = cell(0, column);
    const QString number = QString::number(values_.numbers[column]);
    const int text_width = painter.fontMetrics().horizontalAdvance(number);
    if (place.left() < free_from || place.left() + text_width > width()) continue;
    painter.drawText(QRect(place.left(), box.bottom() + 1, text_width + 2, numbers_height), Qt::AlignVCenter, number);
    free_from = place.left() + text_width + 14;
  }
  if (cursor_ && hasFocus()) {
    painter.setPen(QPen(QColor(theme.selection), 2));
    painter.drawRect(cell(cursor_->first, cursor_->second));
  }
}

void HeatMap::set_cursor(const Cell& cell) {
  cursor_ = cell;
  setAccessibleDescription(text_of(cell));
  update();
}

void HeatMap::go_to(const Cell& cell) {
  set_cursor(cell);
  const std::int64_t number = values_.numbers[cell.second];
  for (const analysis::Iteration& iteration : document_.run().index->iterations(cell.first)) {
    if (iteration.number != number) continue;
    const double begin = double(iteration.start_ns), length = double(iteration.duration_ns);
    return selection_.go_to({.rank = cell.first, .range = TimeRange{begin - 0.1 * length, begin + 1.1 * length}});
  }
}

void HeatMap::mousePressEvent(QMouseEvent* event) {
  if (const auto pressed = at(event->position().toPoint())) go_to(*pressed);
}

void HeatMap::keyPressEvent(QKeyEvent* event) {
  if (empty()) return LazyPanel::keyPressEvent(event);
  Cell cell = cursor_.value_or(Cell(0, 0));
  switch (event->key()) {
    case Qt::Key_Left:
      if (cell.second > 0) --cell.second;
      break;
    case Qt::Key_Right:
      cell.second = std::min(cell.second + 1, values_.numbers.size() - 1);
      break;
    case Qt::Key_Up:
      if (cell.first > 0) --cell.first;
      break;
    case Qt::Key_Down:
      cell.first = std::min(cell.first + 1, values_.ranks - 1);
      break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      return go_to(cell);
    default:
      return LazyPanel::keyPressEvent(event);
  }
  set_cursor(cell);
}

}  // namespace paceline::viewer
