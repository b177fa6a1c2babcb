// SPDX-License-Identifier: Apache-2.0
#include "analysis/index/correlations.h"

#include <algorithm>

namespace paceline::analysis {
namespace {

std::span<const Correlations::Place> equal(const std::vector<Correlations::Place>& places, std::uint32_t correlation) {
  const auto found = std::ranges::equal_range(places, correlation, {}, &Correlations::Place::correlation);
  return {found.begin(), found.end()};
}

}  // namespace

Correlations::Correlations(const Trace& trace, const Rank& rank) : key_(trace.names.find("correlation")) {
  if (key_ == 0) return;
  for (std::uint32_t t = 0; t < rank.tracks.size(); ++t) {
    auto& places = rank.tracks[t].kind == TrackKind::stream ? started_ : calls_;
    const Slices& slices = rank.tracks[t].slices;
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      if (const auto found = slices.argument(i, key_)) {
        places.push_back({static_cast<std::uint32_t>(found->whole()), t, i});
      }
    }
  }
  // Tracks and slices come in order, so a stable sort keeps the outer call first.
  std::ranges::stable_sort(started_, {}, &Place::correlation);
  std::ranges::stable_sort(calls_, {}, &Place::correlation);
}

std::span<const Correlations::Place> Correlations::started_by(std::uint32_t correlation) const {
  return equal(started_, correlation);
}
std::span<const Correlations::Place> Correlations::calls(std::uint32_t correlation) const {
  return equal(calls_, correlation);
}
std::span<const Correlations::Place> Correlations::calls_of(const Slices& work, std::size_t slice) const {
  const auto correlation = key_ == 0 ? std::nullopt : work.argument(slice, key_);
  if (!correlation || correlation->whole() >> 32 != 0) return {};
  return calls(static_cast<std::uint32_t>(correlation->whole()));
}

}  // namespace paceline::analysis
