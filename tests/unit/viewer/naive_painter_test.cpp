// SPDX-License-Identifier: Apache-2.0
// The drawing of the timeline held against a naive painter, which looks at every slice for every picture and sets pixel
// by pixel.
#include <gtest/gtest.h>

#include <QImage>
#include <QPainter>
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>

#include "analysis/trace/builder.h"
#include "tests/rounds.h"
#include "viewer/drawing/phase_strip.h"
#include "viewer/session/view_state.h"
#include "viewer/text/time_text.h"
#include "viewer/timeline/timeline_painter.h"

namespace paceline::viewer {
namespace {

constexpr QRgb nothing = 0x00000000;  // where the naive painter painted nothing

class NaivePainter {
 public:
  NaivePainter(const Run& run, const ViewState& state, const RowLayout& rows, QSize size)
      : run_(run),
        axis_(state.time.axis()),
        rows_(rows),
        left_(state.time.names_width()),
        theme_(Theme::light()),
        colours_(run.trace, theme_),
        picture_(size, QImage::Format_ARGB32_Premultiplied) {
    picture_.fill(nothing);
  }

  QImage paint() {
    for (std::size_t rank = 0; rank < run_.ranks.size(); ++rank) {
      paint_strip(rank);
      for (std::size_t track = 0; track < run_.trace.ranks[rank].tracks.size(); ++track) paint_track(rank, track);
    }
    return picture_;
  }

 private:
  // A slice or a fold that is too narrow for a gap and a label.
  struct Narrow {
    std::uint32_t slice;  // the first one
    int from, until;
    QRgb colour;
  };

  // Columns from the left edge of the slices; those outside the picture are left out.
  void fill(int from, int until, int y, int height, QRgb colour) {
    for (int x = std::max(from, 0); x < std::min(until, axis_.width()); ++x) {
      for (int row = y; row < y + height; ++row) picture_.setPixel(left_ + x, ruler_height + row, colour);
    }
  }

  void label(QRect box, const QString& text, QRgb behind, Qt::TextElideMode cut) {
    QPainter painter(&picture_);
    painter.setFont(with_size(QFont(), 11));
    painter.setClipRect(left_, 0, axis_.width(), picture_.height());
    paint_label(painter, box.translated(left_, ruler_height), text, behind, cut);
  }

  void paint_track(std::size_t rank, std::size_t track) {
    const PlacedRow* row = rows_.row_of({.rank = rank, .track = track});
    const analysis::Track& of = run_.trace.ranks[rank].tracks[track];
    for (unsigned depth = 0; depth < of.depths; ++depth) {
      paint_level({.rank = rank, .track = track}, depth, row->y + static_cast<int>(depth) * rows_.level_height());
    }
  }

  void paint_level(SliceRef ref, unsigned depth, int y) {
    const analysis::Slices& slices = slices_of(run_, ref);
    const int height = rows_.level_height() - 1;
    const double pixel = axis_.ns_per_pixel();
    std::vector<Narrow> narrow;  // over the others, in the order of time
    for (ref.slice = 0; ref.slice < slices.size(); ++ref.slice) {
      const double x = axis_.x_of(double(slices.start_ns[ref.slice])),
                   end = axis_.x_of(double(slices.end_ns(ref.slice)));
      if (slices.depth[ref.slice] != depth || double(slices.duration_ns[ref.slice]) < pixel) continue;
      if (x >= axis_.width() || (x < 0 && end <= 0)) continue;
      const QRgb colour = colours_.of(slices.kind[ref.slice]);
      const double last = axis_.width();
      const int from = int(std::clamp(std::round(x), -1.0, last));
      const int until = std::max(from + 1, int(std::clamp(std::round(end), -1.0, last)));
      if (until - from < 3) {
        narrow.push_back({ref.slice, from, until, colour});
        continue;
      }
      const QRect box(std::max(from, 0), y, std::min(until, axis_.width()) - std::max(from, 0) - 1, height);
      fill(box.left(), box.right() + 1, y, height, colour);
      if (box.width() >= 20) label(box, label_of(ref, box.width()), colour, Qt::ElideMiddle);
    }
    for (int column = 0; column < axis_.width(); ++column) {
      if (const auto fold = fold_of(slices, depth, column)) narrow.push_back(*fold);
    }
    std::ranges::sort(narrow, {}, &Narrow::slice);
    for (const Narrow& one : narrow) fill(one.from, one.until, y, height, one.colour);
  }

  // Slices narrower than a pixel that start in one column are one fold.
  std::optional<Narrow> fold_of(const analysis::Slices& slices, unsigned depth, int column) {
    const double pixel = axis_.ns_per_pixel();
    std::vector<std::uint32_t> folded;
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      const double x = axis_.x_of(double(slices.start_ns[i]));
      if (slices.depth[i] == depth && double(slices.duration_ns[i]) < pixel && std::floor(x) == column) {
        folded.push_back(i);
      }
    }
    if (folded.empty()) return std::nullopt;
    const std::uint32_t longest =
        *std::ranges::max_element(folded, {}, [&](std::uint32_t i) { return slices.duration_ns[i]; });
    if (folded.size() == 1 || 2 * double(slices.duration_ns[longest]) >= pixel) {
      return Narrow{folded.front(), column, column + 1, colours_.of(slices.kind[longest])};
    }
    // The last one that starts by the middle of the column.
    std::uint32_t middle = folded.front();
    for (const std::uint32_t i : folded) {
      if (axis_.x_of(double(slices.start_ns[i])) <= column + 0.5) middle = i;
    }
    const bool busy = double(slices.end_ns(middle)) > axis_.time_at(column + 0.5);
    return Narrow{folded.front(), column, column + 1,
                  blend(colours_.of(slices.kind[middle]), theme_.background, busy ? 80 : 35)};
  }

  QString label_of(const SliceRef& ref, int width) {
    const QFontMetrics metrics(with_size(QFont(), 11));
    const QString title = slice_title(run_, ref);
    const QString longer = title + "   " + duration_text(slices_of(run_, ref).duration_ns[ref.slice]);
    return width >= 110 && metrics.horizontalAdvance(longer) + 12 <= width ? longer : title;
  }

  void paint_strip(std::size_t rank) {
    const PlacedRow& row = rows_.rows_of(rank).front();
    const int height = row.end_y - row.y;
    const auto all = run_.ranks[rank].phases->intervals(std::int64_t(run_.begin_ns), std::int64_t(run_.end_ns) + 1);
    const TimeRange view = axis_.visible();
    const std::size_t count = run_.ranks[rank].phases->count_between(static_cast<std::int64_t>(view.begin_ns),
                                                                     static_cast<std::int64_t>(view.end_ns));
    if (2 * count > std::size_t(axis_.width())) return;  // shares: compared by other tests
    for (const analysis::PhaseInterval& one : all) {
      const double last = axis_.width();
      const int from = int(std::lround(std::max(axis_.x_of(double(one.start_ns)), 0.0)));
      const int until = int(std::lround(std::min(axis_.x_of(double(one.end_ns)), last)));
      if (until <= from) continue;
      fill(from, until, row.y, height, phase_colour(one.phase, theme_));
      label(QRect(from, row.y, until - from, height), phase_text(one.phase), phase_colour(one.phase, theme_),
            Qt::ElideRight);
    }
  }

  const Run& run_;
  const TimeAxis& axis_;
  const RowLayout& rows_;
  int left_;
  Theme theme_;
  SliceColours colours_;
  QImage picture_;
};

// Nested slices on two ranks with two threads each, from nanoseconds to milliseconds long, some without a length.
std::shared_ptr<const Run> random_run(std::mt19937_64& random) {
  constexpr std::array names{"forward", "backward",  "load",    "a rather long name of a range",
                             "x",       "optimizer", "copy all"};
  const auto log_uniform = [&](double decades) {
    return static_cast<std::int64_t>(std::pow(10.0, std::uniform_real_distribution<double>(0, decades)(random)));
  };
  analysis::TraceBuilder builder;
  for (int r = 0; r < 2; ++r) {
    analysis::RankBuilder& rank = builder.add_rank(r, 2);
    for (std::uint64_t thread = 1; thread <= 2; ++thread) {
      analysis::TrackBuilder& track =
          thread == 1 ? rank.add_main_thread() : rank.add_track(analysis::TrackKind::thread, "helper", thread);
      std::int64_t now = 0;
      for (int i = 0; i < 150; ++i) {
        now += random() % 3 == 0 ? 0 : log_uniform(5);
        const std::int64_t end = now + log_uniform(6) - 1;
        track.add_slice(now, end, names[random() % names.size()], "paceline.trainer", "");
        for (std::int64_t inner = now; inner < end && random() % 6 > 0;) {
          const std::int64_t until = std::min(end, inner + log_uniform(5));
          track.add_slice(inner, until, names[random() % names.size()], "app", "");
          inner = until + std::int64_t(random() % 300);
        }
        now = end;
      }
      rank.info().end_ns = std::max(rank.info().end_ns, now);
    }
  }
  return index_run("random", builder.finish());
}

TEST(NaivePainter, AgreesWithTheTimelinePixelForPixel) {
  std::mt19937_64 random(25);
  std::size_t painted = 0;
  for (std::size_t round = 0; round < 10; round += test::stride(5)) {
    const auto run = random_run(random);
    Document document(run);
    ViewState state(*run);
    RowLayout rows(document, state.arrangement);
    rows.place(0);
    for (int view = 0; view < 6; ++view) {
      const int width = 100 + static_cast<int>(random() % 500);
      const QSize size(state.time.names_width() + width, ruler_height + rows.height());
      state.time.set_width(width);
      const double whole = state.time.axis().whole().length();
      const double length = whole * std::pow(10.0, -std::uniform_real_distribution<double>(0, 4)(random));
      const double begin = std::uniform_real_distribution<double>(0, whole - length)(random);
      state.time.show_part({begin, begin + length});

      TimelinePainter painter(document, Theme::light(), QFont());
      QImage image(size, QImage::Format_ARGB32_Premultiplied);
      {
        QPainter to(&image);
        painter.paint(to, size, state, rows, 0, std::nullopt);
      }
      const QImage naive = NaivePainter(*run, state, rows, size).paint();
      const Theme theme = Theme::light();
      for (int y = ruler_height; y < size.height(); ++y) {
        // Strips that show shares, and the lines between ranks, are compared by other tests.
        const PlacedRow* row = rows.at(y - ruler_height);
        for (int x = state.time.names_width(); x < size.width(); ++x) {
          const QRgb expected = naive.pixel(x, y), found = image.pixel(x, y);
          if (expected == nothing) {
            if (row == nullptr || row->row->is_strip()) continue;
            ASSERT_TRUE(found == theme.background || found == theme.grid)
                << "nothing is at " << x << ", " << y << " in view " << view << " of round " << round;
            continue;
          }
          ++painted;
          ASSERT_EQ(found, expected) << "at " << x << ", " << y << " in view " << view << " of round " << round;
        }
      }
    }
  }
  EXPECT_GT(painted, 100'000u);
}

}  // namespace
}  // namespace paceline::viewer
