// SPDX-License-Identifier: Apache-2.0
#include "analysis/statistics/range_statistics.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace paceline::analysis {
namespace range_projection {

bool is_counted(const Track& track) {
  return track.kind == TrackKind::thread || track.kind == TrackKind::mpi || track.kind == TrackKind::nccl;
}

// Work on a device, and the time on its thread at which it was launched.
struct Launched {
  std::int64_t launch_ns = 0, start_ns = 0, end_ns = 0;
};

// The work that each thread launched, by thread id, in the order of the launches.
std::map<std::uint64_t, std::vector<Launched>> launches_by_thread(const Rank& rank, const Correlations& correlations) {
  std::map<std::uint64_t, std::vector<Launched>> launches;
  for (const Track& track : rank.tracks) {
    if (track.kind != TrackKind::stream) continue;
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      const auto calls = correlations.calls_of(track.slices, i);
      if (calls.empty()) continue;
      const Track& thread = rank.tracks[calls.back().track];
      launches[thread.thread_id].push_back(
          {thread.slices.start_ns[calls.back().slice], track.slices.start_ns[i], track.slices.end_ns(i)});
    }
  }
  for (auto& [thread, of] : launches) std::ranges::stable_sort(of, {}, &Launched::launch_ns);
  return launches;
}

// What was launched while a slice was open.
struct Open {
  std::int64_t end_ns = 0;
  KindId kind = 0;
  std::uint64_t operations = 0;
  std::int64_t work_ns = 0;
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max(), last_ns = std::numeric_limits<std::int64_t>::min();

  void add(const Open& inner) {
    operations += inner.operations;
    work_ns += inner.work_ns;
    first_ns = std::min(first_ns, inner.first_ns);
    last_ns = std::max(last_ns, inner.last_ns);
  }
};

// The row of each kind of slice of a rank. Where the trace has few kinds, each has the row of its number.
class RowNumbers {
 public:
  RowNumbers(const Trace& trace, const Rank& rank, std::size_t most_names) : rows_(trace.kinds.size()) {
    if (rows_ > most_names) keep_largest(trace, rank, most_names);
  }

  std::size_t size() const { return rows_; }
  std::size_t operator[](KindId kind) const { return row_of_kind_.empty() ? kind : row_of_kind_[kind]; }
  KindId kind_of(std::size_t row) const { return kept_.empty() ? static_cast<KindId>(row) : kept_[row]; }
  // How many kinds the last row stands for; 0 if it is the row of one kind.
  std::uint64_t others() const { return others_; }

 private:
  void keep_largest(const Trace& trace, const Rank& rank, std::size_t most_names) {
    std::vector<std::int64_t> total_ns(trace.kinds.size(), -1);  // -1: no slice has this kind
    for (const Track& track : rank.tracks) {
      if (!is_counted(track)) continue;
      const Slices& slices = track.slices;
      for (std::size_t i = 0; i < slices.size(); ++i) {
        std::int64_t& sum = total_ns[slices.kind[i]];
        sum = std::max<std::int64_t>(sum, 0) + std::max<std::int64_t>(slices.duration_ns[i], 0);
      }
    }
    for (KindId kind = 0; kind < total_ns.size(); ++kind) {
      if (total_ns[kind] >= 0) kept_.push_back(kind);
    }
    if (kept_.size() > most_names) {
      const NameId messages = trace.names.find("point-to-point");
      const auto rest = std::partition(kept_.begin(), kept_.end(), [&](KindId kind) {
        return messages != 0 && trace.kinds[kind].category == messages;
      });
      const auto always = static_cast<std::size_t>(rest - kept_.begin());
      const std::size_t most = std::max(most_names, always);
      const auto by_total = [&](KindId a, KindId b) {
        return total_ns[a] != total_ns[b] ? total_ns[a] > total_ns[b] : a < b;
      };
      std::nth_element(rest, kept_.begin() + static_cast<std::ptrdiff_t>(most), kept_.end(), by_total);
      others_ = kept_.size() - most;
      kept_.resize(most);
      kept_.shrink_to_fit();
      std::ranges::sort(kept_);  // so that equal totals keep the order of their kinds
    }
    rows_ = kept_.size() + (others_ > 0 ? 1 : 0);
    row_of_kind_.assign(trace.kinds.size(), static_cast<std::uint32_t>(kept_.size()));
    for (std::size_t row = 0; row < kept_.size(); ++row) row_of_kind_[kept_[row]] = static_cast<std::uint32_t>(row);
  }

  std::size_t rows_;
  std::uint64_t others_ = 0;
  std::vector<std::uint32_t> row_of_kind_;  // empty: the kind's number
  std::vector<KindId> kept_;                // of each row
};

// Gives the work that a thread launched to the slices of one of its tracks.
class Projection {
 public:
  Projection(const Slices& slices, const RowNumbers& rows, std::vector<DeviceTime>& by_row)
      : slices_(slices), rows_(rows), by_row_(by_row) {}

  void run(const std::vector<Launched>& launches) {
    for (const Launched& launched : launches) {
      open_until(launched.launch_ns);
      if (open_.empty()) continue;
      open_.back().add({.operations = 1,
                        .work_ns = launched.end_ns - launched.start_ns,
                        .first_ns = launched.start_ns,
                        .last_ns = launched.end_ns});
    }
    while (!open_.empty()) close();
  }

 private:
  // Opens the slices that start by then, and closes those that end by then.
  void open_until(std::int64_t ns) {
    for (; next_ < slices_.size() && slices_.start_ns[next_] <= ns; ++next_) {
      close_until(slices_.start_ns[next_]);
      open_.push_back({.end_ns = slices_.end_ns(next_), .kind = slices_.kind[next_]});
    }
    close_until(ns);
  }
  void close_until(std::int64_t ns) {
    while (!open_.empty() && open_.back().end_ns <= ns) close();
  }
  void close() {
    const Open closed = open_.back();
    open_.pop_back();
    if (closed.operations == 0) return;
    DeviceTime& time = by_row_[rows_[closed.kind]];
    time.operations += closed.operations;
    time.work_ns += closed.work_ns;
    time.projected_ns += closed.last_ns - closed.first_ns;
    if (!open_.empty()) open_.back().add(closed);
  }

  const Slices& slices_;
  const RowNumbers& rows_;
  std::vector<DeviceTime>& by_row_;
  std::size_t next_ = 0;
  std::vector<Open> open_;
};

// Adds the calls and the work of another row.
void add(const RangeStatistics& other, RangeStatistics& sum) {
  sum.durations.merge(other.durations);
  sum.device.operations += other.device.operations;
  sum.device.work_ns += other.device.work_ns;
  sum.device.projected_ns += other.device.projected_ns;
}

// The row "other names" is the last one.
void sort_rows(std::vector<RangeStatistics>& rows) {
  std::ranges::stable_sort(rows, [](const RangeStatistics& a, const RangeStatistics& b) {
    if ((a.others > 0) != (b.others > 0)) return b.others > 0;
    return a.durations.sum_ns() > b.durations.sum_ns();
  });
}

RangeStatistics other_names() {
  RangeStatistics row;
  row.name = "other names";
  return row;
}

// Keeps the first `most_names` of the sorted rows, and messages; adds the rest to `others`.
void keep_first(std::vector<RangeStatistics>& rows, std::size_t most_names, RangeStatistics& others) {
  if (rows.size() <= most_names) return;
  const auto rest = std::stable_partition(rows.begin() + static_cast<std::ptrdiff_t>(most_names), rows.end(),
                                          [](const RangeStatistics& row) { return row.category == "point-to-point"; });
  for (auto row = rest; row != rows.end(); ++row) {
    add(*row, others);
    ++others.others;
  }
  rows.erase(rest, rows.end());
}

}  // namespace range_projection

std::vector<RangeStatistics> range_statistics(const Trace& trace, const Rank& rank, const Correlations* correlations,
                                              std::size_t most_names) {
  using namespace range_projection;
  const RowNumbers numbers(trace, rank, most_names);
  std::vector<DurationSketch> durations(numbers.size());
  std::vector<DeviceTime> device(numbers.size());
  for (const Track& track : rank.tracks) {
    if (!is_counted(track)) continue;
    const Slices& slices = track.slices;
    for (std::size_t i = 0; i < slices.size(); ++i) durations[numbers[slices.kind[i]]].add(slices.duration_ns[i]);
  }
  if (correlations != nullptr) {
    const auto launches = launches_by_thread(rank, *correlations);
    for (const Track& track : rank.tracks) {
      const auto of_thread = launches.find(track.thread_id);
      if (track.kind != TrackKind::thread || of_thread == launches.end()) continue;
      Projection(track.slices, numbers, device).run(of_thread->second);
    }
  }
  std::vector<RangeStatistics> rows;
  for (std::size_t r = 0; r < durations.size(); ++r) {
    if (durations[r].count() == 0) continue;
    RangeStatistics row;
    if (numbers.others() > 0 && r + 1 == durations.size()) {
      row = other_names();
      row.others = numbers.others();
    } else {
      const Kind& of = trace.kinds[numbers.kind_of(r)];
      row.domain = trace.names[of.domain], row.category = trace.names[of.category], row.name = trace.names[of.name];
    }
    row.durations = std::move(durations[r]);
    row.device = device[r];
    rows.push_back(std::move(row));
  }
  sort_rows(rows);
  return rows;
}

std::vector<RangeStatistics> merged_ranges(std::vector<const std::vector<RangeStatistics>*> ranks,
                                           std::size_t most_names) {
  using namespace range_projection;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, RangeStatistics> by_name;
  RangeStatistics others = other_names();
  for (const std::vector<RangeStatistics>* rank : ranks) {
    for (const RangeStatistics& range : *rank) {
      if (range.others > 0) {
        add(range, others);
        others.others = std::max(others.others, range.others);  // ranks may have the same names
        continue;
      }
      RangeStatistics& sum = by_name[{range.domain, range.category, range.name}];
      if (sum.durations.count() == 0) {
        sum = range;
      } else {
        add(range, sum);
      }
    }
  }
  std::vector<RangeStatistics> rows;
  rows.reserve(by_name.size() + 1);
  for (auto& [name, range] : by_name) rows.push_back(std::move(range));
  sort_rows(rows);
  keep_first(rows, most_names, others);
  if (others.others > 0) rows.push_back(std::move(others));
  return rows;
}

std::uint64_t names_in(const std::vector<RangeStatistics>& rows) {
  std::uint64_t names = rows.size();
  if (!rows.empty() && rows.back().others > 0) names += rows.back().others - 1;
  return names;
}

}  // namespace paceline::analysis
