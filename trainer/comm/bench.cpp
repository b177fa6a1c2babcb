#include "trainer/comm/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string_view>

#include "trainer/comm/host_communicator.h"
#include "trainer/error.h"
#include "trainer/ranges.h"

namespace paceline::train {
namespace {

struct Contender {
  std::string name;
  std::unique_ptr<HostCommunicator> communicator;
  std::vector<double> seconds;  // of each iteration, on this rank
};

// What rank `rank` has in position i, ÷ ranks. All sums stay within 256, so that bf16, too, is exact.
float share(std::size_t i, int rank, int ranks) {
  const auto values = static_cast<std::size_t>(std::max(2, 256 / ranks));
  return rank < 128 ? static_cast<float>((i + static_cast<std::size_t>(rank)) % values) : 0.0f;
}

// How many means of this rank are not the exact ones.
std::uint64_t count_wrong(Communicator& communicator, std::span<float> values) {
  const int ranks = communicator.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = share(i, communicator.rank(), ranks) * static_cast<float>(ranks);
  }
  communicator.allreduce_mean(values);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
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

// Prints, on each rank that has any, how many means are wrong; returns their sum over the ranks.
std::uint64_t report_wrong(const Contender& contender, std::uint64_t wrong) {
  if (wrong > 0) {
    std::array<char, MPI_MAX_PROCESSOR_NAME> host{};
    int length = 0;
    MPI_Get_processor_name(host.data(), &length);
    fmt::print(stderr, "paceline-train: rank {} on {}: {}: {} means are wrong\n", contender.communicator->rank(),
               host.data(), contender.name, wrong);
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return wrong;
}

void time_once(Contender& contender, std::span<float> values) {
  const Range range(Category::allreduce, contender.communicator->payload_bytes(values.size()));
  contender.communicator->allreduce_mean(values);
}

std::vector<Contender> make_contenders(const BenchAllreduceOptions& options, bool prints) {
  std::vector<Contender> contenders;
  const std::vector<std::string> all = communicator_names();
  for (const std::string& name : options.communicators.empty() ? all : options.communicators) {
    auto ranks = std::make_unique<Ranks>(MPI_COMM_WORLD);
    try {
      contenders.push_back({name, make_host_communicator(name, options.dtype, std::move(ranks)), {}});
    } catch (const Error& error) {
      if (!options.communicators.empty() || std::find(all.begin(), all.end(), name) == all.end()) throw;
      if (prints) fmt::print("left out: {}\n", error.what());
    }
  }
  return contenders;
}

}  // namespace

std::size_t parse_bytes(const std::string& text) {
  std::size_t number = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (error != std::errc() || shift < 0 || number > std::numeric_limits<std::size_t>::max() >> (shift + 8)) {
    throw Error(fmt::format("'{}' is no size: write bytes, or 64K, 25M, 1G", text), Status::usage);
  }
  return number << shift;
}

int bench_allreduce(const BenchAllreduceOptions& options) {
  int world_rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  const bool prints = world_rank == 0;
  std::vector<std::size_t> sizes;
  for (const std::string& size : options.sizes) sizes.push_back(parse_bytes(size));
  std::vector<Contender> contenders = make_contenders(options, prints);
  const Ranks& ranks = contenders.front().communicator->ranks();
  const std::size_t width = contenders.front().communicator->payload_bytes(1);
  if (prints) {
    fmt::print("allreduce of {}: {} rank(s) on {} host(s), median of {} iterations; algbw and busbw in GB/s (10⁹)\n",
               options.dtype, ranks.size, ranks.hosts, options.iterations);
    fmt::print("{:>12} {:>12}  {:<18} {:>12} {:>9} {:>9}  {}\n", "bytes", "elements", "communicator", "time (µs)",
               "algbw", "busbw", "wrong");
  }
  const double per_algbw = 2.0 * (ranks.size - 1) / ranks.size;
  bool all_right = true;
  for (const std::size_t size : sizes) {
    std::vector<float> values(size / width);
    std::vector<std::uint64_t> wrong;
    for (Contender& contender : contenders) {
      contender.seconds.clear();
      wrong.push_back(report_wrong(contender, count_wrong(*contender.communicator, values)));
      all_right = all_right && wrong.back() == 0;
    }
    for (int iteration = 0; iteration < options.iterations; ++iteration) {
      for (Contender& contender : contenders) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        time_once(contender, values);
        contender.seconds.push_back(MPI_Wtime() - start);
      }
    }
    for (std::size_t c = 0; c < contenders.size(); ++c) {
      std::vector<double>& seconds = contenders[c].seconds;
      MPI_Allreduce(MPI_IN_PLACE, seconds.data(), static_cast<int>(seconds.size()), MPI_DOUBLE, MPI_MAX,
                    MPI_COMM_WORLD);
      if (!prints) continue;
      const double time = median(seconds), bytes = static_cast<double>(values.size() * width);
      fmt::print("{:>12} {:>12}  {:<18} {:>12.1f} {:>9.3f} {:>9.3f}  {}\n", values.size() * width, values.size(),
                 contenders[c].name, time * 1e6, bytes / time * 1e-9, bytes / time * 1e-9 * per_algbw, wrong[c]);
      std::fflush(stdout);
    }
  }
  return all_right ? 0 : 1;
}

}  // namespace paceline::train
