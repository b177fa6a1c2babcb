// SPDX-License-Identifier: Apache-2.0
// What data-parallel training needs of the other ranks, and the table of the algorithms that can be chosen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/collectives.h"
#include "trainer/comm/gradient_reduction.h"
#include "trainer/comm/ranks.h"

namespace paceline::train {

struct Communicator {
  std::unique_ptr<Collectives> collectives;
  std::unique_ptr<GradientReduction> reduction;
};

// The known algorithms with a one-line description of each, and the types that a mean may travel in.
struct CommunicatorName {
  std::string name, summary;
};
std::vector<CommunicatorName> communicator_summaries();
std::vector<CommunicatorName> communicator_choices();  // also those that need a GPU
std::vector<std::string> communicator_names();
std::vector<std::string> allreduce_dtypes();  // f32, f16, bf16

// Makes the communicator of that name over all ranks of the job; a collective call. `ring_order` is parsed by
// parse_ring_order(): the algorithm sees the ranks in that order, while rank() and the collective calls keep the job's
// order. Throws Error (usage) for an unknown name or type, and on all ranks if the job's hosts do not suit the
// algorithm. MPI must be initialised, and finalised after the communicator is destroyed.
Communicator make_communicator(const std::string& name, const std::string& dtype = "f32",
                               const std::string& ring_order = "");

// The same over other ranks: a part of the job, or with the hosts that a test gives them.
Communicator make_host_communicator(const std::string& name, const std::string& dtype, std::unique_ptr<Ranks> ranks,
                                    const std::vector<int>& ring_order = {});

}  // namespace paceline::train
