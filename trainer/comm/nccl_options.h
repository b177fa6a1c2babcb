// SPDX-License-Identifier: Apache-2.0
// The options of communicators on GPUs. This file does not need CUDA.
#pragma once

#include <string>
#include <vector>

namespace paceline::train::nccl {

// The number of thread blocks (CTAs, each on a multiprocessor) that NCCL's kernels may use: fewer leave more of the GPU
// to the model's kernels, more move data faster. 0: NCCL's choice.
struct Ctas {
  int least = 0, most = 0;
};

// "8": at most 8; "4:8": 4 to 8. Throws Error (usage) for other texts; NCCL has at most 64.
Ctas parse_ctas(const std::string& text);

struct Options {
  std::string dtype = "f32";  // that gradients are sent in
  std::string ring_order{};   // as parse_ring_order() takes it
  Ctas ctas{};
  bool registered = false;  // gradients lie in memory that NCCL allocates and registers
  double timeout_s = 600;   // time limit for a missing rank, which NCCL's and MPI's own waits do not have
};

// Whether a communicator on GPUs uses NCCL, at least in part.
bool uses_nccl(const std::string& communicator);

// The host and GPU of a rank.
struct Placement {
  std::string host;         // its name, or NCCL_HOSTID
  std::string device_uuid;  // of its GPU; empty: no GPU
};

// ranks: by rank. Throws Error (usage) if two have the same GPU of one host, which NCCL refuses, or one has
// none.
void check_placement(const std::string& communicator, const std::vector<Placement>& ranks);

// The error message for a failed NCCL call: the call, NCCL's description of the code, its last message, and a remedy.
// code: a ncclResult_t. message: of ncclGetLastError; may be empty or have several lines.
std::string failure(const std::string& call, int code, const std::string& words, const std::string& message);

// The error message for a missing rank: `what` did not end within the time limit.
std::string timeout(const std::string& what, double seconds, const std::string& message);

}  // namespace paceline::train::nccl
