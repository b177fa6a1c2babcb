// SPDX-License-Identifier: Apache-2.0
#include "analysis/device/gpu.h"

#include <algorithm>

namespace paceline::analysis {

GpuActivity gpu_activity(const PhaseTable& table, const Rank& rank) {
  const Trace& trace = table.trace();
  GpuActivity activity;
  const NameId kernel = trace.names.find("kernel"), graph = trace.names.find("graph");
  for (const Track& track : rank.tracks) {
    if (track.kind != TrackKind::stream) continue;
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      const TimeInterval interval{track.slices.start_ns[i], track.slices.end_ns(i)};
      activity.all.push_back(interval);
      const NameId category = trace.kind_of(track.slices, i).category;
      if (category == 0 || (category != kernel && category != graph)) continue;
      const bool communicates = table.phase(track.slices.kind[i]) == Phase::communication;
      (communicates ? activity.communication : activity.compute).push_back(interval);
    }
  }
  for (Intervals* intervals : {&activity.all, &activity.compute, &activity.communication}) {
    *intervals = merged(std::move(*intervals));
  }
  return activity;
}

std::optional<GpuUsage> gpu_usage(const GpuActivity& activity) {
  if (activity.empty()) return std::nullopt;
  GpuUsage usage;
  usage.span_ns = activity.all.back().end_ns - activity.all.front().start_ns;
  usage.idle_ns = usage.span_ns - total_ns(activity.all);
  usage.compute_ns = total_ns(activity.compute);
  usage.noncompute_ns = usage.span_ns - usage.compute_ns - usage.idle_ns;
  return usage;
}

std::vector<Stream> streams_of(const Rank& rank) {
  std::vector<Stream> streams;
  for (const Track& track : rank.tracks) {
    if (track.kind != TrackKind::stream) continue;
    auto of = std::ranges::find(streams, track.label.substr(0, track.label.rfind(" (")), &Stream::name);
    if (of == streams.end()) of = streams.insert(of, Stream{track.label, {}});
    of->tracks.push_back(&track);
  }
  return streams;
}

namespace {

struct Piece {
  std::int64_t start_ns, end_ns;
  const Track* track;
  std::uint32_t slice;
};

// By start.
std::vector<Piece> pieces_of(const Stream& stream) {
  std::vector<Piece> pieces;
  for (const Track* track : stream.tracks) {
    for (std::uint32_t i = 0; i < track->slices.size(); ++i) {
      if (track->slices.depth[i] == 0) pieces.push_back({track->slices.start_ns[i], track->slices.end_ns(i), track, i});
    }
  }
  std::ranges::stable_sort(pieces, {}, &Piece::start_ns);
  return pieces;
}

}  // namespace

IdleGaps idle_gaps(const Rank& rank, const Stream& stream, const Correlations& correlations) {
  constexpr std::int64_t consecutive_ns = 30;
  IdleGaps gaps;
  const std::vector<Piece> pieces = pieces_of(stream);
  std::int64_t last_end_ns = pieces.empty() ? 0 : pieces[0].end_ns;
  for (const Piece& piece : pieces) {
    if (piece.start_ns > last_end_ns) {
      const auto calls = correlations.calls_of(piece.track->slices, piece.slice);
      const bool late_launch =
          !calls.empty() && rank.tracks[calls[0].track].slices.start_ns[calls[0].slice] > last_end_ns;
      const bool consecutive = piece.start_ns - last_end_ns < consecutive_ns;
      (late_launch   ? gaps.host_wait
       : consecutive ? gaps.kernel_wait
                     : gaps.other)
          .push_back({last_end_ns, piece.start_ns});
    }
    last_end_ns = std::max(last_end_ns, piece.end_ns);
  }
  return gaps;
}

std::vector<StreamIdle> stream_idle(const Rank& rank, const Correlations& correlations) {
  std::vector<StreamIdle> all;
  for (const Stream& stream : streams_of(rank)) {
    if (pieces_of(stream).size() < 2) continue;
    const IdleGaps gaps = idle_gaps(rank, stream, correlations);
    all.push_back({stream.name, total_ns(gaps.host_wait), total_ns(gaps.kernel_wait), total_ns(gaps.other)});
  }
  return all;
}

}  // namespace paceline::analysis
