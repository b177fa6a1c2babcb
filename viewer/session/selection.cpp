// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/selection.h"

#include <algorithm>
#include <utility>

namespace paceline::viewer {

void Selection::select(std::optional<SliceRef> slice) {
  std::vector<SliceRef> wanted;
  if (slice) wanted.push_back(*slice);
  if (wanted == slices_) return;
  slices_ = std::move(wanted);
  Q_EMIT slices_changed();
}

void Selection::toggle(const SliceRef& slice) {
  if (std::erase(slices_, slice) == 0) slices_.push_back(slice);
  Q_EMIT slices_changed();
}

void Selection::reveal_closely(const SliceRef& ref) {
  constexpr double least_pixels = 4, share = 0.1;
  const auto& slices = slices_of(run_, ref);
  const auto length = static_cast<double>(slices.duration_ns[ref.slice]);
  if (!ref.mark && length < least_pixels * time_.axis().ns_per_pixel()) {
    const double half = std::max(length / share, TimeAxis::shortest_view_ns) / 2;
    const double middle = static_cast<double>(slices.start_ns[ref.slice]) + length / 2;
    time_.jump_to({middle - half, middle + half});
  }
  reveal(ref);
}

void Selection::reveal(const SliceRef& ref) {
  arrangement_.uncover(ref.rank);
  arrangement_.set_collapsed(ref.rank, false);
  const auto& slices = slices_of(run_, ref);
  const auto start = static_cast<double>(slices.start_ns[ref.slice]);
  const auto end = static_cast<double>(slices.end_ns(ref.slice));
  const TimeRange view = time_.axis().visible();
  if (end < view.begin_ns || start > view.end_ns) time_.center_on((start + end) / 2);
  Q_EMIT revealed(ref);
  select(ref);
}

void Selection::go_to(const Place& place) {
  if (place.range) time_.jump_to(*place.range);
  if (place.slice) return place.range ? reveal(*place.slice) : reveal_closely(*place.slice);
  if (!place.rank) return;
  arrangement_.uncover(*place.rank);
  Q_EMIT rank_wanted(*place.rank);
}

void Selection::select_range(std::optional<TimeRange> range, std::set<std::size_t> ranks) {
  if (range == range_ && ranks == ranks_) return;
  range_ = range;
  ranks_ = std::move(ranks);
  Q_EMIT range_changed();
}

void Selection::select_range_of_slices() {
  std::optional<TimeRange> range;
  for (const SliceRef& ref : slices_) {
    const auto& slices = slices_of(run_, ref);
    const double start = double(slices.start_ns[ref.slice]), end = double(slices.end_ns(ref.slice));
    range = range ? TimeRange{std::min(range->begin_ns, start), std::max(range->end_ns, end)} : TimeRange{start, end};
  }
  if (range) select_range(range);
}

void Selection::fill_view() {
  if (range_) return time_.jump_to(*range_);
  if (slice()) time_.zoom_to(*slice());
}

void Selection::set_hits(HitList hits) {
  hits_ = std::move(hits);
  Q_EMIT hits_changed();
}

}  // namespace paceline::viewer
