// SPDX-License-Identifier: Apache-2.0
// Converts CUPTI's timestamps to the recorder's clock.
//
// CUPTI stamps its records with CLOCK_REALTIME, in ns. It can use another clock
// (cuptiActivityRegisterTimestampCallback), but from CUDA 12.6 Update 2 to 13.1 kernels then have times of 0 (NVIDIA's
// release notes), and the callback runs in the program's own calls. So CUPTI keeps its clock. Both clocks are read
// together ten times per second, and a timestamp is converted along the line between the two readings around it. This
// also follows corrections of the system's clock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::inject::cupti {

class Timestamps {
 public:
  // `ticks_per_second`: the nominal frequency, for timestamps before the first reading and after the latest.
  explicit Timestamps(double ticks_per_second) : ticks_per_ns_(ticks_per_second * 1e-9) {}

  // Adds a reading: CUPTI's clock showed `ns` when the recorder's clock showed `ticks`. Readings come in the order of
  // ticks.
  void add(std::uint64_t ns, std::uint64_t ticks);

  // Returns absolute ticks. If the clock was set between two readings (their slope is wrong by more than 1/1000), the
  // time counts from the reading before. Cost: one step for each reading since then.
  std::uint64_t ticks(std::uint64_t ns) const;

 private:
  struct Reading {
    std::uint64_t ns, ticks;
  };
  static constexpr std::size_t kept = 4096;  // seven minutes of readings
  const Reading& reading(std::size_t number) const { return readings_[number % kept]; }
  std::uint64_t from(const Reading& reading, std::uint64_t ns, double slope) const;

  double ticks_per_ns_;
  std::size_t count_ = 0;
  Reading readings_[kept] = {};
};

}  // namespace paceline::inject::cupti
