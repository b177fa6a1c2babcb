// SPDX-License-Identifier: Apache-2.0
// The first ranks of a job, for tests of data parallelism, and every communicator over them.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/comm/ranks.h"

namespace paceline::train {

// The first `size` ranks; MPI_COMM_NULL on the others.
class SomeRanks {
 public:
  explicit SomeRanks(int size) : size_(size) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank < size ? 0 : MPI_UNDEFINED, rank, &comm_);
  }
  ~SomeRanks() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  SomeRanks(const SomeRanks&) = delete;
  SomeRanks& operator=(const SomeRanks&) = delete;
  explicit operator bool() const { return comm_ != MPI_COMM_NULL; }
  MPI_Comm comm() const { return comm_; }

  // A communicator's name and its ranks: all on one host, or in two halves.
  struct Way {
    std::string name;
    std::vector<int> hosts;
    std::unique_ptr<Ranks> ranks(MPI_Comm comm) const { return std::make_unique<Ranks>(comm, hosts); }
  };
  std::vector<Way> ways() const {
    std::vector<int> one(static_cast<std::size_t>(size_), 0), two = one;
    for (int rank = 0; rank < size_; ++rank) two[static_cast<std::size_t>(rank)] = 2 * rank / size_;
    std::vector<Way> all;
    for (const std::string& name : communicator_names()) {
      all.push_back({name, one});
      if (size_ > 1 && name != "single_node") all.push_back({name, two});
    }
    return all;
  }

 private:
  int size_;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace paceline::train
