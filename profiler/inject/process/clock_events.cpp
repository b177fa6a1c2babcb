// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/process/clock_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/inject/buffer/clock.h"
#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/buffer/names.h"
#include "profiler/inject/system/sysfs.h"
#include "profiler/launch/environment.h"

namespace paceline::inject {

void record_clock_pair() {
  const ClockPair pair = read_clock_pair();
  emit_at(pair.ticks,
          events::ClockPair{
              .realtime_ns = pair.realtime_ns, .monotonic_raw_ns = pair.monotonic_raw_ns, .width = pair.width});
}

void record_clock_error() {
  const char* given = getenv(record::env_clock_error);
  char number[24] = "", boot[64] = "", text[128] = "", here[64] = "";
  if (given == nullptr || sscanf(given, "%23[0-9] %63s %127[^\n]", number, boot, text) != 3) return;
  read_file("/proc/sys/kernel/random/boot_id", here, sizeof here);
  if (strcmp(here, boot) != 0) return;  // the variable came from another machine
  record_setting("counter_error_ns", number);
  record_setting("counter_error_source", text);
}

}  // namespace paceline::inject
