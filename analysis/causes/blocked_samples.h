// SPDX-License-Identifier: Apache-2.0
// What a blocked thread waited for, as samples of its stack show it: pages of a file or of the swap space (a major page
// fault, or a page that another fault is reading), a system call that reads or writes a file, or anything else.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/communication/blocked_time.h"
#include "analysis/trace/names.h"
#include "analysis/trace/stacks.h"

namespace paceline::analysis {

class BlockedSamples {
 public:
  BlockedSamples() = default;
  // Samples in which the rank was blocked in collectives are left out. Cost: linear in the samples.
  BlockedSamples(const Stacks& stacks, const Names& names, const StackSamples& samples,
                 std::span<const BlockedTime> in_collectives);

  // Shares of the blocked time within [begin_ns, end_ns): those of the samples in it that saw the thread blocked, and
  // where there is none, of those in a quarter of a second around it, or else in five seconds. 0 without samples.
  // O(log n).
  struct Shares {
    double page_faults = 0, input_output = 0;
  };
  Shares shares(std::int64_t begin_ns, std::int64_t end_ns) const;

 private:
  Shares shares_of_samples(std::int64_t begin_ns, std::int64_t end_ns, bool& any) const;
  std::vector<std::int64_t> time_ns_;                  // of the samples in which the thread was blocked
  std::vector<std::uint32_t> page_faults_{0}, io_{0};  // of the samples before this one
};

// Whether this call, on what stacks have as its file, waits for a file: not for a socket, a pipe, a device or a lock.
bool is_input_output(std::string_view call, std::string_view file);

}  // namespace paceline::analysis
