// SPDX-License-Identifier: Apache-2.0
// Generated jobs for tests/bench/judge.cpp. It shares nothing with tests/unit/analysis/simulated_steps.h, with which
// the tests are tuned: the generator that tunes a constant never measures its error rate.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

namespace judge {

enum class Kind {
  equal,        // all ranks do the same work, with 0.1 % of the noise of the others
  normal,       //
  ar_short,     // AR(1), φ = 0.5
  ar_long,      // AR(1), φ = 0.9
  periodic,     // half of the variance is a wave of 4 to 8 iterations, each rank with its own phase
  slow_period,  // likewise, of a fifth to two fifths of the run
  bursty,       // bursts of 5 iterations on average, of four standard deviations, begin in 2 % of the iterations
  t2,
  t3,
  pareto,  // of index 1.5
  lognormal,
  exponential,
  unequal,      // normal; rank 0 has five times the noise
  host_shared,  // half of the variance is shared by the ranks of a host, of which there are two to four
  round_robin,  // one rank after the other takes three standard deviations longer
  rotating,     // likewise, a rank drawn by chance in each iteration
  mixed,        // each rank has another of the kinds above
  drifting,     // a fifth of the variance is AR(1) noise that lasts for a twentieth to a fifth of the run
  one_lasts     // normal; the noise of rank 0 is AR(1), φ = 0.9
};
struct KindFacts {
  Kind kind;
  std::string_view name;
  double autocorrelation_time;  // of the process; 0: it has none, and only the level of the test is judged
  bool power;                   // whether the power for slow ranks is judged
  bool alike;                   // ranks are exchangeable, so that nobody is irregular either
};
inline constexpr std::array kinds = {KindFacts{Kind::equal, "equal", 1, false, true},
                                     KindFacts{Kind::normal, "normal", 1, true, true},
                                     KindFacts{Kind::ar_short, "AR(1) 0.5", 3, true, true},
                                     KindFacts{Kind::ar_long, "AR(1) 0.9", 19, true, true},
                                     KindFacts{Kind::periodic, "periodic", 0, true, true},
                                     KindFacts{Kind::slow_period, "slow period", 0, false, true},
                                     KindFacts{Kind::bursty, "bursty", 5.1, true, true},
                                     KindFacts{Kind::t2, "t2", 0, false, true},
                                     KindFacts{Kind::t3, "t3", 1, true, true},
                                     KindFacts{Kind::pareto, "Pareto 1.5", 0, false, true},
                                     KindFacts{Kind::lognormal, "lognormal", 1, true, true},
                                     KindFacts{Kind::exponential, "exponential", 1, true, true},
                                     KindFacts{Kind::unequal, "unequal", 1, true, false},
                                     KindFacts{Kind::host_shared, "host-shared", 1, true, true},
                                     KindFacts{Kind::round_robin, "round robin", 1, false, true},
                                     KindFacts{Kind::rotating, "rotating", 1, true, true},
                                     KindFacts{Kind::mixed, "mixed", 5.1, true, false},
                                     KindFacts{Kind::drifting, "drifting", 0, false, true},
                                     KindFacts{Kind::one_lasts, "one lasts", 0, true, true}};

using Engine = std::mt19937_64;

inline double normal(Engine& engine) {
  thread_local std::normal_distribution<double> distribution;
  return distribution(engine);
}
inline double uniform(Engine& engine) { return std::generate_canonical<double, 53>(engine); }

// One rank's noise of mean 0, and of variance 1 where the kind has a variance.
class Process {
 public:
  Process(Kind kind, std::size_t iterations, Engine& engine)
      : kind_(kind), state_(normal(engine)), burst_(uniform(engine) < on_share_) {
    period_ = (kind == Kind::slow_period ? 0.2 * static_cast<double>(iterations) : 4) * (1 + uniform(engine));
    phase_ = 2 * pi_ * uniform(engine);
    if (kind == Kind::drifting) {
      const double time = (0.05 + 0.15 * uniform(engine)) * static_cast<double>(iterations);
      drift_ = (time - 1) / (time + 1);
    }
  }

  double next(Engine& engine) {
    switch (kind_) {
      case Kind::ar_short:
        return correlated(0.5, engine);
      case Kind::ar_long:
        return correlated(0.9, engine);
      case Kind::periodic:
      case Kind::slow_period:
        phase_ += 2 * pi_ / period_;
        return std::sin(phase_) + std::sqrt(0.5) * normal(engine);
      case Kind::bursty: {
        burst_ = burst_ ? uniform(engine) >= 0.2 : uniform(engine) < 0.02;
        const double height = 4, variance = 1 + height * height * on_share_ * (1 - on_share_);
        return (normal(engine) + height * ((burst_ ? 1 : 0) - on_share_)) / std::sqrt(variance);
      }
      case Kind::t2:
        return student(2, engine);
      case Kind::t3:
        return student(3, engine) / std::sqrt(3.0);
      case Kind::pareto:
        return 0.3 * (std::pow(1 - uniform(engine), -1 / 1.5) - 3);
      case Kind::drifting:
        return std::sqrt(0.2) * correlated(drift_, engine) + std::sqrt(0.8) * normal(engine);
      case Kind::lognormal:
        return (std::exp(normal(engine)) - std::exp(0.5)) / std::sqrt((std::exp(1) - 1) * std::exp(1));
      case Kind::exponential:
        return -std::log1p(-uniform(engine)) - 1;
      default:
        return normal(engine);
    }
  }

 private:
  double correlated(double phi, Engine& engine) {
    return state_ = phi * state_ + std::sqrt(1 - phi * phi) * normal(engine);
  }
  double student(int degrees, Engine& engine) {
    double squares = 0;
    const double value = normal(engine);
    for (int i = 0; i < degrees; ++i) squares += std::pow(normal(engine), 2);
    return value / std::sqrt(squares / degrees);
  }
  static constexpr double pi_ = 3.141592653589793, on_share_ = 0.02 / 0.22;
  Kind kind_;
  double state_, period_ = 0, phase_ = 0, drift_ = 0;
  bool burst_;
};

enum class Slow { none, constant, every_third, two, rarely };

struct Job {
  Kind kind = Kind::normal;
  std::size_t ranks = 4, iterations = 200;
  Slow slow = Slow::none;
  // Of a slow rank with each kind of noise, in standard deviations: mean over the iterations. Slow is the last rank,
  // and for `two` the one before it.
  std::array<double, kinds.size()> delays{};
  std::size_t period = 3;  // of every_third and rarely, in iterations
};

// The noise of each rank.
inline std::vector<Kind> kinds_of(const Job& job, Engine& engine) {
  constexpr std::array mixture = {Kind::normal, Kind::ar_short,  Kind::periodic,   Kind::bursty,
                                  Kind::t3,     Kind::lognormal, Kind::exponential};
  std::vector<Kind> own(job.ranks, job.kind);
  if (job.kind == Kind::mixed) {
    for (Kind& kind : own) kind = mixture[engine() % mixture.size()];
  }
  if (job.kind == Kind::one_lasts) own[0] = Kind::ar_long;
  return own;
}

// The work of each rank in each iteration, row by row, in standard deviations about the same mean.
inline std::vector<double> work_of(const Job& job, const std::vector<Kind>& rank_kinds, Engine& engine) {
  std::vector<Process> own;
  for (const Kind kind : rank_kinds) own.emplace_back(kind, job.iterations, engine);
  const std::size_t hosts = std::clamp<std::size_t>(job.ranks / 2, 2, 4);
  std::vector<double> shared(hosts), work;
  work.reserve(job.ranks * job.iterations);
  const std::size_t phase = engine() % job.period;
  std::size_t turn = engine() % job.ranks;
  for (std::size_t i = 0; i < job.iterations; ++i) {
    for (double& of_host : shared) of_host = job.kind == Kind::host_shared ? normal(engine) : 0;
    for (std::size_t r = 0; r < job.ranks; ++r) {
      double value = own[r].next(engine);
      if (job.kind == Kind::equal) value *= 0.001;
      if (job.kind == Kind::unequal && r == 0) value *= 5;
      if (job.kind == Kind::host_shared) value = std::sqrt(0.5) * (value + shared[r * hosts / job.ranks]);
      if (r == turn && (job.kind == Kind::round_robin || job.kind == Kind::rotating)) value += 3;
      const std::size_t from_last = job.ranks - 1 - r;
      const double delay = job.delays[static_cast<std::size_t>(rank_kinds[r])];
      if (job.slow == Slow::constant && from_last == 0) value += delay;
      if (job.slow == Slow::two && from_last < 2) value += delay;
      const bool periodic = job.slow == Slow::every_third || job.slow == Slow::rarely;
      if (periodic && from_last == 0 && i % job.period == phase) {
        value += static_cast<double>(job.period) * delay;
      }
      work.push_back(value);
    }
    turn = job.kind == Kind::rotating ? engine() % job.ranks : (turn + 1) % job.ranks;
  }
  return work;
}

}  // namespace judge
