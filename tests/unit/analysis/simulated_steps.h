// SPDX-License-Identifier: Apache-2.0
// Generated training runs whose truth is known: the noise of their steps, and which rank or phase is slow, if any.
//
// A rank's work of one step takes 100 ms on average with AR(1) noise from step to step. With several collectives in a
// step, each one is preceded by an equal part of the work, whose noise has an AR(1) process of its own. The parts add
// up to the noise that is asked for.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "analysis/communication/lateness.h"
#include "analysis/phases/iterations.h"

namespace paceline::analysis::simulation {

// xoshiro256+ (D. Blackman and S. Vigna, 2021), with normal numbers by the ziggurat (G. Marsaglia and W. W. Tsang,
// 2000; J. A. Doornik's form, 2005). The standard library's would take most of a simulation's time.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
      seed += 0x9E3779B97F4A7C15U;
      std::uint64_t z = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9U;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
      word = z ^ (z >> 31);
    }
    constexpr double area = 9.91256303526217e-3;
    double f = std::exp(-0.5 * tail_ * tail_);
    edge_[0] = area / f, edge_[1] = tail_, edge_[layers_] = 0;
    for (std::size_t i = 2; i < layers_; ++i) {
      edge_[i] = std::sqrt(-2 * std::log(area / edge_[i - 1] + f));
      f = std::exp(-0.5 * edge_[i] * edge_[i]);
    }
  }
  std::uint64_t word() {
    const std::uint64_t result = state_[0] + state_[3], t = state_[1] << 17;
    state_[2] ^= state_[0], state_[3] ^= state_[1], state_[1] ^= state_[2], state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = state_[3] << 45 | state_[3] >> 19;
    return result;
  }
  // Above 0, at most 1.
  double uniform() { return static_cast<double>((word() >> 11) + 1) * 0x1p-53; }
  double exponential() { return -std::log(uniform()); }
  double normal() {
    for (;;) {
      const std::uint64_t bits = word();
      const auto layer = static_cast<std::size_t>(bits >> 4 & (layers_ - 1));
      const double u = static_cast<double>(bits >> 11) * 0x1p-52 - 1, x = u * edge_[layer];
      if (std::abs(x) < edge_[layer + 1]) return x;
      if (layer == 0) {
        double beyond = 0, y = 0;
        do {
          beyond = exponential() / tail_, y = exponential();
        } while (2 * y < beyond * beyond);
        return u < 0 ? -tail_ - beyond : tail_ + beyond;
      }
      const double f0 = std::exp(-0.5 * (edge_[layer] * edge_[layer] - x * x));
      const double f1 = std::exp(-0.5 * (edge_[layer + 1] * edge_[layer + 1] - x * x));
      if (f1 + uniform() * (f0 - f1) < 1) return x;
    }
  }

 private:
  static constexpr std::size_t layers_ = 128;
  static constexpr double tail_ = 3.442619855899;
  std::array<std::uint64_t, 4> state_{};
  std::array<double, layers_ + 1> edge_{};
};

// An AR(1) process of mean 0 and variance 1 whose values are normal, or exponential less their mean (D. P. Gaver and
// P. A. W. Lewis, "First-order autoregressive gamma sequences", 1980).
class Noise {
 public:
  Noise(double autocorrelation, bool exponential, Random& random)
      : phi_(autocorrelation),
        fresh_(std::sqrt(1 - autocorrelation * autocorrelation)),
        exponential_(exponential),
        state_(exponential ? random.exponential() : random.normal()) {}
  double next(Random& random) {
    if (exponential_) {
      state_ = phi_ * state_ + (phi_ > 0 && random.uniform() <= phi_ ? 0 : random.exponential());
      return state_ - 1;
    }
    return state_ = phi_ * state_ + fresh_ * random.normal();
  }

 private:
  double phi_, fresh_;
  bool exponential_;
  double state_;
};

struct Job {
  std::size_t ranks = 4, iterations = 400, collectives = 1;
  double noise = 0.05;         // standard deviation of a rank's work in a step, of its mean
  bool exponential = false;    // else normal
  double autocorrelation = 0;  // of the AR(1) process
  double noise_of_first = 1;   // times the noise of the others
  std::size_t slow_rank = 1;
  std::size_t slow_ranks = 1;    // from slow_rank on
  double delay = 0;              // of the slow ranks, of a step
  std::size_t delayed_from = 0;  // the first iteration with the delay
};

constexpr double work_ns = 1e8;

// One value for each iteration and rank. The first tenth of the job's iterations is left out as the warm-up.
inline LatenessTable simulate(const Job& job, Random& random) {
  LatenessTable table;
  const auto parts = static_cast<double>(job.collectives);
  const double noise_ns = job.noise * work_ns / std::sqrt(parts);
  std::vector<Noise> noises;
  noises.reserve(job.ranks * job.collectives);
  for (std::size_t i = 0; i < job.ranks * job.collectives; ++i) {
    noises.emplace_back(job.autocorrelation, job.exponential, random);
  }
  std::vector<double> arrivals(job.ranks), waits(job.ranks);
  for (std::size_t i = std::max<std::size_t>(1, job.iterations / 10); i < job.iterations; ++i) {
    LatenessRow row;
    for (std::size_t c = 0; c < job.collectives; ++c) {
      for (std::size_t r = 0; r < job.ranks; ++r) {
        arrivals[r] =
            work_ns / parts + noise_ns * (r == 0 ? job.noise_of_first : 1) * noises[c * job.ranks + r].next(random);
      }
      if (i >= job.delayed_from) {
        for (std::size_t r = 0; r < job.slow_ranks; ++r) arrivals[job.slow_rank + r] += job.delay * work_ns / parts;
      }
      const double last = *std::max_element(arrivals.begin(), arrivals.end());
      for (std::size_t r = 0; r < job.ranks; ++r) waits[r] = last - arrivals[r];
      row.step_ns += last;
      add_collective(row, arrivals, waits);
    }
    add_iteration(table, static_cast<std::int64_t>(i), row);
  }
  return table;
}

// Step times in seconds, 1 on average, with the job's noise; a jump after two fifths of them, or a drift from the first
// to the last.
inline std::vector<double> simulate_steps(const Job& job, double jump, double drift, Random& random) {
  Noise noise(job.autocorrelation, job.exponential, random);
  std::vector<double> steps;
  for (std::size_t i = 0; i < job.iterations; ++i) {
    const double progress = static_cast<double>(i) / static_cast<double>(job.iterations);
    steps.push_back(1 + job.noise * noise.next(random) + (progress >= 0.4 ? jump : 0) + drift * progress);
  }
  return steps;
}

}  // namespace paceline::analysis::simulation
