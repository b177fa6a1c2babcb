// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/stage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <system_error>

#include "profiler/format/error.h"
#include "profiler/format/liveness.h"
#include "profiler/format/process.h"
#include "profiler/format/reader.h"
#include "profiler/record/job_marker.h"
#include "profiler/record/output_directory.h"

namespace paceline::record {
namespace {

namespace fs = std::filesystem;

// Signals of job control and of faults in this process are not passed on.
constexpr int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH, SIGXCPU};

volatile sig_atomic_t command_pid = 0;

void pass_on(int number, siginfo_t* info, void*) {
  // A signal from the terminal (SI_KERNEL) reaches the command directly, which is in the same process group.
  if (command_pid > 0 && info->si_code <= 0) kill(command_pid, number);
}

// The command has ended. So a file that was renewed a short time ago, without any other sign of life, is complete.
bool is_being_written(const fs::path& file) {
  return format::liveness_of(format::read_trace_header(file)) == format::Liveness::lives;
}

// The first of NAME.pace, NAME-2.pace, … that does not exist.
fs::path free_name(const fs::path& directory, const fs::path& name) {
  fs::path candidate = directory / name;
  for (int number = 2; fs::exists(candidate); ++number) {
    candidate = directory / fmt::format("{}-{}{}", name.stem().string(), number, name.extension().string());
  }
  return candidate;
}

// Moves a file, also across file systems. A copy is not taken for a trace before it is complete.
void move_file(const fs::path& file, const fs::path& to) {
  std::error_code failed;
  fs::rename(file, to, failed);
  if (!failed) return;
  const fs::path temporary = to.parent_path() / fmt::format(".{}.tmp", to.filename().string());
  try {
    fs::remove(temporary);
    fs::copy_file(file, temporary);  // fails if there is a file or a link of somebody else now
    fs::rename(temporary, to);
  } catch (...) {
    fs::remove(temporary, failed);
    throw;
  }
  fs::remove(file);
}

void complain(const std::string& text) { fmt::print(stderr, "paceline record: {}\n", text); }

// HOST, PID and START of `paceline record`, and the directory on a line of its own.
struct StageNote {
  std::string host;
  int pid = 0;
  std::uint64_t start = 0;
  fs::path stage;
};

constexpr std::string_view note_prefix = ".paceline-stage-";

std::string this_host() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

fs::path note_path(const fs::path& stage, const fs::path& output) {
  return output / fmt::format("{}{}-{}", note_prefix, this_host(), stage.filename().string());
}

bool read_note(const fs::path& path, StageNote& note) {
  std::ifstream file(path);
  std::string stage;
  if (!(file >> note.host >> note.pid >> note.start) || !std::getline(file >> std::ws, stage)) return false;
  note.stage = stage;
  return true;
}

bool still_runs(const StageNote& note) {
  format::ProcessStatus status;
  return format::read_process(note.pid, status) && !status.has_ended && status.start == note.start;
}

// The line for one note, "" if there is nothing to say.
std::string collect(const StageNote& note, const fs::path& output, const fs::path& path) {
  if (note.host != this_host()) {
    return fmt::format("traces may be left on {} in {} (--stage): run `paceline info` for {} there to get them",
                       note.host, note.stage.string(), output.string());
  }
  if (still_runs(note)) return {};
  std::size_t moved = 0, stay = 0;
  std::error_code error;
  for (fs::directory_iterator entry(note.stage, error), end; !error && entry != end; entry.increment(error)) {
    if (!format::is_trace_file(entry->path())) continue;
    try {
      if (may_still_be_recorded(format::read_trace_header(entry->path()))) return {};
      move_file(entry->path(), free_name(output, entry->path().filename()));
      ++moved;
    } catch (const std::exception&) {
      ++stay;
    }
  }
  if (stay > 0) {
    return fmt::format("{} trace{} left in {} (--stage) and cannot be moved to {}: move {} by hand", stay,
                       stay == 1 ? " is" : "s are", note.stage.string(), output.string(), stay == 1 ? "it" : "them");
  }
  fs::remove(note.stage, error);
  fs::remove(path, error);
  if (moved == 0) return {};
  return fmt::format("{} trace{} of killed programs moved here from {} (--stage)", moved, moved == 1 ? "" : "s",
                     note.stage.string());
}

}  // namespace

void note_stage(const fs::path& stage, const fs::path& output) {
  format::ProcessStatus status;
  format::read_own_process(status);
  const fs::path path = note_path(stage, output);
  std::ofstream file(path);
  file << this_host() << ' ' << status.pid << ' ' << status.start << '\n' << stage.string() << '\n';
  if (!file.flush()) throw Error(fmt::format("{}: cannot be written; choose another directory with -o", path.string()));
}

std::vector<std::string> collect_stages(const fs::path& output) {
  std::vector<std::string> lines;
  std::vector<fs::path> notes;
  std::error_code error;
  for (fs::directory_iterator entry(output, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().starts_with(note_prefix)) notes.push_back(entry->path());
  }
  for (const fs::path& path : notes) {
    StageNote note;
    if (!read_note(path, note)) continue;
    if (std::string line = collect(note, output, path); !line.empty()) {
      lines.push_back(fmt::format("{}: {}", output.string(), line));
    }
  }
  return lines;
}

fs::path make_stage(const fs::path& stage) {
  std::error_code error;
  fs::create_directories(stage, error);
  std::string name = absolute_directory(stage, "--stage") / "paceline-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    throw Error(
        fmt::format("--stage {}: {}; choose a directory that can be written", stage.string(), std::strerror(errno)));
  }
  return name;
}

void empty_stage(const fs::path& stage, const fs::path& output, bool force) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(stage, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored)) continue;
    if (format::is_trace_file(entry->path())) {
      files.push_back(entry->path());
    } else {
      fs::remove(entry->path(), ignored);  // an incomplete copy
    }
  }
  if (error) complain(fmt::format("{}: {}; traces may remain there", stage.string(), error.message()));
  for (const fs::path& file : files) {
    try {
      if (is_being_written(file)) {
        complain(fmt::format("{} is still being written; it stays there", file.string()));
        continue;
      }
      move_file(file, force ? output / file.filename() : free_name(output, file.filename()));
    } catch (const fs::filesystem_error& failure) {
      complain(fmt::format("{} cannot be moved to {}: {}; it stays there", file.string(), output.string(),
                           failure.code().message()));
    } catch (const std::exception& failure) {
      complain(fmt::format("{}; it stays there", failure.what()));
    }
  }
  if (fs::remove(stage, error)) fs::remove(note_path(stage, output), error);
}

int run_and_wait(const std::vector<char*>& arguments) {
  int channel[2];  // carries the error of a failed exec
  if (pipe2(channel, O_CLOEXEC) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    execvp(arguments[0], arguments.data());
    const int failure = errno;
    [[maybe_unused]] const ssize_t told = write(channel[1], &failure, sizeof failure);
    _exit(127);
  }
  if (child < 0) return -1;
  command_pid = child;
  struct sigaction action {};
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  for (const int number : passed_on) sigaction(number, &action, nullptr);
  close(channel[1]);
  int failure = 0, status = 0;
  const bool failed = read(channel[0], &failure, sizeof failure) == static_cast<ssize_t>(sizeof failure);
  close(channel[0]);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  command_pid = 0;
  if (!failed) return status;
  errno = failure;
  return -1;
}

void end_alike(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const rlimit no_core{0, 0};  // the command has written its own core file
    setrlimit(RLIMIT_CORE, &no_core);
    signal(WTERMSIG(wait_status), SIG_DFL);
    raise(WTERMSIG(wait_status));
  }
  _exit(WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status));
}

}  // namespace paceline::record
