// SPDX-License-Identifier: Apache-2.0
// `single_node`, as in ChainerMN: for one host, where the library's allreduce (NCCL's in ChainerMN) is enough.
#include <fmt/format.h>

#include "trainer/comm/algorithms.h"
#include "trainer/core/error.h"

namespace paceline::train {

std::unique_ptr<Allreduce> make_single_node(const Ranks& ranks) {
  if (ranks.hosts > 1) {
    throw Error("communicator single_node", fmt::format("the {} ranks are on {} hosts", ranks.size, ranks.hosts),
                "take another, e.g. hierarchical", Status::usage);
  }
  return make_mpi(ranks);
}

}  // namespace paceline::train
