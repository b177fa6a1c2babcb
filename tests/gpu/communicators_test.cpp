// SPDX-License-Identifier: Apache-2.0
// Communicators on GPUs. Run by mpirun with two ranks: of NCCL each alone, and both together; through MPI both on one
// GPU. Where there is one GPU, NCCL takes the two ranks for ranks of two hosts (NCCL_HOSTID), which may have equal
// GPUs. Means are of integers, so the expected values are exact in every type.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "tests/gpu/copies.h"
#include "trainer/backend/cuda/runtime.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/gpu/device_communicator.h"
#include "trainer/comm/gpu/device_of_rank.h"
#include "trainer/comm/gpu/nccl_comm.h"
#include "trainer/comm/gpu/numbers.h"
#include "trainer/comm/waiting.h"
#include "trainer/core/cast.h"
#include "trainer/core/error.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const cuda::VisibleDevices& gpus() {
  static const cuda::VisibleDevices visible = cuda::visible_devices();
  return visible;
}

#define NEEDS_A_GPU()                                                      \
  if (gpus().devices.empty()) GTEST_SKIP() << "no GPU: " << gpus().reason; \
  nccl::use_device_of_rank(Ranks(MPI_COMM_WORLD), true)

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

void be_two_hosts() {
  if (gpus().devices.size() == 1) setenv("NCCL_HOSTID", std::to_string(world_rank()).c_str(), 1);
}

float share(std::size_t i, int rank) { return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 5) % 31); }

// Writes what this rank has into the gradient, through the stream of a model, after a wait that makes whoever does not
// look at the stream read too early.
void compute(std::span<float> gradient, int rank, int ranks, cudaStream_t stream) {
  auto* values = new std::vector<float>(gradient.size());
  for (std::size_t i = 0; i < values->size(); ++i) (*values)[i] = share(i, rank) * static_cast<float>(ranks);
  const auto wait = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  PACELINE_CHECK_CUDA(cudaLaunchHostFunc(stream, wait, nullptr));
  PACELINE_CHECK_CUDA(
      cudaMemcpyAsync(gradient.data(), values->data(), gradient.size_bytes(), cudaMemcpyDefault, stream));
  PACELINE_CHECK_CUDA(cudaLaunchHostFunc(
      stream, [](void* all) { delete static_cast<std::vector<float>*>(all); }, values));
}

std::size_t count_wrong(std::span<const float> values, int ranks) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    float mean = 0;
    for (int rank = 0; rank < ranks; ++rank) mean += share(i, rank);
    wrong += values[i] != mean;
  }
  return wrong;
}

void expect_means(const Communicator& communicator, std::size_t count, const std::string& what) {
  const cuda::Stream model("model");
  DeviceTransfers& transfers = *communicator.reduction->device();
  transfers.set_stream(model.get());
  const auto memory = communicator.reduction->memory().allocate(count);
  const std::span<float> gradient(memory.get(), count);
  std::vector<float> values(count);

  compute(gradient, communicator.collectives->rank(), communicator.collectives->size(), model);
  communicator.reduction->allreduce_gradient(gradient, 0, count);
  communicator.reduction->memory().copy(gradient, values);
  EXPECT_EQ(count_wrong(values, communicator.collectives->size()), 0u) << what << ", waiting";

  // In three parts, beside the host.
  compute(gradient, communicator.collectives->rank(), communicator.collectives->size(), model);
  const std::vector<Slice> first{{0, count / 3}}, rest{{count / 3, 1}, {count / 3 + 1, count - count / 3 - 1}};
  const auto a = transfers.begin_mean(gradient, first), b = transfers.begin_mean(gradient, rest);
  ASSERT_TRUE(a && b) << what;
  std::thread other([&] {
    sleep_in_waits();
    for (Transfer* transfer : {a.get(), b.get()}) {
      transfer->wait_until_ready();
      transfer->finish();
    }
  });
  if (!transfers.queues()) other.join();
  transfers.join();
  PACELINE_CHECK_CUDA(
      cudaMemcpyAsync(values.data(), gradient.data(), gradient.size_bytes(), cudaMemcpyDefault, model.get()));
  model.synchronize();  // that alone: the model's stream has waited for the means
  EXPECT_EQ(count_wrong(values, communicator.collectives->size()), 0u) << what << ", beside the host";
  if (other.joinable()) other.join();
}

Communicator make(const std::string& name, const nccl::Options& options, MPI_Comm of) {
  return nccl::make_device_communicator(name, options, std::make_unique<Ranks>(of));
}

constexpr std::array nccl_names = {"pure_nccl", "single_node", "hierarchical", "two_dimensional", "non_cuda_aware"};
constexpr std::array types = {"f32", "f16", "bf16"};

TEST(Numbers, AreCastAsOnTheHost) {
  NEEDS_A_GPU();
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0xffffffffu - 40'503; bits += 40'503) {  // all exponents, many ties
    const float value = std::bit_cast<float>(bits & ~0xfffu);
    if (!std::isnan(value)) values.push_back(value);
  }
  const cuda::Stream stream("numbers");
  const cuda::Buffer all = cuda::zeroed_buffer(values.size() * 4), narrow = cuda::zeroed_buffer(values.size() * 2);
  const std::span<float> numbers{all.data<float>(), values.size()};
  for (const float divisor : {1.0f, 3.0f}) {
    for (const nccl::Type type : {nccl::Type::f16, nccl::Type::bf16}) {
      std::vector<std::uint16_t> expected(values.size());
      std::vector<float> widened(values.size());
      if (type == nccl::Type::f16) {
        to_half(values, divisor, expected.data());
        from_half(expected.data(), widened);
      } else {
        to_bfloat16(values, divisor, expected.data());
        from_bfloat16(expected.data(), widened);
      }
      cuda::put(values, numbers);
      nccl::narrow(type, all.data<float>(), values.size(), divisor, narrow.data(), stream);
      stream.synchronize();
      EXPECT_TRUE(cuda::on_host<std::uint16_t>(narrow) == expected) << divisor;
      nccl::widen(type, narrow.data(), values.size(), all.data<float>(), stream);
      stream.synchronize();
      EXPECT_EQ(std::memcmp(widened.data(), cuda::on_host<float>(all).data(), all.bytes()), 0) << divisor;

      std::vector<std::uint16_t> sums = expected;  // each with what lies half of all further on
      const std::size_t half = sums.size() / 2;
      (type == nccl::Type::f16 ? add_half : add_bfloat16)(sums.data(), expected.data() + half, half);
      nccl::add(type, narrow.data(), narrow.data<std::uint16_t>() + half, half, stream);
      stream.synchronize();
      const std::vector<std::uint16_t> added = cuda::on_host<std::uint16_t>(narrow);
      std::size_t different = 0;
      for (std::size_t i = 0; i < half; ++i) {
        const bool infinities = std::isinf(widened[i]) && std::isinf(widened[half + i]);  // their sum may be a NaN
        different += !infinities && sums[i] != added[i];
      }
      EXPECT_EQ(different, 0u) << divisor;
    }
    cuda::put(values, numbers);
    nccl::divide(all.data<float>(), values.size(), divisor, stream);
    stream.synchronize();
    const std::vector<float> divided = cuda::on_host<float>(all);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      wrong += std::bit_cast<std::uint32_t>(values[i] / divisor) != std::bit_cast<std::uint32_t>(divided[i]);
    }
    EXPECT_EQ(wrong, 0u) << divisor;
  }
}

TEST(Nccl, OfOneRankGivesItsOwnNumbersInEveryTypeAndAlgorithm) {
  NEEDS_A_GPU();
  for (const char* name : nccl_names) {
    for (const char* type : types) {
      const auto communicator = make(name, {.dtype = type}, MPI_COMM_SELF);
      expect_means(communicator, 10'007, fmt::format("{} {}", name, type));
    }
  }
}

TEST(Nccl, TakesLimitsOfItsCtasAndRegisteredMemory) {
  NEEDS_A_GPU();
  for (const char* type : types) {
    const auto communicator = make("pure_nccl", {.dtype = type, .ctas = {1, 4}, .registered = true}, MPI_COMM_SELF);
    EXPECT_TRUE(communicator.reduction->memory().required());
    expect_means(communicator, 100'003, fmt::format("registered {}", type));
  }
}

TEST(Nccl, OfTwoRanksIsExactInEveryTypeAlgorithmAndOrder) {
  NEEDS_A_GPU();
  for (const char* name : nccl_names) {
    for (const char* type : types) {
      for (const char* order : {"", "1,0"}) {
        const auto communicator = make(name, {.dtype = type, .ring_order = order}, MPI_COMM_WORLD);
        for (const std::size_t count : {3u, 10'007u, 1'000'000u}) {
          expect_means(communicator, count, fmt::format("{} {} {}", name, type, order));
        }
      }
    }
  }
}

TEST(Nccl, OfTwoRanksOnOneGpuIsRefusedInOneLine) {
  NEEDS_A_GPU();
  if (gpus().devices.size() > 1) GTEST_SKIP() << "each rank has a GPU of its own";
  unsetenv("NCCL_HOSTID");
  try {
    make("pure_nccl", {}, MPI_COMM_WORLD);
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("ranks 0 and 1 share one GPU"), HasSubstr("‹communicator› mpi"), Not(HasSubstr("\n"))));
  }
  be_two_hosts();
}

TEST(Nccl, ARankThatDoesNotComeEndsTheWait) {
  NEEDS_A_GPU();
  const nccl::Id id = nccl::exchange_id(MPI_COMM_WORLD);
  if (world_rank() == 0) {
    const auto start = std::chrono::steady_clock::now();
    try {
      const nccl::NcclComm library(id, MPI_COMM_WORLD, {.timeout_s = 3}, "alone");
      ADD_FAILURE() << "complete without rank 1";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), AllOf(StartsWith("NCCL: ncclCommInitRankConfig"), Not(HasSubstr("\n"))));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(ThroughMpi, TwoRanksShareAGpuWithEveryAlgorithmAndType) {
  NEEDS_A_GPU();
  for (const std::string& name : communicator_names()) {
    if (nccl::uses_nccl(name)) continue;
    for (const char* type : types) {
      const auto communicator = make(name, {.dtype = type}, MPI_COMM_WORLD);
      EXPECT_FALSE(communicator.reduction->queues());
      communicator.reduction->set_segments({0, 100, 7000, 10'007});
      expect_means(communicator, 10'007, fmt::format("{} {}", name, type));
    }
  }
}

// The library is the real one: what it says of a machine without GPUs, as one line on every rank.
TEST(WithoutAGpu, NcclsRefusalIsOneLineOnAllRanks) {
  if (!gpus().devices.empty()) GTEST_SKIP() << "there is a GPU";
  const nccl::Id id = nccl::exchange_id(MPI_COMM_WORLD);
  EXPECT_EQ(id.failure, "");
  std::string what;
  try {
    const nccl::NcclComm library(id, MPI_COMM_WORLD, {.timeout_s = 20}, "none");
  } catch (const Error& error) {
    what = error.what();
  }
  EXPECT_THAT(what, AllOf(StartsWith("NCCL: ncclCommInitRankConfig: "), HasSubstr("nvidia-smi"), Not(HasSubstr("\n"))));
  const std::string first = nccl::first_failure(MPI_COMM_WORLD, world_rank() == 1 ? what : "");
  EXPECT_THAT(first, AllOf(StartsWith("rank 1 on "), HasSubstr(what)));
  EXPECT_EQ(nccl::first_failure(MPI_COMM_WORLD, ""), "");
}

TEST(WithoutAGpu, EveryRankIsToldSoAlike) {
  if (!gpus().devices.empty()) GTEST_SKIP() << "there is a GPU";
  try {
    nccl::use_device_of_rank(Ranks(MPI_COMM_WORLD), false);
    ADD_FAILURE() << "a device without a GPU";
  } catch (const Error& error) {
    EXPECT_EQ(error.status, Status::usage);
    EXPECT_THAT(error.what(), AllOf(StartsWith("‹device› cuda: no GPU can be used: "), Not(HasSubstr("\n"))));
  }
  const std::vector<nccl::Placement> all = nccl::placements(Ranks(MPI_COMM_WORLD));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].device_uuid, "");
  EXPECT_NE(all[1].host, "");
}

}  // namespace
}  // namespace paceline::train

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  testing::InitGoogleTest(&argc, argv);
  paceline::train::be_two_hosts();
  const int status = RUN_ALL_TESTS();
  MPI_Finalize();
  return status;
}
