#include "analysis/importers/pace/nvtx_clocks.h"

#include <algorithm>

#include "profiler/format/events.h"

namespace paceline::analysis {

using format::EventType;
using format::Slot;

namespace {

// Numbers of nvToolsExtPayload.h.
constexpr std::uint64_t recorders = 1, tsc = 10, first_system = 12, last_system = 17;
constexpr std::uint64_t first_own = 1U << 24, first_given = std::uint64_t{1} << 32;

// A line through two moments nearer than this is steeper or flatter than the clock, by the noise of reading both.
constexpr double shortest_line_seconds = 0.05;

constexpr int longest_chain = 4;  // of clocks, each tied to the one before

}  // namespace

// The program's own ids belong to their domain; the others are there once.
std::uint64_t NvtxClocks::key(std::uint16_t domain, std::uint64_t id) {
  return id >= first_own && id < first_given ? std::uint64_t{domain} << 32 | id : id;
}

void NvtxClocks::take(const Slot& head) {
  if (type_of(head) == EventType::time_domain) {
    const auto defined = format::unpack<format::events::TimeDomain>(&head);
    Clock& clock = clocks_[key(defined.domain, defined.id)];
    clock.type = defined.clock_type;
    clock.per_second = static_cast<double>(static_cast<std::int64_t>(defined.ticks_per_second));
  } else if (type_of(head) == EventType::time_sync) {
    const auto sync = format::unpack<format::events::TimeSync>(&head);
    syncs_.push_back({key(sync.domain, sync.first_domain), key(sync.domain, sync.second_domain),
                      static_cast<std::int64_t>(sync.first_time), static_cast<std::int64_t>(sync.second_time)});
  }
}

void NvtxClocks::finish(std::uint64_t start_ticks, double ticks_per_second, bool ticks_are_tsc) {
  start_ticks_ = start_ticks;
  ticks_per_second_ = ticks_per_second;
  ticks_are_tsc_ = ticks_are_tsc;
  for (std::uint64_t id = first_system; id <= last_system; ++id) clocks_[id].per_second = 1e9;
  // Each round ties the clocks that are tied to those of the rounds before.
  std::vector<Sync> open = std::move(syncs_);
  for (int round = 0; round < longest_chain && !open.empty(); ++round) {
    std::vector<std::pair<std::uint64_t, Anchor>> found;
    std::erase_if(open, [&](const Sync& sync) {
      const auto a = convert(sync.a, sync.at_a), b = convert(sync.b, sync.at_b);
      if (a && !b) found.push_back({sync.b, {sync.at_b, *a}});
      if (b && !a) found.push_back({sync.a, {sync.at_a, *b}});
      return a || b;
    });
    for (const auto& [key, anchor] : found) {
      Clock& clock = clocks_[key];
      if (!clock.first || anchor.value < clock.first->value) clock.first = anchor;
      if (!clock.last || anchor.value > clock.last->value) clock.last = anchor;
    }
  }
}

std::optional<double> NvtxClocks::convert(std::uint64_t key, std::int64_t value) const {
  if (key <= recorders || (key == tsc && ticks_are_tsc_)) {
    return static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) - start_ticks_));
  }
  const auto found = clocks_.find(key);
  if (found == clocks_.end()) return {};
  const Clock& clock = found->second;
  if (!clock.first || !clock.last) {
    const bool known =
        clock.type == recorders || clock.type == tsc || (clock.type >= first_system && clock.type <= last_system);
    return known && clock.type != key ? convert(clock.type, value) : std::nullopt;
  }
  const double values = static_cast<double>(clock.last->value) - static_cast<double>(clock.first->value);
  const double ticks = clock.last->ticks - clock.first->ticks;
  double slope = ticks_per_second_ / (clock.per_second > 0 ? clock.per_second : 1e9);
  if (values > 0 && (clock.per_second <= 0 || ticks > shortest_line_seconds * ticks_per_second_)) {
    slope = ticks / values;
  }
  const Anchor& near = value >= clock.last->value ? *clock.last : *clock.first;
  const auto distance =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(near.value));
  return near.ticks + slope * static_cast<double>(distance);
}

std::optional<double> NvtxClocks::ticks(std::uint16_t domain, std::uint64_t time_domain, std::int64_t value) const {
  return convert(key(domain, time_domain), value);
}

}  // namespace paceline::analysis
