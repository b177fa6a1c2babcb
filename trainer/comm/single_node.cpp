// `single_node`, as ChainerMN has it: for one host, where the library's allreduce (there NCCL's) is all that is needed.
#include <fmt/format.h>

#include "trainer/comm/algorithms.h"
#include "trainer/error.h"

namespace paceline::train {

std::unique_ptr<Allreduce> make_single_node(const Ranks& ranks) {
  if (ranks.hosts > 1) {
    throw Error(fmt::format("communicator single_node: the {} ranks are on {} hosts; take another, e.g. hierarchical",
                            ranks.size, ranks.hosts),
                Status::usage);
  }
  return make_mpi(ranks);
}

}  // namespace paceline::train
