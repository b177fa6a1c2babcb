// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/stacks/user_registers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <asm/perf_regs.h>
#endif

#include "profiler/inject/sources/stacks/native_stack.h"

namespace paceline::inject {
namespace {

constexpr std::size_t page_bytes = 4096, ring_bytes = 8 * page_bytes;

}  // namespace

#if defined(__x86_64__)

int UserRegisters::open(pid_t thread) {
  constexpr std::uint64_t sooner_than_ns = 10'000;  // the kernel's least period
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.sample_period = sooner_than_ns;
  attributes.sample_type = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  attributes.sample_regs_user = 1u << PERF_REG_X86_BP | 1u << PERF_REG_X86_SP | 1u << PERF_REG_X86_IP;
  attributes.sample_stack_user = stack_copy_bytes;
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  const int low = static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (low < 0) return errno;
  // The program may close descriptors that it does not know and open its own under the same number.
  constexpr int high = 900;
  descriptor_ = fcntl(low, F_DUPFD_CLOEXEC, high);
  if (descriptor_ < 0)
    descriptor_ = low;
  else
    ::close(low);
  if (ioctl(descriptor_, PERF_EVENT_IOC_ID, &number_) != 0) return EBADF;
  void* ring = mmap(nullptr, page_bytes + ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (ring == MAP_FAILED) {
    const int error = errno;
    close();
    return error;
  }
  page_ = static_cast<perf_event_mmap_page*>(ring);
  return 0;
}

bool UserRegisters::take(NativeRegisters& registers) {
  struct Sample {
    perf_event_header header;
    std::uint64_t abi, frame_pointer, stack_pointer, instruction, size;
  };
  alignas(8) static std::byte copy[ring_bytes];
  const std::uint64_t head = __atomic_load_n(&page_->data_head, __ATOMIC_ACQUIRE), tail = page_->data_tail;
  if (head == tail) return false;
  asked_ = false;
  const auto size = static_cast<std::size_t>(head - tail);
  bool taken = false;
  if (size <= ring_bytes) {
    const std::byte* data = reinterpret_cast<const std::byte*>(page_) + page_bytes;
    const std::size_t at = tail % ring_bytes, before_end = ring_bytes - at < size ? ring_bytes - at : size;
    memcpy(copy, data + at, before_end);
    memcpy(copy + before_end, data, size - before_end);
    perf_event_header header{};
    std::size_t begin = 0;
    // Records of other kinds may come before it, such as one of lost copies.
    for (; begin + sizeof(Sample) <= size; begin += header.size) {
      memcpy(&header, copy + begin, sizeof header);
      if (header.type == PERF_RECORD_SAMPLE || header.size == 0) break;
    }
    Sample sample{};
    if (begin + sizeof sample <= size) memcpy(&sample, copy + begin, sizeof sample);
    const std::size_t stack_at = begin + sizeof sample;
    if (sample.header.type == PERF_RECORD_SAMPLE && sample.abi == PERF_SAMPLE_REGS_ABI_64 && sample.size <= size &&
        stack_at + sample.size + sizeof(std::uint64_t) <= size) {
      std::uint64_t stack = 0;  // bytes that the kernel could read
      memcpy(&stack, copy + stack_at + sample.size, sizeof stack);
      registers = {.instruction = sample.instruction,
                   .stack_pointer = sample.stack_pointer,
                   .frame_pointer = sample.frame_pointer,
                   .has_frame_pointer = true,
                   .stack = {copy + stack_at, static_cast<std::size_t>(stack < sample.size ? stack : sample.size)}};
      taken = true;
    }
  }
  __atomic_store_n(&page_->data_tail, head, __ATOMIC_RELEASE);
  return taken;
}

#else

int UserRegisters::open(pid_t) { return ENOSYS; }
bool UserRegisters::take(NativeRegisters&) { return false; }

#endif

bool UserRegisters::descriptor_is_ours() const {
  std::uint64_t number = 0;
  return ioctl(descriptor_, PERF_EVENT_IOC_ID, &number) == 0 && number == number_;
}

void UserRegisters::ask() {
  if (!descriptor_is_ours()) return;
  NativeRegisters of_earlier_moment;
  take(of_earlier_moment);
  // REFRESH allows one copy, after which the kernel turns the event off. An event that is turned on in another way has
  // no limit: it would copy the stack every 10 µs. While no copy came, the one that was allowed is still to come.
  if (!asked_) ioctl(descriptor_, PERF_EVENT_IOC_REFRESH, 1);
  asked_ = true;
}

void UserRegisters::close() {
  if (page_ != nullptr) munmap(page_, page_bytes + ring_bytes);
  if (descriptor_ >= 0 && descriptor_is_ours()) ::close(descriptor_);
  *this = {};
}

}  // namespace paceline::inject
