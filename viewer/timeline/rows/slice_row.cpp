// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/rows/slice_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "viewer/drawing/phase_strip.h"
#include "viewer/text/time_text.h"
#include "viewer/timeline/rows/state_row.h"

namespace paceline::viewer {

SliceRow::SliceRow(Document& document, std::size_t rank, std::vector<std::size_t> tracks)
    : Row(document, rank, Hidden::with_rank), tracks_(std::move(tracks)), indexes_(document) {}

bool SliceRow::has_marks() const {
  return !kinds_ && std::ranges::any_of(tracks_, [&](std::size_t t) { return track(t).marks.size() > 0; });
}

Row::Height SliceRow::height() const {
  int levels = 1;
  const Indexes* made = kinds_ ? indexes_.made() : nullptr;
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    const unsigned depths = made != nullptr ? (*made)[i].slices.depths() : track(tracks_[i]).depths;
    levels = std::max(levels, static_cast<int>(depths));
  }
  return {levels, has_marks() ? mark_lane : 0};
}

void SliceRow::set_filter(const KindSet& kinds) {
  kinds_ = kinds;
  indexes_.reset();
}

bool SliceRow::shown() const {
  if (!kinds_) return true;
  return std::ranges::any_of(tracks_, [&](std::size_t t) {
    return std::ranges::any_of(index().kinds[t], [&](analysis::KindId kind) { return (*kinds_)[kind]; });
  });
}

const SliceRow::Indexes* SliceRow::find_indexes() {
  std::size_t slices = 0;
  for (const std::size_t t : tracks_) slices += track(t).slices.size() + track(t).marks.size();
  return indexes_.get(slices, [&rank = model(), tracks = tracks_, kinds = kinds_] {
    Indexes indexes;
    for (const std::size_t t : tracks) {
      const analysis::Track& track = rank.tracks[t];
      using Detail = analysis::LevelOfDetail;
      indexes.push_back({t, kinds ? Detail(track.slices, *kinds) : Detail(track.slices), Detail(track.marks)});
    }
    return indexes;
  });
}

const SliceRow::Index* SliceRow::index_of(const SliceRef& ref) {
  const auto at = std::ranges::find(tracks_, ref.track);
  if (ref.rank != rank() || at == tracks_.end()) return nullptr;
  const Indexes* indexes = find_indexes();
  return indexes != nullptr ? &(*indexes)[static_cast<std::size_t>(at - tracks_.begin())] : nullptr;
}

std::optional<unsigned> SliceRow::level_of(const Index& index, std::uint32_t slice) const {
  for (unsigned depth = 0; depth < index.slices.depths(); ++depth) {
    const std::size_t at = index.slices.position(depth, slice);
    if (at < index.slices.count(depth) && index.slices.slice(depth, at) == slice) return depth;
  }
  return std::nullopt;
}

const Wait* SliceRow::wait_in(const SliceRef& ref) const {
  if (ref.mark || waits() == nullptr) return nullptr;
  return waits()->of_call(ref.track, ref.slice, slices_of(run(), ref).start_ns[ref.slice]);
}

void SliceRow::paint(RowCanvas& canvas) {
  const Indexes* indexes = find_indexes();
  canvas.painter.setFont(canvas.small);
  if (indexes == nullptr) {
    const QRect row(0, canvas.y, canvas.axis.width(), canvas.height);
    canvas.painter.setPen(QColor(canvas.theme.faint_text));
    canvas.painter.drawText(row.adjusted(12, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, "computing…");
    ++canvas.counts.labels;
    return;
  }
  if (!found_) look_up(canvas);
  const std::vector<Level> levels = *std::exchange(found_, std::nullopt);
  const int levels_y = canvas.y + height().pixels;
  for (const Index& index : *indexes) {
    if (has_marks()) paint_marks(canvas, index);
    for (const Level& level : levels) {
      if (level.index == &index) paint_level(canvas, level);
    }
    if (track(index.track).lost.empty()) continue;
    const QRect all(0, levels_y, canvas.axis.width(), canvas.y + canvas.height - levels_y - 1);
    canvas.counts +=
        paint_unrecorded(canvas.painter, unrecorded_of(track(index.track).lost), canvas.axis, all, canvas.theme, false);
  }
}

void SliceRow::look_up(const RowCanvas& canvas) {
  const Indexes* indexes = indexes_.made();
  if (indexes == nullptr) return;
  found_.emplace();
  for (const Index& index : *indexes) {
    for (unsigned depth = 0; depth < index.slices.depths(); ++depth) {
      const int y = canvas.y + height().pixels + static_cast<int>(depth) * canvas.level_height;
      if (y + canvas.level_height <= canvas.top || y >= canvas.bottom) continue;
      found_->push_back(look_up_level(canvas, index, depth, y));
    }
  }
}

SliceRow::Level SliceRow::look_up_level(const RowCanvas& canvas, const Index& index, unsigned depth, int y) const {
  const auto columns = canvas.axis.columns();
  const auto& slices = this->slices(index);
  std::vector<analysis::LevelOfDetail::Item> items;
  index.slices.items(slices, depth, columns, items, columns.ns_per_pixel / 2);
  Level level{.index = &index, .y = y, .stretches = {}};
  level.stretches.reserve(items.size());
  for (const auto& item : items) {
    Stretch stretch{.first = item.first, .end = item.end, .slice = item.slice, .count = item.count};
    // A fold takes the colour of its longest slice if that fills most of the column. Else it takes the colour of the
    // slice in the middle, fainter where the middle is a gap.
    if (item.count == 1 || 2 * double(slices.duration_ns[item.slice]) >= columns.ns_per_pixel) {
      stretch.kind = slices.kind[item.slice];
    } else {
      const double middle_ns = columns.begin_ns + (item.first + 0.5) * columns.ns_per_pixel;
      stretch.kind = slices.kind[item.middle];
      stretch.percent = double(slices.end_ns(item.middle)) > middle_ns ? 80 : 35;
    }
    level.stretches.push_back(stretch);
  }
  return level;
}

void SliceRow::paint_level(RowCanvas& canvas, const Level& level) {
  const auto columns = canvas.axis.columns();
  const Index& index = *level.index;
  const auto& slices = this->slices(index);
  const int y = level.y;
  // Items that are too narrow for a label, up to one in every column, are collected in one line and drawn at once.
  QImage* narrow = nullptr;
  QRgb* line = nullptr;
  for (const Stretch& item : level.stretches) {
    const QRgb own = canvas.colours.of(item.kind);
    const QRgb colour = item.percent == 100 ? own : blend(own, canvas.theme.background, item.percent);
    const int left = std::max(item.first, 0), right = std::min(item.end, columns.count);
    if (right <= left) continue;
    if (item.end - item.first < 3) {
      if (narrow == nullptr) {
        narrow = &canvas.blank(columns.count, 1);
        line = reinterpret_cast<QRgb*>(narrow->scanLine(0));
      }
      std::fill(line + left, line + right, colour);
      continue;
    }
    const QRect box(left, y, right - left - 1, canvas.level_height - 1);
    canvas.painter.fillRect(box, QColor(colour));
    ++canvas.counts.rectangles;
    const SliceRef ref = ref_to(index, item.slice);
    QRect for_label = box;
    if (const Wait* wait = item.count == 1 ? wait_in(ref) : nullptr) {
      const auto to = std::clamp(columns.x(wait->until_ns), double(left), double(left + box.width()));
      const QRect waited(left, y, static_cast<int>(std::lround(to)) - left, box.height());
      paint_waiting(canvas.painter, waited, canvas.theme);
      ++canvas.counts.rectangles;
      for_label.setLeft(waited.right() + 1);
    }
    if (canvas.marked == run().trace.kind_of(slices, item.slice).name) {
      canvas.painter.fillRect(box.left(), box.bottom() - 1, box.width(), 2, QColor(canvas.theme.selection));
      ++canvas.counts.rectangles;
    }
    if (for_label.width() < 20) continue;
    const QString label = label_of(canvas, ref, for_label.width());
    if (paint_label(canvas.painter, for_label, label, colour, Qt::ElideMiddle, &canvas.labels)) ++canvas.counts.labels;
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
    index.marks.items(track(index.track).marks, depth, canvas.axis.columns(), canvas.items);
    for (const auto& item : canvas.items) {
      const double x = item.first + 0.5, y = canvas.y + 2;
      const QPointF flag[] = {{x - 4, y}, {x + 4, y}, {x, y + 7}};
      canvas.painter.drawPolygon(flag, 3);
      ++canvas.counts.rectangles;
    }
  }
  canvas.painter.restore();
}

QString SliceRow::label_of(const RowCanvas& canvas, const SliceRef& ref, int width) const {
  const auto fits = [&](const QString& text) { return canvas.labels.width(text) + 12 <= width; };
  const QString title = slice_title(run(), ref);
  // The duration follows if there is room. If there is not even room for the title, an iteration is labelled with its
  // number, which is more useful than the beginning of its name.
  if (width >= 110) {
    const QString longer = title + "   " + duration_text(slices_of(run(), ref).duration_ns[ref.slice]);
    if (fits(longer)) return longer;
  }
  if (fits(title)) return title;
  const analysis::Iteration* iteration = iteration_of(run(), ref);
  if (iteration == nullptr) {
    const QStringList rests = canvas.prefixes.shortened(title);
    const auto rest = std::ranges::find_if(rests, fits);
    return rest != rests.end() ? *rest : title;
  }
  const QString number = QString::number(iteration->number);
  return fits(number) ? number : QString();
}

QString SliceRow::name() const { return shown_name(track(tracks_.front()).label); }

QString SliceRow::label() const {
  return tracks_.size() == 1 ? name() : QString("%1, %2 more").arg(name()).arg(tracks_.size() - 1);
}

void SliceRow::paint_header(RowCanvas& canvas, const Arrangement&) {
  QRect box = canvas.name_box();
  box.setTop(canvas.y + height().pixels);
  box.setHeight(canvas.level_height);
  paint_track_label(canvas, label(), track(tracks_.front()).main, box);
}

QString SliceRow::header_tooltip(const Arrangement&) const {
  constexpr std::size_t most = 20;
  QString lines;
  for (std::size_t i = 0; i < std::min(most, tracks_.size()); ++i) {
    const auto& one = track(tracks_[i]);
    lines += tooltip_line("slices of " + shown_name(one.label).toHtmlEscaped(), count_text(one.slices.size()));
  }
  return viewer::tooltip(label(), lines);
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
  if (const Wait* wait = wait_in(*ref)) {
    add("waited", waited_text(run(), *wait));
    add("transfer", duration_text(wait->end_ns - wait->until_ns));
  }
  add("start", time_text(double(slices.start_ns[ref->slice]), point.ns_per_pixel, point.end_ns));
  add("category", category_of(run(), *ref));
  add("domain", domain_of(run(), *ref));
  slices.each_argument(ref->slice, [&](const analysis::Argument& argument) {
    add(QString::fromStdString(run().trace.names[argument.key]).toHtmlEscaped(), value_text(run(), argument));
  });
  return viewer::tooltip(slice_title(run(), *ref), lines);
}

std::optional<SliceRef> SliceRow::slice_at(const RowPoint& point) {
  const Indexes* indexes = find_indexes();
  if (indexes == nullptr) return std::nullopt;
  const int lane = height().pixels;
  const double time = point.time_ns + 0.5 * point.ns_per_pixel;
  for (const double slack : {0.5 * point.ns_per_pixel, 3 * point.ns_per_pixel}) {
    for (const Index& index : *indexes) {
      if (point.y >= lane) {
        const auto depth = static_cast<unsigned>((point.y - lane) / point.level_height);
        const auto slice = index.slices.slice_at(slices(index), depth, time, slack);
        if (slice) return ref_to(index, *slice);
      }
      // Marks share one lane, whatever their depth.
      for (unsigned depth = 0; point.y < lane && depth < index.marks.depths(); ++depth) {
        const auto mark = index.marks.slice_at(track(index.track).marks, depth, time, slack);
        if (mark) return ref_to(index, *mark, true);
      }
    }
  }
  return std::nullopt;
}

std::optional<double> SliceRow::edge_near(const RowPoint& point, double slack_ns) {
  const Indexes* indexes = find_indexes();
  if (indexes == nullptr || point.y < height().pixels) return std::nullopt;
  const auto depth = static_cast<unsigned>((point.y - height().pixels) / point.level_height);
  std::optional<double> nearest;
  const auto offer = [&](std::int64_t edge_ns) {
    const double distance = std::abs(double(edge_ns) - point.time_ns);
    if (distance <= slack_ns && (!nearest || distance < std::abs(*nearest - point.time_ns))) nearest = double(edge_ns);
  };
  for (const Index& index : *indexes) {
    // The slice at the point, or beside it.
    for (const double time : {point.time_ns - slack_ns, point.time_ns, point.time_ns + slack_ns}) {
      const auto slice = index.slices.slice_at(slices(index), depth, time, 0);
      if (slice) offer(slices(index).start_ns[*slice]), offer(slices(index).end_ns(*slice));
    }
  }
  return nearest;
}

std::optional<SliceRef> SliceRow::slice_near(double time_ns, double slack_ns, unsigned level) {
  const Indexes* indexes = find_indexes();
  for (unsigned depth = level + 1; indexes != nullptr && depth-- > 0;) {
    for (const Index& index : *indexes) {
      if (const auto slice = index.slices.slice_at(slices(index), depth, time_ns, slack_ns))
        return ref_to(index, *slice);
    }
  }
  return std::nullopt;
}

std::vector<SliceRef> SliceRow::slices_in(const TimeAxis& axis) {
  std::vector<SliceRef> found;
  const Indexes* indexes = find_indexes();
  if (indexes == nullptr) return found;
  std::vector<analysis::LevelOfDetail::Item> items;
  for (const Index& index : *indexes) {
    for (unsigned depth = 0; depth < index.slices.depths(); ++depth) {
      index.slices.items(slices(index), depth, axis.columns(), items);
      for (const auto& item : items) found.push_back(ref_to(index, item.slice));
    }
  }
  return found;
}

std::optional<SliceRef> SliceRow::neighbour_of_name(const SliceRef& from, bool next) const {
  const analysis::Slices& slices = slices_of(run(), from);
  const analysis::NameId name = kind_of(run(), from).name;
  SliceRef to = from;
  while (next ? to.slice + 1 < slices.size() : to.slice > 0) {
    to.slice += next ? 1 : std::uint32_t(-1);
    if (kind_of(run(), to).name == name) return to;
  }
  return std::nullopt;
}

std::optional<SliceRef> SliceRow::neighbour(const SliceRef& from, Commands::Step step) {
  using Step = Commands::Step;
  if (step == Step::previous_same || step == Step::next_same) {
    return neighbour_of_name(from, step == Step::next_same);
  }
  const Index* found = index_of(from);
  const auto level = found ? level_of(*found, from.slice) : std::nullopt;
  if (!level) return std::nullopt;
  const analysis::Slices& slices = this->slices(*found);
  const analysis::LevelOfDetail& index = found->slices;
  if (step == Step::out) {
    if (*level == 0) return std::nullopt;
    const auto around = index.slice_at(slices, *level - 1, static_cast<double>(slices.start_ns[from.slice]), 0);
    return around ? std::optional(ref_to(*found, *around)) : std::nullopt;
  }
  const unsigned depth = step == Step::in ? *level + 1 : *level;
  std::size_t at = index.position(depth, from.slice);
  if (step == Step::previous && at == 0) return std::nullopt;
  if (step != Step::in) at += step == Step::next ? 1 : std::size_t(-1);
  if (at >= index.count(depth)) return std::nullopt;
  const std::uint32_t to = index.slice(depth, at);
  if (step == Step::in && slices.start_ns[to] >= slices.end_ns(from.slice)) return std::nullopt;
  return ref_to(*found, to);
}

std::optional<std::pair<int, int>> SliceRow::place_of(const SliceRef& ref, int level_height) {
  if (ref.rank != rank() || std::ranges::find(tracks_, ref.track) == tracks_.end()) return std::nullopt;
  if (ref.mark) return has_marks() ? std::optional(std::pair(0, mark_lane)) : std::nullopt;
  std::optional<unsigned> level = slices_of(run(), ref).depth[ref.slice];
  if (kinds_) {
    const Index* index = index_of(ref);
    level = index ? level_of(*index, ref.slice) : std::nullopt;
  }
  if (!level) return std::nullopt;
  const int top = height().pixels + static_cast<int>(*level) * level_height;
  return std::pair(top, top + level_height);
}

namespace slice_rows {

// From the first start to the last end of slices and states; slices of one track nest, so the last outermost one ends
// last.
std::pair<std::int64_t, std::int64_t> extent_of(const analysis::Track& track) {
  std::pair extent(std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min());
  for (const analysis::Slices* slices : {&track.slices, &track.marks}) {
    if (slices->size() == 0) continue;
    std::size_t last = slices->size() - 1;
    while (last > 0 && slices->depth[last] > 0) --last;
    extent = {std::min(extent.first, slices->start_ns.front()), std::max(extent.second, slices->end_ns(last))};
  }
  if (const auto& times = track.states.time_ns; !times.empty()) {
    extent = {std::min(extent.first, times.front()), std::max(extent.second, times.back())};
  }
  return extent;
}

}  // namespace slice_rows

void add_slice_rows(Document& document, std::size_t rank, analysis::TrackKind kind, bool main, Rows& rows) {
  const auto& tracks = document.run().trace.ranks[rank].tracks;
  struct Shared {
    std::vector<std::size_t> tracks;
    std::int64_t end_ns = 0;
  };
  std::vector<Shared> shared;
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    const bool empty = tracks[t].slices.size() == 0 && tracks[t].marks.size() == 0;
    if (tracks[t].kind != kind || tracks[t].main != main || empty) continue;
    const auto [begin_ns, end_ns] = slice_rows::extent_of(tracks[t]);
    // Only threads: a stream or a communicator is looked for under its own name.
    const bool may_share = kind == analysis::TrackKind::thread && !shared.empty() && shared.back().end_ns <= begin_ns;
    if (!may_share) shared.emplace_back();
    shared.back().tracks.push_back(t);
    shared.back().end_ns = end_ns;
  }
  for (const Shared& row : shared) {
    rows.push_back(std::make_unique<SliceRow>(document, rank, row.tracks));
    add_state_row(document, rank, row.tracks, rows);
    if (kind != analysis::TrackKind::stream) continue;
    add_idle_row(document, rank, row.tracks.front(), rows);
    add_projected_row(document, rank, row.tracks.front(), rows);
  }
}

}  // namespace paceline::viewer
