// SPDX-License-Identifier: Apache-2.0
// When a run writes its checkpoint: at the end of every epoch, after a number of iterations, or after a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "trainer/comm/collectives.h"

namespace paceline::train {

struct CheckpointEvery {
  std::uint64_t iterations = 0;  // 0: not by iterations
  double seconds = 0;            // 0: not by time; both 0: at the end of every epoch

  bool each_epoch() const { return iterations == 0 && seconds == 0; }
};

// "epoch", a number of iterations ("500"), or a time: "90s", "10m", "2h". Throws Error (usage) for other texts.
CheckpointEvery parse_checkpoint_every(const std::string& text);

// Decides at which iterations the ranks meet for a checkpoint. All ranks must write it after the same iteration, but
// only rank 0's clock counts. To avoid a message in every iteration, rank 0 estimates from the iterations so far at
// which one half of the remaining time will have passed. There the ranks meet, and rank 0 estimates again. So a
// checkpoint is only a little late, even if iterations become slower.
class CheckpointTimes {
 public:
  CheckpointTimes(CheckpointEvery every, Collectives& collectives, std::uint64_t first);

  // Whether the ranks meet after `done` iterations of the whole run. The same on every rank.
  bool meets(std::uint64_t done) const;

  bool each_epoch() const { return every_.each_epoch(); }

  // At a the last meeting: whether to write a checkpoint now. A collective call.
  bool due(std::uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  const CheckpointEvery every_;
  Collectives& collectives_;
  std::uint64_t next_;  // the next meeting, if by time
  std::uint64_t last_;  // meeting
  Clock::time_point written_ = Clock::now(), met_ = Clock::now();
};

// Whether to write at this meeting, and the iteration of the next one.
struct Meeting {
  bool write = false;
  std::uint64_t next = 0;
};
// every: seconds between checkpoints. since: seconds since the last checkpoint. iteration: seconds of an iteration.
Meeting plan_meeting(double every, double since, double iteration, std::uint64_t done);

}  // namespace paceline::train
