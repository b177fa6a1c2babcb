// What data-parallel training asks of the other ranks. One file per algorithm; all ranks call the same functions in the
// same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/slice.h"

namespace paceline::train {

// A mean over the ranks that is under way beside the host.
class Transfer {
 public:
  virtual ~Transfer() = default;

  // Sleeps until the gradients have been computed.
  virtual void wait_until_ready() = 0;

  // Returns when their mean is in their place; does what of it is the host's work. Once each, in the order in which
  // they began. Throws Error where the library's communication has failed, or another rank is missing for too long.
  virtual void finish() = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  // among the ranks of this host
  virtual int local_size() const = 0;

  // Where the parameters lie in the gradient: their first positions, ascending, and last the gradient's length. A mean
  // over the gradient, or a part that parameters fill, goes by parameter where the algorithm does so (naive).
  virtual void set_segments(std::vector<std::size_t>) {}

  // Replaces the values by their mean over the ranks, the same bits on every rank. In fp32 that is the sum, then one
  // division. In a 16-bit type each rank divides first, so that the sum stays in range, and rounds to that type; each
  // addition rounds too.
  virtual void allreduce_mean(std::span<float> values) = 0;

  // The mean of a part of the gradient, in place: positions [first, first + count).
  virtual void allreduce_gradient(std::span<float> gradient, std::size_t first, std::size_t count) = 0;

  // For gradients on a GPU: begins the mean of these parts, and returns at once. They are there when this is called,
  // or, after set_stream(), when that stream has come to where it is now. Null where the gradient is in host memory:
  // then allreduce_gradient() is all there is.
  virtual std::unique_ptr<Transfer> begin_mean(std::span<float>, std::span<const Slice>) { return nullptr; }

  // Whether begin_mean() has put all of the work into a stream of the device; the host takes no part, and makes no MPI
  // call. join() then waits for all that was begun: the model's stream does after set_stream(), else the caller.
  virtual bool queues() const { return false; }
  virtual void join() {}

  // The stream that the model computes with, a cudaStream_t, for a model that hands gradients over before they are
  // there and takes means before they are.
  virtual void set_stream(void*) {}

  // Memory for a gradient where the model computes, zeroed; 64-byte aligned at least. The communicator must outlive it.
  virtual std::shared_ptr<float> gradient_memory(std::size_t values) const;

  // Whether gradients should lie in gradient_memory() and nowhere else: the library has registered it.
  virtual bool wants_gradients() const { return false; }

  // Copies between memory of the host, or of gradient_memory().
  virtual void copy(std::span<const float> from, std::span<float> to) const;

  // Adds the values of all ranks up on `root`; on the others they are left as they were. In a 16-bit type each rank
  // divides by the number of ranks first, and the root multiplies the sum by it, so that the sum stays in range.
  virtual void reduce_sum(std::span<float> values, int root) = 0;

  // Returns when all ranks have called it; sleeps meanwhile, so that a thread that waits takes no core from one that
  // computes. Up to 0.2 ms late.
  virtual void wait_for_all() = 0;

  // Messages between two ranks. send() may wait until the other rank receives; receive() sleeps until one of that
  // length has come; sender() is a rank whose message has come and was not received, nothing where there is none.
  virtual void send(std::span<const std::byte> bytes, int to) = 0;
  virtual void receive(std::span<std::byte> bytes, int from) = 0;
  virtual std::optional<int> sender() = 0;

  // Every rank's bytes, by rank; `all` has room for `own` of each. `own` has the same length on all.
  virtual void allgather(std::span<const std::byte> own, std::span<std::byte> all) = 0;

  // Bytes that a mean over so many values takes from each rank: what profilers and bandwidths go by.
  virtual std::size_t payload_bytes(std::size_t values) const { return values * sizeof(float); }

  // Replaces the values by their sum over the ranks.
  virtual void allreduce_sum(std::span<double> values) = 0;

  // Replaces the values by those of `root`.
  virtual void broadcast(std::span<float> values, int root) = 0;
  virtual void broadcast(std::span<std::uint64_t> values, int root) = 0;
  virtual void broadcast(std::span<std::byte> values, int root) = 0;
};

// The known algorithms, each with one line that says what it does, and the types that a mean may travel in.
struct CommunicatorName {
  std::string name, summary;
};
std::vector<CommunicatorName> communicator_summaries();
std::vector<CommunicatorName> communicator_choices();  // and those that need a GPU
std::vector<std::string> communicator_names();
std::vector<std::string> allreduce_dtypes();  // f32, f16, bf16

// The communicator of that name over all ranks of the job; a collective call. `ring_order`: as parse_ring_order() takes
// it; the algorithm sees the ranks in that order, rank() and the rest stay. Throws Error (usage) for another name or
// type, and on all ranks where the job's hosts do not suit the algorithm. MPI must be initialised, and finalised later
// than the communicator ends.
std::unique_ptr<Communicator> make_communicator(const std::string& name, const std::string& dtype = "f32",
                                                const std::string& ring_order = "");

}  // namespace paceline::train
