// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/scheduler/switch_ring.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace paceline::inject {
namespace {

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

// The number of a kernel's event; 0 if the descriptor is not one.
std::uint64_t event_number(int descriptor) {
  std::uint64_t number = 0;
  return ioctl(descriptor, PERF_EVENT_IOC_ID, &number) == 0 ? number : 0;
}

}  // namespace

int SwitchRing::open(pid_t thread) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.sample_type = PERF_SAMPLE_TIME;
  attributes.sample_id_all = 1;
  attributes.context_switch = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC_RAW;
  // Nobody waits for the ring: no wake-up is needed before it is full.
  attributes.watermark = 1;
  attributes.wakeup_watermark = static_cast<std::uint32_t>(page_size());
  const int descriptor =
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (descriptor < 0) return errno;
  // The program may close descriptors that it does not know and open its own under the same number.
  const std::uint64_t number = event_number(descriptor);
  if (number == 0) return EBADF;
  void* ring = mmap(nullptr, 2 * page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  const int error = ring == MAP_FAILED ? errno : 0;
  if (event_number(descriptor) == number) ::close(descriptor);
  if (error != 0) return error;
  page_ = static_cast<perf_event_mmap_page*>(ring);
  return 0;
}

void SwitchRing::close() {
  if (page_ != nullptr) munmap(page_, 2 * page_size());
  page_ = nullptr;
}

void SwitchRing::copy(std::uint64_t at, std::uint64_t* words, std::size_t count) const {
  const char* data = reinterpret_cast<const char*>(page_) + page_size();
  for (std::size_t i = 0; i < count; ++i) {
    __builtin_memcpy(words + i, data + (at + 8 * i) % page_size(), sizeof *words);
  }
}

}  // namespace paceline::inject
