// SPDX-License-Identifier: Apache-2.0
// The tracks of one process whose records are rows of a table: its threads, and the streams of its GPUs. The records
// are CUPTI's, so kernels, copies and calls get the same names and arguments as those of .pace files.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analysis/trace/builder.h"

namespace paceline::analysis {

// The function's name without its version: "cudaLaunchKernel_v7000", "cudaLaunchKernel_ptsz_v7000" ->
// "cudaLaunchKernel".
std::string_view without_version(std::string_view function);

// The text of the environment variable in "A=1 B=2" or in lines of "A=1", or nothing.
std::optional<std::string_view> environment_value(std::string_view environment, std::string_view variable);

// A time that the model can hold, so that no difference of two overflows.
constexpr bool is_usable_time(std::int64_t time_ns) {
  constexpr std::int64_t bound = 4'000'000'000'000'000'000;
  return time_ns > -bound && time_ns < bound;
}

class ProcessTracks {
 public:
  // `prefix` stands in front of the labels: "process 4711, ".
  ProcessTracks(RankBuilder& rank, std::string prefix) : rank_(rank), prefix_(std::move(prefix)) {}

  RankBuilder& rank() { return rank_; }
  Names& names() { return rank_.names(); }

  void name_thread(std::uint64_t thread, std::string_view name) { thread_names_[thread] = name; }
  // Created at the first call.
  TrackBuilder& thread(std::uint64_t thread);
  // A track of the process that is no thread's: "profiler overhead".
  TrackBuilder& extra(TrackKind kind, const std::string& label);

  // What ran on a stream. The kind of a kernel is that of its name, the caller's cache.
  struct Work {
    std::int64_t start_ns = 0, end_ns = 0;
    std::int64_t device = 0, context = 0, stream = 0;
    std::int64_t correlation = 0;
    std::int64_t graph_node = 0;  // 0: not launched by a graph
  };
  struct Shape {
    std::array<std::int64_t, 3> grid{}, block{};
    std::int64_t registers = 0, shared_bytes = 0;
  };
  // Memory kinds are CUPTI's. A device of a copy that is not known is that of the stream.
  struct Copy {
    std::uint32_t kind = 0, from = 0, to = 0;
    std::optional<std::uint32_t> from_device, to_device;
    std::int64_t bytes = 0;
    std::string_view name;  // instead of CUPTI's name for the kind; may be empty
  };
  void add_kernel(const Work& work, KindId kind, const Shape& shape);
  void add_copy(const Work& work, const Copy& copy);
  void add_set(const Work& work, std::int64_t bytes, std::optional<std::uint32_t> memory_kind);
  void add_graph(const Work& work, std::int64_t graph);

  // A call of CUDA. `kind` comes from call_kind(). A wait of the same correlation has the stream that it waited for.
  KindId call_kind(std::string_view function, bool driver);
  void add_call(std::uint64_t thread, std::int64_t start_ns, std::int64_t end_ns, KindId kind, std::int64_t correlation,
                std::int64_t result);
  void add_wait(std::int64_t correlation, std::int64_t stream) { waited_for_[correlation] = stream; }

  // A range that need not nest in the ranges and calls around it. It goes to the thread's track where it does.
  struct Range {
    std::int64_t start_ns = 0, end_ns = 0;
    KindId kind = 0;
    std::optional<Argument> payload;
  };
  void add_range(std::uint64_t thread, const Range& range) { ranges_[thread].push_back(range); }
  // Places the ranges. To be called once, after everything else was added.
  void finish();

 private:
  std::uint32_t add_work(const Work& work, KindId kind);
  NameId shape_text(const std::array<std::int64_t, 3>& shape);
  void place(std::uint64_t thread, std::vector<Range>& ranges);

  RankBuilder& rank_;
  const std::string prefix_;
  std::unordered_map<std::uint64_t, std::string> thread_names_;
  std::unordered_map<std::uint64_t, TrackBuilder*> threads_;
  std::map<std::string, TrackBuilder*> extras_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, TrackBuilder*> streams_;  // device, context, stream
  std::map<std::int64_t, std::int64_t> first_context_;                                     // by device
  std::map<std::array<std::int64_t, 3>, NameId> shapes_;
  std::unordered_map<std::int64_t, std::int64_t> waited_for_;  // stream, by correlation
  std::map<std::uint64_t, std::vector<Range>> ranges_;         // by thread
  TrackBuilder* last_stream_ = nullptr;
  std::tuple<std::int64_t, std::int64_t, std::int64_t> last_stream_id_;
};

}  // namespace paceline::analysis
