// SPDX-License-Identifier: Apache-2.0
// Samples of stacks as a tree of functions.
#include <algorithm>
#include <unordered_map>

#include "viewer/panels/flame_tree.h"

namespace paceline::viewer {
namespace sample_tree {

enum class Side { none, one, other };

class Builder {
 public:
  Builder(const Run& run, const Part& part, const std::optional<FlameSides>& sides)
      : run_(run), part_(part), sides_(sides) {
    tree_.of = sides ? FlameTree::Of::difference : FlameTree::Of::samples;
    if (!sides) return;
    const QString kind = sides->of == FlameSides::Of::ranks ? "rank" : "iteration";
    tree_.one = QString("%1 %2").arg(kind).arg(sides->one);
    tree_.other = sides->other ? QString("%1 %2").arg(kind).arg(*sides->other) : QString("the other %1s").arg(kind);
  }

  void add(std::size_t rank, const analysis::Track& track, const QString& group) {
    const std::uint32_t top = group.isEmpty() ? 0 : tree_.group(group);
    std::vector<std::uint32_t>& of_stack = of_stacks_[top];
    of_stack.resize(run_.trace.stacks.size(), 0);
    const analysis::StackSamples& samples = track.stacks;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Side side = side_of(rank, samples.time_ns[i]);
      if (side == Side::none) continue;
      const std::int64_t ns = period_ns(samples, i);
      FlameNode& leaf = tree_.nodes[node_of(samples.stack[i], top, of_stack)];
      (side == Side::one ? leaf.self_ns : leaf.other_ns) += ns;
      leaf.count += 1;
    }
  }

  // Every node has the samples of its own until here.
  FlameTree finish() {
    auto& nodes = tree_.nodes;
    for (FlameNode& node : nodes) node.total_ns = node.self_ns;
    for (std::size_t i = nodes.size(); i-- > 1;) {  // parents come before their children
      FlameNode& parent = nodes[nodes[i].parent];
      parent.total_ns += nodes[i].total_ns;
      parent.other_ns += nodes[i].other_ns;
      parent.count += nodes[i].count;
    }
    tree_.finish();
    return std::move(tree_);
  }

 private:
  Side side_of(std::size_t rank, std::int64_t time_ns) const {
    const bool in_range =
        !part_.range || (double(time_ns) >= part_.range->begin_ns && double(time_ns) < part_.range->end_ns);
    if (!sides_) return in_range ? Side::one : Side::none;
    std::int64_t number = run_.trace.ranks[rank].rank;
    if (sides_->of == FlameSides::Of::iterations) {
      const analysis::Iteration* iteration = analysis::iteration_at(run_.index->iterations(rank), time_ns);
      if (iteration == nullptr) return Side::none;
      number = iteration->number;
    } else if (!in_range) {
      return Side::none;
    }
    if (number == sides_->one) return Side::one;
    return !sides_->other || *sides_->other == number ? Side::other : Side::none;
  }

  static std::int64_t period_ns(const analysis::StackSamples& samples, std::size_t at) {
    if (samples.period_ns > 0) return samples.period_ns;
    return at + 1 < samples.size() ? samples.time_ns[at + 1] - samples.time_ns[at] : 0;
  }

  // Stacks that differ in nothing but the lines share a node.
  std::uint32_t node_of(analysis::StackId stack, std::uint32_t top, std::vector<std::uint32_t>& of_stack) {
    if (stack == 0) return tree_.group("no function is known", top);
    path_.clear();
    for (; stack != 0 && of_stack[stack] == 0; stack = run_.trace.stacks.caller(stack)) path_.push_back(stack);
    std::uint32_t node = stack == 0 ? top : of_stack[stack];
    for (; !path_.empty(); path_.pop_back()) {
      const analysis::Frame& frame = run_.trace.stacks[run_.trace.stacks.innermost(path_.back())];
      node = of_stack[path_.back()] = child(node, frame);
    }
    return node;
  }
  std::uint32_t child(std::uint32_t parent, const analysis::Frame& frame) {
    for (const std::uint32_t one : tree_.nodes[parent].children) {
      const FlameNode& node = tree_.nodes[one];
      if (node.group.isEmpty() && node.name == frame.function && node.file == frame.file) return one;
    }
    const std::uint32_t made = tree_.add(parent);
    tree_.nodes[made].name = frame.function;
    tree_.nodes[made].file = frame.file;
    return made;
  }

  const Run& run_;
  const Part& part_;
  const std::optional<FlameSides>& sides_;
  FlameTree tree_;
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> of_stacks_;  // the node of each stack; 0: none yet
  std::vector<analysis::StackId> path_;
};

}  // namespace sample_tree

bool has_samples(const Run& run) {
  return std::ranges::any_of(run.trace.ranks, [](const analysis::Rank& rank) {
    return std::ranges::any_of(rank.tracks, [](const analysis::Track& track) { return track.stacks.size() > 0; });
  });
}

FlameTree sample_flames(const Run& run, const Part& part, const std::optional<FlameSides>& sides,
                        const Ticket& ticket) {
  const auto& ranks = run.trace.ranks;
  const auto each_track = [&](auto visit) {
    for (std::size_t rank = 0; rank < ranks.size() && !ticket.cancelled(); ++rank) {
      // Of two ranks, the selection of ranks would leave nothing to compare with.
      if (!part.on(rank) && !(sides && sides->of == FlameSides::Of::ranks)) continue;
      for (const analysis::Track& track : ranks[rank].tracks) {
        if (track.stacks.size() > 0) visit(rank, track);
      }
    }
  };
  // Threads are told apart where more than the main threads were sampled.
  bool others = false;
  each_track([&](std::size_t, const analysis::Track& track) { others = others || !track.main; });
  const bool one_rank = ranks.size() == 1 || part.ranks.size() == 1;
  sample_tree::Builder builder(run, part, sides);
  each_track([&](std::size_t rank, const analysis::Track& track) {
    const QString name = one_rank ? shown_name(track.label) : track.main ? "main threads" : "other threads";
    builder.add(rank, track, others ? name : QString());
  });
  return builder.finish();
}

}  // namespace paceline::viewer
