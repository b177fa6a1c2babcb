// SPDX-License-Identifier: Apache-2.0
// A run as Chakra's execution trace (https://github.com/mlcommons/chakra, schema/protobuf/et_def.proto), from which
// simulators such as ASTRA-sim compute the run on another machine: a file of nodes for each rank. Nodes are the work,
// the collectives and the messages of the program that replays take (replay_program.h), without its waits.
//
// The tracks of all ranks go through their items together, and each waits for what it waited for in the run. So a node
// stands behind all that it depends on. The collectives of a rank stand in the order of their last arrivals, which is
// the same on all ranks, and each can begin no earlier than those before it: they match by their order.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "analysis/communication/collectives.h"
#include "analysis/exporters/exporter.h"
#include "analysis/exporters/protobuf.h"
#include "analysis/graph/replay_program.h"
#include "analysis/text/text_output.h"

namespace paceline::analysis {
namespace chakra {

enum NodeType : std::uint8_t { compute = 4, send = 5, receive = 6, collective = 7 };
enum Value : std::uint8_t { int32 = 7, int64 = 9, boolean = 27 };  // the fields of AttributeProto

// Chakra's CollectiveCommType of an MPI, NCCL or PyTorch operation. What it has no type for is a reduction (a scan).
std::uint64_t type_of(std::string_view operation) {
  const std::string name = plain_operation(operation);
  static constexpr std::pair<const char*, std::uint64_t> types[] = {{"allreduce", 0},     {"reducescatterblock", 8},
                                                                    {"reducescatter", 7}, {"allgather", 2},
                                                                    {"alltoall", 6},      {"barrier", 9},
                                                                    {"scatter", 4},       {"gather", 3},
                                                                    {"bcast", 5},         {"broadcast", 5},
                                                                    {"reduce", 1}};
  for (const auto& [word, type] : types) {
    if (name.find(word) != std::string::npos) return type;
  }
  return 1;
}

class Writer {
 public:
  using Ids = std::vector<std::uint64_t>;

  Writer(const ExportJob& job, const std::filesystem::path& folder)
      : job_(job), folder_(folder), index_(job.trace()), graph_(dependency_graph(index_)) {}

  void write() {
    if (job_.ranks().size() != job_.trace().ranks.size()) {
      throw Error("chakra needs all ranks, because a collective has a node on each: leave out --ranks");
    }
    program_ = replay_program(index_, graph_);
    if (std::ranges::all_of(program_.tracks, [](const ReplayTrack& track) { return (*track.items).empty(); })) {
      throw Error(
          fmt::format("chakra replays work and the collectives that all of their ranks finished, and {} holds neither: "
                      "export to another format",
                      job_.trace().ranks.front().path));
    }
    select_iterations();
    std::filesystem::create_directory(folder_);
    ranks_.resize(program_.ranks);
    tracks_.resize(program_.tracks.size());
    arrived_.resize(program_.collectives.size());
    edges_.resize(program_.edges.size());
    number_groups();
    ProtoMessage metadata;
    metadata.text(1, "1.0.0");
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) append(r, metadata);
    go_through();
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) flush(r);
  }

 private:
  struct RankState {
    std::uint64_t nodes = 0;
    std::string bytes;                                         // that are not in the file yet
    std::vector<std::uint32_t> collectives;                    // that it takes part in, by index
    std::size_t begun = 0;                                     // of these
    std::unordered_map<std::uint32_t, std::uint64_t> node_of;  // of collectives that are not complete
    std::map<std::uint32_t, Ids> before;                       // by track: what its last collective depends on
  };
  struct TrackState {
    std::size_t next = 0;  // its next item
    Ids after;             // what its next node depends on
    Ids sent;              // its last message
    std::uint32_t in_flight = no_collective;
    double rest_ns = 0;  // of durations, below 1 µs
  };
  struct EdgeState {
    bool caused = false, dropped = false;
    Ids cause;
    std::int32_t tag = 0;
  };

  // A window keeps the iterations that lie in it on all ranks.
  void select_iterations() {
    const TimeWindow& window = job_.selection().window();
    if (window.is_everything()) return;
    taken_.resize(program_.iterations.size(), true);
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      for (std::size_t r = 0; r < program_.ranks; ++r) {
        for (const Iteration& of : index_.iterations(r)) {
          if (of.number != program_.iterations[i].number) continue;
          if (of.start_ns < window.from_ns || of.start_ns + of.duration_ns > window.until_ns) taken_[i] = false;
        }
      }
    }
    whole_ = false;
    if (std::ranges::find(taken_, true) == taken_.end()) {
      throw Error("chakra takes whole iterations, and the chosen time holds none: choose more, as with --iterations");
    }
  }
  bool takes(std::int32_t iteration) const {
    return whole_ || (iteration >= 0 && taken_[static_cast<std::size_t>(iteration)]);
  }

  // Ranks that meet in a collective are a group. Simulators take 0 for that of all ranks, others from groups.json.
  void number_groups() {
    std::map<std::vector<std::uint32_t>, std::size_t> groups;
    nlohmann::ordered_json document;
    for (std::uint32_t c = 0; c < program_.collectives.size(); ++c) {
      std::vector<std::uint32_t> members;
      for (const CollectiveArrival& arrival : graph_.collectives[c].arrivals) {
        members.push_back(graph_.tracks[arrival.track].rank);
        ranks_[members.back()].collectives.push_back(c);
      }
      const std::size_t next = document.size() + 1;
      const bool everyone = members.size() == program_.ranks;
      const auto [group, fresh] = groups.try_emplace(members, everyone ? 0 : next);
      if (fresh && !everyone) document[std::to_string(next)] = members;
      group_.push_back(group->second);
    }
    if (!document.empty()) save("groups.json", document.dump() + "\n");
  }

  void go_through() {
    for (bool all = false; !all;) {
      bool moved = false;
      all = true;
      for (std::uint32_t t = 0; t < tracks_.size(); ++t) {
        const auto& items = *program_.tracks[t].items;
        if (tracks_[t].next == items.size()) continue;
        while (tracks_[t].next < items.size() && step(t, items[tracks_[t].next])) moved = true;
        if (tracks_[t].next < items.size()) {
          all = false;
        } else {
          job_.done(job_.trace().ranks[graph_.tracks[t].rank].tracks[graph_.tracks[t].track].slices.size());
        }
      }
      if (!all && !moved) release();
    }
  }

  // Wrong clocks make waits for what comes later. One track goes on without what it waits for.
  void release() {
    const auto waits = [&](std::uint32_t t, bool for_cause) {
      const auto& items = *program_.tracks[t].items;
      return tracks_[t].next < items.size() && (items[tracks_[t].next].what != ReplayItem::arrive) == for_cause;
    };
    for (const bool for_cause : {true, false}) {
      for (std::uint32_t t = 0; t < tracks_.size(); ++t) {
        if (!waits(t, for_cause)) continue;
        const ReplayItem& item = (*program_.tracks[t].items)[tracks_[t].next++];
        if (item.what == ReplayItem::wait) edges_[item.index].dropped = true;
        if (item.what == ReplayItem::arrive) begin_collective(t, item.index);
        return;
      }
    }
  }

  // False where the track has to wait.
  bool step(std::uint32_t t, const ReplayItem& item) {
    TrackState& track = tracks_[t];
    RankState& rank = ranks_[program_.tracks[t].rank];
    if (item.what == ReplayItem::work && takes(item.iteration)) work(t, item);
    if (item.what == ReplayItem::arrive) {
      if (rank.collectives[rank.begun] != item.index) return false;
      begin_collective(t, item.index);
    }
    if (item.what == ReplayItem::complete) {
      if (arrived_[item.index] < program_.collectives[item.index].arrivals) return false;
      if (track.in_flight == item.index) track.in_flight = no_collective;
      const auto node = rank.node_of.find(item.index);
      if (node != rank.node_of.end()) {
        add_to(track.after, {node->second});
        rank.node_of.erase(node);
      }
    }
    if (item.what == ReplayItem::cause) cause(t, item.index);
    if (item.what == ReplayItem::wait) {
      if (program_.edges[item.index].kind != DependencyKind::send && !edges_[item.index].caused) return false;
      end_wait(t, item.index);
    }
    ++track.next;
    return true;
  }

  void work(std::uint32_t t, const ReplayItem& item) {
    TrackState& track = tracks_[t];
    // Asynchronous collectives have tracks of their own, on which their time until the rank awaits them is no work.
    const bool in_flight = track.in_flight != no_collective && !program_.tracks[t].main;
    if (in_flight && item.phase == Phase::communication) return;
    const double us = std::floor(1e-3 * (item.ns + track.rest_ns));
    track.rest_ns += item.ns - 1e3 * us;
    if (us <= 0) return;
    ProtoMessage node;
    attribute(node, "is_cpu_op", boolean, program_.tracks[t].stream ? 0 : 1);
    attribute(node, "iteration", int32, static_cast<std::uint64_t>(item.iteration));
    track.after = {add_node(program_.tracks[t].rank, phase_name(item.phase), compute, us, track.after, node)};
  }

  void begin_collective(std::uint32_t t, std::uint32_t index) {
    const ReplayCollective& of = program_.collectives[index];
    RankState& rank = ranks_[program_.tracks[t].rank];
    // In most cases the next one, and otherwise one that was released.
    const auto at = std::ranges::find(rank.collectives.begin() + static_cast<std::ptrdiff_t>(rank.begun),
                                      rank.collectives.end(), index);
    std::rotate(rank.collectives.begin() + static_cast<std::ptrdiff_t>(rank.begun), at, at + 1);
    ++rank.begun;
    ++arrived_[index];
    tracks_[t].in_flight = index;
    if (!takes(of.iteration)) return;
    rank.before[t] = tracks_[t].after;
    Ids after;
    for (const auto& [track, ids] : rank.before) add_to(after, ids);
    ProtoMessage node;
    attribute(node, "is_cpu_op", boolean, 0);
    attribute(node, "comm_type", int64, type_of(of.operation));
    attribute(node, "comm_size", int64, of.bytes);
    ProtoMessage group;
    group.text(1, "pg_name");
    group.text(29, std::to_string(group_[index]));
    node.message(10, group);
    rank.node_of[index] =
        add_node(program_.tracks[t].rank, valid_utf8(of.operation), collective, 1e-3 * of.recorded_ns, after, node);
  }

  // Whether the edge is a message with nodes of its own. A probe for a message is an edge without bytes before that of
  // the message, and gets none.
  bool is_message(std::uint32_t index) const {
    const ReplayEdge& edge = program_.edges[index];
    if (edge.kind != DependencyKind::message || rank_of(edge.from) == rank_of(edge.to)) return false;
    if (edge.bytes > 0 || index + 1 == program_.edges.size()) return true;
    const ReplayEdge& next = program_.edges[index + 1];
    return next.kind != edge.kind || next.from != edge.from || next.to != edge.to;
  }

  void cause(std::uint32_t t, std::uint32_t index) {
    EdgeState& edge = edges_[index];
    edge.caused = true;
    if (edge.dropped) return;
    if (!is_message(index)) {
      if (rank_of(program_.edges[index].from) == rank_of(program_.edges[index].to)) edge.cause = tracks_[t].after;
      return;
    }
    if (!takes(program_.edges[index].iteration)) return;
    edge.tag = tags_[{rank_of(program_.edges[index].from), rank_of(program_.edges[index].to)}]++;
    tracks_[t].sent = {add_message(index, send, 0, tracks_[t].after)};
  }

  void end_wait(std::uint32_t t, std::uint32_t index) {
    TrackState& track = tracks_[t];
    const ReplayEdge& edge = program_.edges[index];
    if (edge.kind == DependencyKind::send) {
      add_to(track.after, track.sent);
    } else if (!is_message(index)) {
      add_to(track.after, edges_[index].cause);
      edges_[index].cause = {};
    } else if (takes(edge.iteration)) {
      track.after = {add_message(index, receive, 1e-3 * std::max(edge.recorded_ns, 0.0), track.after)};
    }
  }

  std::uint64_t add_message(std::uint32_t index, NodeType type, double us, const Ids& after) {
    const ReplayEdge& edge = program_.edges[index];
    ProtoMessage node;
    attribute(node, "is_cpu_op", boolean, 0);
    attribute(node, "comm_size", int64, edge.bytes);
    attribute(node, "comm_src", int32, rank_of(edge.from));
    attribute(node, "comm_dst", int32, rank_of(edge.to));
    attribute(node, "comm_tag", int32, static_cast<std::uint64_t>(edges_[index].tag));
    return add_node(rank_of(type == send ? edge.from : edge.to), type == send ? "send" : "receive", type, us, after,
                    node);
  }

  std::uint32_t rank_of(std::uint32_t track) const { return program_.tracks[track].rank; }

  static void add_to(Ids& ids, const Ids& more) {
    ids.insert(ids.end(), more.begin(), more.end());
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  }

  static void attribute(ProtoMessage& node, std::string_view name, Value type, std::uint64_t value) {
    ProtoMessage attribute;
    attribute.text(1, name);
    attribute.integer(type, value);
    node.message(10, attribute);
  }

  std::uint64_t add_node(std::uint32_t rank, std::string_view name, NodeType type, double us, const Ids& after,
                         const ProtoMessage& attributes) {
    const std::uint64_t id = ranks_[rank].nodes++;
    ProtoMessage node;
    node.integer(1, id);
    node.text(2, name);
    node.integer(3, type);
    for (const std::uint64_t before : after) node.integer(5, before);
    node.integer(7, static_cast<std::uint64_t>(std::llround(us)));
    node.append(attributes.bytes());
    append(rank, node);
    return id;
  }

  void append(std::uint32_t rank, const ProtoMessage& message) {
    std::string& bytes = ranks_[rank].bytes;
    for (std::size_t size = message.bytes().size();; size >>= 7) {
      bytes += static_cast<char>(size < 128 ? size : size | 128);
      if (size < 128) break;
    }
    bytes += message.bytes();
    if (bytes.size() > 1 << 20) flush(rank);
  }
  void flush(std::uint32_t rank) {
    save(fmt::format("rank.{}.et", rank), ranks_[rank].bytes);
    ranks_[rank].bytes.clear();
  }
  void save(const std::string& name, const std::string& bytes) const {
    std::ofstream file(folder_ / name, std::ios::binary | std::ios::app);
    if (!(file << bytes).flush()) throw Error(fmt::format("the export could not be written: {}", std::strerror(errno)));
  }

  const ExportJob& job_;
  const std::filesystem::path& folder_;
  const RunIndex index_;
  const DependencyGraph graph_;
  ReplayProgram program_;
  bool whole_ = true;        // all that the run did, also outside of iterations
  std::vector<bool> taken_;  // by iteration of the program
  std::vector<RankState> ranks_;
  std::vector<TrackState> tracks_;
  std::vector<EdgeState> edges_;
  std::vector<std::uint32_t> arrived_;                                    // by collective
  std::vector<std::size_t> group_;                                        // by collective
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int32_t> tags_;  // next one, by sender and receiver
};

}  // namespace chakra

constexpr Exporter chakra_exporter{
    .name = "chakra",
    .what = "a directory with Chakra's execution traces, for ASTRA-sim",
    .target = Exporter::Target::folder,
    .make = [](const ExportJob& job, const std::filesystem::path& path) { chakra::Writer(job, path).write(); }};

}  // namespace paceline::analysis
