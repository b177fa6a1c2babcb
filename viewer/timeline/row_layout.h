// Which row of the timeline is where. A rank has a strip of phases, and below it, unless it is collapsed, its tracks;
// a track has a lane of marks, if it has marks, and one row for each level of nesting; a counter has one row. Of a
// rank's counters only the first one is there until they are unfolded. Where there is room to spare the rows are
// taller.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "viewer/session/run.h"

namespace paceline::viewer {

struct TrackRows {
  std::size_t rank = 0, track = 0;  // indices into the trace
  int y = 0;                        // of the lane of marks; the first level follows it
  int mark_height = 0;              // 0: no marks
  unsigned depths = 0;
  int depth_height = 0;
  bool counter = false;
  bool folds = false;  // the counter that stands for all

  int depth_y(unsigned depth) const;
  int end_y() const { return depth_y(depths); }
};

struct RankRows {
  std::size_t rank = 0;
  int y = 0, end_y = 0;
  int strip_height = 0;
  bool collapsed = false;
  bool counters_unfolded = false;
  std::vector<TrackRows> tracks;  // empty when collapsed

  int strip_y() const;
  int strip_end_y() const;
};

class RowLayout {
 public:
  static constexpr int lowest_row = 18, highest_row = 26, mark_lane = 12, margin = 4;
  static constexpr int counter_extra = 6;  // by which a counter's row is taller

  explicit RowLayout(const Run& run);

  // The height that all rows should fill, if they can.
  void set_room(int pixels);
  int depth_height() const { return depth_height_; }
  int strip_height() const { return depth_height_ + 6; }

  void set_collapsed(std::size_t rank, bool collapsed);
  bool collapsed(std::size_t rank) const { return ranks_[rank].collapsed; }
  void set_counters_unfolded(std::size_t rank, bool unfolded);
  bool counters_unfolded(std::size_t rank) const { return ranks_[rank].counters_unfolded; }
  const std::vector<RankRows>& ranks() const { return ranks_; }
  int height() const { return ranks_.empty() ? 0 : ranks_.back().end_y; }

  // What is at this height: a rank, in it perhaps a track, in that perhaps a level of nesting.
  struct Hit {
    std::size_t rank = 0;
    std::optional<std::size_t> track;
    std::optional<unsigned> depth;  // with a track but no depth: its lane of marks
    bool strip = false;
  };
  std::optional<Hit> at(int y) const;
  // The rows of one track; nullptr where its rank is collapsed.
  const TrackRows* rows_of(std::size_t rank, std::size_t track) const;

 private:
  void place();
  int place_with(int depth_height);  // returns the height of all rows

  const Run* run_;
  int room_ = 0, depth_height_ = lowest_row;
  std::vector<RankRows> ranks_;
};

}  // namespace paceline::viewer
