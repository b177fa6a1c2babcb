// SPDX-License-Identifier: Apache-2.0
// What a transfer costs, fitted on the collectives and messages of a run.
//
// A collective of n bytes over p ranks takes L(p) α + B(p) n β + G(p) n γ after its last arrival, with the factors of
// its algorithm (docs/metrics.md). From one rank count only a = L α and b = B β + G γ can be told apart, so these are
// fitted, and the factors decide how they change with p and with the algorithm. A collective of a size that was
// observed takes the median of its size instead; the fit gives the ratio to other sizes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace paceline::analysis {

enum class AllreduceAlgorithm : std::uint8_t { ring, halving_doubling, tree };
// "ring", "halving_doubling" (also "mpi" and the like), "tree" (reduce and broadcast); nothing for other texts.
std::optional<AllreduceAlgorithm> algorithm_named(std::string_view name);

// L and B of an algorithm over p ranks.
struct AlgorithmFactors {
  double latency = 0, bandwidth = 0;
};
AlgorithmFactors allreduce_factors(AllreduceAlgorithm algorithm, double ranks);

struct TransferCost {
  double latency_ns = 0, ns_per_byte = 0;  // a and b
  double of(double bytes) const { return latency_ns + ns_per_byte * bytes; }
};

// Transfers of one kind: the operation ("MPI_Allreduce", "message") and how many ranks took part.
using TransferKind = std::pair<std::string, std::uint32_t>;

class NetworkModel {
 public:
  // `id` is the caller's number of the observation.
  void observe(const TransferKind& kind, std::uint64_t bytes, double ns, std::uint32_t id = 0) {
    observed_[{kind.first, kind.second, bytes}].push_back({ns, id});
  }
  // After all observations: sorts the times of each size, and finds a and b of each kind by least squares of the
  // relative errors of the medians. A kind with one size has the latency of the smallest transfer of any kind with as
  // many ranks.
  void fit();

  struct Observation {
    double ns = 0;
    std::uint32_t id = 0;
  };
  // The observed transfer of this size at the quantile (0 to 1) of the times; nothing where the size was not observed.
  std::optional<Observation> sample(const TransferKind& kind, std::uint64_t bytes, double quantile) const;
  // The time of such a transfer: of the sample, or by the fit where the size was not observed; 0 if the kind never was.
  double time_ns(const TransferKind& kind, std::uint64_t bytes, double quantile = 0.5) const;
  const TransferCost* cost(const TransferKind& kind) const;

 private:
  using Key = std::tuple<std::string, std::uint32_t, std::uint64_t>;
  std::map<Key, std::vector<Observation>> observed_;  // by time, after fit()
  std::map<TransferKind, TransferCost> costs_;
};

}  // namespace paceline::analysis
