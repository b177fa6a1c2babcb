// SPDX-License-Identifier: Apache-2.0
// NCCL in a Nsight Systems export: its NVTX ranges are the operations, and the kernels that they launched are the times
// at which the operations ran.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/importers/sqlite/process_tracks.h"

namespace paceline::analysis {

class NsysNccl {
 public:
  explicit NsysNccl(ProcessTracks& tracks) : tracks_(tracks) {}

  // Kernels come first, then calls, then ranges.
  void add_kernel(std::string_view name, std::int64_t correlation, std::int64_t start_ns, std::int64_t end_ns);
  void add_call(std::uint64_t thread, std::int64_t start_ns, std::int64_t correlation);
  // `payload` is the JSON text that Nsight Systems makes of the range's payload, or "".
  void add_range(std::uint64_t thread, std::int64_t start_ns, std::int64_t end_ns, std::string_view name,
                 std::string_view payload);
  // Adds the operations to a track for each communicator. An operation has its kernel's time and the category
  // "collective" or "point-to-point" if its range launched exactly one kernel of NCCL. Otherwise it has the range's
  // time and the category "enqueue", and no waits are computed from it.
  void finish();

  std::uint64_t events() const { return events_; }

 private:
  struct Span {
    std::int64_t start_ns = 0, end_ns = 0;
  };
  struct Launch {
    std::int64_t time_ns = 0;
    Span ran;
  };
  struct Range {
    std::uint64_t thread = 0;
    Span called;
    std::string name;
    std::string communicator;  // in hexadecimal digits, or ""
    std::uint64_t identity = 0, bytes = 0, members = 0;
    std::int64_t root = -1, peer = -1;
  };
  void add_operation(const Range& range);

  ProcessTracks& tracks_;
  std::unordered_map<std::int64_t, Span> kernels_;         // by correlation
  std::map<std::uint64_t, std::vector<Launch>> launches_;  // by thread
  std::vector<Range> ranges_;
  std::map<std::pair<std::uint64_t, std::string>, std::uint64_t> sequence_;  // by communicator and name
  std::uint64_t events_ = 0;
};

}  // namespace paceline::analysis
