// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/host_reduction.h"

#include <algorithm>

#include "trainer/core/error.h"

namespace paceline::train {
namespace host_reduction {
constexpr std::size_t longest_call = std::size_t{1} << 30;  // values; MPI counts are of type int
}

HostReduction::HostReduction(std::shared_ptr<const Ranks> ranks, std::unique_ptr<Element> element,
                             std::unique_ptr<Allreduce> allreduce, std::unique_ptr<Ranks> ordered)
    : ranks_(std::move(ranks)),
      ordered_(std::move(ordered)),
      element_(std::move(element)),
      allreduce_(std::move(allreduce)) {}

std::byte* HostReduction::narrowed(std::span<const float> values) {
  if (narrow_.size() < payload_bytes(values.size())) narrow_.resize(payload_bytes(values.size()));
  element_->narrow(values, static_cast<float>(ranks_->size), narrow_.data());
  return narrow_.data();
}

void HostReduction::mean(std::span<float> values, const std::vector<std::size_t>& parts) {
  if (values.empty()) return;
  std::byte* data = casts() ? narrowed(values) : reinterpret_cast<std::byte*>(values.data());
  const float divisor = casts() ? 1.0f : static_cast<float>(ranks_->size);
  std::size_t first = 0;
  for (const std::size_t count : parts) {
    reduce({first, count}, data, divisor);
    first += count;
  }
  if (casts()) element_->widen(data, values);
}

void HostReduction::allreduce_mean(std::span<float> values) {
  if (!segments_.empty() && segments_.back() == values.size()) return allreduce_gradient(values, 0, values.size());
  mean(values, {values.size()});
}

void HostReduction::allreduce_gradient(std::span<float> gradient, std::size_t first, std::size_t count) {
  std::vector<std::size_t> parts{count};
  const auto begin = std::lower_bound(segments_.begin(), segments_.end(), first);
  const auto end = std::lower_bound(segments_.begin(), segments_.end(), first + count);
  const bool filled = begin != segments_.end() && *begin == first && end != segments_.end() && *end == first + count;
  if (allreduce_->by_segment() && filled) {
    parts.clear();
    for (auto segment = begin; segment != end; ++segment) parts.push_back(segment[1] - segment[0]);
  }
  mean(gradient.subspan(first, count), parts);
}

void HostReduction::reduce_sum(std::span<float> values, int root) {
  const bool receives = ranks_->rank == root;
  std::byte* data = casts() ? narrowed(values) : reinterpret_cast<std::byte*>(values.data());
  for (std::size_t done = 0; done < values.size(); done += host_reduction::longest_call) {
    std::byte* part = data + done * element_->bytes();
    const auto count = static_cast<int>(std::min(values.size() - done, host_reduction::longest_call));
    MPI_Reduce(receives ? MPI_IN_PLACE : part, receives ? part : nullptr, count, element_->type(), element_->sum(),
               root, ranks_->world);
  }
  if (!casts() || !receives) return;
  element_->widen(data, values);
  for (float& value : values) value *= static_cast<float>(ranks_->size);
}

// One call each: the halves of longer vectors would belong to other slices.
void HostReduction::reduce_scatter_mean(std::span<float> values) {
  if (values.size() > host_reduction::longest_call) {
    throw Error("‹updater› sharded", "the network has more than 2^30 parameters", "take allreduce");
  }
  if (!casts()) {
    return allreduce_->reduce_scatter(
        {*element_, reinterpret_cast<std::byte*>(values.data()), values.size(), static_cast<float>(ranks_->size)});
  }
  std::byte* const data = narrowed(values);
  allreduce_->reduce_scatter({*element_, data, values.size(), 1});
  const Slice own = own_shard(values.size());
  element_->widen(data + own.first * element_->bytes(), values.subspan(own.first, own.count));
}

void HostReduction::all_gather(std::span<float> values) {
  allreduce_->all_gather({f32_, reinterpret_cast<std::byte*>(values.data()), values.size(), 1});
}

void HostReduction::reduce(Slice slice, std::byte* data, float divisor) {
  for (std::size_t done = 0; done < slice.count; done += host_reduction::longest_call) {
    std::byte* part = data + (slice.first + done) * element_->bytes();
    allreduce_->reduce({*element_, part, std::min(slice.count - done, host_reduction::longest_call), divisor});
  }
}

}  // namespace paceline::train
