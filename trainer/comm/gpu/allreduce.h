// What an allreduce on the GPU is: it knows neither gradients nor casts, only numbers of one type in the GPU's memory.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/gpu/algorithms.h"
#include "trainer/comm/gpu/nccl_comm.h"
#include "trainer/comm/gpu/numbers.h"
#include "trainer/comm/gpu/options.h"
#include "trainer/comm/ranks.h"
#include "trainer/core/slice.h"

namespace paceline::train::nccl {

// The numbers of this rank, in memory that kernels and the host's copies can reach. At most 2^30, for MPI's counts.
struct Values {
  Type type;
  std::byte* data;
  std::size_t count;
  float divisor;  // of the sums; 1 for the 16-bit types, which are divided before the cast

  std::byte* at(std::size_t position) const { return data + position * bytes_of(type); }

  // Where a rank has the complete sums of a slice it divides them, once, before the other ranks get them.
  void divide(Slice slice, cudaStream_t stream) const {
    if (divisor != 1) nccl::divide(reinterpret_cast<float*>(at(slice.first)), slice.count, divisor, stream);
  }
  void divide(cudaStream_t stream) const { divide({0, count}, stream); }
};

class Allreduce {
 public:
  virtual ~Allreduce() = default;

  // Puts the work into the stream behind what is there: the values become sum over the ranks ÷ divisor, the same bits
  // on every rank. One that communicates through MPI waits for the stream and returns when all is done. A collective
  // call.
  virtual void reduce(const Values& values, cudaStream_t stream) = 0;

  // Whether reduce() takes MPI, and so the host.
  virtual bool uses_mpi() const = 0;

  // Whether the gradient is to be handed over parameter by parameter.
  virtual bool by_segment() const { return false; }

  // NCCL's communicators in use: errors are looked for in them, and memory registered with them.
  virtual std::vector<NcclComm*> comms() { return {}; }
};

// make_NAME() of each row of gpu/algorithms.h. `ranks` must outlive the algorithm. All are collective calls over
// ranks.world and throw Error on all ranks alike.
#define PACELINE_ROW(name, summary) std::unique_ptr<Allreduce> make_##name(const Ranks& ranks, const Options& options);
PACELINE_NCCL_ALGORITHMS(PACELINE_ROW)
#undef PACELINE_ROW

// Through host memory, by the algorithm of that name (comm/algorithms.h), whatever the MPI library knows of GPUs.
std::unique_ptr<Allreduce> make_staged(const std::string& name, const Ranks& ranks, const Options& options);

// mpi, naive, flat: the MPI library on the GPU's memory; fp32. For a library that is CUDA-aware.
std::unique_ptr<Allreduce> make_cuda_aware(const std::string& name, const Ranks& ranks);

// The host waits for an event, or for what is in the stream: asleep in a thread that communicates beside a computing
// one. Meanwhile it looks for errors in the comms. Where one has failed, or after so many seconds, it aborts them
// all, so that no stream hangs, and throws Error. Without comms it waits as long as it takes.
void wait_for_event(cudaEvent_t event, std::span<NcclComm* const> comms = {}, double limit_s = 0);
void wait_for_stream(cudaStream_t stream, std::span<NcclComm* const> comms = {}, double limit_s = 0);

// Runs `make`, in which a rank may fail alone, and throws what the first one threw on all.
void all_or_none(MPI_Comm comm, const std::function<void()>& make);

}  // namespace paceline::train::nccl
