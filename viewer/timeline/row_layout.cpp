#include "viewer/timeline/row_layout.h"

#include <algorithm>
#include <numeric>

namespace paceline::viewer {
namespace {

// The thread that sets the rank's phases first, then what it waits for, helper threads last.
int order_of(const analysis::Track& track) {
  using analysis::TrackKind;
  if (track.main) return 0;
  switch (track.kind) {
    case TrackKind::mpi:
      return 1;
    case TrackKind::nccl:
      return 2;
    case TrackKind::stream:
      return 3;
    case TrackKind::copy:
      return 4;
    case TrackKind::thread:
      return 5;
    case TrackKind::counter:
      return 6;
  }
  return 7;
}

}  // namespace

int TrackRows::depth_y(unsigned depth) const { return y + mark_height + static_cast<int>(depth) * depth_height; }
int RankRows::strip_y() const { return y + RowLayout::margin; }
int RankRows::strip_end_y() const { return strip_y() + strip_height; }

RowLayout::RowLayout(const Run& run) : run_(&run) {
  for (std::size_t rank = 0; rank < run.trace.ranks.size(); ++rank) ranks_.push_back({.rank = rank, .tracks = {}});
  place();
}

void RowLayout::set_collapsed(std::size_t rank, bool collapsed) {
  ranks_[rank].collapsed = collapsed;
  place();
}

void RowLayout::set_counters_unfolded(std::size_t rank, bool unfolded) {
  ranks_[rank].counters_unfolded = unfolded;
  place();
}

void RowLayout::set_room(int pixels) {
  if (pixels == room_) return;
  room_ = pixels;
  place();
}

void RowLayout::place() {
  for (int height = highest_row; height >= lowest_row; height -= 2) {
    if (place_with(height) <= room_) return;
  }
}

int RowLayout::place_with(int depth_height) {
  depth_height_ = depth_height;
  int y = 0;
  for (RankRows& rank : ranks_) {
    rank.y = y;
    rank.strip_height = strip_height();
    rank.tracks.clear();
    y = rank.strip_end_y() + margin;
    if (!rank.collapsed) {
      const auto& tracks = run_->trace.ranks[rank.rank].tracks;
      std::vector<std::size_t> order(tracks.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return order_of(tracks[a]) < order_of(tracks[b]); });
      bool has_counter = false;
      for (const std::size_t t : order) {
        if (tracks[t].kind == analysis::TrackKind::counter) {
          if (run_->ranks[rank.rank].graphs[t].empty() || (has_counter && !rank.counters_unfolded)) continue;
          rank.tracks.push_back({rank.rank, t, y, 0, 1, depth_height + counter_extra, true, !has_counter});
          has_counter = true;
          y = rank.tracks.back().end_y() + margin;
          continue;
        }
        if (tracks[t].slices.size() == 0 && tracks[t].marks.size() == 0) continue;
        const unsigned depths = std::max(run_->ranks[rank.rank].slices[t].depths(), 1u);
        const int marks = tracks[t].marks.size() > 0 ? mark_lane : 0;
        rank.tracks.push_back({rank.rank, t, y, marks, depths, depth_height, false, false});
        y = rank.tracks.back().end_y() + margin;
      }
    }
    rank.end_y = y + (rank.collapsed ? 0 : margin);
    y = rank.end_y;
  }
  return y;
}

std::optional<RowLayout::Hit> RowLayout::at(int y) const {
  for (const RankRows& rank : ranks_) {
    if (y < rank.y || y >= rank.end_y) continue;
    Hit hit{rank.rank, std::nullopt, std::nullopt, y >= rank.strip_y() && y < rank.strip_end_y()};
    for (const TrackRows& track : rank.tracks) {
      if (y < track.y || y >= track.end_y()) continue;
      hit.track = track.track;
      if (y >= track.depth_y(0)) hit.depth = static_cast<unsigned>((y - track.depth_y(0)) / track.depth_height);
    }
    return hit;
  }
  return std::nullopt;
}

const TrackRows* RowLayout::rows_of(std::size_t rank, std::size_t track) const {
  for (const TrackRows& rows : ranks_[rank].tracks) {
    if (rows.track == track) return &rows;
  }
  return nullptr;
}

}  // namespace paceline::viewer
