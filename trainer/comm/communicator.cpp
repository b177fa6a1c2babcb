#include "trainer/comm/communicator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trainer/comm/algorithms.h"
#include "trainer/comm/host_communicator.h"
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

std::vector<std::string> communicator_names() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : algorithms) names.emplace_back(algorithm.name);
  return names;
}

std::vector<std::string> allreduce_dtypes() { return {"f32", "f16", "bf16"}; }

std::unique_ptr<HostCommunicator> make_host_communicator(const std::string& name, const std::string& dtype,
                                                         std::unique_ptr<Ranks> ranks) {
  for (const Algorithm& algorithm : algorithms) {
    if (name != algorithm.name) continue;
    auto allreduce = algorithm.make(*ranks);
    return std::make_unique<HostCommunicator>(std::move(ranks), std::make_unique<Element>(dtype), std::move(allreduce));
  }
  throw Error(fmt::format("no communicator '{}'; known: {}", name, fmt::join(communicator_names(), ", ")),
              Status::usage);
}

std::unique_ptr<Communicator> make_communicator(const std::string& name, const std::string& dtype) {
  return make_host_communicator(name, dtype, std::make_unique<Ranks>(MPI_COMM_WORLD));
}

}  // namespace paceline::train
