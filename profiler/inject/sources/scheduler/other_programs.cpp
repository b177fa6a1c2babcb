// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/scheduler/other_programs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/sources/scheduler/numbered_folder.h"
#include "profiler/inject/system/sysfs.h"
#include "profiler/inject/system/system_clock.h"
#include "profiler/launch/environment.h"

namespace paceline::inject {
namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t shortest_interval_ns = second / 2, longest_interval_ns = 10 * second;
constexpr std::int64_t cost_limit = 1000;  // a look may cost 1/1000 of the time to the next one
constexpr std::size_t most_processes = 2048, most_recorded = 8;
constexpr std::uint64_t least_use = 20;  // 1/20 of a CPU

struct Process {
  pid_t id;
  char name[16];
  std::uint64_t cpu_ns;  // since it began; by the last look: in the interval
  unsigned long cpu;     // on which it ran last
};
// Sorted by id. The two take turns.
Process tables[2][most_processes];
Process* last = tables[0];
std::size_t last_count = 0;
pid_t listed[most_processes];
std::int64_t last_look_ns = 0, next_look_ns = 0;

// "PID (NAME) STATE PARENT …": the 14th and the 15th field are the times in user space and in the kernel, in clock
// ticks, and the 39th is the CPU.
bool read_process(pid_t id, Process& process) {
  char path[32], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(id));
  if (read_file_high(path, text, sizeof text) == 0) return false;
  const char* name = strchr(text, '(');
  char* end = strrchr(text, ')');
  if (name == nullptr || end == nullptr || end < name) return false;
  process = {};
  process.id = id;
  memcpy(process.name, name + 1, std::min(static_cast<std::size_t>(end - name - 1), sizeof process.name - 1));
  char* field = end + 1;
  const auto skip = [&field](int words) {
    for (; words > 0 && field != nullptr; --words) field = strchr(field + 1, ' ');
    return field != nullptr;
  };
  if (!skip(11)) return false;
  const std::uint64_t user = strtoull(field, &field, 10), system = strtoull(field, &field, 10);
  process.cpu = skip(23) ? strtoul(field, nullptr, 10) : 0;
  const auto tick_ns = static_cast<std::uint64_t>(second / std::max(1L, sysconf(_SC_CLK_TCK)));
  process.cpu_ns = (user + system) * tick_ns;
  return true;
}

// The CPUs on which the program's main thread may run: who used other CPUs took none from it. All of them where the
// system does not say.
class AllowedCpus {
 public:
  AllowedCpus() {
    memset(bits_, 0, sizeof bits_);
    if (syscall(SYS_sched_getaffinity, session.owner, sizeof bits_, bits_) <= 0) memset(bits_, 0xff, sizeof bits_);
  }
  bool has(unsigned long cpu) const { return cpu >= cpus || (bits_[cpu / bits] >> cpu % bits & 1) != 0; }

 private:
  static constexpr unsigned long cpus = 8192, bits = 8 * sizeof(unsigned long);
  unsigned long bits_[cpus / bits];
};

// Whether the process writes into this run's directory, by its environment: the ranks of a job and their children take
// CPUs from each other, and are no other program.
bool is_of_this_job(pid_t id) {
  static char environment[64 * 1024];
  const char* output = getenv(record::env_output);
  if (output == nullptr) return false;
  char path[32], wanted[4096];
  snprintf(path, sizeof path, "/proc/%d/environ", static_cast<int>(id));
  const int length = snprintf(wanted, sizeof wanted, "%s=%s", record::env_output, output);
  const Descriptor file(open_high(path));
  if (!file.is_open() || length >= static_cast<int>(sizeof wanted)) return false;
  const ssize_t size = read(file.number(), environment, sizeof environment);
  return size > 0 &&
         memmem(environment, static_cast<std::size_t>(size), wanted, static_cast<std::size_t>(length) + 1) != nullptr;
}

void record_busiest(std::span<Process> busy, std::uint64_t interval_ns) {
  const auto most = std::min(busy.size(), most_recorded);
  std::partial_sort(busy.begin(), busy.begin() + static_cast<std::ptrdiff_t>(most), busy.end(),
                    [](const Process& a, const Process& b) { return a.cpu_ns > b.cpu_ns; });
  for (const Process& process : busy.first(most)) {
    events::OtherProgram other{
        .process = static_cast<std::uint32_t>(process.id), .cpu_ns = process.cpu_ns, .interval_ns = interval_ns};
    memcpy(other.name, process.name, sizeof other.name);
    emit(other);
  }
}

void look(std::int64_t now_ns) {
  const Descriptor folder(open_high("/proc", O_DIRECTORY));
  if (!folder.is_open()) return;
  const std::size_t found = list_numbers(folder.number(), listed);
  Process* now = last == tables[0] ? tables[1] : tables[0];
  std::size_t count = 0;
  for (std::size_t i = 0; i < found; ++i) {
    if (listed[i] != session.owner && read_process(listed[i], now[count])) ++count;
  }
  static Process busy[most_processes];
  std::size_t busy_count = 0;
  const AllowedCpus allowed;
  const auto interval_ns = static_cast<std::uint64_t>(now_ns - last_look_ns);
  if (last_look_ns != 0 && now_ns - last_look_ns <= 2 * longest_interval_ns) {
    std::size_t before = 0;
    for (std::size_t i = 0; i < count; ++i) {
      while (before < last_count && last[before].id < now[i].id) ++before;
      const bool known = before < last_count && last[before].id == now[i].id && last[before].cpu_ns <= now[i].cpu_ns;
      const std::uint64_t used = now[i].cpu_ns - (known ? last[before].cpu_ns : 0);
      if (used * least_use < interval_ns || !allowed.has(now[i].cpu) || is_of_this_job(now[i].id)) continue;
      // A process that began since the last look has all its time from this interval.
      busy[busy_count] = now[i];
      busy[busy_count++].cpu_ns = std::min(used, known ? used : interval_ns);
    }
    record_busiest({busy, busy_count}, interval_ns);
  }
  last = now;
  last_count = count;
  last_look_ns = now_ns;
}

}  // namespace

std::int64_t look_for_other_programs(std::int64_t now_ns) {
  if (now_ns < next_look_ns) return 0;
  const std::int64_t before = true_ns(CLOCK_THREAD_CPUTIME_ID);
  const bool first = last_look_ns == 0;  // which says nothing without a second one
  look(now_ns);
  const std::int64_t cost_ns = true_ns(CLOCK_THREAD_CPUTIME_ID) - before;
  next_look_ns = now_ns + std::clamp(first ? 0 : cost_ns * cost_limit, shortest_interval_ns, longest_interval_ns);
  return cost_ns;
}

void start_other_programs() { last_look_ns = next_look_ns = 0; }

}  // namespace paceline::inject
