#include "viewer/timeline/rows/slice_row.h"

#include <QFontMetrics>
#include <algorithm>

#include "viewer/drawing/phase_strip.h"
#include "viewer/drawing/time_text.h"

namespace paceline::viewer {

SliceRow::SliceRow(Document& document, std::size_t rank, std::size_t track, unsigned mpi_depths)
    : Row(document, rank, Hidden::with_rank), track_(track), mpi_depths_(mpi_depths), index_(document) {}

Row::Height SliceRow::height() const {
  const int depths = static_cast<int>(of_mpi() ? mpi_depths_ : track().depths);
  return {std::max(depths, 1), has_marks() ? mark_lane : 0};
}

const SliceRow::Index* SliceRow::find_index() {
  const auto make = [&run = run(), &track = track(), mpi = of_mpi()]() -> Index {
    if (mpi) return {analysis::LevelOfDetail(track.slices, mpi_kinds(run.trace)), {}};
    return {analysis::LevelOfDetail(track.slices), analysis::LevelOfDetail(track.marks)};
  };
  return index_.get(slices().size() + track().marks.size(), make);
}

std::optional<unsigned> SliceRow::level_of(const Index& index, std::uint32_t slice) const {
  for (unsigned depth = 0; depth < index.slices.depths(); ++depth) {
    const std::size_t at = index.slices.position(depth, slice);
    if (at < index.slices.count(depth) && index.slices.slice(depth, at) == slice) return depth;
  }
  return std::nullopt;
}

void SliceRow::paint(RowCanvas& canvas) {
  const Index* index = find_index();
  canvas.painter.setFont(canvas.small);
  if (index == nullptr) {
    const QRect row(0, canvas.y, canvas.axis.width(), canvas.height);
    canvas.painter.setPen(QColor(canvas.theme.faint_text));
    canvas.painter.drawText(row.adjusted(12, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, "computing…");
    ++canvas.counts.labels;
    return;
  }
  if (has_marks()) paint_marks(canvas, *index);
  const int levels_y = canvas.y + height().pixels;
  for (unsigned depth = 0; depth < index->slices.depths(); ++depth) {
    const int y = levels_y + static_cast<int>(depth) * canvas.level_height;
    if (y + canvas.level_height > canvas.top && y < canvas.bottom) paint_level(canvas, *index, depth, y);
  }
  if (!of_mpi() && index->slices.depths() > 0) {
    const QRect all(0, levels_y, canvas.axis.width(), canvas.y + canvas.height - levels_y - 1);
    canvas.counts += paint_losses(canvas.painter, track().lost, canvas.axis, all, canvas.theme, false);
  }
}

void SliceRow::paint_level(RowCanvas& canvas, const Index& index, unsigned depth, int y) {
  const auto columns = canvas.axis.columns();
  const auto& slices = this->slices();
  index.slices.items(slices, depth, columns, canvas.items);
  const auto own_colour = [&](std::uint32_t slice) { return canvas.colours.of(slices.kind[slice]); };
  // A fold takes the colour of its longest slice if that fills most of the column. Else it takes the colour of the
  // slice in the middle, fainter where the middle is a gap.
  const auto colour_of = [&](const analysis::LevelOfDetail::Item& item) {
    if (item.count == 1 || 2 * double(slices.duration_ns[item.slice]) >= columns.ns_per_pixel) {
      return own_colour(item.slice);
    }
    const double middle_ns = columns.begin_ns + (item.first + 0.5) * columns.ns_per_pixel;
    const bool busy = double(slices.end_ns(item.middle)) > middle_ns;
    return blend(own_colour(item.middle), canvas.theme.background, busy ? 80 : 35);
  };
  // Items that are too narrow for a label, up to one in every column, are collected in one line and drawn at once.
  QImage* narrow = nullptr;
  for (const auto& item : canvas.items) {
    const QRgb colour = colour_of(item);
    const int left = std::max(item.first, 0), right = std::min(item.end, columns.count);
    if (right <= left) continue;
    if (item.end - item.first < 3) {
      if (narrow == nullptr) narrow = &canvas.blank(columns.count, 1);
      QRgb* line = reinterpret_cast<QRgb*>(narrow->scanLine(0));
      std::fill(line + left, line + right, colour);
      continue;
    }
    const QRect box(left, y, right - left - 1, canvas.level_height - 1);
    canvas.painter.fillRect(box, QColor(colour));
    ++canvas.counts.rectangles;
    if (canvas.marked == run().trace.kind_of(slices, item.slice).name) {
      canvas.painter.fillRect(box.left(), box.bottom() - 1, box.width(), 2, QColor(canvas.theme.selection));
      ++canvas.counts.rectangles;
    }
    if (box.width() < 20) continue;
    const QString label = label_of(canvas, item.slice, box.width());
    if (paint_label(canvas.painter, box, label, colour)) ++canvas.counts.labels;
  }
  if (narrow != nullptr) {
    canvas.painter.drawImage(QRect(0, y, columns.count, canvas.level_height - 1), *narrow);
    ++canvas.counts.rectangles;
  }
}

void SliceRow::paint_marks(RowCanvas& canvas, const Index& index) {
  canvas.painter.save();
  canvas.painter.setRenderHint(QPainter::Antialiasing, true);
  canvas.painter.setPen(Qt::NoPen);
  canvas.painter.setBrush(QColor(canvas.theme.faint_text));
  for (unsigned depth = 0; depth < index.marks.depths(); ++depth) {
    index.marks.items(track().marks, depth, canvas.axis.columns(), canvas.items);
    for (const auto& item : canvas.items) {
      const double x = item.first + 0.5, y = canvas.y + 2;
      const QPointF flag[] = {{x - 4, y}, {x + 4, y}, {x, y + 7}};
      canvas.painter.drawPolygon(flag, 3);
      ++canvas.counts.rectangles;
    }
  }
  canvas.painter.restore();
}

QString SliceRow::label_of(const RowCanvas& canvas, std::uint32_t slice, int width) const {
  const QFontMetrics metrics(canvas.small);
  const auto fits = [&](const QString& text) { return metrics.horizontalAdvance(text) + 12 <= width; };
  const SliceRef ref{.rank = rank(), .track = track_, .slice = slice};
  const QString title = slice_title(run(), ref);
  // The duration follows if there is room. If there is not even room for the title, an iteration is labelled with its
  // number, which is more useful than the beginning of its name.
  if (width >= 110) {
    const QString longer = title + "   " + duration_text(track().slices.duration_ns[slice]);
    if (fits(longer)) return longer;
  }
  if (fits(title) || category_of(run(), ref) != "iteration") return title;
  const QString number = title.mid(title.lastIndexOf(' ') + 1);
  return number.size() < title.size() && fits(number) ? number : QString();
}

void SliceRow::paint_header(RowCanvas& canvas, const ViewState&) {
  const QRect box(header_left, canvas.y + height().pixels, header_width - header_left - header_margin,
                  canvas.level_height);
  paint_track_label(canvas, of_mpi() ? QString("MPI") : QString::fromStdString(track().label),
                    track().main && !of_mpi(), box);
}

QString SliceRow::tooltip(const RowPoint& point) {
  const auto ref = slice_at(point);
  if (!ref) return {};
  const auto& slices = slices_of(run(), *ref);
  QString lines;
  const auto add = [&](const QString& key, const QString& value) {
    if (!value.isEmpty()) lines += tooltip_line(key, value);
  };
  if (!ref->mark) add("duration", duration_text(slices.duration_ns[ref->slice]));
  add("start", time_text(double(slices.start_ns[ref->slice]), point.ns_per_pixel, point.end_ns));
  add("category", category_of(run(), *ref));
  add("domain", domain_of(run(), *ref));
  slices.each_argument(ref->slice, [&](const analysis::Argument& argument) {
    add(QString::fromStdString(run().trace.names[argument.key]).toHtmlEscaped(), value_text(run(), argument));
  });
  return viewer::tooltip(slice_title(run(), *ref), lines);
}

std::optional<SliceRef> SliceRow::slice_at(const RowPoint& point) {
  const Index* index = find_index();
  if (index == nullptr) return std::nullopt;
  const int lane = height().pixels;
  const double time = point.time_ns + 0.5 * point.ns_per_pixel;
  for (const double slack : {0.5 * point.ns_per_pixel, 3 * point.ns_per_pixel}) {
    if (point.y >= lane) {
      const auto depth = static_cast<unsigned>((point.y - lane) / point.level_height);
      const auto slice = index->slices.slice_at(slices(), depth, time, slack);
      if (slice) return ref_to(*slice);
    }
    // Marks share one lane, whatever their depth.
    for (unsigned depth = 0; point.y < lane && depth < index->marks.depths(); ++depth) {
      const auto mark = index->marks.slice_at(track().marks, depth, time, slack);
      if (mark) return SliceRef{.rank = rank(), .track = track_, .slice = *mark, .mark = true};
    }
  }
  return std::nullopt;
}

std::optional<SliceRef> SliceRow::slice_near(double time_ns, double slack_ns) {
  const Index* index = find_index();
  if (index == nullptr) return std::nullopt;
  const auto slice = index->slices.slice_at(slices(), 0, time_ns, slack_ns);
  return slice ? std::optional(ref_to(*slice)) : std::nullopt;
}

std::optional<SliceRef> SliceRow::neighbour(const SliceRef& from, ViewState::Step step) {
  using Step = ViewState::Step;
  const Index* found = find_index();
  const auto level = found ? level_of(*found, from.slice) : std::nullopt;
  if (!level) return std::nullopt;
  const analysis::LevelOfDetail& index = found->slices;
  if (step == Step::outward) {
    if (*level == 0) return std::nullopt;
    const auto around = index.slice_at(slices(), *level - 1, static_cast<double>(slices().start_ns[from.slice]), 0);
    return around ? std::optional(ref_to(*around)) : std::nullopt;
  }
  const unsigned depth = step == Step::inward ? *level + 1 : *level;
  std::size_t at = index.position(depth, from.slice);
  if (step == Step::previous && at == 0) return std::nullopt;
  if (step != Step::inward) at += step == Step::next ? 1 : std::size_t(-1);
  if (at >= index.count(depth)) return std::nullopt;
  const std::uint32_t to = index.slice(depth, at);
  if (step == Step::inward && slices().start_ns[to] >= slices().end_ns(from.slice)) return std::nullopt;
  return ref_to(to);
}

std::optional<std::pair<int, int>> SliceRow::place_of(const SliceRef& ref, int level_height) {
  if (ref.rank != rank() || ref.track != track_ || ref.mpi_row != of_mpi()) return std::nullopt;
  if (ref.mark) return std::pair(0, mark_lane);
  std::optional<unsigned> level = slices().depth[ref.slice];
  if (of_mpi()) {
    const Index* index = find_index();
    level = index ? level_of(*index, ref.slice) : std::nullopt;
  }
  if (!level) return std::nullopt;
  const int top = height().pixels + static_cast<int>(*level) * level_height;
  return std::pair(top, top + level_height);
}

void add_slice_rows(Document& document, std::size_t rank, analysis::TrackKind kind, bool main, Rows& rows) {
  const auto& tracks = document.run().trace.ranks[rank].tracks;
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    const bool empty = tracks[t].slices.size() == 0 && tracks[t].marks.size() == 0;
    if (tracks[t].kind != kind || tracks[t].main != main || empty) continue;
    rows.push_back(std::make_unique<SliceRow>(document, rank, t));
  }
}

}  // namespace paceline::viewer
