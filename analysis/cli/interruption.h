// SPDX-License-Identifier: Apache-2.0
// Work that the user can stop with Ctrl-C, so that unfinished files are removed.
#pragma once

#include <csignal>
#include <functional>
#include <iterator>

#include "analysis/load/run_paths.h"
#include "analysis/trace/progress.h"
#include "analysis/trace/trace.h"

namespace paceline::cli {

// While one exists, SIGINT, SIGTERM and SIGHUP do not end the program. The second signal does. One exists at a time.
class Interruption {
 public:
  // `on_signal`, if any, is called in the signal handler.
  explicit Interruption(void (*on_signal)() = nullptr);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // The signal that came; 0 if none came.
  static int signal();

 private:
  static constexpr int signals_[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[std::size(signals_)];
};

// Calls the work with a Progress that stops it after such a signal, so that the files that it unpacked are removed. The
// signal then ends the program as it would have without this.
void interruptible(const std::function<void(const analysis::Progress&)>& work);

// Loads a RUN in this way.
analysis::Trace load_run(const analysis::RunPaths& run);

}  // namespace paceline::cli
