#include "analysis/index/level_of_detail.h"

#include <algorithm>

namespace paceline::analysis {
namespace {

constexpr std::size_t fanout = 8;

// The first position in [begin, end] where `beyond` holds, given that it holds from some position on; fastest when that
// position is some `step` behind `begin`.
template <class Beyond>
std::size_t gallop(std::size_t begin, std::size_t end, std::size_t step, Beyond beyond) {
  std::size_t low = begin;
  while (low + step < end && !beyond(low + step)) {
    low += step;
    step *= 2;
  }
  std::size_t high = std::min(low + step, end);
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (beyond(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

LevelOfDetail::LevelOfDetail(const Slices& slices) {
  unsigned depths = 0;
  for (const std::uint16_t depth : slices.depth) depths = std::max(depths, depth + 1u);
  first_.assign(depths + 1, 0);
  for (const std::uint16_t depth : slices.depth) ++first_[depth + 1];
  for (unsigned depth = 0; depth < depths; ++depth) first_[depth + 1] += first_[depth];

  order_.resize(slices.size());
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  for (std::size_t i = 0; i < slices.size(); ++i) order_[next[slices.depth[i]]++] = static_cast<std::uint32_t>(i);

  levels_.resize(depths);
  for (unsigned depth = 0; depth < depths; ++depth) {
    const auto order = at_depth(depth);
    const auto longer = [&](std::uint32_t a, std::uint32_t b) {
      return slices.duration_ns[order[a]] > slices.duration_ns[order[b]];
    };
    for (std::size_t below = order.size(); below > fanout;) {
      const std::size_t blocks = (below + fanout - 1) / fanout;
      std::vector<std::uint32_t> level(blocks);
      const auto* lower = levels_[depth].empty() ? nullptr : &levels_[depth].back();
      for (std::size_t block = 0; block < blocks; ++block) {
        const auto entry = [&](std::size_t i) { return lower ? (*lower)[i] : static_cast<std::uint32_t>(i); };
        std::uint32_t best = entry(block * fanout);
        for (std::size_t i = block * fanout + 1; i < std::min(below, (block + 1) * fanout); ++i) {
          if (longer(entry(i), best)) best = entry(i);
        }
        level[block] = best;
      }
      levels_[depth].push_back(std::move(level));
      below = blocks;
    }
  }
}

std::span<const std::uint32_t> LevelOfDetail::at_depth(unsigned depth) const {
  if (depth >= depths()) return {};
  return {order_.data() + first_[depth], first_[depth + 1] - first_[depth]};
}

std::size_t LevelOfDetail::longest(const Slices& slices, unsigned depth, std::size_t begin, std::size_t end) const {
  const auto order = at_depth(depth);
  const auto& levels = levels_[depth];
  std::size_t best = begin;
  std::int64_t best_ns = -1;
  // Left to right, so that the first of equals stays: single slices up to a block's edge, then ever larger blocks
  // while they fit, then smaller ones again.
  for (std::size_t at = begin; at < end;) {
    std::size_t size = 1, candidate = at;
    for (const auto& level : levels) {
      const std::size_t larger = size * fanout;
      if (at % larger != 0 || at + larger > end) break;
      size = larger;
      candidate = level[at / larger];
    }
    if (const std::int64_t ns = slices.duration_ns[order[candidate]]; ns > best_ns) {
      best_ns = ns;
      best = candidate;
    }
    at += size;
  }
  return best;
}

void LevelOfDetail::items(const Slices& slices, unsigned depth, const PixelColumns& columns,
                          std::vector<Item>& items) const {
  items.clear();
  const auto order = at_depth(depth);
  const auto start = [&](std::size_t i) { return slices.start_ns[order[i]]; };
  const auto wide = [&](std::size_t i) {
    return static_cast<double>(slices.duration_ns[order[i]]) >= columns.ns_per_pixel;
  };

  // Slices of one depth do not overlap: only the last one that starts before the first column can reach into it.
  std::size_t i = static_cast<std::size_t>(
      std::partition_point(order.begin(), order.end(),
                           [&](std::uint32_t slice) { return columns.x(slices.start_ns[slice]) < 0; }) -
      order.begin());
  if (i > 0 && columns.x(slices.end_ns(order[i - 1])) > 0) --i;

  std::size_t step = 1;
  while (i < order.size() && columns.x(start(i)) < columns.count) {
    if (wide(i)) {
      const double first = std::clamp(std::round(columns.x(start(i))), -1.0, double(columns.count));
      const double end = std::clamp(std::round(columns.x(slices.end_ns(order[i]))), -1.0, double(columns.count));
      items.push_back({static_cast<int>(first), static_cast<int>(std::max(end, first + 1)), order[i], order[i], 1});
      ++i;
      continue;
    }
    const int column = columns.column(start(i));
    std::size_t end = gallop(i, order.size(), step, [&](std::size_t k) { return columns.x(start(k)) >= column + 1; });
    step = std::max<std::size_t>(1, (end - i) / 2);  // neighbouring columns hold about as many
    // Of slices that start in one column only the last can be a pixel wide or more.
    if (end - i > 1 && wide(end - 1)) --end;
    const std::size_t past = gallop(i, end, std::max<std::size_t>(1, (end - i) / 4),
                                    [&](std::size_t k) { return columns.x(start(k)) > column + 0.5; });
    items.push_back({column, column + 1, order[longest(slices, depth, i, end)], order[past > i ? past - 1 : i],
                     static_cast<std::uint32_t>(end - i)});
    i = end;
  }
}

std::optional<std::uint32_t> LevelOfDetail::slice_at(const Slices& slices, unsigned depth, double time_ns,
                                                     double slack_ns) const {
  const auto order = at_depth(depth);
  if (order.empty()) return std::nullopt;
  const auto starts_by = [&](double time) {
    return static_cast<std::size_t>(
        std::partition_point(order.begin(), order.end(),
                             [&](std::uint32_t slice) { return double(slices.start_ns[slice]) <= time; }) -
        order.begin());
  };
  std::size_t begin = starts_by(time_ns - slack_ns), end = starts_by(time_ns + slack_ns);
  if (begin > 0 && double(slices.end_ns(order[begin - 1])) >= time_ns - slack_ns) --begin;
  if (begin == end) return std::nullopt;
  return order[longest(slices, depth, begin, end)];
}

std::size_t LevelOfDetail::bytes() const {
  std::size_t total = order_.size() * sizeof(std::uint32_t) + first_.size() * sizeof(std::size_t);
  for (const auto& depth : levels_) {
    for (const auto& level : depth) total += level.size() * sizeof(std::uint32_t);
  }
  return total;
}

}  // namespace paceline::analysis
