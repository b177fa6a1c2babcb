// SPDX-License-Identifier: Apache-2.0
// CUDA in a .pace file: work on devices becomes tracks of streams, and the calls go to the threads that made them.
//
// A call and the work that it started have the same argument "correlation" (index/correlations.h finds one by the
// other).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/importers/pace/context.h"

namespace paceline::analysis {

class PaceCuda {
 public:
  // Collects all CUDA events of the file. Cost: linear in its slots.
  explicit PaceCuda(PaceContext& context);

  // Adds the calls that a thread made to its track: domain "cuda", category "runtime", "driver" or, for those that wait
  // for a device, "synchronization". `edges`: when the track's own ranges and calls begin and end, rising. CUPTI's
  // clock is converted with an error of about 100 ns, so a call that seems to cross an edge is cut there.
  void add_calls(std::uint64_t thread, std::span<const std::int64_t> edges, TrackBuilder& track);

  // Adds the threads that only called CUDA, the streams (kind stream, "GPU 0 stream 7"; domain "cuda", categories
  // "kernel", "memcpy", "memset", "graph") and CUPTI's own overhead. `process` goes in front of their labels.
  void add_tracks(const std::string& process);

  // When a thread launched a kernel of NCCL and when that kernel ran, in the order of the launches.
  struct Launch {
    std::int64_t time_ns = 0;  // begin of the call
    std::int64_t start_ns = 0, end_ns = 0;
  };
  const std::vector<Launch>& nccl_launches(std::uint64_t thread) const;
  // Kernels of NCCL that ran in graphs, in the order of their starts. time_ns is that of the start.
  const std::vector<Launch>& nccl_kernels_of_graphs() const { return nccl_kernels_of_graphs_; }

  std::uint64_t events() const { return events_; }

 private:
  struct Call {
    std::int64_t start_ns = 0, end_ns = 0;
    std::uint16_t function = 0, api = 0;
    std::uint32_t correlation = 0, result = 0;
  };
  struct Kernel {
    NameId name = 0, grid = 0, block = 0;
    std::uint32_t registers = 0;
    std::uint64_t shared = 0;
    bool nccl = false;
  };
  struct Stream {
    std::uint32_t device = 0, context = 0, number = 0;
    NameId name = 0;
  };
  struct Ran {
    std::int64_t start_ns = 0, end_ns = 0;
    std::variant<format::events::CudaKernelRun, format::events::CudaCopy, format::events::CudaSet,
                 format::events::CudaGraph>
        event;
  };
  struct Overhead {
    std::int64_t start_ns = 0, end_ns = 0;
    std::uint32_t kind = 0;
  };

  void define();
  void name_by_nvtx();
  void collect();
  void join_nccl();
  // Each adds what ran to the track of its stream, which belongs to that device.
  using Device = std::optional<std::uint32_t>;
  std::uint32_t add(const Ran& ran, std::uint32_t correlation, std::uint32_t graph, NameId name,
                    std::string_view category, TrackBuilder& track);
  void add(const Ran& ran, const format::events::CudaKernelRun& run, Device device, TrackBuilder& track);
  void add(const Ran& ran, const format::events::CudaCopy& copy, Device device, TrackBuilder& track);
  void add(const Ran& ran, const format::events::CudaSet& set, Device device, TrackBuilder& track);
  void add(const Ran& ran, const format::events::CudaGraph& graph, Device device, TrackBuilder& track);

  PaceContext& context_;
  RankBuilder& rank_;
  std::map<std::pair<std::uint16_t, std::uint16_t>, NameId> functions_;  // by API and function
  std::map<std::uint32_t, Kernel> kernels_;
  std::map<std::uint32_t, Stream> streams_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> handles_;  // by context and stream, CUPTI's numbers
  std::map<std::uint32_t, NameId> contexts_;                                  // names that the program gave them
  std::map<std::uint64_t, std::vector<Call>> calls_;                          // by thread, which add_calls takes away
  std::map<std::uint32_t, std::vector<Ran>> ran_;                             // by stream
  std::map<std::uint32_t, std::uint32_t> waited_for_;  // correlation of a call to the stream it waited for
  std::vector<Overhead> overheads_;
  std::map<std::uint64_t, std::vector<Launch>> nccl_launches_;
  std::vector<Launch> nccl_kernels_of_graphs_;
  std::uint64_t events_ = 0;
};

}  // namespace paceline::analysis
