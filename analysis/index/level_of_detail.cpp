// SPDX-License-Identifier: Apache-2.0
#include "analysis/index/level_of_detail.h"

#include <algorithm>

namespace paceline::analysis {
namespace {

// The first position in [begin, end] where `beyond` holds, given that it holds from some position on.
template <class Beyond>
std::size_t first_where(std::size_t begin, std::size_t end, Beyond beyond) {
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (beyond(middle)) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

// The same, fastest when that position is some `step` before or behind `guess`, which is not before `begin`.
template <class Beyond>
std::size_t gallop(std::size_t begin, std::size_t end, std::size_t guess, std::size_t step, Beyond beyond) {
  if (guess >= end || beyond(guess)) {
    end = std::min(guess, end);
    while (end - begin > step && beyond(end - step)) {
      end -= step;
      step *= 2;
    }
    return first_where(end - std::min(step, end - begin), end, beyond);
  }
  begin = guess;
  while (end - begin > step && !beyond(begin + step)) {
    begin += step;
    step *= 2;
  }
  return first_where(begin, std::min(begin + step, end), beyond);
}

}  // namespace

LevelOfDetail::LevelOfDetail(const Slices& slices) {
  for (const std::uint16_t depth : slices.depth) {
    if (depths_.size() <= depth) depths_.resize(depth + 1u);
    ++depths_[depth].count;
  }
  if (depths_.size() > 1) {
    for (Depth& depth : depths_) depth.order.reserve(depth.count);
    for (std::uint32_t i = 0; i < slices.size(); ++i) depths_[slices.depth[i]].order.push_back(i);
  }
  build(slices);
}

LevelOfDetail::LevelOfDetail(const Slices& slices, const std::vector<bool>& wanted) {
  std::vector<std::int64_t> open_ends;
  std::size_t chosen = 0;
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    if (!wanted[slices.kind[i]]) continue;
    while (!open_ends.empty() && open_ends.back() <= slices.start_ns[i]) open_ends.pop_back();
    if (depths_.size() <= open_ends.size()) depths_.emplace_back();
    Depth& depth = depths_[open_ends.size()];
    // Indices are needed from the first slice on that is not where it is in the track.
    if (depths_.size() > 1 || i != chosen || !depth.order.empty()) {
      if (depth.order.empty()) {
        for (std::uint32_t before = 0; before < depth.count; ++before) depth.order.push_back(before);
      }
      depth.order.push_back(i);
    }
    ++depth.count;
    ++chosen;
    open_ends.push_back(slices.end_ns(i));
  }
  build(slices);
}

void LevelOfDetail::build(const Slices& slices) {
  for (unsigned depth = 0; depth < depths(); ++depth) {
    depths_[depth].longest = {depths_[depth].count, [](std::size_t i) { return static_cast<std::uint32_t>(i); },
                              [&](std::uint32_t a, std::uint32_t b) {
                                return slices.duration_ns[slice(depth, b)] > slices.duration_ns[slice(depth, a)] ? b
                                                                                                                 : a;
                              }};
  }
}

std::size_t LevelOfDetail::longest(const Slices& slices, unsigned depth, std::size_t begin, std::size_t end) const {
  return depths_[depth].longest.over(
      begin, end, [](std::size_t i) { return static_cast<std::uint32_t>(i); },
      [&](std::uint32_t a, std::uint32_t b) {
        return slices.duration_ns[slice(depth, b)] > slices.duration_ns[slice(depth, a)] ? b : a;
      });
}

std::size_t LevelOfDetail::position(unsigned depth, std::uint32_t slice) const {
  if (depth >= depths()) return 0;
  const Depth& of = depths_[depth];
  if (of.order.empty()) return std::min<std::size_t>(slice, of.count);
  return static_cast<std::size_t>(std::ranges::lower_bound(of.order, slice) - of.order.begin());
}

void LevelOfDetail::items(const Slices& slices, unsigned depth, const PixelColumns& columns, std::vector<Item>& items,
                          double least_ns) const {
  items.clear();
  const std::size_t size = count(depth);
  if (size == 0) return;
  const auto start = [&](std::size_t i) { return slices.start_ns[slice(depth, i)]; };
  const auto wide = [&](std::size_t i) {
    return static_cast<double>(slices.duration_ns[slice(depth, i)]) >= columns.ns_per_pixel;
  };

  // Slices of one depth do not overlap: only the last one that starts before the first column can reach into it.
  std::size_t i = first_where(0, size, [&](std::size_t k) { return columns.x(start(k)) >= 0; });
  if (i > 0 && columns.x(slices.end_ns(slice(depth, i - 1))) > 0) --i;

  const std::int64_t longest_ns = slices.duration_ns[slice(depth, longest(slices, depth, 0, size))];
  const bool any_long = static_cast<double>(longest_ns) >= least_ns;

  // The first of the slices from `begin` to before `end` for which beyond(its column), given that it starts near `at`
  // and is about `count` slices behind `begin`. The search compares times, which is faster than columns; where times
  // are rounded its result may be off by a slice.
  const auto first_beyond = [&](std::size_t begin, std::size_t end, std::size_t count, double at, auto beyond) {
    const double time = columns.begin_ns + at * columns.ns_per_pixel;
    std::size_t found = gallop(begin, end, begin + count, std::max<std::size_t>(1, count / 16),
                               [&](std::size_t k) { return static_cast<double>(start(k)) >= time; });
    while (found < end && !beyond(columns.x(start(found)))) ++found;
    while (found > begin && beyond(columns.x(start(found - 1)))) --found;
    return found;
  };

  std::size_t before = 1;  // slices of the column before: neighbouring columns hold about as many
  while (i < size && columns.x(start(i)) < columns.count) {
    if (wide(i)) {
      const double first = std::clamp(std::round(columns.x(start(i))), -1.0, double(columns.count));
      const double end = std::clamp(std::round(columns.x(slices.end_ns(slice(depth, i)))), -1.0, double(columns.count));
      items.push_back(
          {static_cast<int>(first), static_cast<int>(std::max(end, first + 1)), slice(depth, i), slice(depth, i), 1});
      ++i;
      continue;
    }
    const int column = columns.column(start(i));
    std::size_t end = first_beyond(i, size, before, column + 1, [&](double x) { return x >= column + 1; });
    before = end - i;
    // Of slices that start in one column only the last can be a pixel wide or more.
    if (end - i > 1 && wide(end - 1)) --end;
    std::size_t middle = i;
    if (end - i > 1) {
      const std::size_t past =
          first_beyond(i, end, (end - i) / 2, column + 0.5, [&](double x) { return x > column + 0.5; });
      if (past > i) middle = past - 1;
    }
    const std::size_t shown = any_long && end - i > 1 ? longest(slices, depth, i, end) : middle;
    items.push_back(
        {column, column + 1, slice(depth, shown), slice(depth, middle), static_cast<std::uint32_t>(end - i)});
    i = end;
  }
}

std::optional<std::uint32_t> LevelOfDetail::slice_at(const Slices& slices, unsigned depth, double time_ns,
                                                     double slack_ns) const {
  const std::size_t size = count(depth);
  const auto starts_by = [&](double time) {
    return first_where(0, size, [&](std::size_t i) { return double(slices.start_ns[slice(depth, i)]) > time; });
  };
  std::size_t begin = starts_by(time_ns - slack_ns), end = starts_by(time_ns + slack_ns);
  if (begin > 0 && double(slices.end_ns(slice(depth, begin - 1))) >= time_ns - slack_ns) --begin;
  if (begin == end) return std::nullopt;
  return slice(depth, longest(slices, depth, begin, end));
}

std::size_t LevelOfDetail::bytes() const {
  std::size_t total = depths_.size() * sizeof(Depth);
  for (const Depth& depth : depths_) total += depth.order.size() * sizeof(std::uint32_t) + depth.longest.bytes();
  return total;
}

}  // namespace paceline::analysis
