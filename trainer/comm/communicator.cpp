#include "trainer/comm/communicator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "trainer/comm/algorithms.h"
#include "trainer/comm/host_communicator.h"
#include "trainer/comm/ring_order.h"
#include "trainer/error.h"

namespace paceline::train {
namespace {

struct Algorithm {
  const char* name;
  const char* summary;
  std::unique_ptr<Allreduce> (*make)(const Ranks&);
};

constexpr Algorithm algorithms[] = {
    {"mpi", "the MPI library's allreduce over the whole gradient, in place", make_mpi},
    {"naive", "the MPI library's allreduce, once per parameter", make_naive},
    {"flat", "packed into one buffer, the MPI library's allreduce, unpacked", make_flat},
    {"hierarchical", "sum in each host, leaders exchange slices, broadcast in each host", make_hierarchical},
    {"two_dimensional", "slices summed in each host, then between ranks of equal local rank", make_two_dimensional},
    {"single_node", "the MPI library's allreduce; an error on more than one host", make_single_node},
    {"non_cuda_aware", "hierarchical through staging buffers (on CPUs: through copies)", make_non_cuda_aware},
    {"ring", "reduce-scatter and allgather around a ring, pipelined", make_ring},
    {"halving_doubling", "recursive halving and doubling, binary blocks", make_halving_doubling},
    {"three_phase", "sum in each host, halving and doubling between leaders, broadcast", make_three_phase},
};

}  // namespace

std::vector<CommunicatorName> communicator_summaries() {
  std::vector<CommunicatorName> names;
  for (const Algorithm& algorithm : algorithms) names.push_back({algorithm.name, algorithm.summary});
  return names;
}

std::vector<CommunicatorName> communicator_choices() {
  std::vector<CommunicatorName> names = communicator_summaries();
  names.push_back({"pure_nccl", "NCCL's allreduce over all ranks, one GPU each"});
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
    throw Error("communicator pure_nccl: NCCL reduces in the memory of GPUs: take --device cuda, or mpi",
                Status::usage);
  }
  throw Error(fmt::format("no communicator '{}'; known: {}", name, fmt::join(communicator_names(), ", ")),
              Status::usage);
}

std::unique_ptr<HostCommunicator> make_host_communicator(const std::string& name, const std::string& dtype,
                                                         std::unique_ptr<Ranks> ranks,
                                                         const std::vector<int>& ring_order) {
  if (std::ranges::count(allreduce_dtypes(), dtype) == 0) {
    throw Error(fmt::format("no type '{}' to reduce in; known: {}", dtype, fmt::join(allreduce_dtypes(), ", ")),
                Status::usage);
  }
  std::unique_ptr<Ranks> ordered = ring_order.empty() ? nullptr : in_ring_order(*ranks, ring_order);
  auto allreduce = make_allreduce(name, ordered ? *ordered : *ranks);
  return std::make_unique<HostCommunicator>(std::move(ranks), std::make_unique<Element>(dtype), std::move(allreduce),
                                            std::move(ordered));
}

std::unique_ptr<Communicator> make_communicator(const std::string& name, const std::string& dtype,
                                                const std::string& ring_order) {
  auto ranks = std::make_unique<Ranks>(MPI_COMM_WORLD);
  const std::vector<int> order = parse_ring_order(ring_order, ranks->size);
  return make_host_communicator(name, dtype, std::move(ranks), order);
}

std::shared_ptr<float> Communicator::gradient_memory(std::size_t values) const {
  constexpr std::size_t line = 64;
  const std::size_t bytes = (values * sizeof(float) + line - 1) / line * line;
  void* memory = std::aligned_alloc(line, std::max(bytes, line));
  if (memory == nullptr) throw std::bad_alloc();
  std::shared_ptr<float> owner(static_cast<float*>(memory), [](float* numbers) { std::free(numbers); });
  std::fill_n(owner.get(), values, 0.0f);
  return owner;
}

void Communicator::copy(std::span<const float> from, std::span<float> to) const { std::ranges::copy(from, to.begin()); }

}  // namespace paceline::train
