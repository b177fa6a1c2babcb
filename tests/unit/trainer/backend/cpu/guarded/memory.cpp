// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trainer/backend/cpu/guarded/memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <new>
#include <utility>

namespace paceline::train::guarded {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t forbidden = std::size_t{16} << 20;  // on either side, so that it catches far accesses too

char* told_to = nullptr;
const std::vector<Memory>* in_use = nullptr;

// The process is about to end, and the fault is in oneDNN's code or in ours, never in an allocator, so strings may be
// used here.
void on_fault(int signal, siginfo_t* info, void* context) {
  std::string place;
  for (const Memory& memory : *in_use) {
    if (place.empty()) place = memory.place(info->si_addr);
  }
  if (signal == SIGILL) {
    std::snprintf(told_to, 512, "runs an instruction that the processor does not have");
  } else if (place.empty()) {
    std::snprintf(told_to, 512, "touches %p, which is no argument's", info->si_addr);
  } else {
    const bool writes = (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
    std::snprintf(told_to, 512, "%s %s", writes ? "writes" : "reads", place.c_str());
  }
  _exit(faulted);
}

}  // namespace

Memory::Memory(std::string name, std::size_t bytes, Side side)
    : name_(std::move(name)), bytes_(bytes), mapped_((bytes + page - 1) / page * page) {
  void* region = mmap(nullptr, mapped_ + 2 * forbidden, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) throw std::bad_alloc();
  region_ = static_cast<std::byte*>(region);
  if (mapped_ > 0 && mprotect(region_ + forbidden, mapped_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  data_ = region_ + forbidden + (side == Side::end ? mapped_ - bytes_ : 0);
}

Memory::Memory(Memory&& other) noexcept
    : name_(std::move(other.name_)),
      bytes_(other.bytes_),
      mapped_(other.mapped_),
      region_(std::exchange(other.region_, nullptr)),
      data_(other.data_) {}

Memory::~Memory() {
  if (region_) munmap(region_, mapped_ + 2 * forbidden);
}

std::string Memory::place(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  if (at < region_ || at >= region_ + mapped_ + 2 * forbidden) return {};
  if (at < data_) return std::to_string(data_ - at) + " bytes before the begin of " + name_;
  return std::to_string(at - (data_ + bytes_)) + " bytes beyond the end of " + name_;
}

void tell_faults(char* told, const std::vector<Memory>* arguments) {
  told_to = told;
  in_use = arguments;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigaction(signal, &action, nullptr);
}

}  // namespace paceline::train::guarded
