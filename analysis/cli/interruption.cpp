// SPDX-License-Identifier: Apache-2.0
#include "analysis/cli/interruption.h"

#include "analysis/load/load.h"
#include "profiler/format/error.h"

namespace paceline::cli {
namespace interruption_state {

volatile std::sig_atomic_t signal = 0;
void (*on_signal)() = nullptr;

void handle(int number) {
  signal = number;
  if (on_signal != nullptr) on_signal();
}

}  // namespace interruption_state

Interruption::Interruption(void (*on_signal)()) {
  interruption_state::signal = 0;
  interruption_state::on_signal = on_signal;
  for (std::size_t i = 0; i < std::size(signals_); ++i) {
    struct sigaction action {};
    action.sa_handler = interruption_state::handle;
    action.sa_flags = SA_RESETHAND | SA_RESTART;
    sigaction(signals_[i], nullptr, &before_[i]);
    // A program under nohup goes on.
    if (before_[i].sa_handler != SIG_IGN) sigaction(signals_[i], &action, nullptr);
  }
}

Interruption::~Interruption() {
  for (std::size_t i = 0; i < std::size(signals_); ++i) sigaction(signals_[i], &before_[i], nullptr);
}

int Interruption::signal() { return interruption_state::signal; }

void interruptible(const std::function<void(const analysis::Progress&)>& work) {
  try {
    const Interruption interruption;
    work([](double) { return Interruption::signal() == 0; });
  } catch (const Error&) {
    if (Interruption::signal() == 0) throw;
  }
  if (const int signal = Interruption::signal()) {
    std::raise(signal);
    throw Error("interrupted");
  }
}

analysis::Trace load_run(const analysis::RunPaths& run) {
  analysis::Trace trace;
  interruptible([&](const analysis::Progress& progress) { trace = analysis::load_run(run, progress); });
  return trace;
}

}  // namespace paceline::cli
