// SPDX-License-Identifier: Apache-2.0
// paceline watch: a job that is still running, from the files that its ranks are writing.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "analysis/cli/commands.h"
#include "analysis/cli/print_line.h"
#include "analysis/cli/terminal.h"
#include "analysis/communication/hang_stacks.h"
#include "analysis/text/labels.h"
#include "analysis/text/lists.h"
#include "analysis/watch/live_job.h"
#include "analysis/watch/render_frame.h"
#include "profiler/format/error.h"
#include "profiler/format/stack_request.h"

namespace paceline::cli {
namespace watch_command {

using analysis::LiveJob;
using analysis::WatchFrame;

struct Options {
  std::vector<std::string> runs;
  analysis::RunPaths run() const { return analysis::RunPaths(runs); }
  double interval_s = 2;
  bool once = false, json = false, stacks = false;
};

// A refresh is followed by a pause of at least 50 times its CPU time, so that all of them take at most 2 % of a core.
constexpr double most_share_of_core = 0.02, longest_stretch_s = 30;

double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The time until the next refresh.
class Pace {
 public:
  explicit Pace(double interval_s) : interval_s_(interval_s) {}
  double next_s() {
    const double now = cpu_s(), used = now - before_;
    before_ = now;
    return std::max(interval_s_, std::min(used / most_share_of_core, longest_stretch_s));
  }

 private:
  double interval_s_, before_ = cpu_s();
};

std::string nothing_yet(const Options& options) {
  std::error_code error;
  const auto absent = std::ranges::find_if(
      options.runs, [&](const std::string& directory) { return !std::filesystem::exists(directory, error); });
  if (absent != options.runs.end()) return *absent + ": does not exist yet";
  return options.run().name() + ": no rank has written a trace yet";
}

void print_plain(const WatchFrame& frame) {
  const std::size_t width = isatty(STDOUT_FILENO) == 1 ? screen_size().width : 80;
  for (const analysis::FrameLine& line : render_frame(frame, width, 0)) print_line(stdout, "{}", line.text);
}

int once(const Options& options) {
  LiveJob job(options.run());
  job.poll();
  if (!job.any_ranks()) {
    throw Error(nothing_yet(options) +
                "; give the directory that paceline record -o names, or leave out --once to wait");
  }
  const WatchFrame frame = job.frame();
  if (options.json) {
    fmt::print("{}\n", frame_json(frame));
  } else {
    print_plain(frame);
  }
  return 0;
}

// Where standard output is no terminal: a line for each refresh that shows something new.
int lines(const Options& options) {
  LiveJob job(options.run());
  Pace pace(options.interval_s);
  std::string shown;
  for (bool waited = false;;) {
    job.poll();
    WatchFrame frame;
    if (job.any_ranks()) {
      frame = job.frame();
      const std::string text = options.json ? frame_json(frame) : frame_summary(frame);
      if (text != shown) print_line(stdout, "{}", text);
      shown = text;
    } else if (!std::exchange(waited, true) && !options.json) {
      print_line(stdout, "{}; waiting", nothing_yet(options));
    }
    if (frame.ended) {
      if (!options.json) print_line(stdout, "{}", closing_line(frame));
      return 0;
    }
    flush_output();  // ends the command where the reader has gone
    std::this_thread::sleep_for(std::chrono::duration<double>(pace.next_s()));
  }
}

// Shows frames until the job has ended, a key or a signal ends it; true where the job has ended.
bool show_frames(const Options& options, LiveJob& job, Screen& screen, WatchFrame& frame) {
  using Event = Screen::Event;
  Pace pace(options.interval_s);
  std::size_t first = 0;
  for (;;) {
    job.poll();
    const bool any = job.any_ranks();
    if (any) frame = job.frame();
    if (frame.ended) return true;
    const double pause = pace.next_s();
    const auto due = std::chrono::steady_clock::now() + std::chrono::duration<double>(pause);
    // Keys and a new size are answered at once, from the figures that are there.
    for (Event event = Event::resized; event != Event::timeout;) {
      const ScreenSize size = screen_size();
      const std::size_t page = size.height > 8 ? size.height - 8 : 1;
      const std::size_t last = frame.ranks.empty() ? 0 : frame.ranks.size() - 1;
      if (event == Event::up) first -= std::min<std::size_t>(first, 1);
      if (event == Event::down) first = std::min(first + 1, last);
      if (event == Event::page_up) first -= std::min(first, page);
      if (event == Event::page_down) first = std::min(first + page, last);
      if (any) {
        screen.show(render_frame(frame, size.width, size.height, first));
      } else {
        const analysis::FrameLine line{analysis::label(nothing_yet(options), 500) + "; waiting, q ends"};
        screen.show({&line, 1});
      }
      const std::chrono::duration<double> left = due - std::chrono::steady_clock::now();
      event = screen.wait(std::max(left.count(), 0.0));
      if (event == Event::quit) return false;
    }
  }
}

int full_screen(const Options& options) {
  LiveJob job(options.run());
  WatchFrame frame;
  bool ended = false;
  int signal = 0;
  {
    Screen screen;
    ended = show_frames(options, job, screen, frame);
    signal = screen.ending_signal();
  }
  if (ended) print_line(stdout, "{}", closing_line(frame));
  if (signal != 0) std::raise(signal);
  return 0;
}

// The file that asks the recorders of a directory for stacks, while this exists.
class StackRequest {
 public:
  explicit StackRequest(const std::filesystem::path& run)
      : path_((std::filesystem::is_directory(run) ? run : run.parent_path()) / format::stack_request_name) {
    errno = 0;
    std::ofstream file(path_);
    if (!(file << "paceline watch --stacks\n").flush()) {
      throw Error(path_.string() + ": " + std::strerror(errno != 0 ? errno : EIO) +
                  "; --stacks writes this file, by which it asks the ranks");
    }
  }
  StackRequest(StackRequest&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  StackRequest& operator=(StackRequest&&) = delete;
  ~StackRequest() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }

 private:
  std::filesystem::path path_;
};

int stacks(const Options& options) {
  constexpr int longest_wait_s = 10;
  LiveJob job(options.run());
  job.poll();
  if (!job.any_ranks()) throw Error(nothing_yet(options));
  const std::map<int, std::uint64_t> before = job.recorded_stacks();
  if (before.empty()) throw Error(options.run().name() + ": no rank runs any more; paceline info shows how they ended");
  std::vector<StackRequest> requests;
  for (const std::string& run : options.runs) requests.emplace_back(run);
  analysis::Trace answers;
  std::vector<int> silent;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(longest_wait_s);
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    job.poll();
    answers = job.stacks_since(before);
    silent.clear();
    for (const auto& [rank, ticks] : job.recorded_stacks()) {
      if (std::ranges::find(answers.ranks, rank, &analysis::Rank::rank) == answers.ranks.end()) silent.push_back(rank);
    }
  } while (!silent.empty() && std::chrono::steady_clock::now() < end);
  if (answers.ranks.empty()) {
    throw Error(
        fmt::format("{}: no process answered within {} s: their recording is paused, they are stopped, or "
                    "another version of Paceline records them",
                    options.run().name(), longest_wait_s));
  }
  if (const std::string text = analysis::last_stacks_text(answers); !text.empty()) {
    print_line(stdout, "{}", text);
    print_line(stdout, "");
  }
  for (const std::string& line : analysis::stack_tree(answers)) print_line(stdout, "{}", line);
  if (!silent.empty()) {
    print_line(stderr, "paceline watch: {} did not answer within {} s", analysis::rank_list(silent), longest_wait_s);
  }
  return 0;
}

int watch(const Options& options) {
  if (options.stacks) return stacks(options);
  if (options.once) return once(options);
  const bool terminal = isatty(STDOUT_FILENO) == 1 && !options.json;
  return terminal ? full_screen(options) : lines(options);
}

}  // namespace watch_command

void add_watch(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<watch_command::Options>();
  CLI::App* command =
      app.add_subcommand("watch", "Show a job that is still running: step time, phases, waits, the slowest rank");
  command
      ->add_option(
          "--interval", options->interval_s,
          "Seconds between two refreshes. The interval becomes longer if the refreshes would take more than 2 % of a "
          "core. Default: 2")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0));
  command->add_flag("--once", options->once, "Print the current state once, as plain text, and exit");
  command->add_flag(
      "--stacks", options->stacks,
      "Ask the ranks for the stacks of their main threads once, print them merged into one tree, and exit");
  command->add_flag("--json", options->json, "Print a JSON object on one line for each refresh");
  command
      ->add_option("RUN", options->runs,
                   "The directory that the job's ranks write into, or several, such as one of each host. It may not "
                   "exist yet")
      ->type_name("")
      ->required();
  command->callback([&chosen, options] { chosen = [options] { return watch_command::watch(*options); }; });
}

}  // namespace paceline::cli
