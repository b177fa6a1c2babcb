// SPDX-License-Identifier: Apache-2.0
// A time, divided by cause, and where in the program most of it was lost.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>

namespace paceline::analysis {

enum class LossCause : std::uint8_t {
  moving_bytes,  // of a transfer: all members that were still in it ran or waited for bytes
  no_cpu,        // a thread was ready to run, and other threads had the CPUs
  throttled,     // a thread was ready to run, and the CPU limit of its control group had stopped it
  page_faults,   // a thread slept outside of communication, for pages of memory that storage has
  input_output,  // likewise, in a system call that reads or writes a file
  blocked,       // likewise, for anything else or for what is not known: a lock, another thread, a timer
  collecting,    // the garbage collector of the program's language ran
  computing,     // a thread ran
  unknown,       // nothing recorded what the threads did, or what was recorded does not explain it
};
inline constexpr std::size_t loss_cause_count = 9;

// Whether a thread slept: one of these is what it waited for, as far as that is known.
constexpr bool is_sleep(LossCause cause) {
  return cause == LossCause::page_faults || cause == LossCause::input_output || cause == LossCause::blocked;
}

// As a key of JSON: "no_cpu".
constexpr const char* loss_cause_key(LossCause cause) {
  constexpr const char* keys[] = {"moving_bytes",       "no_cpu",       "throttled",
                                  "page_faults",        "input_output", "blocked",
                                  "garbage_collection", "computing",    "unknown"};
  return keys[static_cast<std::size_t>(cause)];
}

struct LossParts {
  std::array<double, loss_cause_count> ns{};

  double& operator[](LossCause cause) { return ns[static_cast<std::size_t>(cause)]; }
  double operator[](LossCause cause) const { return ns[static_cast<std::size_t>(cause)]; }
  double sum() const { return std::accumulate(ns.begin(), ns.end(), 0.0); }
  LossParts& add(const LossParts& other, double factor = 1) {
    for (std::size_t i = 0; i < loss_cause_count; ++i) ns[i] += factor * other.ns[i];
    return *this;
  }
};

// Where main threads lost most of a time, and how: in an innermost range inside the iteration, or outside of all.
struct CausePlace {
  std::string range;
  bool after = false;  // not in the range but after it, before the next one
  LossCause cause = LossCause::unknown;
  double share = 0;  // of the lost time
};

// The function that a late rank, or the main threads in slow iterations, spent more time in (function_excess.h).
struct CauseFunction {
  std::string function, file;
  std::uint32_t line = 0;  // 0: not known
  std::string innermost;   // what it called that explains as much, or the system call that is a part; or ""
  std::string call_file;   // of a system call as innermost function: the file, or the directory, of most of that time
  double share = 0;        // of the lost time
  double p = 1;            // of the test
};

// What makes `longer` exceed `usual`, scaled down to `excess_ns` where it is more than that; what is missing to
// `excess_ns` is unknown. The result adds up to excess_ns, which is at least 0, and no part is below 0.
inline LossParts excess_parts(const LossParts& longer, const LossParts& usual, double excess_ns) {
  LossParts parts;
  for (std::size_t i = 0; i < loss_cause_count; ++i) parts.ns[i] = std::max(0.0, longer.ns[i] - usual.ns[i]);
  const double explained = parts.sum();
  if (explained > excess_ns) {
    for (double& ns : parts.ns) ns *= excess_ns / explained;
  } else {
    parts[LossCause::unknown] += excess_ns - explained;
  }
  return parts;
}

}  // namespace paceline::analysis
