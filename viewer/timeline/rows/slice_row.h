// SPDX-License-Identifier: Apache-2.0
// A row of slices: a lane of marks, if there are any, and a level for each depth of nesting. Threads that never run at
// the same time share a row.
//
// The index for drawing is made when the row is first painted. No pixel column is drawn twice: the index folds slices
// that are narrower than a pixel, so a frame costs columns times visible levels, however many slices there are.
#pragma once

#include <vector>

#include "analysis/index/level_of_detail.h"
#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {

constexpr int mark_lane = 12;  // its height in pixels

class SliceRow : public Row {
 public:
  // The slices of these tracks, at least one. No two of them have slices at the same time.
  SliceRow(Document& document, std::size_t rank, std::vector<std::size_t> tracks);

  Height height() const override;
  void set_filter(const KindSet& kinds) override;
  bool shown() const override;
  QString name() const override;
  void prepare() override { find_indexes(); }
  void look_up(const RowCanvas& canvas) override;
  void paint(RowCanvas& canvas) override;
  bool complete() const override { return indexes_.made() != nullptr; }
  void paint_header(RowCanvas& canvas, const Arrangement& arrangement) override;
  QString tooltip(const RowPoint& point) override;
  QString header_tooltip(const Arrangement& arrangement) const override;
  std::optional<double> edge_near(const RowPoint& point, double slack_ns) override;
  std::optional<SliceRef> slice_at(const RowPoint& point) override;
  std::optional<SliceRef> slice_near(double time_ns, double slack_ns, unsigned level) override;
  std::vector<SliceRef> slices_in(const TimeAxis& axis) override;
  std::optional<SliceRef> neighbour(const SliceRef& from, Commands::Step step) override;
  std::optional<std::pair<int, int>> place_of(const SliceRef& ref, int level_height) override;

 private:
  // Of one track. The levels count only slices that the filter shows.
  struct Index {
    std::size_t track = 0;
    analysis::LevelOfDetail slices, marks;
  };
  using Indexes = std::vector<Index>;
  // A slice or a fold on screen: `percent` of the colour of its kind, over the background.
  struct Stretch {
    int first = 0, end = 0;  // columns
    std::uint32_t slice = 0, count = 0;
    analysis::KindId kind = 0;
    int percent = 100;
  };
  struct Level {
    const Index* index = nullptr;
    int y = 0;
    std::vector<Stretch> stretches;
  };

  bool has_marks() const;
  const analysis::Track& track(std::size_t t) const { return model().tracks[t]; }
  const analysis::Slices& slices(const Index& index) const { return track(index.track).slices; }
  const Indexes* find_indexes();
  const Index* index_of(const SliceRef& ref);
  // The level of a slice in this row; nothing if the row does not show it.
  std::optional<unsigned> level_of(const Index& index, std::uint32_t slice) const;
  SliceRef ref_to(const Index& index, std::uint32_t slice, bool mark = false) const {
    return {.rank = rank(), .track = index.track, .slice = slice, .mark = mark};
  }
  const Wait* wait_in(const SliceRef& ref) const;
  Level look_up_level(const RowCanvas& canvas, const Index& index, unsigned depth, int y) const;
  void paint_level(RowCanvas& canvas, const Level& level);
  void paint_marks(RowCanvas& canvas, const Index& index);
  QString label_of(const RowCanvas& canvas, const SliceRef& ref, int width) const;
  QString label() const;  // the name, and how many more tracks share the row
  std::optional<SliceRef> neighbour_of_name(const SliceRef& from, bool next) const;

  std::vector<std::size_t> tracks_;
  KindSet kinds_;
  OnDemand<Indexes> indexes_;
  std::optional<std::vector<Level>> found_;  // between look_up() and paint(): the visible levels
};

}  // namespace paceline::viewer
