// SPDX-License-Identifier: Apache-2.0
// The trees that a flame graph draws: slices by what is inside what, samples of stacks by what called what, and the
// shares of two sets of samples side by side.
#pragma once

#include <QString>
#include <optional>
#include <vector>

#include "viewer/panels/slices_in.h"

namespace paceline::viewer {

struct FlameNode {
  QString group;                 // of the top level: "main threads", "streams"
  analysis::NameId name = 0;     // of the others
  analysis::NameId file = 0;     // of a function; 0: not known
  std::uint32_t parent = 0;      // index of a node; the root is its own
  std::int64_t total_ns = 0;     // within the range; of samples, the time that they stand for
  std::int64_t self_ns = 0;      // of samples: without what the function called
  std::uint64_t count = 0;       // slices or samples
  std::int64_t longest_ns = -1;  // of the whole slice
  SliceRef longest;
  std::int64_t other_ns = 0;            // of two sets of samples, the same in the other one
  double width = 0;                     // in proportion to the other nodes
  std::vector<std::uint32_t> children;  // the widest first
};

struct FlameTree {
  enum class Of { ranges, samples, difference };

  Of of = Of::ranges;
  std::vector<FlameNode> nodes{1};  // the root is the first one
  QString one, other;               // of a difference: the names of the two sets

  // Of the first set, and of the other one; 0 where it is empty.
  double share(std::uint32_t node) const { return part(nodes[node].total_ns, nodes[0].total_ns); }
  double other_share(std::uint32_t node) const { return part(nodes[node].other_ns, nodes[0].other_ns); }
  double difference(std::uint32_t node) const { return share(node) - other_share(node); }

  // Adds a node below another one.
  std::uint32_t add(std::uint32_t parent);
  // The group of this name below the root, or another node.
  std::uint32_t group(const QString& name, std::uint32_t parent = 0);
  // Sets the widths and sorts the children. Each set of a difference is as wide as the other one.
  void finish();

 private:
  static double part(std::int64_t ns, std::int64_t all) { return all > 0 ? double(ns) / double(all) : 0; }
};

// Slices of the same name below the same names, added up over all ranks. Cost: linear in the slices of the part.
FlameTree range_flames(const Run& run, const Part& part, const Ticket& ticket);

// What is set against what. The numbers are those of ranks or iterations; nothing stands for all others.
struct FlameSides {
  enum class Of { ranks, iterations };

  Of of = Of::ranks;
  std::int64_t one = 0;
  std::optional<std::int64_t> other;
};

// Whether any stack was sampled. Cost: linear in the tracks.
bool has_samples(const Run& run);
// Functions by what called them, from the outermost one: the samples of the part, or two sets of them. Of iterations,
// the part's ranks count, but not its range. Cost: linear in the samples of the part, and in the stacks of the run.
FlameTree sample_flames(const Run& run, const Part& part, const std::optional<FlameSides>& sides, const Ticket& ticket);

}  // namespace paceline::viewer
