// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/counters/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string_view>

#include "profiler/inject/sources/counters/machine_facts.h"
#include "profiler/inject/sources/counters/samples.h"
#include "profiler/inject/system/sysfs.h"

namespace paceline::inject {
namespace cgroups {

// Takes the text up to a separator off the front of `text`.
std::string_view cut(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return piece;
}

bool lists(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    if (cut(list, ',') == word) return true;
  }
  return false;
}

struct Files {
  KeptFile cpu, memory, failures;
};
Files files;
bool memory_v2 = false;
struct Ids {
  std::uint16_t periods, throttled, throttled_us, oom_kills, limit_hits, reclaims;
};
Ids id;

// Not on the stack, because they may be long.
char groups[16 * 1024], mounts[128 * 1024];

double cpu_limit(const char* folder, bool v2) {
  char path[1200], text[64];
  if (v2) {
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    return read_file_high(path, text, sizeof text) > 0 ? cpus_in_max(text) : 0;
  }
  snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
  const double quota = read_file_high(path, text, sizeof text) > 0 ? atof(text) : 0;
  snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
  const double period = read_file_high(path, text, sizeof text) > 0 ? atof(text) : 0;
  return quota > 0 && period > 0 ? quota / period : 0;
}

double memory_limit(const char* folder, bool v2) {
  constexpr double none = 0x1p62;  // version 1 has a large number instead
  char path[1200], text[64];
  snprintf(path, sizeof path, "%s/%s", folder, v2 ? "memory.max" : "memory.limit_in_bytes");
  const double limit = read_file_high(path, text, sizeof text) > 0 ? atof(text) : 0;
  return limit < none ? limit : 0;
}

// Limits of groups above hold as well: sets the folder to that of the lowest limit, which is returned; 0 if none has
// one.
double lowest_limit(CgroupFolder& folder, double (*limit_of)(const char*, bool)) {
  CgroupFolder at = folder;
  double lowest = 0;
  for (;;) {
    const double limit = limit_of(at.path, at.v2);
    if (limit > 0 && (lowest == 0 || limit < lowest)) {
      lowest = limit;
      folder = at;
    }
    char* last = strrchr(at.path, '/');
    if (last == nullptr || static_cast<std::size_t>(last - at.path) < at.mount_length) return lowest;
    *last = '\0';
  }
}

bool open_in(KeptFile& file, const CgroupFolder& folder, const char* name) {
  char path[1200];
  snprintf(path, sizeof path, "%s/%s", folder.path, name);
  return file.open(path);
}

void open_cpu() {
  CgroupFolder folder;
  if (!find_cgroup(groups, mounts, "cpu", folder)) return;
  const double limit = lowest_limit(folder, cpu_limit);
  if (limit == 0 || !open_in(files.cpu, folder, "cpu.stat")) return;
  machine_fact("cgroup", "%s", folder.path);
  machine_fact("cgroup_cpus", "%.6g", limit);
  id.periods = define_counter("CPU limit, periods", "", "cgroup", CounterKind::sum);
  id.throttled = define_counter("CPU limit, throttled periods", "", "cgroup", CounterKind::sum);
  id.throttled_us = define_counter("CPU limit, throttled time", "µs", "cgroup", CounterKind::sum);
}

void open_memory() {
  CgroupFolder folder;
  if (!find_cgroup(groups, mounts, "memory", folder)) return;
  const double limit = lowest_limit(folder, memory_limit);
  if (limit > 0) machine_fact("cgroup_memory_bytes", "%.0f", limit);
  memory_v2 = folder.v2;
  if (!open_in(files.memory, folder, folder.v2 ? "memory.events" : "memory.oom_control")) return;
  id.oom_kills = define_counter("memory limit, OOM kills", "", "cgroup", CounterKind::sum);
  if (folder.v2 || open_in(files.failures, folder, "memory.failcnt")) {
    id.limit_hits = define_counter("memory limit, hits", "", "cgroup", CounterKind::sum);
  }
  if (folder.v2) id.reclaims = define_counter("memory limit, throttled above high", "", "cgroup", CounterKind::sum);
}

}  // namespace cgroups

bool find_cgroup(const char* groups, const char* mounts, const char* controller, CgroupFolder& folder) {
  using namespace cgroups;
  std::string_view group;
  bool found = false;
  folder = {};
  for (std::string_view text = groups; !text.empty();) {  // "4:cpu,cpuacct:/job", and for version 2 "0::/job"
    std::string_view line = cut(text, '\n');
    cut(line, ':');
    const std::string_view controllers = cut(line, ':');
    const bool v1 = lists(controllers, controller);
    if (!v1 && (found || !controllers.empty())) continue;
    group = line;
    found = true;
    folder.v2 = !v1;
    if (v1) break;
  }
  for (std::string_view text = mounts;
       found && !text.empty();) {  // ID PARENT DEVICE ROOT PLACE … - TYPE SOURCE OPTIONS
    std::string_view line = cut(text, '\n');
    for (int field = 0; field < 3; ++field) cut(line, ' ');
    const std::string_view root = cut(line, ' '), place = cut(line, ' ');
    const std::size_t dash = line.find("- ");
    if (dash == line.npos) continue;
    line.remove_prefix(dash + 2);
    const std::string_view type = cut(line, ' ');
    cut(line, ' ');
    if (folder.v2 ? type != "cgroup2" : type != "cgroup" || !lists(line, controller)) continue;
    // A container sees its own group as the root.
    std::string_view below = group;
    if (root != "/") below = group.starts_with(root) ? group.substr(root.size()) : "";
    if (below == "/") below = "";
    const int length = snprintf(folder.path, sizeof folder.path, "%.*s%.*s", static_cast<int>(place.size()),
                                place.data(), static_cast<int>(below.size()), below.data());
    folder.mount_length = place.size();
    return length > 0 && static_cast<std::size_t>(length) < sizeof folder.path;
  }
  return false;
}

double cpus_in_max(const char* text) {
  char* end = nullptr;
  const double quota = strtod(text, &end);  // "max 100000" without a limit
  const double period = end != text ? strtod(end, nullptr) : 0;
  return quota > 0 && period > 0 ? quota / period : 0;
}

unsigned long long value_of(const char* text, const char* key) {
  const std::size_t length = strlen(key);
  for (const char* line = text; line != nullptr; line = strchr(line, '\n')) {
    if (*line == '\n') ++line;
    if (strncmp(line, key, length) == 0 && line[length] == ' ') return strtoull(line + length, nullptr, 10);
  }
  return 0;
}

void open_cgroup_counters() {
  using namespace cgroups;
  if (read_file_high("/proc/self/cgroup", groups, sizeof groups) == 0) return;
  if (read_file_high("/proc/self/mountinfo", mounts, sizeof mounts) == 0) return;
  open_cpu();
  open_memory();
}

void sample_cgroup() {
  using namespace cgroups;
  char text[2048];
  if (id.periods != 0 && files.cpu.read(text, sizeof text) > 0) {
    record_sample(id.periods, value_of(text, "nr_periods"));
    record_sample(id.throttled, value_of(text, "nr_throttled"));
    // Version 1 counts nanoseconds.
    record_sample(id.throttled_us, value_of(text, "throttled_usec") + value_of(text, "throttled_time") / 1000);
  }
  if (id.oom_kills != 0 && files.memory.read(text, sizeof text) > 0) {
    record_sample(id.oom_kills, value_of(text, "oom_kill"));
    record_sample(id.reclaims, value_of(text, "high"));
    if (memory_v2) record_sample(id.limit_hits, value_of(text, "max"));
  }
  if (!memory_v2 && id.limit_hits != 0 && files.failures.read(text, sizeof text) > 0) {
    record_sample(id.limit_hits, strtoull(text, nullptr, 10));
  }
}

void forget_cgroup_files() {
  for (KeptFile* file : {&cgroups::files.cpu, &cgroups::files.memory, &cgroups::files.failures}) file->close();
  cgroups::id = {};
}

}  // namespace paceline::inject
