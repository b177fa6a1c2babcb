// SPDX-License-Identifier: Apache-2.0
// Counters of the process, and of the traffic on the machine's networks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "profiler/inject/buffer/session.h"
#include "profiler/inject/sources/counters/counters.h"
#include "profiler/inject/sources/counters/samples.h"
#include "profiler/inject/system/sysfs.h"

namespace paceline::inject {
namespace {

std::uint64_t number_at(const char*& text) {
  while (*text == ' ') ++text;
  std::uint64_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) value = value * 10 + static_cast<std::uint64_t>(*text - '0');
  return value;
}

std::uint64_t microseconds(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(time.tv_usec);
}

struct Ids {
  std::uint16_t total, system, voluntary, involuntary, minor, major, threads, resident, running, waiting, storage;
  std::uint16_t read, written, read_storage, written_storage;
};
Ids id;
KeptFile memory, tasks, schedule, io, main_thread;
std::uint64_t tick_us = 10'000;

// How long threads of the machine were held up for want of something, as the kernel's PSI measures it.
struct Pressure {
  const char *path, *name;
  KeptFile file;
  std::uint16_t id;
};
Pressure pressures[] = {{"/proc/pressure/cpu", "pressure, CPU", {}, 0},
                        {"/proc/pressure/io", "pressure, I/O", {}, 0},
                        {"/proc/pressure/memory", "pressure, memory", {}, 0}};
std::uint64_t page_bytes = 4096;

// The number behind a key that a line begins with, as in "read_bytes: 12".
std::uint64_t number_after(const char* text, const char* key) {
  for (const char* line = text; line != nullptr; line = strchr(line, '\n')) {
    if (*line == '\n') ++line;
    if (strncmp(line, key, strlen(key)) != 0) continue;
    line += strlen(key);
    return number_at(line);
  }
  return 0;
}

// Of "some avg10=0.00 avg60=0.00 avg300=0.00 total=12": µs in which at least one thread was held up.
std::uint64_t pressure_in(const char* text) {
  const char* total = strstr(text, "total=");
  if (total == nullptr) return 0;
  total += strlen("total=");
  return number_at(total);
}

// The time in which a thread waited for blocks of storage, in ticks: the 42nd word of its file `stat`, whose second one
// is its name in parentheses.
std::uint64_t storage_ticks(const char* stat) {
  const char* at = strrchr(stat, ')');
  for (int word = 2; at != nullptr && word < 42; ++word) at = strchr(at + 1, ' ');
  if (at == nullptr) return 0;
  return number_at(at);
}

bool kernel_counts_storage() {
  char text[8];
  return read_file_high("/proc/sys/kernel/task_delayacct", text, sizeof text) > 0 && text[0] == '1';
}

// The traffic of a network interface. Its counters are defined at its first traffic, because machines have dozens of
// interfaces without any.
struct Interface {
  char name[32];
  std::uint64_t received, sent;
  std::uint64_t moment;  // the ticks of these two values
  std::uint16_t received_id, sent_id;
};
constexpr unsigned most_interfaces = 32;
Interface interfaces[most_interfaces];
unsigned interface_count = 0;
KeptFile devices;
char device_text[16 * 1024];

Interface* find_interface(const char* name, std::size_t length, unsigned guess) {
  if (length >= sizeof interfaces[0].name) return nullptr;
  for (unsigned i = 0; i < interface_count; ++i) {
    Interface& known = interfaces[(guess + i) % interface_count];  // the order is the same each time
    if (strncmp(known.name, name, length) == 0 && known.name[length] == '\0') return &known;
  }
  if (interface_count == most_interfaces) return nullptr;
  Interface& fresh = interfaces[interface_count++];
  memcpy(fresh.name, name, length);
  fresh.name[length] = '\0';
  return &fresh;
}

void sample_interface(Interface& interface, std::uint64_t received, std::uint64_t sent) {
  const bool first = interface.moment == 0;
  if (!first && interface.received_id == 0 && (received != interface.received || sent != interface.sent)) {
    interface.received_id = define_counter("bytes received", "bytes", interface.name, CounterKind::sum);
    interface.sent_id = define_counter("bytes sent", "bytes", interface.name, CounterKind::sum);
    record_sample_at(interface.moment, interface.received_id, interface.received);
    record_sample_at(interface.moment, interface.sent_id, interface.sent);
  }
  record_sample(interface.received_id, received);
  record_sample(interface.sent_id, sent);
  interface.received = received;
  interface.sent = sent;
  interface.moment = current_moment();
}

// Parses "  eth0: 1 2 3 4 5 6 7 8 9 …": the first number is bytes received, the ninth bytes sent.
void sample_interfaces() {
  if (devices.read(device_text, sizeof device_text) == 0) return;
  unsigned number = 0;
  for (const char* line = device_text; line != nullptr; line = strchr(line, '\n')) {
    while (*line == '\n' || *line == ' ') ++line;
    const std::size_t length = strcspn(line, ":|\n");
    if (line[length] != ':') continue;
    const char* at = line + length + 1;
    Interface* interface = find_interface(line, length, number++);
    if (interface == nullptr) continue;
    const std::uint64_t received = number_at(at);
    for (int skipped = 0; skipped < 7; ++skipped) number_at(at);
    sample_interface(*interface, received, number_at(at));
  }
}

// A port of an InfiniBand adapter, which counts in words of 4 bytes.
struct Port {
  Interface traffic;
  KeptFile received, sent;
};
constexpr unsigned most_ports = 16;
Port ports[most_ports];
unsigned port_count = 0;

void open_port(const char* adapter, const char* number) {
  Port& port = ports[port_count];
  char path[512];
  sysfs_path(path, sizeof path, "class/infiniband/%.64s/ports/%.8s/counters/port_rcv_data", adapter, number);
  if (!port.received.open(path)) return;
  sysfs_path(path, sizeof path, "class/infiniband/%.64s/ports/%.8s/counters/port_xmit_data", adapter, number);
  if (!port.sent.open(path)) return;
  snprintf(port.traffic.name, sizeof port.traffic.name, "%.22s/%.8s", adapter, number);
  ++port_count;
}

void open_ports() {
  char path[512];
  sysfs_path(path, sizeof path, "class/infiniband");
  each_entry(path, [](const char* adapter) {
    char below[512];
    sysfs_path(below, sizeof below, "class/infiniband/%.64s/ports", adapter);
    each_entry(below, [&](const char* number) {
      if (port_count < most_ports) open_port(adapter, number);
    });
  });
}

std::uint64_t words_in_bytes(KeptFile& file) {
  char text[64];
  file.read(text, sizeof text);
  const char* at = text;
  return 4 * number_at(at);
}

}  // namespace

void open_process_counters() {
  page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  id.total = define_counter("CPU time", "µs", "", CounterKind::sum);
  id.system = define_counter("CPU time, system", "µs", "", CounterKind::sum);
  id.voluntary = define_counter("context switches, voluntary", "", "", CounterKind::sum);
  id.involuntary = define_counter("context switches, involuntary", "", "", CounterKind::sum);
  id.minor = define_counter("page faults, minor", "", "", CounterKind::sum);
  id.major = define_counter("page faults, major", "", "", CounterKind::sum);
  if (tasks.open("/proc/self/task")) id.threads = define_counter("threads", "", "", CounterKind::level);
  if (memory.open("/proc/self/statm"))
    id.resident = define_counter("memory, resident", "bytes", "", CounterKind::level);
  char text[64];
  if (schedule.open("/proc/self/schedstat") && schedule.read(text, sizeof text) > 0) {
    id.running = define_counter("CPU time", "µs", "main thread", CounterKind::sum);
    id.waiting = define_counter("waiting for a CPU", "µs", "main thread", CounterKind::sum);
  }
  char counts[512];
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", static_cast<int>(session.owner));
  if (kernel_counts_storage() && main_thread.open(path)) {
    tick_us = 1'000'000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
    id.storage = define_counter("waiting for storage", "µs", "main thread", CounterKind::sum);
  }
  if (io.open("/proc/self/io") && io.read(counts, sizeof counts) > 0) {
    id.read = define_counter("bytes read", "bytes", "files", CounterKind::sum);
    id.written = define_counter("bytes written", "bytes", "files", CounterKind::sum);
    id.read_storage = define_counter("bytes read", "bytes", "storage", CounterKind::sum);
    id.written_storage = define_counter("bytes written", "bytes", "storage", CounterKind::sum);
  }
  for (Pressure& pressure : pressures) {
    // A kernel may have the files and yet refuse to count.
    if (pressure.file.open(pressure.path) && pressure.file.read(counts, sizeof counts) > 0) {
      pressure.id = define_counter(pressure.name, "µs", "machine", CounterKind::sum);
    }
  }
}

void sample_process() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    record_sample(id.total, microseconds(usage.ru_utime) + microseconds(usage.ru_stime));
    record_sample(id.system, microseconds(usage.ru_stime));
    record_sample(id.voluntary, static_cast<std::uint64_t>(usage.ru_nvcsw));
    record_sample(id.involuntary, static_cast<std::uint64_t>(usage.ru_nivcsw));
    record_sample(id.minor, static_cast<std::uint64_t>(usage.ru_minflt));
    record_sample(id.major, static_cast<std::uint64_t>(usage.ru_majflt));
  }
  if (const std::uint64_t links = tasks.links(); links > 2) record_sample(id.threads, links - 2);
  char text[128];
  if (memory.read(text, sizeof text) > 0) {  // size, resident, …, in pages
    const char* at = text;
    number_at(at);
    record_sample(id.resident, number_at(at) * page_bytes);
  }
  if (schedule.read(text, sizeof text) > 0) {  // ns on a CPU, ns waiting for one, number of turns
    const char* at = text;
    record_sample(id.running, number_at(at) / 1000);
    record_sample(id.waiting, number_at(at) / 1000);
  }
  char counts[512];
  if (id.read != 0 && io.read(counts, sizeof counts) > 0) {
    record_sample(id.read, number_after(counts, "rchar:"));
    record_sample(id.written, number_after(counts, "wchar:"));
    record_sample(id.read_storage, number_after(counts, "read_bytes:"));
    record_sample(id.written_storage, number_after(counts, "write_bytes:"));
  }
  if (id.storage != 0 && main_thread.read(counts, sizeof counts) > 0) {
    record_sample(id.storage, storage_ticks(counts) * tick_us);
  }
  for (Pressure& pressure : pressures) {
    if (pressure.id != 0 && pressure.file.read(counts, sizeof counts) > 0) {
      record_sample(pressure.id, pressure_in(counts));
    }
  }
}

void open_network_counters() {
  devices.open("/proc/self/net/dev");
  open_ports();
}

void sample_network() {
  sample_interfaces();
  for (unsigned p = 0; p < port_count; ++p) {
    const std::uint64_t received = words_in_bytes(ports[p].received);
    sample_interface(ports[p].traffic, received, words_in_bytes(ports[p].sent));
  }
}

void forget_files() {
  for (KeptFile* file : {&memory, &tasks, &schedule, &io, &main_thread, &devices}) file->close();
  for (Pressure& pressure : pressures) {
    pressure.file.close();
    pressure.id = 0;
  }
  for (unsigned p = 0; p < port_count; ++p) {
    ports[p].received.close();
    ports[p].sent.close();
    ports[p].traffic = {};
  }
  port_count = interface_count = 0;
  for (Interface& interface : interfaces) interface = {};
  id = {};
}

}  // namespace paceline::inject
