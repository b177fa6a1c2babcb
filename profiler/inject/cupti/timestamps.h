// CUPTI's time stamps on the recorder's clock.
//
// CUPTI stamps its records with CLOCK_REALTIME, in ns. It can be made to use a clock of ours
// (cuptiActivityRegisterTimestampCallback), but from CUDA 12.6 Update 2 until 13.1 kernels then come with times of 0
// (NVIDIA's release notes), and the callback runs in the program's own calls. So CUPTI keeps its clock; ten times a
// second both are read together, and a stamp is converted along the line between the two readings around it. That also
// follows the system's clock where it is being corrected.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::inject::cupti {

class Timestamps {
 public:
  // `ticks_per_second`: the nominal frequency, for stamps before the first reading and after the latest.
  explicit Timestamps(double ticks_per_second) : ticks_per_ns_(ticks_per_second * 1e-9) {}

  // CUPTI's clock stood at `ns` when the recorder's stood at `ticks`. Readings come in the order of their ticks.
  void add(std::uint64_t ns, std::uint64_t ticks);

  // Absolute ticks. Where the clock was set between two readings (their slope is wrong by more than 1/1000), counted
  // from the reading before. Cost: one step for each reading since then.
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
