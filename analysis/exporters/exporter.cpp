// SPDX-License-Identifier: Apache-2.0
#include "analysis/exporters/exporter.h"

#include <fmt/format.h>

namespace paceline::analysis {

ExportJob::ExportJob(const Trace& trace, const Selection& selection, Progress progress)
    : trace_(trace), selection_(selection), progress_(std::move(progress)) {
  TrackNumber tracks = 0;
  std::uint64_t events = 0;
  for (const Rank& rank : trace.ranks) {
    first_track_.push_back(tracks);
    tracks += static_cast<TrackNumber>(rank.tracks.size());
    if (!selection.takes(rank)) continue;
    ranks_.push_back(&rank);
    for (const Track& track : rank.tracks) events += track.slices.size() + track.marks.size();
  }
  counter_ = std::make_unique<ProgressCounter>(progress_, events);
}

void ExportJob::done(std::uint64_t slices) const { counter_->add(slices); }

std::optional<std::int64_t> ExportJob::utc_of_zero_ns() const {
  for (const Rank* rank : ranks_) {
    if (rank->utc_of_zero_ns) return rank->utc_of_zero_ns;
  }
  return std::nullopt;
}

std::int64_t ExportJob::earliest_ns() const {
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
  const auto look_at = [&](const std::vector<std::int64_t>& times) {
    if (!times.empty()) earliest = std::min(earliest, times.front());
  };
  for (const Rank* rank : ranks_) {
    earliest = std::min(earliest, rank->start_ns);
    for (const Track& track : rank->tracks) {
      look_at(track.slices.start_ns);
      look_at(track.marks.start_ns);
      look_at(track.samples.time_ns);
    }
  }
  return ranks_.empty() ? 0 : earliest;
}

std::string process_name(const Rank& rank) {
  return rank.host.empty() ? fmt::format("rank {}", rank.rank) : fmt::format("rank {} ({})", rank.rank, rank.host);
}

std::span<const Exporter* const> exporters() {
  static constexpr const Exporter* table[] = {
#define PACELINE_EXPORTER(name) &name##_exporter,
#include "analysis/exporters/exporters.def"
#undef PACELINE_EXPORTER
  };
  return table;
}

}  // namespace paceline::analysis
