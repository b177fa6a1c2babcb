// SPDX-License-Identifier: Apache-2.0
// A full-screen view on a terminal: the alternate screen, keys, and the terminal as it was afterwards.
#pragma once

#include <termios.h>

#include <cstddef>
#include <span>

#include "analysis/watch/render_frame.h"

namespace paceline::cli {

// Columns and lines of the terminal on standard output; 80 × 24 where they are not known.
struct ScreenSize {
  std::size_t width = 80, height = 24;
};
ScreenSize screen_size();

// While one exists, standard output shows the alternate screen without a cursor, and keys are read without echo. The
// signals SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP and SIGWINCH are blocked and taken by wait(). One exists at a time.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Replaces what is shown, in one write.
  void show(std::span<const analysis::FrameLine> lines);

  enum class Event { timeout, quit, resized, up, down, page_up, page_down };
  // Waits for a key or a signal, at most `seconds`. SIGTSTP stops the program with the terminal as it was. A signal
  // that ends the program is kept for ending_signal() and returned as quit.
  Event wait(double seconds);
  int ending_signal() const { return ending_signal_; }  // 0: none

 private:
  void enter();
  void leave();
  Event read_key();
  Event read_signal();

  termios before_{};
  bool has_keys_ = false;
  bool entered_ = false;
  int signals_ = -1;
  sigset_t mask_before_{};
  int ending_signal_ = 0;
  bool colour_ = true;
};

}  // namespace paceline::cli
