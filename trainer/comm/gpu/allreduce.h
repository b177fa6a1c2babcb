// SPDX-License-Identifier: Apache-2.0
// The interface of an allreduce algorithm on GPU memory. It works on numbers of one type and knows neither gradients
// nor casts.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/gpu/nccl_comm.h"
#include "trainer/comm/gpu/numbers.h"
#include "trainer/comm/nccl_algorithms.h"
#include "trainer/comm/nccl_options.h"
#include "trainer/comm/ranks.h"
#include "trainer/core/slice.h"

namespace paceline::train::nccl {

// The numbers of this rank, in memory that kernels and copies of the host can reach. There are at most 2^30, for MPI's
// counts.
struct Values {
  Type type;
  std::byte* data;
  std::size_t count;
  float divisor;  // of the sums; 1 for the 16-bit types, which are divided before the cast

  std::byte* at(std::size_t position) const { return data + position * bytes_of(type); }

  // Divides the sums of a slice. The rank that has the complete sums calls it once, before the other ranks get them.
  void divide(Slice slice, cudaStream_t stream) const {
    if (divisor != 1) nccl::divide(reinterpret_cast<float*>(at(slice.first)), slice.count, divisor, stream);
  }
  void divide(cudaStream_t stream) const { divide({0, count}, stream); }
};

class Allreduce {
 public:
  virtual ~Allreduce() = default;

  // Queues work in the stream that replaces the values by the sum over the ranks ÷ divisor, with the same bits on every
  // rank. An algorithm that uses MPI waits for the stream and returns when its MPI calls are done. A collective call.
  virtual void reduce(const Values& values, cudaStream_t stream) = 0;

  // Whether reduce() uses MPI, and so the host.
  virtual bool uses_mpi() const = 0;

  // Whether reduce() must be called for one parameter at a time.
  virtual bool by_segment() const { return false; }

  // The two halves of an allreduce, as in comm/allreduce.h, queued in the stream; only if has_halves().
  virtual bool has_halves() const { return false; }
  virtual Slice own_slice(std::size_t count) const { return {0, count}; }
  virtual void reduce_scatter(const Values&, cudaStream_t) {}
  virtual void all_gather(const Values&, cudaStream_t) {}

  // The NCCL communicators in use, which are checked for errors and with which memory is registered.
  virtual std::vector<NcclComm*> comms() { return {}; }
};

// make_NAME() of each row of nccl_algorithms.h. `ranks` must outlive the algorithm. All are collective calls over
// ranks.world and throw Error on all ranks alike.
#define PACELINE_ROW(name, summary) std::unique_ptr<Allreduce> make_##name(const Ranks& ranks, const Options& options);
PACELINE_NCCL_ALGORITHMS(PACELINE_ROW)
#undef PACELINE_ROW

// The algorithm of that name (comm/algorithms.h) on host memory, for any MPI library.
std::unique_ptr<Allreduce> make_staged(const std::string& name, const Ranks& ranks, const Options& options);

// mpi, naive, flat: the MPI library's allreduce on GPU memory, in fp32. The library must be CUDA-aware.
std::unique_ptr<Allreduce> make_cuda_aware(const std::string& name, const Ranks& ranks);

// Waits on the host for an event, or for the work in the stream; a thread that called sleep_in_waits() sleeps.
// Meanwhile it checks the NCCL communicators for errors. If one has failed, or after limit_s seconds, it aborts all of
// them, so that no stream hangs, and throws Error. Without communicators there is no time limit.
void wait_for_event(cudaEvent_t event, std::span<NcclComm* const> comms = {}, double limit_s = 0);
void wait_for_stream(cudaStream_t stream, std::span<NcclComm* const> comms = {}, double limit_s = 0);

// Runs `make`, which may throw on some ranks, and throws the first rank's error on all ranks.
void all_or_none(MPI_Comm comm, const std::function<void()>& make);

}  // namespace paceline::train::nccl
