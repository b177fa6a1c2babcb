// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/job_marker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>
#include <vector>

#include "profiler/format/error.h"
#include "profiler/format/liveness.h"
#include "profiler/format/process.h"
#include "profiler/launch/environment.h"

namespace paceline::record {
namespace {

namespace fs = std::filesystem;

constexpr mode_t marker_mode = 0644;  // other users read it before they record in the same directory

struct Command {
  std::string host, boot_id;
  int pid = 0;
  std::uint64_t start = 0;
  std::uint64_t pid_namespace = 0;  // 0: a marker of an older recorder, which does not name it
};

// First line: the job. Then a line for each process: HOST BOOT_ID PID START PID_NAMESPACE.
struct Marker {
  std::string text, job;
  std::vector<Command> commands;
};

// A namespace of 0 in a line means that the process ids of /proc are not those of the process itself.
std::string own_line() {
  format::ProcessStatus status;
  format::read_own_process(status);
  return fmt::format("{} {} {} {} {}\n", format::this_host(), format::this_boot(), getpid(), status.start,
                     format::pid_namespace());
}

[[noreturn]] void fail(const fs::path& path) {
  const int failure = errno;
  throw Error(fmt::format("{}: {}; choose another directory with -o", path.string(), std::strerror(failure)));
}

// Returns false if there is no marker. Follows no link, and does not wait for the writer of a FIFO.
bool read_marker(const fs::path& path, Marker& marker) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0 && errno == ENOENT) return false;
  if (file < 0) fail(path);
  marker = {};
  std::array<char, 4096> piece{};
  ssize_t got = 0;
  while ((got = read(file, piece.data(), piece.size())) > 0) marker.text.append(piece.data(), got);
  close(file);
  std::istringstream lines(marker.text);
  std::getline(lines, marker.job);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Command command;
    if (!(words >> command.host >> command.boot_id >> command.pid >> command.start)) break;
    words >> command.pid_namespace;
    marker.commands.push_back(command);
  }
  return true;
}

// Whether some process of the job may still record in the directory. Nothing if the job has no trace there.
std::optional<bool> is_being_recorded(const fs::path& directory, const std::string& job) {
  std::optional<bool> found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".pace") continue;
    try {
      const format::TraceFile file = format::read_trace_header(entry.path());
      if (file.job != job) continue;
      found = may_still_be_recorded(file);
    } catch (const Error&) {  // not a trace, or just removed
    }
    if (found == true) break;
  }
  return found;
}

// Describes a process of another job that may still run; "" if there is none.
std::string who_runs(const Marker& marker, const fs::path& path) {
  const std::string host = format::this_host(), boot = format::this_boot();
  const bool sees_pids = format::proc_shows_own_pids();
  const std::uint64_t own_namespace = format::pid_namespace();
  bool on_other_host = false;
  std::string who;
  for (const Command& command : marker.commands) {
    const bool other_namespace = command.pid_namespace != 0 && command.pid_namespace != own_namespace;
    if (command.boot_id == boot && !other_namespace && (sees_pids || command.pid_namespace == 0)) {
      if (format::runs_in_this_namespace(command.pid, command.start))
        return fmt::format("process {} runs", command.pid);
    } else if (command.boot_id == boot || command.host != host) {
      on_other_host |= command.boot_id != boot;
      who = command.boot_id == boot ? fmt::format("process {} in another container", command.pid)
                                    : fmt::format("process {} on {}", command.pid, command.host);
    }
  }
  if (who.empty()) return {};
  // Processes that cannot be seen from here: by the job's traces. Before the first one is written or, from another
  // host, can be seen, by the marker's age. In a container of this host there may be none at all.
  const bool counts_as_running = on_other_host && format::is_fresh(path);
  if (!is_being_recorded(path.parent_path(), marker.job).value_or(counts_as_running)) return {};
  return fmt::format("{} may still run; if it does not, remove {}", who, path.string());
}

// A file of this process beside the marker, which is then linked or renamed. Its name is random, because the ranks of a
// job may all have one process id, and so that nobody can put a file there before.
fs::path own_file(const fs::path& directory) {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) random = static_cast<std::uint64_t>(getpid());
  return directory / fmt::format("{}.{:016x}", job_marker_name, random);
}

void write_file(const fs::path& path, const std::string& text, int flags) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, marker_mode);
  if (file < 0) fail(path);
  const ssize_t put = write(file, text.data(), text.size());
  const int failure = errno;
  close(file);
  errno = failure;
  if (put != static_cast<ssize_t>(text.size())) fail(path);
}

// Returns true if `from` got the name, false if another file has it. Not every file system has links.
bool give_name(const fs::path& from, const fs::path& to) {
  if (link(from.c_str(), to.c_str()) == 0) return true;
  if (errno == EEXIST) return false;
  const int made = open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, marker_mode);
  if (made < 0 && errno == EEXIST) return false;
  if (made < 0) fail(to);
  close(made);
  return rename(from.c_str(), to.c_str()) == 0;
}

// Removes the marker of a job that has ended. Another process may have done that already and created its own marker,
// which is then restored.
void remove_stale(const fs::path& marker, const fs::path& aside, const std::string& stale_text) {
  if (rename(marker.c_str(), aside.c_str()) != 0) return;
  Marker taken;
  if (read_marker(aside, taken) && taken.text != stale_text) give_name(aside, marker);
  unlink(aside.c_str());
}

}  // namespace

void mark_job(const fs::path& directory, const std::string& job) {
  const fs::path path = directory / job_marker_name, own = own_file(directory), aside = own_file(directory);
  write_file(own, fmt::format("{}\n{}", job, own_line()), O_CREAT | O_EXCL);
  try {
    constexpr int attempts = 1000;
    for (int attempt = 0; attempt < attempts && !give_name(own, path); ++attempt) {
      Marker marker;
      if (!read_marker(path, marker)) continue;  // it was removed just now
      if (marker.job == job) {
        write_file(path, own_line(), O_APPEND);
        break;
      }
      if (marker.text.empty()) {  // it is being written on a file system without links
        usleep(1000);
        if (attempt < attempts / 2) continue;
      }
      if (const std::string who = who_runs(marker, path); !who.empty()) {
        throw Error(
            fmt::format("{} is the directory of another run that has not ended (job {}: {}); choose another "
                        "directory with -o, or give both the same PACELINE_JOB if they are one job",
                        directory.string(), marker.job, who));
      }
      remove_stale(path, aside, marker.text);
    }
  } catch (...) {
    unlink(own.c_str());
    throw;
  }
  unlink(own.c_str());
}

void unmark_job(const fs::path& directory) {
  const fs::path path = directory / job_marker_name;
  Marker marker;
  if (read_marker(path, marker) && marker.commands.size() == 1 &&
      marker.text.ends_with(fmt::format("\n{}", own_line()))) {
    unlink(path.c_str());
  }
}

bool may_still_be_recorded(const format::TraceFile& file) {
  return format::liveness_of(file) != format::Liveness::ended;
}

}  // namespace paceline::record
