// SPDX-License-Identifier: Apache-2.0
// Collective calls on host memory, on eight real ranks.
#include "trainer/comm/host_collectives.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <vector>

#include "trainer/comm/communicator.h"

namespace paceline::train {
namespace {

// Values that are different on each rank, and after the call those of the root.
template <typename T>
void expect_broadcast(Collectives& ranks, int root) {
  const auto values_of = [](int rank) { return std::vector<T>{T(rank + 1), T(10 * rank), T(7)}; };
  std::vector<T> values = values_of(ranks.rank());
  ranks.broadcast(std::span<T>(values), root);
  EXPECT_EQ(values, values_of(root));
}

TEST(HostCollectives, GiveEveryRankTheRootsValues) {
  const auto communicator = make_communicator("mpi");
  Collectives& ranks = *communicator.collectives;
  for (const int root : {0, 5}) {
    expect_broadcast<float>(ranks, root);
    expect_broadcast<std::uint64_t>(ranks, root);
    expect_broadcast<std::byte>(ranks, root);
  }
}

TEST(HostCollectives, SumAndGatherOverAllRanks) {
  const auto communicator = make_communicator("mpi");
  Collectives& ranks = *communicator.collectives;
  std::vector<double> values = {1, 1.0 * ranks.rank()};
  ranks.allreduce_sum(values);
  EXPECT_EQ(values, (std::vector<double>{8, 28}));
  const std::vector<std::byte> own = {std::byte(ranks.rank()), std::byte(100)};
  std::vector<std::byte> all(16);
  ranks.allgather(own, all);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(all[2 * rank], std::byte(rank));
    EXPECT_EQ(all[2 * rank + 1], std::byte(100));
  }
}

TEST(HostCollectives, SendsAreReceivedInTheirOrder) {
  const auto communicator = make_communicator("mpi");
  Collectives& ranks = *communicator.collectives;
  std::vector<std::byte> bytes(3);
  if (ranks.rank() == 2) {
    for (const int value : {1, 2}) ranks.send(std::vector<std::byte>(3, std::byte(value)), 6);
  } else if (ranks.rank() == 6) {
    for (const int value : {1, 2}) {
      ranks.receive(bytes, 2);
      EXPECT_EQ(bytes, std::vector<std::byte>(3, std::byte(value)));
    }
  }
  ranks.wait_for_all();
  EXPECT_EQ(ranks.sender(), std::nullopt);
}

}  // namespace
}  // namespace paceline::train
