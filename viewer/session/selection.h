// SPDX-License-Identifier: Apache-2.0
// The slices and the range of time that the user selected, and the slices that the last search found.
#pragma once

#include <QObject>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "viewer/session/run.h"
#include "viewer/session/time_axis.h"

namespace paceline::viewer {

class Arrangement;
class VisibleTime;

// Slices and marks that a search found, by start.
using HitList = std::shared_ptr<const std::vector<SliceRef>>;

// Where a finding or a row of a table leads to: all that is known about it.
struct Place {
  std::optional<std::size_t> rank = {};  // an index into Run::ranks
  std::optional<TimeRange> range = {};
  std::optional<SliceRef> slice = {};

  bool anywhere() const { return rank || range || slice; }
};

class Selection : public QObject {
  Q_OBJECT

 public:
  // Moves the view and unfolds rows to bring into sight what is selected.
  Selection(const Run& run, VisibleTime& time, Arrangement& arrangement)
      : run_(run), time_(time), arrangement_(arrangement) {}

  // The slice that was selected last. Several can be selected together.
  std::optional<SliceRef> slice() const { return slices_.empty() ? std::nullopt : std::optional(slices_.back()); }
  const std::vector<SliceRef>& slices() const { return slices_; }
  void select(std::optional<SliceRef> slice);
  // Adds the slice to those that are selected, or takes it out.
  void toggle(const SliceRef& slice);
  // Selects, and brings the slice into view if it is not.
  void reveal(const SliceRef& slice);
  // The same. A slice that would be too narrow to be seen is zoomed to, so that it takes a tenth of the width.
  void reveal_closely(const SliceRef& slice);
  // Shows the range of time, scrolls to the rank, and selects the slice. Does nothing for an empty place.
  void go_to(const Place& place);

  std::optional<TimeRange> range() const { return range_; }
  // With `ranks`, a box: the range on these ranks only, as indices. Without, it concerns all ranks.
  void select_range(std::optional<TimeRange> range, std::set<std::size_t> ranks = {});
  const std::set<std::size_t>& ranks() const { return ranks_; }
  // Selects the time of the selected slices, from the first start to the last end.
  void select_range_of_slices();
  // Zooms to the range, or else to the slice.
  void fill_view();

  // What the last search found; nullptr if there was none.
  const HitList& hits() const { return hits_; }
  void set_hits(HitList hits);

 Q_SIGNALS:
  void slices_changed();
  void range_changed();
  void hits_changed();
  void revealed(const paceline::viewer::SliceRef& slice);  // scroll to it
  void rank_wanted(std::size_t rank);                      // scroll to it

 private:
  const Run& run_;
  VisibleTime& time_;
  Arrangement& arrangement_;
  std::vector<SliceRef> slices_;
  std::optional<TimeRange> range_;
  std::set<std::size_t> ranks_;
  HitList hits_;
};

}  // namespace paceline::viewer
