// Which ranks share a host, and the MPI communicators that follow from it.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace paceline::train {

// The job's ranks. The communicators are copies of its own, so that its messages meet no others.
class Ranks {
 public:
  // A collective call over `world`. `host_of_rank`: for each rank a number, equal where the host is; empty: as
  // PACELINE_TEST_HOST_OF_RANK has it where that is set, else as the MPI library finds it (ranks that can share
  // memory). Throws Error (usage) where their number is not that of the ranks.
  explicit Ranks(MPI_Comm world, std::vector<int> host_of_rank = {});
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm host = MPI_COMM_NULL;   // the ranks of this host, in the order of the world
  MPI_Comm peers = MPI_COMM_NULL;  // the ranks of equal local rank, one of each host that has so many
  int rank = 0, size = 1;          // in world
  int local_rank = 0, local_size = 1;
  int hosts = 1;
  int smallest_local_size = 1;  // over the hosts
};

// "0,0,1": the host of each of `size` ranks, for tests that play several hosts on one machine (the environment variable
// PACELINE_TEST_HOST_OF_RANK). Throws Error (usage) for another number of entries or anything but numbers.
std::vector<int> parse_host_of_rank(const std::string& text, int size);

}  // namespace paceline::train
