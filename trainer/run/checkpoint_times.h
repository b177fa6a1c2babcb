// When a run writes its checkpoint: at the end of every epoch, every so many iterations or every so many minutes.
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

// "epoch", a number of iterations ("500"), or a time: "90s", "10m", "2h". Throws Error (usage) for anything else.
CheckpointEvery parse_checkpoint_every(const std::string& text);

// Where ranks meet for a checkpoint. All ranks must do so after the same iteration, but only rank 0's clock counts. To
// spare a message in every iteration, rank 0 estimates from the iterations so far when half of the time that is left
// will have passed; there the ranks meet and it estimates again. So a checkpoint comes late by little, also when
// iterations take longer and longer.
class CheckpointTimes {
 public:
  CheckpointTimes(CheckpointEvery every, Collectives& collectives, std::uint64_t first);

  // Whether the ranks meet when `done` iterations of the whole run are done. The same on every rank.
  bool meets(std::uint64_t done) const;

  bool each_epoch() const { return every_.each_epoch(); }

  // At a meeting: whether a checkpoint is to be written now. A collective call.
  bool due(std::uint64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  const CheckpointEvery every_;
  Collectives& collectives_;
  std::uint64_t next_;  // meeting, by time
  std::uint64_t last_;  // meeting
  Clock::time_point written_ = Clock::now(), met_ = Clock::now();
};

// The next meeting, and whether to write at this one.
struct Meeting {
  bool write = false;
  std::uint64_t next = 0;
};
// `since`: seconds since the checkpoint before; `iteration`: seconds that an iteration takes.
Meeting plan_meeting(double every, double since, double iteration, std::uint64_t done);

}  // namespace paceline::train
