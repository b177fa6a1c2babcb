// SPDX-License-Identifier: Apache-2.0
// The collectives and messages of one rank: NCCL's by their kernels, and those of other backends by PyTorch's operator
// record_param_comms.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/importers/kineto/header.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis::kineto {

// The arguments of a collective, as PyTorch writes them. Absent texts are empty, absent numbers are nothing.
struct Collective {
  std::string name, datatype, group, description, ranks;
  std::optional<std::uint64_t> elements_in, elements_out, members;
  std::optional<std::int64_t> source, destination;

  // Takes the argument if it is one of a collective's.
  bool take(std::string_view key, std::string_view value);
};

// What a collective is called in the model.
struct Operation {
  std::string name;      // "AllReduce"
  bool message = false;  // send or receive
};
// Of PyTorch's name, "_allgather_base"; nothing where it is no operation ("wait").
std::optional<Operation> operation_of(std::string_view collective);
// Of a kernel's name, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)".
Operation operation_of_kernel(std::string_view kernel);

// Bytes of one element of PyTorch's data type: "BFloat16"; 0 where it is not known.
std::uint64_t element_bytes(std::string_view datatype);

class Collectives {
 public:
  explicit Collectives(RankBuilder& rank) : rank_(rank) {}

  using Stream = std::pair<std::int64_t, std::int64_t>;  // device, stream
  struct Call {
    std::int64_t start_ns = 0, end_ns = 0;
    std::uint64_t correlation = 0;           // of the kernel; 0 = not known
    std::optional<std::uint64_t> sequence;   // as the file has it
    const Collective* collective = nullptr;  // valid until finish(); nullptr: only the kernel's name is known
    NameId kernel = 0;
    Stream stream = {};  // of the kernel
  };
  void add_kernel(const Call& call) { kernels_.push_back(call); }
  // record_param_comms, and the range in which the backend did the work ("gloo:all_reduce") or enqueued it
  // ("nccl:all_to_all"), with its thread.
  void add_operator(const Call& call) { operators_.push_back(call); }
  void add_backend_range(std::int64_t start_ns, std::int64_t end_ns, NameId name, std::uint32_t thread) {
    ranges_.push_back({start_ns, end_ns, name, thread});
  }
  // An iteration of PyTorch's profiler.
  void add_step(std::int64_t start_ns, std::int64_t end_ns, std::int64_t number) {
    steps_.push_back({start_ns, end_ns, number});
  }

  // Whether finish() wants to know when the kernels were launched.
  bool wants_launches() const;
  void add_launch(std::uint64_t correlation, std::int64_t time_ns, std::uint32_t thread) {
    launches_[correlation] = {time_ns, thread};
  }

  // Makes the tracks and the communicators. `own_rank` is -1 where it is not known.
  void finish(const Header& header, int own_rank);

  // How many collectives have no number, because the file has none and no iterations to count in.
  std::uint64_t unnumbered() const { return unnumbered_; }

 private:
  struct Range {
    std::int64_t start_ns = 0, end_ns = 0;
    NameId name = 0;
    std::uint32_t thread = 0;
  };
  struct Launch {
    std::int64_t time_ns = 0;
    std::uint32_t thread = 0;
  };
  struct Step {
    std::int64_t start_ns = 0, end_ns = 0, number = 0;
  };
  struct Group {
    NameId text = 0;
    std::uint32_t members = 0;
  };

  Group group_of(const Collective& collective, const Header& header, int own_rank);
  void add(const Call& call, const Header& header, int own_rank, bool of_kernel);
  void place_operators();
  void add_stream_groups(const Header& header);
  std::optional<Operation> operation_by_range(const Call& call) const;
  Operation operation_of(const Call& call) const;
  Group group_of(const Call& call, const Header& header, int own_rank);
  const Step* step_of(const Call& call) const;
  std::optional<std::uint64_t> number(const Call& call, NameId communicator, const std::string& operation);

  RankBuilder& rank_;
  std::vector<Call> kernels_, operators_;
  std::vector<Range> ranges_;
  std::vector<Step> steps_;
  std::unordered_map<std::uint64_t, Launch> launches_;                             // by correlation
  std::map<std::string, Group> groups_;                                            // by name and ranks
  std::map<Stream, Group> stream_groups_;                                          // of kernels without a group
  std::map<std::tuple<NameId, std::string, std::int64_t>, std::uint64_t> totals_;  // of calls of these, in a step
  std::map<NameId, TrackBuilder*> tracks_;                                         // by communicator
  std::map<std::tuple<NameId, std::string, std::int64_t>, std::uint64_t> counts_;  // in a step
  std::uint64_t unnumbered_ = 0;
};

}  // namespace paceline::analysis::kineto
