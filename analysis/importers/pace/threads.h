// SPDX-License-Identifier: Apache-2.0
// What the scheduler did with the threads of a file's process.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/importers/pace/clock.h"
#include "analysis/trace/builder.h"
#include "profiler/format/events.h"

namespace paceline::analysis {

class PaceThreads {
 public:
  // Takes an event of this kind; others are ignored. Any order.
  void event(const format::Slot& head);

  // Gives the tracks their states. A thread that has no track yet gets one, unless it did nothing. `tracks` are those
  // of the process, by the system's thread id; `process` goes in front of the labels of new ones.
  void add_states(const PaceClock& clock, const std::map<std::uint64_t, TrackBuilder*>& tracks,
                  const std::string& process, RankBuilder& rank);

  // Adds a counter for each other program that used the CPUs while threads of this process waited for one.
  void add_counters(const PaceClock& clock, RankBuilder& rank);

 private:
  struct Found {
    std::uint64_t ticks = 0;
    std::string name;
  };
  struct Switch {
    std::uint64_t ticks = 0;
    format::ThreadState state = format::ThreadState::unknown;
  };
  struct Times {
    std::uint64_t ticks = 0, running_ns = 0, waiting_ns = 0;
  };
  struct Thread {
    std::vector<Found> found;  // one for each thread that had this id
    std::vector<Switch> switches;
    std::vector<Times> times;
  };
  struct Use {
    std::uint64_t ticks = 0, cpu_ns = 0, interval_ns = 0;
  };

  std::map<std::uint32_t, Thread> threads_;         // by the system's id
  std::map<std::string, std::vector<Use>> others_;  // by the program's name
};

}  // namespace paceline::analysis
