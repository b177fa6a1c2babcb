// SPDX-License-Identifier: Apache-2.0
// The progress line on a terminal. It is redrawn in place and cleared before other output.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace paceline::train {

struct ProgressState {
  std::uint64_t epoch = 1, epochs = 1;  // counted from 1
  std::uint64_t step = 0, steps = 1;    // iterations of the epoch that are done
  double images_per_s = 0;              // summed over all ranks
  double loss = 0;
  double seconds_left = 0;  // of the run
};

std::string as_time(double seconds);  // "1:02:05", "0:59"; "?" if it is not finite

// At most `width` characters. In a narrow terminal the bar is left out first, then the last entries.
std::string progress_line(const ProgressState& state, std::size_t width);

class Progress {
 public:
  explicit Progress(bool shown) : shown_(shown) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const ProgressState& state);  // on standard error, at most ten times per second
  void clear();                           // removes the line

 private:
  const bool shown_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace paceline::train
