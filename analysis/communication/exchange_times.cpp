// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/exchange_times.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "analysis/statistics/statistics.h"

namespace paceline::analysis {
namespace exchange_kinds {

struct ExchangeKind {
  std::string_view name, kernels;  // kernels: a pattern of NCCL's names; "" for none
};
constexpr std::array all = {ExchangeKind{"reduce-scatter", "nccl*reducescatter*"},
                            ExchangeKind{"all-gather", "nccl*allgather*"},
                            ExchangeKind{"mean of P", ""},
                            ExchangeKind{"mean of Q", ""},
                            ExchangeKind{"compress", ""},
                            ExchangeKind{"decompress", ""}};

// What was found of one kind.
struct Found {
  Intervals ranges, hideable, kernels;  // hideable: the ranges of threads other than the main one
  std::vector<std::int64_t> durations;
  double bytes = 0;
};

class Finder {
 public:
  explicit Finder(const PhaseTable& table)
      : trace_(table.trace()),
        domain_(trace_.names.find("paceline.trainer")),
        payload_(trace_.names.find("payload")),
        of_kind_(trace_.kinds.size(), unknown) {}

  void add(const Track& track) {
    const bool stream = track.kind == TrackKind::stream;
    if (!stream && (track.kind != TrackKind::thread || domain_ == 0)) return;
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      const std::size_t kind = kind_of(track.slices.kind[i], stream);
      if (kind == all.size()) continue;
      Found& found = found_[kind];
      const TimeInterval time{track.slices.start_ns[i], track.slices.end_ns(i)};
      if (stream) {
        found.kernels.push_back(time);
        continue;
      }
      found.ranges.push_back(time);
      if (!track.main) found.hideable.push_back(time);
      found.durations.push_back(track.slices.duration_ns[i]);
      if (payload_ != 0) found.bytes += track.slices.number(i, payload_).value_or(0);
    }
  }

  const std::array<Found, all.size()>& found() const { return found_; }

 private:
  static constexpr std::uint8_t unknown = 255;

  // Index into `all`, or its size. A kind is on streams or on threads, not on both.
  std::size_t kind_of(KindId id, bool stream) {
    std::uint8_t& known = of_kind_[id];
    if (known != unknown) return known;
    const Kind& kind = trace_.kinds[id];
    const std::string& name = trace_.names[kind.name];
    const auto fits = [&](const ExchangeKind& one) {
      if (stream) return !one.kernels.empty() && matches(one.kernels, name);
      return kind.domain == domain_ && one.name == name;
    };
    known = static_cast<std::uint8_t>(std::ranges::find_if(all, fits) - all.begin());
    return known;
  }

  const Trace& trace_;
  const NameId domain_, payload_;
  std::vector<std::uint8_t> of_kind_;
  std::array<Found, all.size()> found_;
};

}  // namespace exchange_kinds

std::vector<ExchangeTime> exchange_times(const PhaseTable& table, const Rank& rank, const Intervals& compute,
                                         const GpuActivity& gpu) {
  const auto named = [&](const auto& kind) { return table.trace().names.find(kind.name) != 0; };
  if (gpu.communication.empty() && std::ranges::none_of(exchange_kinds::all, named)) return {};
  exchange_kinds::Finder finder(table);
  for (const Track& track : rank.tracks) finder.add(track);
  std::vector<ExchangeTime> times;
  for (std::size_t kind = 0; kind < exchange_kinds::all.size(); ++kind) {
    exchange_kinds::Found found = finder.found()[kind];
    if (found.ranges.empty() && found.kernels.empty()) continue;
    ExchangeTime time{.name = std::string(exchange_kinds::all[kind].name)};
    time.bytes = found.bytes;
    if (found.kernels.empty()) {
      time.calls = found.ranges.size();
      time.median_ns = median(std::move(found.durations));
      time.overlap.communication_ns = total_ns(merged(std::move(found.ranges)));
      if (!found.hideable.empty()) {  // the main thread cannot compute beside its own exchange
        time.overlap.hidden_ns = overlap_between(merged(std::move(found.hideable)), merged(compute)).hidden_ns;
      }
    } else {
      std::vector<std::int64_t> durations;
      for (const TimeInterval& one : found.kernels) durations.push_back(one.end_ns - one.start_ns);
      time.calls = durations.size();
      time.median_ns = median(std::move(durations));
      time.overlap = overlap_between(merged(std::move(found.kernels)), gpu.compute);
    }
    times.push_back(std::move(time));
  }
  return times;
}

}  // namespace paceline::analysis
