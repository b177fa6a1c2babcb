// How far a long piece of work has come.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "profiler/format/error.h"

namespace paceline::analysis {

// Called now and then with the share that is done, 0 to 1; returning false stops the work (Error).
using Progress = std::function<bool(double)>;

// Adds up what several threads have done, and calls a Progress after each percent. Any thread may call it, one at a
// time.
class ProgressCounter {
 public:
  ProgressCounter(const Progress& progress, std::uint64_t total) : progress_(progress), total_(total) {}

  // Throws Error where the work is to stop.
  void add(std::uint64_t done) {
    if (!progress_ || total_ == 0) return;
    const std::scoped_lock lock(mutex_);
    done_ += done;
    const std::uint64_t percent = 100 * done_ / total_;
    if (percent == reported_ && !stopped_) return;
    reported_ = percent;
    stopped_ = stopped_ || !progress_(static_cast<double>(done_) / static_cast<double>(total_));
    if (stopped_) throw Error("loading was stopped");
  }

  // True after add() threw.
  bool stopped() {
    const std::scoped_lock lock(mutex_);
    return stopped_;
  }

 private:
  const Progress& progress_;
  const std::uint64_t total_;
  std::mutex mutex_;
  std::uint64_t done_ = 0, reported_ = 0;
  bool stopped_ = false;
};

}  // namespace paceline::analysis
