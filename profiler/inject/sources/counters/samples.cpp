// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/counters/samples.h"

#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/buffer/names.h"

namespace paceline::inject {

namespace {

std::uint64_t moment = 0;
std::uint16_t defined = 0;

}  // namespace

void reset_samples_in_child() { defined = 0; }

std::uint16_t define_counter(std::string_view name, std::string_view unit, std::string_view device, CounterKind kind) {
  if (defined >= most_counters) return 0;
  const std::uint16_t counter = ++defined;
  const std::uint32_t name_id = intern(name), unit_id = intern(unit), device_id = intern(device);
  emit_surely(events::Counter{.counter = counter, .kind = kind, .name = name_id, .unit = unit_id, .device = device_id});
  return counter;
}

void begin_moment() { moment = ticks(); }
std::uint64_t current_moment() { return moment; }

void record_sample(std::uint16_t counter, std::uint64_t value) { record_sample_at(moment, counter, value); }

void record_sample_at(std::uint64_t at, std::uint16_t counter, std::uint64_t value) {
  if (counter == 0 || !recording()) return;
  emit_at(at, events::Sample{.counter = counter, .value = static_cast<std::int64_t>(value)});
}

}  // namespace paceline::inject
