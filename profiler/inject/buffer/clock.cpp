// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/buffer/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include "profiler/inject/buffer/hot.h"
#include "profiler/inject/system/say.h"
#include "profiler/inject/system/sysfs.h"
#include "profiler/launch/environment.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace paceline::inject {

// The section has about 1.5 KiB. This alignment keeps it in one page.
alignas(2048) PACELINE_HOT ClockState clock_state;

namespace {

// The counter is used if the CPU reports that it never stops or changes its rate, and if the kernel, which has compared
// it with other clocks since boot, uses it too.
bool counter_is_trusted() {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) || !(edx & (1u << 8))) return false;
  char name[64];
  read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", name, sizeof name);
  return strcmp(name, "tsc") == 0 || strcmp(name, "kvm-clock") == 0 || strcmp(name, "hyperv_clocksource_tsc_page") == 0;
#else
  return false;
#endif
}

std::uint64_t true_ticks() {
#if defined(__x86_64__)
  if (clock_state.source == format::ClockSource::tsc) return __builtin_ia32_rdtsc();
#endif
  return static_cast<std::uint64_t>(true_ns(CLOCK_MONOTONIC_RAW));
}

double test_offset_ns(std::uint64_t now) {
  const double elapsed_s =
      static_cast<double>(static_cast<std::int64_t>(now - clock_state.drift_origin)) / clock_state.ticks_per_second;
  return clock_state.test_skew_ns + clock_state.test_drift * elapsed_s * 1e9;
}

// True if the environment asks for the system's clock instead of the counter.
bool counter_is_refused() {
  const char* wanted = getenv(record::env_clock);
  if (wanted == nullptr || *wanted == '\0' || strcmp(wanted, "tsc") == 0) return false;
  if (strcmp(wanted, "monotonic_raw") == 0) return true;
  say("%s=%.40s is not a clock and is ignored: choose tsc (the default) or monotonic_raw", record::env_clock, wanted);
  return false;
}

// "domain=NAME,skew_ns=N,drift_ppm=X". Only the domain is required.
void read_test_clock(const char* text) {
  for (const char* part = text; *part != '\0';) {
    const size_t length = strcspn(part, ",");
    if (strncmp(part, "domain=", 7) == 0) {
      snprintf(clock_state.test_domain, sizeof clock_state.test_domain, "%.*s", static_cast<int>(length - 7), part + 7);
    } else if (strncmp(part, "skew_ns=", 8) == 0) {
      clock_state.test_skew_ns = strtod(part + 8, nullptr);
    } else if (strncmp(part, "drift_ppm=", 10) == 0) {
      clock_state.test_drift = strtod(part + 10, nullptr) * 1e-6;
    }
    part += length;
    if (*part == ',') ++part;
  }
}

}  // namespace

std::uint64_t slow_ticks() {
  const std::uint64_t now = true_ticks();
  if (clock_state.test_domain[0] == '\0') return now;
  return now + static_cast<std::uint64_t>(
                   static_cast<std::int64_t>(test_offset_ns(now) * clock_state.ticks_per_second / 1e9));
}

std::int64_t system_ns(clockid_t clock) {
  const std::int64_t now = true_ns(clock);
  if (clock_state.test_domain[0] == '\0') return now;
  return now + static_cast<std::int64_t>(test_offset_ns(true_ticks()));
}

ClockPair read_clock_pair() {
  ClockPair best{};
  best.width = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 10; ++attempt) {
    const std::uint64_t before = ticks();
    const std::int64_t realtime = system_ns(CLOCK_REALTIME);
    const std::int64_t monotonic = system_ns(CLOCK_MONOTONIC_RAW);
    const std::uint64_t width = ticks() - before;
    if (width < best.width) best = {before + width / 2, width, realtime, monotonic};
  }
  return best;
}

std::int64_t utc_error_us() {
  timex state{};
  // glibc's adjtimex calls clock_adjtime, which containers deny.
  const long status = syscall(SYS_adjtimex, &state);
  if (status < 0 || status == TIME_ERROR || (state.status & STA_UNSYNC) != 0) return -1;
  return state.maxerror;
}

void start_clock() {
  if (!counter_is_refused() && counter_is_trusted()) {
    clock_state.source = format::ClockSource::tsc;
    const ClockPair first = read_clock_pair();
    usleep(2000);
    const ClockPair second = read_clock_pair();
    clock_state.ticks_per_second = static_cast<double>(second.ticks - first.ticks) * 1e9 /
                                   static_cast<double>(second.monotonic_raw_ns - first.monotonic_raw_ns);
  }
  clock_state.drift_origin = true_ticks();
  const char* test = getenv("PACELINE_TEST_CLOCK");
  if (test != nullptr) read_test_clock(test);
  clock_state.plain_tsc = clock_state.source == format::ClockSource::tsc && clock_state.test_domain[0] == '\0';
}

}  // namespace paceline::inject
