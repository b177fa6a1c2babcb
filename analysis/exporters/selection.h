// SPDX-License-Identifier: Apache-2.0
// The part of a run that is exported: some ranks, and a window of time. Every exporter takes its events from here, so
// all formats hold the same.
//
// A slice that overlaps the window is exported. Where it crosses an edge, it is clipped to the window, keeps its depth,
// and gets the argument "clipped": "start", "end" or "both". Gaps, losses and the time of a rank are clipped as well.
// Marks are exported where they lie in the window, and so are the samples of counters together with the last sample
// before the window, because that one's value holds when the window begins.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/run/index/run_index.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// From `from_ns` up to, but without, `until_ns`; ns from the run's zero.
struct TimeWindow {
  std::int64_t from_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t until_ns = std::numeric_limits<std::int64_t>::max();

  bool holds(std::int64_t time_ns) const { return time_ns >= from_ns && time_ns < until_ns; }
  bool overlaps(std::int64_t start_ns, std::int64_t end_ns) const {
    return start_ns < until_ns && (end_ns > from_ns || start_ns >= from_ns);
  }
  bool is_everything() const { return *this == TimeWindow{}; }
  bool operator==(const TimeWindow&) const = default;
};

enum class Clipped : std::uint8_t { no = 0, start = 1, end = 2, both = 3 };
// "start", "end", "both"; "" of what is whole.
std::string_view clipped_text(Clipped clipped);

// A slice or mark as it is exported.
struct SelectedSlice {
  std::uint32_t index = 0;  // of the track's slices or marks
  std::int64_t start_ns = 0, duration_ns = 0;
  Clipped clipped = Clipped::no;

  std::int64_t end_ns() const { return start_ns + duration_ns; }
};

// First and last number, both included.
using NumberRange = std::pair<std::int64_t, std::int64_t>;

class Selection {
 public:
  Selection() = default;  // everything
  // `ranks`: by number; empty for all.
  explicit Selection(TimeWindow window, std::vector<NumberRange> ranks = {})
      : window_(window), ranks_(std::move(ranks)) {}

  bool takes(const Rank& rank) const {
    return ranks_.empty() || std::ranges::any_of(ranks_, [&](const NumberRange& range) {
             return rank.rank >= range.first && rank.rank <= range.second;
           });
  }
  const TimeWindow& window() const { return window_; }

  // A stretch of time, clipped; nothing where it lies outside.
  std::optional<TimeWindow> clipped(std::int64_t start_ns, std::int64_t end_ns) const {
    if (!window_.overlaps(start_ns, end_ns)) return std::nullopt;
    return TimeWindow{std::max(start_ns, window_.from_ns), std::min(end_ns, window_.until_ns)};
  }
  std::optional<SelectedSlice> slice(const Slices& slices, std::uint32_t i) const {
    const std::int64_t start_ns = slices.start_ns[i], end_ns = slices.end_ns(i);
    const auto part = clipped(start_ns, end_ns);
    if (!part) return std::nullopt;
    const int edges = (part->from_ns > start_ns ? 1 : 0) | (part->until_ns < end_ns ? 2 : 0);
    return SelectedSlice{i, part->from_ns, part->until_ns - part->from_ns, static_cast<Clipped>(edges)};
  }
  // The slices before this one may be in the window, the others start after it. O(log n).
  std::uint32_t end_of(const Slices& slices) const {
    const auto end = std::ranges::lower_bound(slices.start_ns, window_.until_ns);
    return static_cast<std::uint32_t>(end - slices.start_ns.begin());
  }
  // The samples to export, as a first index and the one behind the last. O(log n).
  std::pair<std::size_t, std::size_t> samples(const std::vector<std::int64_t>& time_ns) const;

 private:
  TimeWindow window_;
  std::vector<NumberRange> ranks_;
};

// "0,2,5-9". Throws Error for other texts.
std::vector<NumberRange> parse_ranks(std::string_view text);

// "10:12", "10:" (to the last one), "10" (that one): the first and last iteration, both included. Throws Error.
NumberRange parse_iterations(std::string_view text);

// "1.5s", "200ms", "3us", "10ns", "2min"; a number without a unit is in seconds. In ns; digits below 1 ns are dropped.
// Throws Error.
std::int64_t parse_time(std::string_view text);

// From the earliest start of the first iteration to the latest end of the last one, over the ranks that `ranks` takes:
// one window for all, so that collectives stay whole. Throws Error where the run has no iteration of these numbers.
TimeWindow window_of_iterations(const RunIndex& index, const Selection& ranks, NumberRange iterations);

}  // namespace paceline::analysis
