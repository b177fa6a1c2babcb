// SPDX-License-Identifier: Apache-2.0
// Generated collectives of two ranks, and messages of a ring, whose costs are known.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/communication/collectives.h"
#include "analysis/communication/link_rates.h"
#include "analysis/communication/messages.h"
#include "analysis/phases/iterations.h"
#include "tests/unit/analysis/simulated_steps.h"

namespace paceline::analysis::simulation {

struct CollectiveJob {
  std::vector<std::uint64_t> bytes;  // of the allreduces of an iteration, in their order
  std::size_t iterations = 30;
  std::size_t hosts = 2;
  double fixed_ns = 1e4;
  double bytes_per_s = 1e9;
  double noise = 0.05;  // standard deviation of a transfer, of its mean; at least a tenth of the mean is left
  double slowest = 3;   // one transfer in 50 takes this many times as long
};

// Iterations of 10 ms of work and the collectives.
struct SimulatedCollectives {
  Collectives collectives;
  std::vector<LinkEnd> ends;
  std::vector<Iteration> iterations;  // of both ranks

  SimulatedCollectives(const CollectiveJob& job, Random& random) {
    collectives.operations = {"MPI_Allreduce"};
    ends = {{.machine = "a", .host = "a"}, {.machine = job.hosts > 1 ? "b" : "a", .host = job.hosts > 1 ? "b" : "a"}};
    std::int64_t now = 0;
    for (std::size_t i = 0; i < job.iterations; ++i) {
      Iteration& iteration = iterations.emplace_back();
      iteration.number = static_cast<std::int64_t>(i);
      iteration.start_ns = now;
      now += 10'000'000;
      for (const std::uint64_t bytes : job.bytes) {
        const double mean = job.fixed_ns + 1e9 * static_cast<double>(bytes) / job.bytes_per_s;
        double time = mean * std::max(0.1, 1 + job.noise * random.normal());
        if (random.uniform() < 0.02) time *= job.slowest;
        Collective& collective = collectives.matched.emplace_back();
        collective.bytes = bytes;
        collective.members = 2;
        collective.last_start_ns = now;
        collective.transfer_ns = static_cast<std::int64_t>(time);
        const std::int64_t end = now + collective.transfer_ns;
        for (std::uint32_t rank = 0; rank < 2; ++rank) {
          collective.calls.push_back({.rank = rank, .start_ns = now, .end_ns = end, .blocked_from_ns = now});
        }
        now = end;
      }
      iteration.duration_ns = now - iteration.start_ns;
    }
  }
  std::vector<std::span<const Iteration>> spans() const { return {iterations, iterations}; }
};

// In each iteration, each rank sends one message to the next one, on a host of its own. It takes 20 ms on average, with
// the noise of the job (Job::noise of 100 ms); the message of the slow rank takes Job::delay × 100 ms longer.
struct SimulatedRing {
  Messages messages;
  std::vector<LinkEnd> ends;
  std::vector<Iteration> iterations;  // of all ranks

  SimulatedRing(const Job& job, Random& random) {
    std::vector<Noise> noises;
    for (std::size_t r = 0; r < job.ranks; ++r) {
      noises.emplace_back(job.autocorrelation, job.exponential, random);
      ends.push_back({.machine = std::to_string(r), .host = "host" + std::to_string(r)});
    }
    const auto step = static_cast<std::int64_t>(2 * work_ns);
    for (std::size_t i = 0; i < job.iterations; ++i) {
      Iteration& iteration = iterations.emplace_back();
      iteration.number = static_cast<std::int64_t>(i);
      iteration.start_ns = static_cast<std::int64_t>(i) * step;
      iteration.duration_ns = static_cast<std::int64_t>(work_ns);
      for (std::uint32_t r = 0; r < job.ranks; ++r) {
        const double time = work_ns * (0.2 + job.noise * noises[r].next(random) + (r == job.slow_rank ? job.delay : 0));
        const std::int64_t start = iteration.start_ns + 1000,
                           end = start + std::max(static_cast<std::int64_t>(time), std::int64_t{0});
        Message& message = messages.all.emplace_back();
        message.sender = r;
        message.receiver = (r + 1) % static_cast<std::uint32_t>(job.ranks);
        message.send.emplace();
        message.send->start_ns = start, message.send->end_ns = end, message.send->bytes = 1'000'000;
        message.receive.emplace();
        message.receive->start_ns = message.receive->blocked_from_ns = iteration.start_ns,
        message.receive->end_ns = end;
      }
    }
  }
  std::vector<std::span<const Iteration>> spans() const {
    return std::vector<std::span<const Iteration>>(ends.size(), iterations);
  }
};

}  // namespace paceline::analysis::simulation
