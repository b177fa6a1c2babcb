// What can be chosen of communicators on GPUs. Knows nothing of CUDA.
#pragma once

#include <string>
#include <vector>

namespace paceline::train::nccl {

// How many blocks of threads (CTAs, each on a multiprocessor) NCCL's kernels may take: fewer leave more of the GPU to
// what computes beside them, more move data faster. 0: NCCL's choice.
struct Ctas {
  int least = 0, most = 0;
};

// "8": at most 8; "4:8": 4 to 8. Throws Error (usage) for anything else; NCCL has at most 64.
Ctas parse_ctas(const std::string& text);

struct Options {
  std::string dtype = "f32";  // that means travel in
  std::string ring_order{};   // as parse_ring_order() takes it
  Ctas ctas{};
  bool registered = false;  // gradients in memory that NCCL allocated and has registered
  double timeout_s = 600;   // for another rank; what NCCL and MPI's own waits have no limit for
};

// Whether a communicator on GPUs is NCCL's, in part at least.
bool uses_nccl(const std::string& communicator);

// Where a rank is.
struct Placement {
  std::string host;
  std::string device_uuid;  // of its GPU; empty: it has none
};

// By rank. Throws Error (usage) where two have the same GPU, which NCCL refuses, or one has none.
void check_placement(const std::string& communicator, const std::vector<Placement>& ranks);

// One line for a failure of a call of NCCL: what it was, NCCL's words for the code and its last message, and what to
// do. `code`: a ncclResult_t; `message`: of ncclGetLastError, may be empty or of several lines.
std::string failure(const std::string& call, int code, const std::string& words, const std::string& message);

// One line for a rank that is missing: `what` did not end within the time.
std::string timeout(const std::string& what, double seconds, const std::string& message);

}  // namespace paceline::train::nccl
