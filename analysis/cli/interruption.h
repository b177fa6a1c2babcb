// Work that the user can stop with Ctrl-C, so that unfinished files are removed.
#pragma once

#include <csignal>
#include <iterator>

namespace paceline::cli {

// While one exists, SIGINT, SIGTERM and SIGHUP do not end the program. The second signal does.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // The signal that came; 0 if none came.
  static int signal();

 private:
  static constexpr int signals_[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction before_[std::size(signals_)];
};

}  // namespace paceline::cli
