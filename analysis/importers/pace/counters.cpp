// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace paceline::analysis {

void PaceCounters::sample(const format::Slot& head, Rank& info) {
  const auto sample = format::unpack<format::events::Sample>(&head);
  if (sample.counter > std::numeric_limits<decltype(format::events::Counter::counter)>::max()) return;  // damage
  ++info.counter_events;
  readings_[sample.counter].push_back({ticks_of(head), static_cast<std::uint64_t>(sample.value)});
}

void PaceCounters::add_tracks(const PaceDefinitions& definitions, const PaceClock& clock, const std::string& process,
                              RankBuilder& rank) {
  for (auto& [id, readings] : readings_) {
    const auto known = definitions.counters.find(id);
    format::events::Counter counter;
    if (known != definitions.counters.end()) counter = known->second;
    const bool is_sum = counter.kind == format::CounterKind::sum;
    std::string name(definitions.name(counter.name));
    if (name.empty()) name = fmt::format("counter {}", id);  // its definition is lost
    std::string device(definitions.name(counter.device));
    if (!process.empty()) device = device.empty() ? process : process + ", " + device;
    TrackBuilder& track =
        rank.add_counter(std::move(name), std::string(definitions.name(counter.unit)), std::move(device), is_sum);
    std::ranges::stable_sort(readings, {}, &Reading::ticks);
    // A sum may begin at any number, and a double has 53 bits.
    const std::uint64_t start = is_sum ? readings.front().value : 0;
    for (const Reading& reading : readings) {
      track.add_sample(clock(reading.ticks), static_cast<double>(static_cast<std::int64_t>(reading.value - start)));
    }
  }
}

}  // namespace paceline::analysis
