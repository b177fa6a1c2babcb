// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/perfetto/clocks.h"

#include <algorithm>

#include "analysis/importers/kineto/values.h"
#include "analysis/importers/perfetto/fields.h"

namespace paceline::analysis::perfetto {
namespace perfetto_clocks {

using kineto::largest_ns;

// The clocks 64 to 127 belong to a sequence.
std::uint64_t key_of(std::uint64_t sequence, std::uint64_t clock) {
  const bool of_sequence = clock >= 64 && clock < 128;
  return of_sequence ? (sequence << 32 | clock) : clock & 0xffff'ffff;
}

std::optional<std::int64_t> nanoseconds(std::uint64_t timestamp, std::uint64_t unit_ns) {
  std::uint64_t time_ns = 0;
  if (__builtin_mul_overflow(timestamp, unit_ns, &time_ns) || time_ns > largest_ns) return std::nullopt;
  return static_cast<std::int64_t>(time_ns);
}

}  // namespace perfetto_clocks

std::vector<Clocks::Reading> Clocks::readings(std::uint64_t sequence, std::string_view snapshot) {
  std::vector<Reading> all;
  Fields fields(snapshot);
  Field field;
  while (fields.next(field)) {
    if (field.tag == integer_tag(2) && !chosen_) trace_clock_ = field.value;
    if (field.tag != text_tag(1)) continue;
    Reading reading;
    Fields of_clock(field.bytes);
    Field part;
    while (of_clock.next(part)) {
      if (part.tag == integer_tag(1)) reading.key = perfetto_clocks::key_of(sequence, part.value);
      if (part.tag == integer_tag(2)) reading.timestamp = part.value;
      if (part.tag == integer_tag(3)) reading.clock.incremental = part.value != 0;
      if (part.tag == integer_tag(4)) reading.clock.unit_ns = std::max<std::uint64_t>(part.value, 1);
    }
    if (reading.key != 0) all.push_back(std::move(reading));
  }
  return all;
}

std::optional<std::int64_t> Clocks::converted(const Clock& clock, std::uint64_t key, std::uint64_t timestamp) const {
  const auto own_ns = perfetto_clocks::nanoseconds(timestamp, clock.unit_ns);
  if (!own_ns || key == trace_clock_) return own_ns;
  auto after = std::ranges::upper_bound(clock.related, *own_ns, {}, &std::pair<std::int64_t, std::int64_t>::first);
  if (after != clock.related.begin()) --after;
  const std::int64_t time_ns = *own_ns - after->first + after->second;  // three times of at most largest_ns fit
  if (time_ns < -perfetto_clocks::largest_ns || time_ns > perfetto_clocks::largest_ns) return std::nullopt;
  return time_ns;
}

void Clocks::add_snapshot(std::uint64_t sequence, std::string_view snapshot) {
  const std::vector<Reading> all = readings(sequence, snapshot);
  chosen_ = chosen_ || !all.empty();
  std::optional<std::int64_t> now_ns;
  for (const Reading& reading : all) {
    if (reading.key == trace_clock_) now_ns = perfetto_clocks::nanoseconds(reading.timestamp, reading.clock.unit_ns);
  }
  for (const Reading& reading : all) {  // else by a clock that an earlier snapshot related
    if (now_ns) break;
    const auto known = clocks_.find(reading.key);
    if (known != clocks_.end()) now_ns = converted(known->second, reading.key, reading.timestamp);
  }
  if (!now_ns) return;
  for (const Reading& reading : all) {
    const auto own_ns = perfetto_clocks::nanoseconds(reading.timestamp, reading.clock.unit_ns);
    if (!own_ns || reading.key == trace_clock_) continue;
    Clock& clock = clocks_[reading.key];
    clock.unit_ns = reading.clock.unit_ns;
    clock.incremental = reading.clock.incremental;
    const auto at = std::ranges::upper_bound(clock.related, *own_ns, {}, &std::pair<std::int64_t, std::int64_t>::first);
    clock.related.insert(at, {*own_ns, *now_ns});
  }
}

void Clocks::restart(std::uint64_t sequence, std::string_view snapshot) {
  for (const Reading& reading : readings(sequence, snapshot)) {
    const auto known = clocks_.find(reading.key);
    if (known != clocks_.end()) known->second.last = reading.timestamp;
  }
}

std::int64_t Clocks::time_ns(std::uint64_t sequence, std::uint64_t clock, std::uint64_t timestamp) {
  const std::uint64_t key = clock == 0 ? boottime_clock : perfetto_clocks::key_of(sequence, clock);
  const std::int64_t as_it_is =
      timestamp > perfetto_clocks::largest_ns ? no_time : static_cast<std::int64_t>(timestamp);
  if (key == trace_clock_) return as_it_is;
  const auto known = clocks_.find(key);
  if (known == clocks_.end()) {
    ++unrelated_[key & 0xffff'ffff];
    return as_it_is;
  }
  if (known->second.incremental) timestamp = known->second.last += timestamp;
  return converted(known->second, key, timestamp).value_or(no_time);
}

std::optional<std::int64_t> Clocks::utc_of_zero_ns() const {
  if (trace_clock_ == realtime_clock) return 0;
  const auto known = clocks_.find(realtime_clock);
  if (known == clocks_.end()) return std::nullopt;
  const auto& [utc_ns, trace_ns] = known->second.related.front();
  return utc_ns - trace_ns;
}

}  // namespace paceline::analysis::perfetto
