// SPDX-License-Identifier: Apache-2.0
// Utilisation, memory, clocks, power and errors of the GPUs from NVML, which updates its figures a few times a second.
#include <stdio.h>

#include "profiler/inject/sources/counters/counters.h"
#include "profiler/inject/sources/counters/nvml.h"
#include "profiler/inject/sources/counters/samples.h"

namespace paceline::inject {
namespace {

struct Counters {
  std::uint16_t use, memory, sm_clock, memory_clock, throttle, power, xid;
};
Counters counters[most_gpus];
NvmlEventSet events = nullptr;

}  // namespace

void open_gpu_counters() {
  const Nvml* nvml = open_nvml();
  if (nvml == nullptr) return;
  unsigned count = 0;
  const Gpu* gpus = nvml_gpus(&count);
  const bool has_events = nvml->make_events != nullptr && nvml->want_events != nullptr && nvml->next_event != nullptr &&
                          nvml->make_events(&events) == 0;
  if (!has_events) events = nullptr;
  for (unsigned g = 0; g < count; ++g) {
    if (!gpus[g].visible) continue;
    char device[32];
    snprintf(device, sizeof device, "GPU %u", gpus[g].index);
    // A value that this GPU does not support has no counter.
    const auto define = [&](bool known, const char* name, const char* unit) -> std::uint16_t {
      return known ? define_counter(name, unit, device, CounterKind::level) : std::uint16_t{0};
    };
    NvmlDevice gpu = gpus[g].device;
    Counters& of = counters[g];
    NvmlUtilization utilization{};
    NvmlMemory memory{};
    unsigned number = 0;
    unsigned long long reasons = 0;
    of.use = define(nvml->utilization(gpu, &utilization) == 0, "use", "%");
    of.memory = define(nvml->memory(gpu, &memory) == 0, "memory used", "bytes");
    of.sm_clock = define(nvml->clock(gpu, nvml_clock_sm, &number) == 0, "SM clock", "MHz");
    of.memory_clock = define(nvml->clock(gpu, nvml_clock_memory, &number) == 0, "memory clock", "MHz");
    of.throttle = define(nvml->throttle(gpu, &reasons) == 0, "throttle reasons", "bits");
    of.power = define(nvml->power(gpu, &number) == 0, "power", "mW");
    of.xid = define(events != nullptr && nvml->want_events(gpu, nvml_event_xid, events) == 0, "XID error", "number");
  }
}

void sample_gpus() {
  const Nvml* nvml = open_nvml();
  if (nvml == nullptr) return;
  unsigned count = 0;
  const Gpu* gpus = nvml_gpus(&count);
  for (unsigned g = 0; g < count; ++g) {
    if (!gpus[g].visible) continue;
    begin_moment();  // a query of the driver takes long
    NvmlDevice gpu = gpus[g].device;
    const Counters& of = counters[g];
    NvmlUtilization utilization{};
    NvmlMemory memory{};
    unsigned number = 0;
    unsigned long long reasons = 0;
    if (of.use != 0 && nvml->utilization(gpu, &utilization) == 0) record_sample(of.use, utilization.gpu);
    if (of.memory != 0 && nvml->memory(gpu, &memory) == 0) record_sample(of.memory, memory.used);
    if (of.sm_clock != 0 && nvml->clock(gpu, nvml_clock_sm, &number) == 0) record_sample(of.sm_clock, number);
    if (of.memory_clock != 0 && nvml->clock(gpu, nvml_clock_memory, &number) == 0) {
      record_sample(of.memory_clock, number);
    }
    if (of.throttle != 0 && nvml->throttle(gpu, &reasons) == 0) record_sample(of.throttle, reasons);
    if (of.power != 0 && nvml->power(gpu, &number) == 0) record_sample(of.power, number);
  }
  NvmlEvent event{};
  for (int most = 0; most < 16 && events != nullptr && nvml->next_event(events, &event, 0) == 0; ++most) {
    begin_moment();
    for (unsigned g = 0; g < count; ++g) {
      if (gpus[g].device == event.device) record_sample(counters[g].xid, event.data);
    }
  }
}

}  // namespace paceline::inject
