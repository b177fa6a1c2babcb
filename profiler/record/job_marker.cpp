#include "profiler/record/job_marker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "profiler/format/error.h"
#include "profiler/record/environment.h"
#include "profiler/record/launcher.h"

namespace paceline::record {
namespace {

namespace fs = std::filesystem;

// A marker or a trace of another host counts as current for this time. A recorder renews both every minute.
constexpr double fresh_s = 600;

struct Command {
  std::string host, boot_id;
  int pid = 0;
  std::uint64_t start = 0;
};

// First line: the job. Then a line for each process: HOST BOOT_ID PID START.
struct Marker {
  std::string text, job;
  std::vector<Command> commands;
};

std::string host_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return file >> id ? id : "unknown";
}

std::string own_line() {
  ProcessStatus status;
  read_process(getpid(), status);
  return fmt::format("{} {} {} {}\n", host_name(), boot_id(), getpid(), status.start);
}

bool read_marker(const fs::path& path, Marker& marker) {
  std::ifstream file(path);
  if (!file) return false;
  std::stringstream whole;
  whole << file.rdbuf();
  marker = {};
  marker.text = whole.str();
  std::getline(whole, marker.job);
  for (Command command; whole >> command.host >> command.boot_id >> command.pid >> command.start;) {
    marker.commands.push_back(command);
  }
  return true;
}

bool is_fresh(const fs::path& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && std::difftime(time(nullptr), status.st_mtime) < fresh_s;
}

bool runs_here(int pid, std::uint64_t start) {
  ProcessStatus status;
  return read_process(pid, status) && !status.has_ended && (start == 0 || status.start == start);
}

// Describes a process of another job that may still run; "" if there is none.
std::string who_runs(const Marker& marker, const fs::path& path) {
  const std::string host = host_name(), boot = boot_id();
  for (const Command& command : marker.commands) {
    if (command.host != host) {
      if (!is_fresh(path)) continue;
      return fmt::format("process {} on {} may still run; if it does not, remove {}", command.pid, command.host,
                         path.string());
    }
    if (command.boot_id == boot && runs_here(command.pid, command.start)) {
      return fmt::format("process {} runs", command.pid);
    }
  }
  return {};
}

// A file of this process beside the marker, which is then linked or renamed.
fs::path own_file(const fs::path& directory, const char* what) {
  return directory / fmt::format("{}.{}.{}.{}", job_marker_name, host_name(), getpid(), what);
}

[[noreturn]] void fail(const fs::path& path) {
  const int failure = errno;
  throw Error(fmt::format("{}: {}; choose another directory with -o", path.string(), std::strerror(failure)));
}

void write_file(const fs::path& path, const std::string& text, int flags) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
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
  const int made = open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
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
  const fs::path path = directory / job_marker_name, own = own_file(directory, "new"),
                 aside = own_file(directory, "old");
  write_file(own, fmt::format("{}\n{}", job, own_line()), O_CREAT | O_TRUNC);
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
  if (file.header.closed != 0) return false;
  if (file.host != host_name()) return is_fresh(file.path);
  if (!file.boot_id.empty() && file.boot_id != boot_id()) return false;
  return runs_here(static_cast<int>(file.header.pid), file.process_start);
}

}  // namespace paceline::record
