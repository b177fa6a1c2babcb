// SPDX-License-Identifier: Apache-2.0
#include "profiler/format/liveness.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "profiler/format/input_file.h"
#include "profiler/format/process.h"
#include "profiler/format/recorder_lock.h"

namespace paceline::format {
namespace {

constexpr double fresh_s = 600;

bool is_younger_than(const struct stat& status, double seconds) {
  return std::difftime(time(nullptr), status.st_mtime) < seconds;
}

Liveness by_age(const std::filesystem::path& path) { return is_fresh(path) ? Liveness::may_live : Liveness::ended; }

// By the lock and the modification time that the recorder renews.
Liveness by_heartbeat(const TraceFacts& facts) {
  constexpr int missed_heartbeats = 6;
  const int file = open_without_waiting(facts.path);
  if (file < 0) return Liveness::ended;
  Liveness found = Liveness::ended;
  struct stat status {};
  if (!is_on_local_file_system(file)) {
    found = by_age(facts.path);
  } else if (is_locked_by_recorder(file)) {
    found = Liveness::lives;
  } else if (fstat(file, &status) == 0 && is_younger_than(status, missed_heartbeats * facts.heartbeat_s)) {
    found = Liveness::may_live;
  }
  close(file);
  return found;
}

Liveness by_process(const TraceFacts& facts) {
  const bool runs = runs_in_this_namespace(static_cast<int>(facts.header.pid), facts.process_start);
  return runs ? Liveness::lives : Liveness::ended;
}

}  // namespace

std::string this_host() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

std::string this_boot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return file >> id ? id : "unknown";
}

bool is_fresh(const std::filesystem::path& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && is_younger_than(status, fresh_s);
}

bool runs_in_this_namespace(int pid, std::uint64_t start) {
  ProcessStatus status;
  return read_process(pid, status) && !status.has_ended && (start == 0 || status.start == start);
}

Liveness liveness_of(const TraceFacts& facts) {
  static const std::string boot = this_boot();
  static const std::uint64_t own_namespace = proc_shows_own_pids() ? pid_namespace() : 0;
  if (facts.header.closed != 0) return Liveness::ended;
  if (facts.pid_namespace == 0) {  // written by an older recorder
    if (facts.host != this_host()) return by_age(facts.path);
    if (!facts.boot_id.empty() && facts.boot_id != boot) return Liveness::ended;
    return by_process(facts);
  }
  if (facts.boot_id == boot) {
    if (facts.pid_namespace == own_namespace && facts.process_start > 0) return by_process(facts);
    return facts.heartbeat_s > 0 ? by_heartbeat(facts) : by_age(facts.path);
  }
  if (facts.host == this_host() && !facts.boot_id.empty()) return Liveness::ended;
  return by_age(facts.path);
}

}  // namespace paceline::format
