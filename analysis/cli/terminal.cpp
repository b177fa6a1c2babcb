// SPDX-License-Identifier: Apache-2.0
#include "analysis/cli/terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "profiler/format/error.h"

namespace paceline::cli {
namespace terminal_parts {

// Alternate screen and cursor: xterm's control sequences, which every terminal of today has.
constexpr std::string_view enter_text = "\x1b[?1049h\x1b[?25l\x1b[2J", leave_text = "\x1b[0m\x1b[?25h\x1b[?1049l";
// Synchronised updates: the terminal shows all of a frame at once. Others ignore them.
constexpr std::string_view begin_frame = "\x1b[?2026h\x1b[H", end_frame = "\x1b[J\x1b[?2026l";

// Returns false where the terminal is gone.
bool write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string_view colour_of(analysis::FrameLine::Style style) {
  using Style = analysis::FrameLine::Style;
  switch (style) {
    case Style::heading:
      return "\x1b[1m";
    case Style::warning:
      return "\x1b[33m";
    case Style::faint:
      return "\x1b[2m";
    case Style::plain:
      break;
  }
  return "";
}

}  // namespace terminal_parts

ScreenSize screen_size() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

Screen::Screen() {
  const char* no_colour = std::getenv("NO_COLOR");
  colour_ = no_colour == nullptr || *no_colour == '\0';
  sigset_t taken;
  sigemptyset(&taken);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) sigaddset(&taken, signal);
  if (sigprocmask(SIG_BLOCK, &taken, &mask_before_) != 0) throw Error("signals cannot be blocked");
  signals_ = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) throw Error(fmt::format("signalfd: {}", std::strerror(errno)));
  has_keys_ = tcgetattr(STDIN_FILENO, &before_) == 0;
  enter();
}

Screen::~Screen() {
  leave();
  close(signals_);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

void Screen::enter() {
  if (has_keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);  // Ctrl+C and Ctrl+Z stay signals
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  terminal_parts::write_all(terminal_parts::enter_text);
  entered_ = true;
}

void Screen::leave() {
  if (!entered_) return;
  entered_ = false;
  terminal_parts::write_all(terminal_parts::leave_text);
  if (has_keys_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

void Screen::show(std::span<const analysis::FrameLine> lines) {
  using namespace terminal_parts;
  std::string text(begin_frame);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += "\r\n";
    const std::string_view colour = colour_ ? colour_of(lines[i].style) : "";
    text += colour;
    text += lines[i].text;
    if (!colour.empty()) text += "\x1b[0m";
    text += "\x1b[K";
  }
  text += end_frame;
  if (!write_all(text)) ending_signal_ = SIGHUP;
}

Screen::Event Screen::read_key() {
  char keys[64];
  const ssize_t got = read(STDIN_FILENO, keys, sizeof keys);
  if (got <= 0) {
    has_keys_ = has_keys_ && got < 0 && (errno == EAGAIN || errno == EINTR);
    return Event::timeout;
  }
  const std::string_view text(keys, static_cast<std::size_t>(got));
  if (text.find_first_of("qQ\x03") != text.npos) return Event::quit;
  if (text.find("\x1b[A") != text.npos || text.find("\x1bOA") != text.npos || text == "k") return Event::up;
  if (text.find("\x1b[B") != text.npos || text.find("\x1bOB") != text.npos || text == "j") return Event::down;
  if (text.find("\x1b[5~") != text.npos) return Event::page_up;
  if (text.find("\x1b[6~") != text.npos || text == " ") return Event::page_down;
  return Event::timeout;
}

Screen::Event Screen::read_signal() {
  signalfd_siginfo info{};
  if (read(signals_, &info, sizeof info) != sizeof info) return Event::timeout;
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGWINCH) return Event::resized;
  if (signal == SIGTSTP) {
    leave();
    raise(SIGSTOP);  // goes on here after SIGCONT
    enter();
    return Event::resized;
  }
  ending_signal_ = signal;
  return Event::quit;
}

Screen::Event Screen::wait(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (;;) {
    if (ending_signal_ != 0) return Event::quit;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd waited[] = {{signals_, POLLIN, 0}, {has_keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
    const int ready = poll(waited, 2, static_cast<int>(std::clamp<long long>(left + 1, 0, 3'600'000)));
    if (ready < 0 && errno != EINTR) throw Error(fmt::format("poll: {}", std::strerror(errno)));
    Event event = Event::timeout;
    if (ready > 0 && waited[0].revents != 0) event = read_signal();
    if (ready > 0 && event == Event::timeout && waited[1].revents != 0) event = read_key();
    if (event != Event::timeout) return event;
    if (Clock::now() >= until) return Event::timeout;
  }
}

}  // namespace paceline::cli
