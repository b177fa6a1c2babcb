// SPDX-License-Identifier: Apache-2.0
// Questions and answers outside of MPI, on eight real ranks.
#include "trainer/comm/rank_states.h"

#include <gmock/gmock.h>
#include <mpi.h>

#include <atomic>
#include <thread>

#include "trainer/comm/communicator.h"

namespace paceline::train {
namespace {

// Every rank answers except rank 3, which behaves like a stopped process.
TEST(RankStates, AreThoseOfTheRanksThatAnswer) {
  const auto communicator = make_communicator("mpi");
  RankStates states(*communicator.collectives);
  const int rank = communicator.collectives->rank();
  const auto own = [&] {
    RankState state;
    state.iteration = 100 + static_cast<std::uint64_t>(rank);
    state.collectives = 7;
    state.images_ms = rank == 5 ? 1234 : -1;
    return state;
  };
  std::atomic<bool> done{false};
  std::thread serving;
  if (rank != 3 && rank != 0) {
    serving = std::thread([&] {
      while (!done) states.serve(own, std::chrono::seconds(60));
    });
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    // Because of rank 3 it always waits for the whole time, which is enough for the others on a busy machine.
    const auto answers = states.ask(own, std::chrono::milliseconds(1500));
    ASSERT_EQ(answers.size(), 8u);
    for (std::size_t other = 0; other < 8; ++other) {
      ASSERT_EQ(answers[other].has_value(), other != 3) << other;
      if (other == 3) continue;
      EXPECT_EQ(answers[other]->iteration, 100 + other);
      EXPECT_EQ(answers[other]->images_ms, other == 5 ? 1234 : -1);
    }
    EXPECT_NE(states.host(7), "");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (serving.joinable()) {
    done = true;
    states.wake();
    serving.join();
  }
}

}  // namespace
}  // namespace paceline::train
