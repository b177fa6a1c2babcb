// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/system/mapping_guard.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>

#include "profiler/format/layout.h"

namespace paceline::inject {
namespace {

std::atomic<std::uintptr_t> first{0}, last{0};
std::atomic<void (*)()> report{nullptr};
std::atomic<bool> passing_on{false};
struct sigaction before;
bool installed = false;

void replace_missing_pages(int number, siginfo_t* info, void* context);

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == replace_missing_pages;
}

// A SIGBUS that does not concern the mapping has the effect that it would have without the recorder.
void pass_on(int number, siginfo_t* info, void* context) {
  // A handler that raises the signal again could call this one without end.
  const bool again = passing_on.exchange(true);
  const bool has_handler = before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN;
  if (again || !has_handler) {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(number, &standard, nullptr);
    if (info->si_code <= 0) raise(number);  // a signal that was sent; a fault occurs again by itself
    return;
  }
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else {
    before.sa_handler(number);
  }
  passing_on.store(false);
}

void replace_missing_pages(int number, siginfo_t* info, void* context) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const std::uintptr_t end = last.load(std::memory_order_relaxed);
  if (info->si_code > 0 && at >= first.load(std::memory_order_relaxed) && at < end) {
    const int error = errno;
    const std::uintptr_t page = at & ~(std::uintptr_t{format::page_bytes} - 1);
    void* memory = mmap(reinterpret_cast<void*>(page), end - page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    errno = error;
    if (memory != MAP_FAILED) return report.load(std::memory_order_relaxed)();
  }
  pass_on(number, info, context);
}

}  // namespace

void guard_mapping(void* begin, std::size_t bytes, void (*page_is_missing)()) {
  report.store(page_is_missing);
  first.store(reinterpret_cast<std::uintptr_t>(begin));
  last.store(reinterpret_cast<std::uintptr_t>(begin) + bytes);
  resume_mapping_guard();
}

void suspend_mapping_guard() {
  struct sigaction now {};
  if (!installed || sigaction(SIGBUS, nullptr, &now) != 0 || !is_ours(now)) return;
  sigaction(SIGBUS, &before, nullptr);
  installed = false;
}

void resume_mapping_guard() {
  struct sigaction now {};
  if (last.load() == 0 || sigaction(SIGBUS, nullptr, &now) != 0 || is_ours(now)) return;
  before = now;
  struct sigaction action {};
  action.sa_sigaction = replace_missing_pages;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | (now.sa_flags & SA_NODEFER);
  action.sa_mask = now.sa_mask;
  installed = sigaction(SIGBUS, &action, nullptr) == 0;
}

}  // namespace paceline::inject
