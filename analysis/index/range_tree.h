// SPDX-License-Identifier: Apache-2.0
// Answers about any stretch of a sequence, from an implicit tree of summaries over blocks of it.
//
// Level k has one summary for each `fanout`^(k+1) neighbouring entries. A stretch is put together from single entries
// up to the edge of a block, then ever larger blocks while they fit, then smaller ones again (an idea of Trishume's
// gigatrace, "iforests", 2021).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace paceline::analysis {

// Combine: merge(a, b) is the summary of the entries of `a` followed by those of `b`.
template <class Summary, std::size_t fanout>
class RangeTree {
 public:
  RangeTree() = default;

  // `entry(i)` is the summary of entry i alone. Linear; one summary for each fanout − 1 entries.
  template <class Entry, class Merge>
  RangeTree(std::size_t count, Entry&& entry, Merge&& merge) {
    for (std::size_t below = count; below > fanout;) {
      const std::size_t blocks = (below + fanout - 1) / fanout;
      std::vector<Summary> level;
      level.reserve(blocks);
      const auto part = [&](std::size_t i) { return levels_.empty() ? Summary(entry(i)) : levels_.back()[i]; };
      for (std::size_t block = 0; block < blocks; ++block) {
        Summary summary = part(block * fanout);
        const std::size_t end = std::min(below, (block + 1) * fanout);
        for (std::size_t i = block * fanout + 1; i < end; ++i) summary = merge(summary, part(i));
        level.push_back(summary);
      }
      levels_.push_back(std::move(level));
      below = blocks;
    }
  }

  // The summary of the entries from `begin` to before `end`, at least one, merged from left to right. `entry` and
  // `merge` are those of the constructor. O(log n).
  template <class Entry, class Merge>
  Summary over(std::size_t begin, std::size_t end, Entry&& entry, Merge&& merge) const {
    Summary summary = entry(begin);
    for (std::size_t at = begin; at < end;) {
      std::size_t size = 1;
      const Summary* block = nullptr;
      for (const auto& level : levels_) {
        const std::size_t larger = size * fanout;
        if (at % larger != 0 || at + larger > end) break;
        size = larger;
        block = &level[at / larger];
      }
      if (at == begin) {
        if (block != nullptr) summary = *block;
      } else {
        summary = merge(summary, block != nullptr ? *block : Summary(entry(at)));
      }
      at += size;
    }
    return summary;
  }

  std::size_t bytes() const {
    std::size_t total = 0;
    for (const auto& level : levels_) total += level.size() * sizeof(Summary);
    return total;
  }

 private:
  std::vector<std::vector<Summary>> levels_;  // levels_[k][b]: of fanout^(k+1) entries from b · fanout^(k+1) on
};

}  // namespace paceline::analysis
