// SPDX-License-Identifier: Apache-2.0
// The slice that another one started or belongs to: for a call its kernels and copies, for a kernel its call, for a
// message its other end. Indexes are made in a worker when they are first needed, which Document::row_ready() follows.
#pragma once

#include <memory>
#include <vector>

#include "viewer/session/document.h"

namespace paceline::viewer {

class Links {
 public:
  explicit Links(Document& document);

  // The earliest first, at most a few; empty while the index is made. O(log n).
  std::vector<SliceRef> partners(const SliceRef& slice);

 private:
  // A slice that has a number which joins a call with its work.
  struct Joined {
    std::uint64_t number = 0;
    bool on_device = false;
    std::uint32_t track = 0, slice = 0;
    auto operator<=>(const Joined&) const = default;
  };
  // The two ends of a message, once for each end as the first.
  struct Ends {
    SliceRef one, other;
  };

  static std::uint64_t number_of(const Run& run, const SliceRef& slice);  // 0: none
  static std::vector<Joined> joined_of(const Run& run, std::size_t rank);
  static std::vector<Ends> ends_of(const Run& run);
  std::vector<SliceRef> joined_with(const SliceRef& slice, std::uint64_t number);
  std::vector<SliceRef> other_ends(const SliceRef& slice);

  Document& document_;
  std::vector<std::unique_ptr<OnDemand<std::vector<Joined>>>> joined_;  // of each rank, sorted
  OnDemand<std::vector<Ends>> messages_;                                // by `one`
};

// Lines of a tooltip for work on a device: when the earliest of `partners`, its call, began, and how much later than
// the end of this call the work did, at least 0 (the delay of analysis/device/launches.h). Empty for other slices.
QString launch_lines(const Run& run, const SliceRef& work, const std::vector<SliceRef>& partners);

}  // namespace paceline::viewer
