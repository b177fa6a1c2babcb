// The clocks of NVTX's deferred events. Moments at which both clocks were read tie them to the recorder's clock.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "profiler/format/event.h"

namespace paceline::analysis {

class NvtxClocks {
 public:
  // Takes a definition (time_domain, time_sync); other events are ignored.
  void take(const format::Slot& head);
  // To be called after the last definition. `ticks_are_tsc`: the recorder's clock is the processor's time stamp
  // counter. Linear.
  void finish(std::uint64_t start_ticks, double ticks_per_second, bool ticks_are_tsc);

  // Ticks since the recording began; nothing where the time domain is not tied to the recorder's clock.
  std::optional<double> ticks(std::uint16_t domain, std::uint64_t time_domain, std::int64_t value) const;

 private:
  struct Anchor {
    std::int64_t value = 0;
    double ticks = 0;
  };
  struct Clock {
    std::uint64_t type = 0;             // what it was declared to be
    double per_second = 0;              // of its own ticks; 0 = not known
    std::optional<Anchor> first, last;  // the outermost moments known, by value
  };
  struct Sync {
    std::uint64_t a, b;  // keys
    std::int64_t at_a, at_b;
  };

  static std::uint64_t key(std::uint16_t domain, std::uint64_t id);
  std::optional<double> convert(std::uint64_t key, std::int64_t value) const;

  std::unordered_map<std::uint64_t, Clock> clocks_;
  std::vector<Sync> syncs_;
  std::uint64_t start_ticks_ = 0;
  double ticks_per_second_ = 1e9;
  bool ticks_are_tsc_ = false;
};

}  // namespace paceline::analysis
