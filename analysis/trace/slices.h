// SPDX-License-Identifier: Apache-2.0
// The slices of one track, as columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/trace/records.h"

namespace paceline::analysis {

// A slice is a named stretch of time (a function, an NVTX range, an MPI call), 26 bytes and what is different in its
// arguments. Slices of one track nest: they are sorted by start, and where starts are equal by depth.
struct Slices {
  std::vector<std::int64_t> start_ns;
  std::vector<std::int64_t> duration_ns;  // 0 for marks
  std::vector<KindId> kind;               // index into Trace::kinds
  std::vector<std::uint16_t> depth;       // 0 = outermost
  std::vector<RecordId> record;           // of `records`; 0: no arguments
  Records records;

  std::size_t size() const { return start_ns.size(); }
  std::int64_t end_ns(std::size_t i) const { return start_ns[i] + duration_ns[i]; }

  // The argument of slice i under `key`, or only its number, if there is one. Linear in the arguments of the slice.
  std::optional<Argument> argument(std::size_t i, NameId key) const { return records.find(record[i], key); }
  std::optional<double> number(std::size_t i, NameId key) const {
    const auto found = argument(i, key);
    if (!found || found->is_text()) return std::nullopt;
    return found->number();
  }
  // 0 where there is none.
  NameId text(std::size_t i, NameId key) const {
    const auto found = argument(i, key);
    return found ? found->text() : 0;
  }
  // Calls visit(const Argument&) for each argument of slice i, in the order in which they were recorded.
  template <class Visit>
  void each_argument(std::size_t i, Visit&& visit) const {
    records.each(record[i], visit);
  }

  // Resident memory, without what vectors have reserved and not touched.
  std::size_t bytes() const { return size() * 26 + records.bytes(); }
};

}  // namespace paceline::analysis
