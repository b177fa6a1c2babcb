// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/flame_tree.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "analysis/statistics/sum.h"

namespace paceline::viewer {

std::uint32_t FlameTree::add(std::uint32_t parent) {
  const auto made = std::uint32_t(nodes.size());
  nodes.emplace_back().parent = parent;
  nodes[parent].children.push_back(made);
  return made;
}

std::uint32_t FlameTree::group(const QString& name, std::uint32_t parent) {
  for (const std::uint32_t one : nodes[parent].children) {
    if (nodes[one].group == name) return one;
  }
  const std::uint32_t made = add(parent);
  nodes[made].group = name;
  return made;
}

void FlameTree::finish() {
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    nodes[node].width = of == Of::difference ? share(node) + other_share(node) : double(nodes[node].total_ns);
  }
  for (FlameNode& node : nodes) {
    std::ranges::stable_sort(node.children, std::greater(), [&](std::uint32_t one) { return nodes[one].width; });
  }
}

namespace flame_tree {

const char* group_of(const analysis::Track& track) {
  switch (track.kind) {
    case analysis::TrackKind::thread:
      return track.main ? "main threads" : "other threads";
    case analysis::TrackKind::stream:
      return "GPU streams";
    case analysis::TrackKind::nccl:
      return "NCCL";
    case analysis::TrackKind::copy:
      return "copies";
    case analysis::TrackKind::mpi:
      return "MPI";
    case analysis::TrackKind::counter:
      break;
  }
  return "";
}

// Adds the slices of one track after the other.
class Builder {
 public:
  Builder(const Run& run, const Part& part) : run_(run), part_(part) {}

  void add(std::size_t rank, std::size_t track_index) {
    const analysis::Track& track = run_.trace.ranks[rank].tracks[track_index];
    const analysis::Slices& slices = track.slices;
    auto [begin, end] = slices_in(part_, slices);
    // The slices that had begun before the range and reach into it stand around the first one in it.
    while (begin > 0 && (begin == slices.size() || slices.depth[begin] > 0)) --begin;
    std::vector<std::uint32_t> open{tree_.group(group_of(track))};
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t depth = slices.depth[i];
      open.resize(std::min(open.size(), depth + 1));
      const std::uint32_t node = child(open.back(), run_.trace.kind_of(slices, i).name);
      open.push_back(node);
      const std::int64_t inside = clipped(slices.start_ns[i], slices.end_ns(i));
      if (inside < 0) continue;
      FlameNode& sum = tree_.nodes[node];
      analysis::add_to_sum(sum.total_ns, inside);
      ++sum.count;
      if (slices.duration_ns[i] > sum.longest_ns) {
        sum.longest_ns = slices.duration_ns[i];
        sum.longest = {.rank = rank, .track = track_index, .slice = std::uint32_t(i)};
      }
    }
  }

  FlameTree finish() {
    auto& nodes = tree_.nodes;
    for (const std::uint32_t group : nodes[0].children) {
      for (const std::uint32_t node : nodes[group].children) {
        analysis::add_to_sum(nodes[group].total_ns, nodes[node].total_ns);
      }
      analysis::add_to_sum(nodes[0].total_ns, nodes[group].total_ns);
    }
    tree_.finish();
    return std::move(tree_);
  }

 private:
  // How much of a slice is within the range; -1 if it does not touch it.
  std::int64_t clipped(std::int64_t start, std::int64_t end) const {
    if (!part_.range) return end - start;
    const auto from = std::int64_t(part_.range->begin_ns), to = std::int64_t(part_.range->end_ns);
    return start >= to || end < from ? -1 : std::min(end, to) - std::max(start, from);
  }
  std::uint32_t child(std::uint32_t parent, analysis::NameId name) {
    const auto [found, fresh] = known_.try_emplace(std::uint64_t{parent} << 32 | name, 0);
    if (fresh) {
      found->second = tree_.add(parent);
      tree_.nodes[found->second].name = name;
    }
    return found->second;
  }

  const Run& run_;
  const Part& part_;
  FlameTree tree_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_;  // by parent and name
};

}  // namespace flame_tree

FlameTree range_flames(const Run& run, const Part& part, const Ticket& ticket) {
  flame_tree::Builder builder(run, part);
  for (std::size_t rank = 0; rank < run.trace.ranks.size(); ++rank) {
    if (!part.on(rank)) continue;
    const auto& tracks = run.trace.ranks[rank].tracks;
    for (std::size_t track = 0; track < tracks.size() && !ticket.cancelled(); ++track) {
      if (tracks[track].slices.size() > 0) builder.add(rank, track);
    }
  }
  return builder.finish();
}

}  // namespace paceline::viewer
