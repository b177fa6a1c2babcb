// SPDX-License-Identifier: Apache-2.0
#include "viewer/comparison/coupling.h"

#include <QScopedValueRollback>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace paceline::viewer {
namespace view_coupling {

TimeRange range_of(const RunIteration& iteration) { return {double(iteration.start_ns), double(iteration.end_ns)}; }

// The ranks of the other run that have the numbers of the selected ones.
std::set<std::size_t> ranks_in(const ViewState& from, const ViewState& to) {
  std::set<int> numbers;
  for (const std::size_t rank : from.selection.ranks()) numbers.insert(from.run.trace.ranks[rank].rank);
  std::set<std::size_t> ranks;
  const auto& others = to.run.trace.ranks;
  for (std::size_t rank = 0; rank < others.size(); ++rank) {
    if (numbers.contains(others[rank].rank)) ranks.insert(rank);
  }
  return ranks;
}

TimeRange shifted(const TimeRange& range, double ns) { return {range.begin_ns + ns, range.end_ns + ns}; }

// The slice of the same name that begins nearest to the time, on the track of the same label and rank.
std::optional<SliceRef> same_slice(const Run& from, const SliceRef& of, const Run& to, double time_ns) {
  const analysis::NameId name = to.trace.names.find(from.trace.names[kind_of(from, of).name]);
  if (name == 0) return std::nullopt;
  std::optional<SliceRef> nearest;
  double distance = 0;
  for (std::size_t rank = 0; rank < to.trace.ranks.size(); ++rank) {
    if (to.trace.ranks[rank].rank != from.trace.ranks[of.rank].rank) continue;
    for (std::size_t track = 0; track < to.trace.ranks[rank].tracks.size(); ++track) {
      SliceRef ref{.rank = rank, .track = track, .mark = of.mark};
      if (track_of(to, ref).label != track_of(from, of).label) continue;
      const analysis::Slices& slices = slices_of(to, ref);
      for (; ref.slice < slices.size(); ++ref.slice) {
        const double away = std::abs(double(slices.start_ns[ref.slice]) - time_ns);
        if (kind_of(to, ref).name != name || (nearest && away >= distance)) continue;
        nearest = ref, distance = away;
      }
    }
  }
  return nearest;
}

}  // namespace view_coupling

std::vector<CommonIteration> common_iterations(const Run& a, const Run& b) {
  std::map<std::int64_t, RunIteration> of_b;
  for (const RunIteration& iteration : b.iterations) of_b.emplace(iteration.number, iteration);
  std::vector<CommonIteration> common;
  for (const RunIteration& iteration : a.iterations) {
    if (const auto other = of_b.find(iteration.number); other != of_b.end()) {
      common.push_back({iteration.number, iteration, other->second});
    }
  }
  return common;
}

void follow_selection(const ViewState& from, ViewState& to) {
  const auto common = common_iterations(from.run, to.run);
  const TimeRange view = from.time.axis().visible();
  const auto range = from.selection.range();
  const auto selected = std::ranges::find_if(
      common, [&](const CommonIteration& one) { return range && view_coupling::range_of(one.a) == *range; });
  auto anchor = std::ranges::partition_point(
      common, [&](const CommonIteration& one) { return double(one.a.start_ns) <= (view.begin_ns + view.end_ns) / 2; });
  if (anchor != common.begin()) --anchor;
  if (selected != common.end()) anchor = selected;
  const double shift_ns = anchor == common.end() ? to.run.begin_ns - from.run.begin_ns
                                                 : double(anchor->b.start_ns) - double(anchor->a.start_ns);
  to.time.show_part(view_coupling::shifted(view, shift_ns));
  std::optional<TimeRange> shown;
  if (range)
    shown = selected != common.end() ? view_coupling::range_of(selected->b) : view_coupling::shifted(*range, shift_ns);
  to.selection.select_range(shown, view_coupling::ranks_in(from, to));
  std::optional<SliceRef> slice;
  if (const auto of = from.selection.slice()) {
    const double start_ns = double(slices_of(from.run, *of).start_ns[of->slice]);
    slice = view_coupling::same_slice(from.run, *of, to.run, start_ns + shift_ns);
  }
  to.selection.select(slice);
}

Coupling::Coupling(ViewState& a, ViewState& b)
    : a_(a),
      b_(b),
      iterations_(common_iterations(a.run, b.run)),
      whole_a_(a.time.axis().whole()),
      whole_b_(b.time.axis().whole()) {
  connect_views(a_, b_);
  connect_views(b_, a_);
  align_at(iterations_.empty() ? std::nullopt : std::optional(iterations_.front().number));
  if (iterations_.empty()) {
    a_.time.show_all();
    return;
  }
  const CommonIteration &first = iterations_.front(), &last = iterations_.back();
  const auto begin = double(first.a.start_ns);
  const double end = std::max(double(last.a.end_ns), double(last.b.end_ns) - offset_ns_);
  const double margin = 0.01 * (end - begin);
  a_.time.show_part({begin - margin, end + margin});
}

void Coupling::connect_views(ViewState& from, ViewState& to) {
  connect(&from.time, &VisibleTime::view_changed, this,
          [this, &from, &to] { follow_view(from, to, &from == &a_ ? offset_ns_ : -offset_ns_); });
  connect(&from.selection, &Selection::range_changed, this, [this, &from, &to] { follow_range(from, to); });
  connect(&from.time, &VisibleTime::iteration_shown, this, [this, &from](std::int64_t number) {
    const CommonIteration* shown = find(number);
    if (shown == nullptr) return;
    align(from, number);
    from.selection.select_range(view_coupling::range_of(&from == &a_ ? shown->a : shown->b));
  });
}

const CommonIteration* Coupling::find(std::int64_t number) const {
  const auto found = std::ranges::find(iterations_, number, &CommonIteration::number);
  return found == iterations_.end() ? nullptr : &*found;
}

std::optional<std::int64_t> Coupling::selected_iteration() const {
  const auto range = a_.selection.range();
  const CommonIteration* aligned = aligned_at_ ? find(*aligned_at_) : nullptr;
  if (!range || aligned == nullptr || view_coupling::range_of(aligned->a) != *range) return std::nullopt;
  return aligned_at_;
}

bool Coupling::align_at(std::optional<std::int64_t> number) {
  if (number && find(*number) == nullptr) return false;
  align(a_, number);
  return true;
}

bool Coupling::select_iteration(std::int64_t number) {
  const CommonIteration* wanted = find(number);
  if (wanted == nullptr) return false;
  align(a_, number);
  a_.selection.select_range(view_coupling::range_of(wanted->a));
  const double begin = double(wanted->a.start_ns);
  const double end = std::max(double(wanted->a.end_ns), double(wanted->b.end_ns) - offset_ns_);
  const TimeRange view = a_.time.axis().visible();
  if (begin < view.begin_ns || end > view.end_ns) {
    a_.time.jump_to({begin - 0.03 * (end - begin), end + 0.03 * (end - begin)});
  }
  return true;
}

void Coupling::align(ViewState& leading, std::optional<std::int64_t> number) {
  const CommonIteration* at = number ? find(*number) : nullptr;
  aligned_at_ = number;
  offset_ns_ = at != nullptr ? double(at->b.start_ns) - double(at->a.start_ns) : whole_b_.begin_ns - whole_a_.begin_ns;
  {
    // Both views reach as far as the longer run.
    const QScopedValueRollback guard(following_, true);
    const TimeRange both{std::min(whole_a_.begin_ns, whole_b_.begin_ns - offset_ns_),
                         std::max(whole_a_.end_ns, whole_b_.end_ns - offset_ns_)};
    a_.time.set_limits(both);
    b_.time.set_limits(view_coupling::shifted(both, offset_ns_));
  }
  if (&leading == &a_) {
    follow_view(a_, b_, offset_ns_);
  } else {
    follow_view(b_, a_, -offset_ns_);
  }
  Q_EMIT aligned();
}

void Coupling::follow_view(ViewState& from, ViewState& to, double shift_ns) {
  if (following_) return;
  const QScopedValueRollback guard(following_, true);
  if (to.time.names_width() != from.time.names_width()) to.time.set_names_width(from.time.names_width());
  const TimeRange wanted = view_coupling::shifted(from.time.axis().visible(), shift_ns);
  if (to.time.axis().visible() != wanted) to.time.show_part(wanted);
}

void Coupling::follow_range(ViewState& from, ViewState& to) {
  if (following_) return;
  const auto range = from.selection.range();
  const bool from_a = &from == &a_;
  const auto same = [&](const CommonIteration& one) {
    return view_coupling::range_of(from_a ? one.a : one.b) == *range;
  };
  const auto iteration = range ? std::ranges::find_if(iterations_, same) : iterations_.end();
  const bool is_iteration = iteration != iterations_.end();
  if (is_iteration && aligned_at_ != iteration->number) align(from, iteration->number);
  const QScopedValueRollback guard(following_, true);
  if (!range) return to.selection.select_range(std::nullopt);
  to.selection.select_range(is_iteration ? view_coupling::range_of(from_a ? iteration->b : iteration->a)
                                         : view_coupling::shifted(*range, from_a ? offset_ns_ : -offset_ns_),
                            view_coupling::ranks_in(from, to));
}

}  // namespace paceline::viewer
