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

  // The samples of all these ranks. Cost: n log n.
  explicit BlockedSamples(std::span<const BlockedSamples* const> ranks);

  // Shares of the blocked time within [begin_ns, end_ns): those of the samples in it that saw the thread blocked, and
  // where there is none, of those in a quarter of a second around it, or else in five seconds. Of the latter there may
  // be few: the shares of `all`, the samples of all ranks in that time, count as much as four of them. 0 without
  // samples. O(log n).
  struct Shares {
    double page_faults = 0, input_output = 0;
  };
  Shares shares(std::int64_t begin_ns, std::int64_t end_ns, const BlockedSamples* all = nullptr) const;

 private:
  struct Counts {
    double samples = 0, page_faults = 0, input_output = 0;
    Shares shares() const { return {page_faults / samples, input_output / samples}; }
  };
  Counts counts(std::int64_t begin_ns, std::int64_t end_ns) const;
  void add(std::int64_t time_ns, bool page_fault, bool input_output);
  std::vector<std::int64_t> time_ns_;                  // of the samples in which the thread was blocked
  std::vector<std::uint32_t> page_faults_{0}, io_{0};  // of the samples before this one
};

// Whether this call, on what stacks have as its file, waits for a file: not for a socket, a pipe, a device or a lock.
bool is_input_output(std::string_view call, std::string_view file);

}  // namespace paceline::analysis
