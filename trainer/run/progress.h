// The line that shows, on a terminal, how far a run is: redrawn in place, cleared before anything else is printed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace paceline::train {

struct ProgressState {
  std::uint64_t epoch = 1, epochs = 1;  // counted from 1
  std::uint64_t step = 0, steps = 1;    // done of the epoch's
  double images_per_s = 0;              // of all ranks
  double loss = 0;
  double seconds_left = 0;  // of the run
};

// At most `width` characters; where they are few, the bar goes first, then what stands last.
std::string progress_line(const ProgressState& state, std::size_t width);

class Progress {
 public:
  explicit Progress(bool shown) : shown_(shown) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const ProgressState& state);  // on standard error, ten times a second at most
  void clear();                           // nothing is left of it

 private:
  const bool shown_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace paceline::train
