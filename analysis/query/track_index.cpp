// SPDX-License-Identifier: Apache-2.0
#include "analysis/query/track_index.h"

#include <algorithm>

namespace paceline::analysis {

std::size_t TrackIndex::next_ending(std::size_t from, std::int64_t end_ns) {
  const std::size_t size = slices_->size();
  if (latest_end_.empty()) {
    latest_end_.reserve(size / block + 1);
    for (std::size_t i = 0; i < size; ++i) {
      if (i % block == 0) latest_end_.push_back(slices_->end_ns(i));
      latest_end_.back() = std::max(latest_end_.back(), slices_->end_ns(i));
    }
    for (std::size_t b = 0; b < latest_end_.size(); ++b) {
      if (b % block == 0) latest_end_above_.push_back(latest_end_[b]);
      latest_end_above_.back() = std::max(latest_end_above_.back(), latest_end_[b]);
    }
  }
  for (std::size_t i = from; i < size;) {
    const std::size_t b = i / block;
    if (i % (block * block) == 0 && latest_end_above_[b / block] < end_ns) {
      i += block * block;
    } else if (i % block == 0 && latest_end_[b] < end_ns) {
      i += block;
    } else if (slices_->end_ns(i) < end_ns) {
      ++i;
    } else {
      return i;
    }
  }
  return size;
}

const std::vector<TrackIndex::OfKind>& TrackIndex::by_kind() {
  if (!by_kind_.empty() || slices_->size() == 0) return by_kind_;
  const std::vector<KindId>& kinds = slices_->kind;
  std::vector<std::uint32_t> next(static_cast<std::size_t>(*std::ranges::max_element(kinds)) + 1);
  for (const KindId kind : kinds) ++next[kind];
  order_.resize(kinds.size());
  std::uint32_t first = 0;
  for (KindId kind = 0; kind < next.size(); ++kind) {
    const std::uint32_t count = next[kind];
    if (count > 0) by_kind_.push_back({kind, std::span(order_).subspan(first, count)});
    next[kind] = first;
    first += count;
  }
  for (std::uint32_t i = 0; i < kinds.size(); ++i) order_[next[kinds[i]]++] = i;
  return by_kind_;
}

}  // namespace paceline::analysis
