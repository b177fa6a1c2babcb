// `mpi`: one MPI_Allreduce over the whole gradient; the algorithm is the MPI library's choice.
#pragma once

#include "trainer/comm/communicator.h"

namespace paceline::train {

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator();

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  int local_size() const override { return local_size_; }

  void allreduce_mean(std::span<float> values) override;
  void allreduce_sum(std::span<double> values) override;
  void broadcast(std::span<float> values, int root) override;
  void broadcast(std::span<std::uint64_t> values, int root) override;

 private:
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
};

}  // namespace paceline::train
