// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph/network_model.h"

#include <algorithm>
#include <cmath>

namespace paceline::analysis {
namespace network_fitting {

struct Size {
  double bytes = 0, ns = 0, weight = 0;
};

// Least squares of the relative errors, with a and b at least 0.
TransferCost fit_line(const std::vector<Size>& sizes) {
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const Size& size : sizes) {
    const double of = size.weight / std::max(size.ns * size.ns, 1.0);
    w += of;
    x += of * size.bytes;
    y += of * size.ns;
    xx += of * size.bytes * size.bytes;
    xy += of * size.bytes * size.ns;
  }
  const double spread = w * xx - x * x;
  TransferCost cost;
  cost.ns_per_byte = spread > 0 ? std::max((w * xy - x * y) / spread, 0.0) : 0;
  cost.latency_ns = (y - cost.ns_per_byte * x) / w;
  if (cost.latency_ns >= 0) return cost;
  return {0, xx > 0 ? xy / xx : 0};
}

}  // namespace network_fitting

std::optional<AllreduceAlgorithm> algorithm_named(std::string_view name) {
  if (name == "ring" || name == "pure_nccl") return AllreduceAlgorithm::ring;
  if (name == "halving_doubling" || name == "mpi" || name == "flat" || name == "naive" || name == "single_node") {
    return AllreduceAlgorithm::halving_doubling;
  }
  if (name == "tree") return AllreduceAlgorithm::tree;
  return std::nullopt;
}

AlgorithmFactors allreduce_factors(AllreduceAlgorithm algorithm, double ranks) {
  const double steps = std::ceil(std::log2(std::max(ranks, 1.0))), moved = 2 * (ranks - 1) / std::max(ranks, 1.0);
  switch (algorithm) {
    case AllreduceAlgorithm::ring:
      return {2 * (ranks - 1), moved};
    case AllreduceAlgorithm::halving_doubling:
      return {2 * steps, moved};
    case AllreduceAlgorithm::tree:
      return {2 * steps, 2 * steps};
  }
  return {};
}

void NetworkModel::fit() {
  using namespace network_fitting;
  std::map<TransferKind, std::vector<Size>> sizes;
  std::map<std::uint32_t, std::pair<double, double>> smallest;  // bytes and time, by ranks
  for (auto& [key, times] : observed_) {
    std::ranges::stable_sort(times, {}, &Observation::ns);
    const auto& [operation, ranks, bytes] = key;
    const double median = (times[(times.size() - 1) / 2].ns + times[times.size() / 2].ns) / 2;
    const double n = static_cast<double>(bytes);
    sizes[{operation, ranks}].push_back({n, median, static_cast<double>(times.size())});
    const auto [found, fresh] = smallest.try_emplace(ranks, n, median);
    if (!fresh && std::pair(n, median) < found->second) found->second = {n, median};
  }
  for (const auto& [kind, of] : sizes) {
    if (of.size() > 1) {
      costs_[kind] = fit_line(of);
      continue;
    }
    const auto [bytes, ns] = smallest.at(kind.second);
    const double latency = of[0].bytes > 0 && bytes < of[0].bytes ? std::min(ns, of[0].ns)
                           : of[0].bytes > 0                      ? 0
                                                                  : of[0].ns;
    costs_[kind] = {latency, of[0].bytes > 0 ? (of[0].ns - latency) / of[0].bytes : 0};
  }
}

const TransferCost* NetworkModel::cost(const TransferKind& kind) const {
  const auto found = costs_.find(kind);
  return found == costs_.end() ? nullptr : &found->second;
}

std::optional<NetworkModel::Observation> NetworkModel::sample(const TransferKind& kind, std::uint64_t bytes,
                                                              double quantile) const {
  const auto found = observed_.find({kind.first, kind.second, bytes});
  if (found == observed_.end()) return std::nullopt;
  const auto& times = found->second;
  const auto place = static_cast<std::size_t>(quantile * static_cast<double>(times.size()));
  return times[std::min(place, times.size() - 1)];
}

double NetworkModel::time_ns(const TransferKind& kind, std::uint64_t bytes, double quantile) const {
  if (const auto observed = sample(kind, bytes, quantile)) return observed->ns;
  const TransferCost* known = cost(kind);
  return known == nullptr ? 0 : known->of(static_cast<double>(bytes));
}

}  // namespace paceline::analysis
