// SPDX-License-Identifier: Apache-2.0
#include "trainer/reporting/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace paceline::train {
namespace {

// The terminal's columns; 80 under a launcher, whose pipe has no size.
std::size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string as_time(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  const auto whole = static_cast<long long>(std::clamp(seconds, 0.0, 1e9) + 0.5);
  const long long hours = whole / 3600, minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string progress_line(const ProgressState& s, std::size_t width) {
  const std::string epoch = fmt::format("epoch {}/{}", s.epoch, s.epochs);
  const std::array parts = {fmt::format("{}/{}", s.step, s.steps), fmt::format("{:.1f} images/s", s.images_per_s),
                            fmt::format("loss {:.4f}", s.loss), fmt::format("{} left", as_time(s.seconds_left))};
  std::string rest;
  for (const std::string& part : parts) {
    if (epoch.size() + rest.size() + 2 + part.size() > width) break;
    rest += "  " + part;
  }
  constexpr std::size_t frame = 3, least = 10, most = 40;  // " [" and "]"; characters of a bar
  const std::size_t used = epoch.size() + rest.size() + frame;
  if (used + least > width) return (epoch + rest).substr(0, width);
  const std::size_t length = std::min(width - used, most);
  const double share = s.steps == 0 ? 1 : static_cast<double>(s.step) / static_cast<double>(s.steps);
  const auto done = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(length));
  return fmt::format("{} [{}{}]{}", epoch, std::string(done, '='), std::string(length - done, ' '), rest);
}

void Progress::show(const ProgressState& state) {
  if (!shown_) return;
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && now - last_ < std::chrono::milliseconds(100)) return;
  drawn_ = true;
  last_ = now;
  // Printed at once and without the last column: a line that the terminal has broken could not be cleared.
  fmt::print(stderr, "\r{}\033[K", progress_line(state, columns() - 1));
}

void Progress::clear() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
  drawn_ = false;
}

}  // namespace paceline::train
