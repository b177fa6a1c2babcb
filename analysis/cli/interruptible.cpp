#include <signal.h>

#include <array>
#include <cstddef>

#include "analysis/cli/commands.h"
#include "analysis/load/load.h"

namespace paceline::cli {
namespace interrupts {

volatile sig_atomic_t received = 0;

void remember(int signal) { received = signal; }

constexpr std::array signals = {SIGINT, SIGTERM, SIGHUP};

// Remembers the signals while it lives. A second one ends the program at once.
class Handlers {
 public:
  Handlers() {
    received = 0;
    for (std::size_t i = 0; i < signals.size(); ++i) {
      struct sigaction action {};
      sigaction(signals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_DFL) continue;  // of nohup
      action.sa_handler = remember;
      action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
      sigaction(signals[i], &action, nullptr);
    }
  }
  ~Handlers() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
    if (received != 0) raise(received);
  }
  Handlers(const Handlers&) = delete;
  Handlers& operator=(const Handlers&) = delete;

 private:
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace interrupts

void interruptible(const std::function<void(const analysis::Progress&)>& work) {
  const interrupts::Handlers handlers;
  work([](double) { return interrupts::received == 0; });
}

analysis::Trace load_run(const std::string& path) {
  analysis::Trace trace;
  interruptible([&](const analysis::Progress& progress) { trace = analysis::load_run(path, progress); });
  return trace;
}

}  // namespace paceline::cli
