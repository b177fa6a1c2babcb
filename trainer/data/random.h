// Random numbers that depend only on their purpose: a few numbers (seed, epoch, sample, …) name a stream, so every draw
// is the same on every platform and for any number of ranks and threads.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace paceline::train {

// Weyl sequence with the SplitMix64 finaliser (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// OOPSLA 2014).
class Random {
 public:
  explicit Random(std::initializer_list<std::uint64_t> name) {
    for (const std::uint64_t part : name) state_ = mix(state_ + golden + part);
  }

  std::uint64_t bits() { return mix(state_ += golden); }

  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  // Uniform in 0 … count − 1; the bias of the multiplication is below count × 2⁻⁶⁴.
  std::uint64_t below(std::uint64_t count) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits()) * count) >> 64);
  }

 private:
  static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;

  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::uint64_t state_ = 0;
};

// The purpose of a stream, the first part of its name, so that two uses never share their numbers.
enum Stream : std::uint64_t { shuffling = 1, augmenting, drawing, synthesizing, dropping };

}  // namespace paceline::train
