// SPDX-License-Identifier: Apache-2.0
// Random numbers that depend only on their purpose: a few numbers (seed, epoch, sample, …) name a stream, so every draw
// is the same on every platform and for any number of ranks and threads.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace paceline::train {

// Value i of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014), which passes
// BigCrush. Each value is a function of its index, so threads can share a tensor.
constexpr std::uint64_t split_mix(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

class Random {
 public:
  explicit Random(std::initializer_list<std::uint64_t> name) {
    for (const std::uint64_t part : name) seed_ = split_mix(seed_ + part, 0);
  }

  std::uint64_t bits() { return split_mix(seed_, next_++); }

  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  // Uniform in 0 … count − 1; the bias of the multiplication is below count × 2⁻⁶⁴.
  std::uint64_t below(std::uint64_t count) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits()) * count) >> 64);
  }

 private:
  std::uint64_t seed_ = 0, next_ = 0;
};

// The purpose of a stream, the first part of its name, so that two uses never share their numbers.
enum Stream : std::uint64_t { shuffling = 1, augmenting, drawing, synthesizing, dropping };

}  // namespace paceline::train
