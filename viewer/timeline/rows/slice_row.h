// A row of slices: a lane of marks, if there are any, and a level for each depth of nesting.
//
// The index for drawing is made when the row is first painted. No pixel column is drawn twice: the index folds slices
// that are narrower than a pixel, so a frame costs columns times visible levels, however many slices there are.
#pragma once

#include "analysis/index/level_of_detail.h"
#include "viewer/timeline/rows/rows.h"

namespace paceline::viewer {

constexpr int mark_lane = 12;  // its height in pixels

class SliceRow : public Row {
 public:
  // The slices of a track, or only a thread's MPI calls, whose nesting then has `mpi_depths` levels.
  SliceRow(Document& document, std::size_t rank, std::size_t track, unsigned mpi_depths = 0);

  Height height() const override;
  void paint(RowCanvas& canvas) override;
  void paint_header(RowCanvas& canvas, const ViewState& state) override;
  QString tooltip(const RowPoint& point) override;
  std::optional<SliceRef> slice_at(const RowPoint& point) override;
  std::optional<SliceRef> slice_near(double time_ns, double slack_ns) override;
  std::optional<SliceRef> neighbour(const SliceRef& from, ViewState::Step step) override;
  std::optional<std::pair<int, int>> place_of(const SliceRef& ref, int level_height) override;

 private:
  struct Index {
    analysis::LevelOfDetail slices, marks;
  };

  bool of_mpi() const { return mpi_depths_ > 0; }
  bool has_marks() const { return !of_mpi() && track().marks.size() > 0; }
  const analysis::Track& track() const { return model().tracks[track_]; }
  const analysis::Slices& slices() const { return track().slices; }
  const Index* find_index();
  // The level of a slice in this row; nothing if the row does not show it.
  std::optional<unsigned> level_of(const Index& index, std::uint32_t slice) const;
  SliceRef ref_to(std::uint32_t slice) const {
    return {.rank = rank(), .track = track_, .slice = slice, .mark = false, .mpi_row = of_mpi()};
  }
  void paint_level(RowCanvas& canvas, const Index& index, unsigned depth, int y);
  void paint_marks(RowCanvas& canvas, const Index& index);
  QString label_of(const RowCanvas& canvas, std::uint32_t slice, int width) const;

  std::size_t track_;
  unsigned mpi_depths_;
  OnDemand<Index> index_;
};

// Appends a row for each track of this kind that shows something.
void add_slice_rows(Document& document, std::size_t rank, analysis::TrackKind kind, bool main, Rows& rows);

}  // namespace paceline::viewer
