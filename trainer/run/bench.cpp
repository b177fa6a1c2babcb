// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/bench.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string_view>

#include "trainer/comm/communicator.h"
#include "trainer/comm/cuda_aware.h"
#include "trainer/comm/ring_order.h"
#include "trainer/core/error.h"
#include "trainer/core/ranges.h"
#include "trainer/guard/rank_check.h"
#include "trainer/run/gpu_part.h"

namespace paceline::train {
namespace {

struct Contender {
  std::string name;
  Communicator communicator;
  std::vector<double> seconds;    // of each iteration, on this rank
  std::shared_ptr<float> memory;  // of the values
  std::uint64_t wrong = 0;        // wrong means, summed over all ranks
};

// The value of rank `rank` at position i, divided by the number of ranks. All sums stay within 256, so that bf16 is
// exact too.
float share(std::size_t i, int rank, int ranks) {
  const auto values = static_cast<std::size_t>(std::max(2, 256 / ranks));
  return rank < 128 ? static_cast<float>((i + static_cast<std::size_t>(rank)) % values) : 0.0f;
}

// Counts this rank's means that are not exact.
std::uint64_t count_wrong(Contender& contender, std::size_t count) {
  const Communicator& communicator = contender.communicator;
  const int ranks = communicator.collectives->size();
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = share(i, communicator.collectives->rank(), ranks) * static_cast<float>(ranks);
  communicator.reduction->memory().copy(values, {contender.memory.get(), count});
  communicator.reduction->allreduce_mean({contender.memory.get(), count});
  communicator.reduction->memory().copy({contender.memory.get(), count}, values);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    float expected = 0;
    for (int rank = 0; rank < ranks; ++rank) expected += share(i, rank, ranks);
    wrong += values[i] != expected;
  }
  return wrong;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Prints the number of wrong means on each rank that has any. Returns their sum over the ranks.
std::uint64_t report_wrong(const Contender& contender, std::uint64_t wrong) {
  if (wrong > 0) {
    std::array<char, MPI_MAX_PROCESSOR_NAME> host{};
    int length = 0;
    MPI_Get_processor_name(host.data(), &length);
    fmt::print(stderr, "paceline-train: rank {} on {}: {}: {} means are wrong\n",
               contender.communicator.collectives->rank(), host.data(), contender.name, wrong);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return wrong;
}

void time_once(Contender& contender, std::size_t count) {
  const Range range(Category::allreduce, contender.communicator.reduction->payload_bytes(count));
  contender.communicator.reduction->allreduce_mean({contender.memory.get(), count});
}

Communicator make_contender(const std::string& name, bool on_gpu, const nccl::Options& options) {
  auto ranks = std::make_unique<Ranks>(MPI_COMM_WORLD);
  if (on_gpu) return gpu_part().make_communicator(name, options, std::move(ranks));
  const std::vector<int> order = parse_ring_order(options.ring_order, ranks->size);
  return make_host_communicator(name, options.dtype, std::move(ranks), order);
}

std::vector<Contender> make_contenders(const BenchAllreduceOptions& options, bool prints, ForUser for_user) {
  const bool on_gpu = options.device == "cuda";
  if (on_gpu) gpu_part().use_device(Ranks(MPI_COMM_WORLD), options.share_gpu);
  std::vector<Contender> contenders;
  std::vector<std::string> all = communicator_names();
  if (on_gpu) all.insert(all.begin(), "pure_nccl");
  for (const std::string& name : options.communicators.empty() ? all : options.communicators) {
    try {
      contenders.push_back({name, make_contender(name, on_gpu, options.reduction), {}, {}});
    } catch (const Error& error) {
      if (!options.communicators.empty() || std::find(all.begin(), all.end(), name) == all.end()) throw;
      if (prints) fmt::print("left out: {}\n", for_user(error.what()));
    }
  }
  return contenders;
}

// The three ways in which an allreduce can reach gradients in GPU memory: through host memory, by the MPI library
// itself, and by NCCL.
std::vector<Contender> make_libraries(const BenchAllreduceOptions& options, bool prints, ForUser for_user) {
  std::vector<Contender> contenders;
  contenders.push_back({"host MPI", make_contender("mpi", false, options.reduction), {}, {}});
  std::string no_gpu;
  try {
    gpu_part().use_device(Ranks(MPI_COMM_WORLD), options.share_gpu);
  } catch (const Error& error) {
    no_gpu = error.what();
  }
  const auto add = [&](const char* column, const char* name, const std::string& why_not) {
    std::string reason = why_not.empty() ? no_gpu : why_not;
    try {
      if (reason.empty()) contenders.push_back({column, make_contender(name, true, options.reduction), {}, {}});
    } catch (const Error& error) {
      reason = error.what();
    }
    if (!reason.empty() && prints) fmt::print("left out: {}: {}\n", column, for_user(reason));
  };
  const CudaAwareness mpi = cuda_awareness();
  const bool fp32 = options.reduction.dtype == "f32";
  add("CUDA-aware MPI", "mpi", !mpi.yes ? mpi.why_not : fp32 ? "" : "adds no numbers of 16 bits on a GPU");
  add("NCCL", "pure_nccl", "");
  return contenders;
}

// The median over the iterations of the slowest rank's time.
double slowest_median(Contender& contender) {
  MPI_Allreduce(MPI_IN_PLACE, contender.seconds.data(), static_cast<int>(contender.seconds.size()), MPI_DOUBLE, MPI_MAX,
                MPI_COMM_WORLD);
  return median(contender.seconds);
}

void measure(std::vector<Contender>& contenders, std::size_t count, int iterations) {
  for (Contender& contender : contenders) {
    contender.seconds.clear();
    contender.memory.reset();
    contender.memory = contender.communicator.reduction->memory().allocate(count);
    contender.wrong = report_wrong(contender, count_wrong(contender, count));
  }
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (Contender& contender : contenders) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      time_once(contender, count);
      contender.seconds.push_back(MPI_Wtime() - start);
    }
  }
}

void print_header(const BenchAllreduceOptions& options, const std::vector<Contender>& contenders, int hosts) {
  fmt::print("allreduce of {}: {} rank(s) on {} host(s), median of {} iterations; algbw and busbw in GB/s (10⁹)\n",
             options.reduction.dtype, contenders.front().communicator.collectives->size(), hosts, options.iterations);
  if (!options.libraries) {
    fmt::print("{:>12} {:>12}  {:<18} {:>12} {:>9} {:>9}  {}\n", "bytes", "elements", "communicator", "time (µs)",
               "algbw", "busbw", "wrong");
    return;
  }
  fmt::print("{:>12}", "bytes");
  for (const Contender& contender : contenders)
    fmt::print("  {:>14}: {:>10} {:>8}", contender.name, "time (µs)", "busbw");
  fmt::print("\n");
}

// Prints a row for each contender, or one row for all.
void print_rows(std::vector<Contender>& contenders, std::size_t count, bool libraries, bool prints) {
  const Communicator& first = contenders.front().communicator;
  const double per_algbw = 2.0 * (first.collectives->size() - 1) / first.collectives->size();
  if (libraries && prints) fmt::print("{:>12}", first.reduction->payload_bytes(count));
  for (Contender& contender : contenders) {
    const double time = slowest_median(contender);
    if (!prints) continue;
    const std::size_t bytes = contender.communicator.reduction->payload_bytes(count);
    const double algbw = static_cast<double>(bytes) / time * 1e-9;
    if (libraries) {
      fmt::print("  {:>14}  {:>10.1f} {:>8.3f}", contender.wrong > 0 ? fmt::format("{} wrong", contender.wrong) : "",
                 time * 1e6, algbw * per_algbw);
    } else {
      fmt::print("{:>12} {:>12}  {:<18} {:>12.1f} {:>9.3f} {:>9.3f}  {}\n", bytes, count, contender.name, time * 1e6,
                 algbw, algbw * per_algbw, contender.wrong);
    }
  }
  if (libraries && prints) fmt::print("\n");
  std::fflush(stdout);
}

// Each contender has its own values, and each rank has the expected sums too.
void check_memory(std::size_t size, const std::vector<Contender>& contenders) {
  const Ranks ranks(MPI_COMM_WORLD);
  const std::size_t values = size / contenders.front().communicator.reduction->payload_bytes(1);
  const std::uint64_t wanted =
      (contenders.size() + 1) * sizeof(float) * values * static_cast<std::uint64_t>(ranks.local_size);
  int fits = wanted <= memory_available() ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &fits, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (fits != 0) return;
  throw Error("‹sizes›",
              fmt::format("{} KiB of values take {} MiB, and a host has less memory left", size >> 10, wanted >> 20),
              "name smaller ones, or fewer ‹communicators›", Status::usage);
}

}  // namespace

std::size_t parse_bytes(const std::string& text) {
  std::size_t number = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (error != std::errc() || shift < 0 || number > std::numeric_limits<std::size_t>::max() >> (shift + 8)) {
    throw Error("‹sizes›", fmt::format("'{}' is not a size", text), "write bytes, or 64K, 25M, 1G", Status::usage);
  }
  return number << shift;
}

std::vector<std::string> default_sizes(bool libraries) {
  if (libraries) return {"4K", "64K", "1M", "16M", "64M", "256M"};
  return {"4K", "64K", "1M", "25M"};
}

int bench_allreduce(const BenchAllreduceOptions& options, ForUser for_user) {
  int world_rank = 0, world_size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  const bool prints = world_rank == 0;
  parse_ring_order(options.reduction.ring_order, world_size);  // all ranks have the same order, so all throw
  std::vector<std::size_t> sizes;
  for (const std::string& size : options.sizes.empty() ? default_sizes(options.libraries) : options.sizes) {
    sizes.push_back(parse_bytes(size));
    const std::size_t value = options.reduction.dtype == "f32" ? 4 : 2;
    if (sizes.back() < value) {
      throw Error("‹sizes› " + size, fmt::format("one value of {} has {} bytes", options.reduction.dtype, value),
                  "ask for at least one value", Status::usage);
    }
  }
  std::vector<Contender> contenders =
      options.libraries ? make_libraries(options, prints, for_user) : make_contenders(options, prints, for_user);
  if (contenders.empty())
    throw Error("bench-allreduce", "no communicator suits this job", "name one with ‹communicators›", Status::usage);
  const int hosts = Ranks(MPI_COMM_WORLD).hosts;
  for (const std::size_t size : sizes) check_memory(size, contenders);
  if (prints) print_header(options, contenders, hosts);
  const std::size_t width = contenders.front().communicator.reduction->payload_bytes(1);
  bool all_right = true;
  for (const std::size_t size : sizes) {
    measure(contenders, size / width, options.iterations);
    print_rows(contenders, size / width, options.libraries, prints);
    for (const Contender& contender : contenders) all_right = all_right && contender.wrong == 0;
  }
  return all_right ? 0 : 1;
}

}  // namespace paceline::train
