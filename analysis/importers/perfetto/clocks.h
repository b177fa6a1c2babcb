// SPDX-License-Identifier: Apache-2.0
// The clocks of a file and how its snapshots relate them to one, the trace clock.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline::analysis::perfetto {

inline constexpr std::int64_t no_time = std::numeric_limits<std::int64_t>::min();
inline constexpr std::uint64_t realtime_clock = 1, boottime_clock = 6;

class Clocks {
 public:
  // Takes a ClockSnapshot of a sequence. Those without a clock that is already related to the trace clock are ignored.
  void add_snapshot(std::uint64_t sequence, std::string_view snapshot);
  // Sets the clocks of the sequence that count from their last time to what the snapshot gives. To be called while the
  // events are read, in the order of the file.
  void restart(std::uint64_t sequence, std::string_view snapshot);

  // The time on the trace clock in ns. On a clock that no snapshot relates it, the time as it is, which is counted.
  // no_time where the time is out of range. `clock`: the number of a packet, 0 for the usual one.
  std::int64_t time_ns(std::uint64_t sequence, std::uint64_t clock, std::uint64_t timestamp);

  // What the trace clock is behind UTC; nothing where no snapshot says it.
  std::optional<std::int64_t> utc_of_zero_ns() const;

  // How many times were on each clock that is not related to the trace clock, by number.
  const std::map<std::uint64_t, std::uint64_t>& unrelated() const { return unrelated_; }

 private:
  struct Clock {
    std::uint64_t unit_ns = 1;
    bool incremental = false;
    std::uint64_t last = 0;                                      // of an incremental one, in its units
    std::vector<std::pair<std::int64_t, std::int64_t>> related;  // its time in ns, and the trace clock's
  };
  struct Reading {
    std::uint64_t key = 0, timestamp = 0;
    Clock clock;
  };
  std::vector<Reading> readings(std::uint64_t sequence, std::string_view snapshot);
  std::optional<std::int64_t> converted(const Clock& clock, std::uint64_t key, std::uint64_t timestamp) const;

  std::map<std::uint64_t, Clock> clocks_;  // by number, and by sequence where it is one of a sequence
  std::uint64_t trace_clock_ = boottime_clock;
  bool chosen_ = false;  // by the first snapshot
  std::map<std::uint64_t, std::uint64_t> unrelated_;
};

}  // namespace paceline::analysis::perfetto
