// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/counters/machine_facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/buffer/names.h"
#include "profiler/inject/sources/counters/nvml.h"
#include "profiler/inject/system/sysfs.h"

namespace paceline::inject {

void machine_fact(const char* key, const char* format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (text[0] == '\0') return;
  const std::uint32_t name = intern(std::string_view(key));
  emit_surely(events::Setting{.key = name, .value = intern(std::string_view(text))});
}

namespace {

// A set of CPUs or NUMA nodes. Its text has the form that the kernel uses: "0-3,8".
struct NumberSet {
  static constexpr unsigned capacity = 8192;
  unsigned char bits[capacity / 8];

  bool has(unsigned number) const { return number < capacity && (bits[number / 8] >> number % 8 & 1) != 0; }
  void add(unsigned number) {
    if (number < capacity) bits[number / 8] = static_cast<unsigned char>(bits[number / 8] | 1 << number % 8);
  }
};

void read_list(const char* text, NumberSet& set) {
  set = {};
  while (*text >= '0' && *text <= '9') {
    char* end = nullptr;
    const unsigned long first = strtoul(text, &end, 10);
    unsigned long last = first;
    if (*end == '-') last = strtoul(end + 1, &end, 10);
    for (unsigned long number = first; number <= last && number < NumberSet::capacity; ++number) {
      set.add(static_cast<unsigned>(number));
    }
    text = *end == ',' ? end + 1 : end;
  }
}

void write_list(const NumberSet& set, char* out, std::size_t capacity) {
  std::size_t size = 0;
  out[0] = '\0';
  for (unsigned first = 0; first < NumberSet::capacity; ++first) {
    if (!set.has(first)) continue;
    unsigned last = first;
    while (set.has(last + 1)) ++last;
    char piece[32];
    const char* comma = size > 0 ? "," : "";
    const int length = first == last ? snprintf(piece, sizeof piece, "%s%u", comma, first)
                                     : snprintf(piece, sizeof piece, "%s%u-%u", comma, first, last);
    if (size + static_cast<std::size_t>(length) >= capacity) return;
    memcpy(out + size, piece, static_cast<std::size_t>(length) + 1);
    size += static_cast<std::size_t>(length);
    first = last;
  }
}

// Not on the stack, because the thread's stack is small.
NumberSet allowed, online_nodes, nodes, cpus_of_node;
char text[8 * 1024];

void cpu_facts() {
  char path[512];
  // The affinity of the main thread, because this thread's could differ.
  if (syscall(SYS_sched_getaffinity, getpid(), sizeof allowed.bits, allowed.bits) > 0) {
    write_list(allowed, text, sizeof text);
    machine_fact("cpus_allowed", "%s", text);
    sysfs_path(path, sizeof path, "devices/system/node/online");
    read_file_high(path, text, sizeof text);
    read_list(text, online_nodes);
    nodes = {};
    for (unsigned node = 0; node < NumberSet::capacity; ++node) {
      if (!online_nodes.has(node)) continue;
      sysfs_path(path, sizeof path, "devices/system/node/node%u/cpulist", node);
      read_file_high(path, text, sizeof text);
      read_list(text, cpus_of_node);
      for (std::size_t byte = 0; byte < sizeof allowed.bits; ++byte) {
        if ((cpus_of_node.bits[byte] & allowed.bits[byte]) != 0) nodes.add(node);
      }
    }
    write_list(nodes, text, sizeof text);
    machine_fact("numa_nodes", "%s", text);
  }
  sysfs_path(path, sizeof path, "devices/system/cpu/online");
  if (read_file_high(path, text, sizeof text) > 0) machine_fact("cpus_online", "%s", text);
  sysfs_path(path, sizeof path, "devices/system/node/online");
  if (read_file_high(path, text, sizeof text) > 0) machine_fact("numa_nodes_online", "%s", text);
  read_file_high("/proc/cpuinfo", text, sizeof text);
  const char* model = strstr(text, "model name");
  if (model != nullptr) model = strchr(model, ':');
  if (model != nullptr) machine_fact("cpu_model", "%.*s", static_cast<int>(strcspn(model + 1, "\n")) - 1, model + 2);
  const std::uint64_t memory =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  machine_fact("memory_bytes", "%llu", static_cast<unsigned long long>(memory));
}

void limit_fact(const char* key, __rlimit_resource which) {
  rlimit limit{};
  if (getrlimit(which, &limit) != 0) return;
  if (limit.rlim_cur == RLIM_INFINITY) {
    machine_fact(key, "unlimited");
  } else {
    machine_fact(key, "%llu", static_cast<unsigned long long>(limit.rlim_cur));
  }
}

// Writes ", NUMA node 1" for a device in sysfs, or "" if its node is unknown.
void node_of(char* out, std::size_t capacity, const char* path) {
  out[0] = '\0';
  if (read_file_high(path, text, sizeof text) > 0 && text[0] != '-') snprintf(out, capacity, ", NUMA node %.8s", text);
}

// Only adapters with a device: bridges, tunnels and the loopback have none.
void network_facts() {
  char path[512];
  sysfs_path(path, sizeof path, "class/net");
  each_entry(path, [](const char* name) {
    char file[512], node[32], key[96], speed[16];
    sysfs_path(file, sizeof file, "class/net/%.64s/device", name);
    if (access(file, F_OK) != 0) return;
    sysfs_path(file, sizeof file, "class/net/%.64s/device/numa_node", name);
    node_of(node, sizeof node, file);
    sysfs_path(file, sizeof file, "class/net/%.64s/speed", name);
    read_file_high(file, speed, sizeof speed);
    snprintf(key, sizeof key, "nic.%.64s", name);
    if (speed[0] >= '1' && speed[0] <= '9') {
      machine_fact(key, "%s Mbit/s%s", speed, node);
    } else {
      machine_fact(key, "speed not known%s", node);
    }
  });
  sysfs_path(path, sizeof path, "class/infiniband");
  each_entry(path, [](const char* adapter) {
    char ports[512];
    sysfs_path(ports, sizeof ports, "class/infiniband/%.64s/ports", adapter);
    each_entry(ports, [&](const char* port) {
      char file[512], node[32], key[96], rate[64], layer[32], state[32];
      const auto read = [&](const char* what, char* out, std::size_t capacity) {
        sysfs_path(file, sizeof file, "class/infiniband/%.64s/ports/%.8s/%s", adapter, port, what);
        read_file_high(file, out, capacity);
      };
      read("rate", rate, sizeof rate);
      read("link_layer", layer, sizeof layer);
      read("state", state, sizeof state);
      sysfs_path(file, sizeof file, "class/infiniband/%.64s/device/numa_node", adapter);
      node_of(node, sizeof node, file);
      snprintf(key, sizeof key, "hca.%.64s/%.8s", adapter, port);
      const char* word = strchr(state, ' ');  // "4: ACTIVE"
      machine_fact(key, "%s %s, %s%s", layer, rate, word != nullptr ? word + 1 : state, node);
    });
  });
}

// The closest part of the machine that two GPUs share (NVML's nvmlGpuTopologyLevel_t).
const char* path_between(unsigned level) {
  switch (level) {
    case 0:
      return "one board";
    case 10:
      return "one PCIe switch";
    case 20:
      return "PCIe switches";
    case 30:
      return "one PCIe host bridge";
    case 40:
      return "one NUMA node";
    case 50:
      return "between NUMA nodes";
    default:
      return "not known";
  }
}

// Links from one GPU directly to another, and links to switches, through which it reaches every GPU at the same
// switches.
struct Links {
  unsigned direct = 0, to_switches = 0;
};

Links links_between(const Nvml& nvml, const Gpu& from, const Gpu& to) {
  Links links;
  if (nvml.link_state == nullptr) return links;
  for (unsigned link = 0; link < nvml_links; ++link) {
    unsigned active = 0, type = 0;
    NvmlPci remote{};
    if (nvml.link_state(from.device, link, &active) != 0 || active == 0) continue;
    if (nvml.link_remote_type != nullptr && nvml.link_remote_type(from.device, link, &type) == 0 &&
        type == nvml_remote_switch) {
      ++links.to_switches;
    } else if (nvml.link_remote != nullptr && nvml.link_remote(from.device, link, &remote) == 0 &&
               strcasecmp(remote.bus_id, to.pci.bus_id) == 0) {
      ++links.direct;
    }
  }
  return links;
}

}  // namespace

void record_machine_facts() {
  limit_fact("limit_open_files", RLIMIT_NOFILE);
  limit_fact("limit_stack", RLIMIT_STACK);
  cpu_facts();
  network_facts();
}

void record_gpu_facts() {
  const Nvml* nvml = open_nvml();
  if (nvml == nullptr) return;
  unsigned count = 0;
  const Gpu* gpus = nvml_gpus(&count);
  NumberSet& visible = nodes;
  visible = {};
  for (unsigned g = 0; g < count; ++g) {
    if (gpus[g].visible) visible.add(gpus[g].index);
    char key[64], name[96] = "GPU", node[32] = "", path[512], address[32];
    nvml->name(gpus[g].device, name, sizeof name);
    NvmlMemory memory{};
    nvml->memory(gpus[g].device, &memory);
    // NVML writes the domain with 8 digits and large letters, sysfs with 4 and small ones.
    snprintf(address, sizeof address, "%04x:%02x:%02x.0", gpus[g].pci.domain, gpus[g].pci.bus, gpus[g].pci.device);
    sysfs_path(path, sizeof path, "bus/pci/devices/%s/numa_node", address);
    node_of(node, sizeof node, path);
    snprintf(key, sizeof key, "gpu.%u", gpus[g].index);
    machine_fact(key, "%s, %llu bytes, PCI %s%s", name, memory.total, address, node);
  }
  write_list(visible, text, sizeof text);
  machine_fact("gpus_visible", "%s", text);
  for (unsigned a = 0; a < count; ++a) {
    for (unsigned b = a + 1; b < count; ++b) {
      char key[64];
      snprintf(key, sizeof key, "gpu_link.%u-%u", gpus[a].index, gpus[b].index);
      const Links links = links_between(*nvml, gpus[a], gpus[b]), back = links_between(*nvml, gpus[b], gpus[a]);
      unsigned level = ~0U;
      const bool known =
          nvml->common_ancestor != nullptr && nvml->common_ancestor(gpus[a].device, gpus[b].device, &level) == 0;
      const char* path = path_between(known ? level : ~0U);
      if (links.direct > 0) {
        machine_fact(key, "%u NVLinks, PCIe: %s", links.direct, path);
      } else if (links.to_switches > 0 && back.to_switches > 0) {
        machine_fact(key, "%u NVLinks to NVSwitch, PCIe: %s", links.to_switches, path);
      } else {
        machine_fact(key, "PCIe: %s", path);
      }
    }
  }
}

}  // namespace paceline::inject
