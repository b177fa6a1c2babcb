// What data-parallel training asks of the other ranks. One file per algorithm; all ranks call the same functions in the
// same order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace paceline::train {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  // among the ranks of this host
  virtual int local_size() const = 0;

  // Replaces the values by their mean over the ranks: the sum, then one division, the same bits on every rank.
  virtual void allreduce_mean(std::span<float> values) = 0;

  // Replaces the values by their sum over the ranks.
  virtual void allreduce_sum(std::span<double> values) = 0;

  // Replaces the values by those of `root`.
  virtual void broadcast(std::span<float> values, int root) = 0;
  virtual void broadcast(std::span<std::uint64_t> values, int root) = 0;
};

// Known names, and the one of that name over all ranks of the job. Throws Error (usage) for another name. MPI must be
// initialised.
std::vector<std::string> communicator_names();
std::unique_ptr<Communicator> make_communicator(const std::string& name);

}  // namespace paceline::train
