// SPDX-License-Identifier: Apache-2.0
// The job's ranks by host, and the MPI communicators that follow from it.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace paceline::train {

// The communicators are copies, so that their messages do not mix with others.
class Ranks {
 public:
  // A collective call over `world`. host_of_rank: a number for each rank, equal for ranks on one host. Empty:
  // PACELINE_TEST_HOST_OF_RANK if that is set, else the hosts that the MPI library finds (ranks that can share memory).
  // Throws Error (usage) if it has another length than there are ranks.
  explicit Ranks(MPI_Comm world, std::vector<int> host_of_rank = {});
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm host = MPI_COMM_NULL;   // the ranks of this host, in the order of the world
  MPI_Comm peers = MPI_COMM_NULL;  // the ranks of equal local rank, one on each host that has enough ranks
  int rank = 0, size = 1;          // in world
  int local_rank = 0, local_size = 1;
  int hosts = 1;
  int smallest_local_size = 1;  // over the hosts
};

// Parses "0,0,1", the host of each of `size` ranks, which tests use to simulate several hosts on one machine (the
// environment variable PACELINE_TEST_HOST_OF_RANK). Throws Error (usage) for another number of entries and for entries
// that are not numbers.
std::vector<int> parse_host_of_rank(const std::string& text, int size);

}  // namespace paceline::train
