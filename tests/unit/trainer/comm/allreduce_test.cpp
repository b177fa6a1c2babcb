// SPDX-License-Identifier: Apache-2.0
// Every communicator on real ranks: mpirun starts eight, of which the first p take part. Means are of integers, so that
// the expected values are exact in every type. Groups of ranks simulate hosts.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/comm/ring_order.h"
#include "trainer/comm/waiting.h"
#include "trainer/core/cast.h"
#include "trainer/core/error.h"

namespace {
int allreduce_calls = 0;
}

// MPI's profiling interface (MPI 3.1, section 14.2): the tests count the calls.
extern "C" int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op operation,
                             MPI_Comm comm) {
  ++allreduce_calls;
  return PMPI_Allreduce(send, receive, count, type, operation, comm);
}

namespace paceline::train {
namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// The first `size` ranks of the job; MPI_COMM_NULL on the others.
class FirstRanks {
 public:
  explicit FirstRanks(int size) {
    MPI_Comm_split(MPI_COMM_WORLD, world_rank() < size ? 0 : MPI_UNDEFINED, world_rank(), &comm);
  }
  ~FirstRanks() {
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  }
  explicit operator bool() const { return comm != MPI_COMM_NULL; }
  MPI_Comm comm = MPI_COMM_NULL;
};

// Groupings into hosts: all ranks on one host, two halves, and uneven hosts whose ranks are not neighbours. Each
// grouping differs from the ones before.
std::vector<std::vector<int>> groupings(int size) {
  std::vector<int> one, halves, uneven;
  for (int rank = 0; rank < size; ++rank) {
    one.push_back(7);
    halves.push_back(2 * rank / size);
    uneven.push_back(rank % 3 == 2 ? 1 : rank == 0 ? 2 : 0);
  }
  if (size == 1) return {one};
  if (size == 2) return {one, halves};
  return {one, halves, uneven};
}

// The value of rank `rank` at position i, divided by the number of ranks. Sums of eight stay within 256 and are exact
// in bf16. The values repeat every 31 positions.
constexpr std::size_t period = 31;
float share(std::size_t i, int rank) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 5) % period);
}

void expect_means(const Communicator& communicator, std::size_t count, const std::string& what) {
  const int ranks = communicator.collectives->size();
  std::vector<float> own, means;
  for (std::size_t i = 0; i < period; ++i) {
    own.push_back(share(i, communicator.collectives->rank()) * static_cast<float>(ranks));
    means.push_back(0);
    for (int rank = 0; rank < ranks; ++rank) means.back() += share(i, rank);
  }
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = own[i % period];
  communicator.reduction->allreduce_mean(values);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += values[i] != means[i % period];
  EXPECT_EQ(wrong, 0u) << what << ", " << count << " values, " << ranks << " ranks";
}

// Values of many digits: the means equal those of double within p + 1 roundings of the type, whose largest relative
// rounding is `half_unit`, and have the same bits on every rank.
void expect_rounded_means(const Communicator& communicator, double half_unit, const std::string& what) {
  constexpr std::size_t count = 5'003;
  const int ranks = communicator.collectives->size();
  std::vector<double> means(count);
  std::vector<float> values(count);
  for (int rank = 0; rank < ranks; ++rank) {
    std::minstd_rand generator(static_cast<unsigned>(rank) + 100);
    std::uniform_real_distribution<float> uniform(0.5f, 1.0f);
    for (std::size_t i = 0; i < count; ++i) {
      const float value = uniform(generator);
      means[i] += static_cast<double>(value) / ranks;
      if (rank == communicator.collectives->rank()) values[i] = value;
    }
  }
  communicator.reduction->allreduce_mean(values);
  std::vector<float> first = values;
  communicator.collectives->broadcast(std::span(first), 0);
  EXPECT_TRUE(values == first) << what << ", " << ranks << " ranks";
  double worst = 0;
  for (std::size_t i = 0; i < count; ++i) worst = std::max(worst, std::abs(values[i] - means[i]) / means[i]);
  EXPECT_LE(worst, half_unit * (ranks + 1)) << what << ", " << ranks << " ranks";
}

class AllreduceTest : public testing::TestWithParam<int> {
 protected:
  void TearDown() override { MPI_Barrier(MPI_COMM_WORLD); }
};

TEST_P(AllreduceTest, MeansAreExactAndEqualBitByBitForEveryAlgorithmTypeAndGrouping) {
  const int p = GetParam();
  const FirstRanks ranks(p);
  if (!ranks) return;
  const auto size = static_cast<std::size_t>(p);
  for (const std::vector<int>& hosts : groupings(p)) {
    for (const std::string& name : communicator_names()) {
      if (name == "single_node" && hosts != groupings(p).front()) continue;
      for (const auto& [dtype, half_unit] : {std::pair{"f32", 0x1p-24}, {"f16", 0x1p-11}, {"bf16", 0x1p-8}}) {
        auto grouped = std::make_unique<Ranks>(ranks.comm, hosts);
        const std::string what = fmt::format("{} {} with {} hosts", name, dtype, grouped->hosts);
        const auto communicator = make_host_communicator(name, dtype, std::move(grouped));
        // The largest is above three_phase's limit for copies in every type.
        for (const std::size_t count :
             {std::size_t{0}, std::size_t{1}, size - 1, size, size + 1, std::size_t{1023}, std::size_t{140'007}}) {
          expect_means(communicator, count, what);
        }
        expect_rounded_means(communicator, half_unit, what);
      }
    }
  }
}

TEST_P(AllreduceTest, RingsAndHalvingsOfManyPiecesAreExact) {
  const int p = GetParam();
  const FirstRanks ranks(p);
  if (!ranks) return;
  for (const std::vector<int>& hosts : groupings(p)) {  // on one host through shared memory, else in messages
    for (const char* name : {"ring", "halving_doubling"}) {
      auto grouped = std::make_unique<Ranks>(ranks.comm, hosts);
      const std::string what = fmt::format("{} with {} hosts", name, grouped->hosts);
      const auto communicator = make_host_communicator(name, "f32", std::move(grouped));
      expect_means(communicator, 2'000'003, what);
      expect_means(communicator, 999, what);  // buffers of the larger call are reused
    }
    if (hosts != groupings(p).front()) break;
  }
}

TEST_P(AllreduceTest, NaiveReducesByParameterIfTheLengthIsTheGradients) {
  const int p = GetParam();
  const FirstRanks ranks(p);
  if (!ranks) return;
  for (const std::string& dtype : allreduce_dtypes()) {
    const auto communicator = make_host_communicator("naive", dtype, std::make_unique<Ranks>(ranks.comm));
    communicator.reduction->set_segments({0, 64, 64, 70, 1000, 2048});
    allreduce_calls = 0;
    expect_means(communicator, 2048, "naive by parameter");
    EXPECT_EQ(allreduce_calls, 4) << "one for each parameter that has values";
    expect_means(communicator, 100, "naive on a part");
    EXPECT_EQ(allreduce_calls, 5);
  }
}

TEST_P(AllreduceTest, MeansNearTheTopOfHalfDoNotOverflow) {
  const int p = GetParam();
  const FirstRanks ranks(p);
  if (!ranks) return;
  for (const std::string& name : communicator_names()) {
    const auto communicator = make_host_communicator(name, "f16", std::make_unique<Ranks>(ranks.comm));
    std::vector<float> values(33, 32768.0f);
    communicator.reduction->allreduce_mean(values);
    for (const float value : values) EXPECT_NEAR(value, 32768.0f, 32768.0f * 0x1p-10f * static_cast<float>(p)) << name;
  }
}

// Why communicators differ in 16 bits: three numbers have three sums, which round differently. Nothing else is rounded.
TEST(Allreduce, OfThreeRanksInHalfIsRoundedInOneOfThreeOrders) {
  constexpr std::size_t count = 5000;
  const FirstRanks ranks(3);
  if (!ranks) return;
  const auto half = [](float value) { return float_from_half(half_from_float(value)); };
  std::vector<std::vector<float>> of_rank(3);
  for (unsigned rank = 0; rank < 3; ++rank) {
    std::mt19937 random(rank);
    std::normal_distribution<float> normal(0, 0.01f);
    for (std::size_t i = 0; i < count; ++i) of_rank[rank].push_back(normal(random));
  }
  std::size_t differing = 0;  // values whose sums depend on the order
  for (const std::string& name : communicator_names()) {
    const auto communicator = make_host_communicator(name, "f16", std::make_unique<Ranks>(ranks.comm));
    std::vector<float> means = of_rank[static_cast<std::size_t>(communicator.collectives->rank())];
    communicator.reduction->allreduce_mean(means);
    for (std::size_t i = 0; i < count; ++i) {
      const float a = half(of_rank[0][i] / 3), b = half(of_rank[1][i] / 3), c = half(of_rank[2][i] / 3);
      const std::array orders = {half(half(a + b) + c), half(half(b + c) + a), half(half(a + c) + b)};
      ASSERT_THAT(orders, testing::Contains(means[i])) << name << ", value " << i;
      differing += orders[0] != orders[1] || orders[0] != orders[2] ? 1 : 0;
    }
  }
  EXPECT_GT(differing, count) << "the orders do not matter here";
}

// Like the thread that communicates while another one computes.
TEST_P(AllreduceTest, IsTheSameInASleepingThread) {
  const int p = GetParam();
  const FirstRanks ranks(p);
  if (!ranks || p > 3) return;
  for (const char* name : {"ring", "halving_doubling"}) {
    const auto communicator = make_host_communicator(name, "f32", std::make_unique<Ranks>(ranks.comm));
    std::thread([&] {
      sleep_in_waits();
      expect_means(communicator, 300'001, name);
    }).join();
  }
}

// On one host the communicators above write into shared memory. Messages between hosts are waited for in this way.
TEST(Waits, EndWhenTheMessageIsThere) {
  const FirstRanks ranks(2);
  if (!ranks) return;
  int rank = 0;
  MPI_Comm_rank(ranks.comm, &rank);
  for (const bool one : {true, false}) {
    MPI_Barrier(ranks.comm);
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const int sent = 7;
      MPI_Send(&sent, 1, MPI_INT, 0, 5, ranks.comm);
      continue;
    }
    std::thread([&] {
      sleep_in_waits();
      int received = 0;
      std::vector<MPI_Request> requests(1, MPI_REQUEST_NULL);
      MPI_Irecv(&received, 1, MPI_INT, 1, 5, ranks.comm, &requests[0]);
      one ? wait_for(requests[0]) : wait_for(requests);
      EXPECT_EQ(received, 7);
      EXPECT_EQ(requests[0], MPI_REQUEST_NULL);
    }).join();
  }
}

INSTANTIATE_TEST_SUITE_P(ranks, AllreduceTest, testing::Range(1, 9), testing::PrintToStringParamName());

TEST(Ranks, AreGroupedByHostInTheOrderOfTheWorld) {
  const Ranks ranks(MPI_COMM_WORLD, {0, 1, 0, 1, 2, 1, 0, 1});
  const std::vector<int> local_rank = {0, 0, 1, 1, 0, 2, 2, 3}, local_size = {3, 4, 3, 4, 1, 4, 3, 4};
  const std::vector<int> peers = {3, 3, 2, 2, 3, 2, 2, 1};
  const auto rank = static_cast<std::size_t>(ranks.rank);
  EXPECT_EQ(ranks.local_rank, local_rank[rank]);
  EXPECT_EQ(ranks.local_size, local_size[rank]);
  EXPECT_EQ(ranks.hosts, 3);
  EXPECT_EQ(ranks.smallest_local_size, 1);
  int size = 0;
  MPI_Comm_size(ranks.peers, &size);
  EXPECT_EQ(size, peers[rank]);
}

// The algorithm numbers the ranks by their places, each on its own host, while the collective calls keep the job's
// numbers.
TEST(RingOrder, NumbersTheRanksOfAnAlgorithm) {
  const std::vector<int> order = {3, 1, 0, 2, 7, 6, 5, 4}, host_of = {0, 1, 0, 1, 2, 1, 0, 1};
  const Ranks ranks(MPI_COMM_WORLD, host_of);
  const auto ordered = in_ring_order(ranks, order);
  EXPECT_EQ(ordered->size, 8);
  EXPECT_EQ(order.at(static_cast<std::size_t>(ordered->rank)), ranks.rank);
  EXPECT_EQ(ordered->hosts, 3);
  EXPECT_EQ(ordered->local_size, ranks.local_size);
  // Each rank receives the message of its neighbour in the ring.
  const auto place = [&](int shift) { return order.at(static_cast<std::size_t>((ordered->rank + shift + 8) % 8)); };
  int from = -1;
  MPI_Sendrecv(&ranks.rank, 1, MPI_INT, (ordered->rank + 1) % 8, 0, &from, 1, MPI_INT, (ordered->rank + 7) % 8, 0,
               ordered->world, MPI_STATUS_IGNORE);
  EXPECT_EQ(from, place(-1));
  std::vector<int> host(static_cast<std::size_t>(ordered->local_size));
  MPI_Allgather(&host_of.at(static_cast<std::size_t>(ranks.rank)), 1, MPI_INT, host.data(), 1, MPI_INT, ordered->host);
  EXPECT_EQ(std::count(host.begin(), host.end(), host[0]), ordered->local_size);
}

TEST(RingOrder, LeavesMeansExactForEveryAlgorithm) {
  for (const std::string& name : communicator_names()) {
    for (const char* dtype : {"f32", "bf16"}) {
      const auto communicator =
          make_host_communicator(name, dtype, std::make_unique<Ranks>(MPI_COMM_WORLD), {5, 0, 2, 7, 1, 3, 6, 4});
      EXPECT_EQ(communicator.collectives->rank(), world_rank());
      expect_means(communicator, 1023, name + " in another order");
    }
  }
}

TEST(Ranks, OfOneMachineAreOnOneHost) {
  const Ranks ranks(MPI_COMM_WORLD);
  EXPECT_EQ(ranks.hosts, 1);
  EXPECT_EQ(ranks.local_rank, ranks.rank);
  EXPECT_EQ(ranks.local_size, 8);
}

TEST(Ranks, AreGroupedByTheTestsEnvironmentVariable) {
  setenv("PACELINE_TEST_HOST_OF_RANK", "0,0,0,0,0,1,1,1", 1);
  EXPECT_EQ(Ranks(MPI_COMM_WORLD).local_size, world_rank() < 5 ? 5 : 3);
  setenv("PACELINE_TEST_HOST_OF_RANK", "0,1", 1);
  EXPECT_THROW(Ranks{MPI_COMM_WORLD}, Error);
  unsetenv("PACELINE_TEST_HOST_OF_RANK");
}

TEST(Ranks, AcceptOnlyAListOfNumbers) {
  EXPECT_EQ(parse_host_of_rank("0,12,0", 3), (std::vector{0, 12, 0}));
  for (const char* wrong : {"", "0,1", "0,1,", "0,1,x", "0,1,-1", "0 1 2", "0,1,99999999999"}) {
    EXPECT_THROW(parse_host_of_rank(wrong, 3), Error) << wrong;
  }
}

TEST(Communicators, ThatCannotDoTheJobThrowOnEveryRank) {
  const std::vector<int> two_hosts = {0, 0, 0, 0, 0, 0, 0, 1};
  try {
    make_host_communicator("single_node", "f32", std::make_unique<Ranks>(MPI_COMM_WORLD, two_hosts));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.status, Status::usage);
    EXPECT_STREQ(error.what(), "communicator single_node: the 8 ranks are on 2 hosts: take another, e.g. hierarchical");
  }
  EXPECT_THROW(make_communicator("rings"), Error);
  EXPECT_THROW(make_communicator("ring", "f64"), Error);
}

TEST(Communicators, ReportTheBytesThatAreSent) {
  EXPECT_EQ(make_communicator("ring").reduction->payload_bytes(10), 40u);
  EXPECT_EQ(make_communicator("ring", "bf16").reduction->payload_bytes(10), 20u);
}

}  // namespace
}  // namespace paceline::train

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  if (paceline::train::world_rank() != 0) GTEST_FLAG_SET(brief, true);  // failures only
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  MPI_Finalize();
  return status;
}
