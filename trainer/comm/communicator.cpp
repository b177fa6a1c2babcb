// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/communicator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trainer/comm/algorithms.h"
#include "trainer/comm/host_collectives.h"
#include "trainer/comm/host_reduction.h"
#include "trainer/comm/nccl_algorithms.h"
#include "trainer/comm/ring_order.h"
#include "trainer/core/error.h"

namespace paceline::train {
namespace {

struct Algorithm {
  const char* name;
  const char* summary;
  std::unique_ptr<Allreduce> (*make)(const Ranks&);
};

#define PACELINE_ROW(name, summary) {#name, summary, make_##name},
constexpr Algorithm algorithms[] = {PACELINE_ALGORITHMS(PACELINE_ROW)};
#undef PACELINE_ROW

#define PACELINE_ROW(name, summary) {#name, summary},
const CommunicatorName nccl_algorithms[] = {PACELINE_NCCL_ALGORITHMS(PACELINE_ROW)};
#undef PACELINE_ROW

}  // namespace

std::vector<CommunicatorName> communicator_summaries() {
  std::vector<CommunicatorName> names;
  for (const Algorithm& algorithm : algorithms) names.push_back({algorithm.name, algorithm.summary});
  return names;
}

std::vector<CommunicatorName> communicator_choices() {
  std::vector<CommunicatorName> names = communicator_summaries();
  for (const CommunicatorName& row : nccl_algorithms) {
    if (std::ranges::count(names, row.name, &CommunicatorName::name) == 0) names.push_back(row);
  }
  return names;
}

std::vector<std::string> communicator_names() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms) names.emplace_back(algorithm.name);
  return names;
}

std::vector<std::string> allreduce_dtypes() { return {"f32", "f16", "bf16"}; }

std::unique_ptr<Allreduce> make_allreduce(const std::string& name, const Ranks& ranks) {
  for (const Algorithm& algorithm : algorithms) {
    if (name == algorithm.name) return algorithm.make(ranks);
  }
  if (name == "pure_nccl") {
    throw Error("communicator pure_nccl", "NCCL reduces in GPU memory", "take ‹device› cuda, or communicator mpi",
                Status::usage);
  }
  throw Error("communicator " + name, "unknown communicator",
              fmt::format("use one of {}", fmt::join(communicator_names(), ", ")), Status::usage);
}

Communicator make_host_communicator(const std::string& name, const std::string& dtype, std::unique_ptr<Ranks> own,
                                    const std::vector<int>& ring_order) {
  if (std::ranges::count(allreduce_dtypes(), dtype) == 0) {
    throw Error("‹allreduce-dtype› " + dtype, "unknown type",
                fmt::format("use one of {}", fmt::join(allreduce_dtypes(), ", ")), Status::usage);
  }
  const std::shared_ptr<const Ranks> ranks = std::move(own);
  std::unique_ptr<Ranks> ordered = ring_order.empty() ? nullptr : in_ring_order(*ranks, ring_order);
  auto allreduce = make_allreduce(name, ordered ? *ordered : *ranks);
  auto element = std::make_unique<Element>(dtype);
  return {std::make_unique<HostCollectives>(ranks),
          std::make_unique<HostReduction>(ranks, std::move(element), std::move(allreduce), std::move(ordered))};
}

Communicator make_communicator(const std::string& name, const std::string& dtype, const std::string& ring_order) {
  auto ranks = std::make_unique<Ranks>(MPI_COMM_WORLD);
  const std::vector<int> order = parse_ring_order(ring_order, ranks->size);
  return make_host_communicator(name, dtype, std::move(ranks), order);
}

}  // namespace paceline::train
