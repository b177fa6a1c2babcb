// SPDX-License-Identifier: Apache-2.0
// Sleeping on a word of memory. The futex is used directly, because sem_clockwait is newer than the systems that this
// library is loaded on. All functions are safe in a signal handler and keep errno.
#pragma once

#include <atomic>
#include <cstdint>

namespace paceline::inject {

// Sleeps while `word` is `value`, until the deadline (CLOCK_MONOTONIC, ns) at the latest. Returns true when the thread
// was woken, when the word already had another value, or after a signal; so the caller must check the word again.
// Returns false at the deadline.
bool wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value, std::int64_t deadline_ns);

// Wake threads that sleep on the word. The caller has changed it before.
void wake_one(std::atomic<std::uint32_t>& word);
void wake_all(std::atomic<std::uint32_t>& word);

}  // namespace paceline::inject
