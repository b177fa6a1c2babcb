// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/ranks.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "trainer/core/error.h"

namespace paceline::train {

std::vector<int> parse_host_of_rank(const std::string& text, int size) {
  std::vector<int> hosts;
  std::string_view rest = text;
  while (true) {
    int host = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), host);
    const std::size_t used = static_cast<std::size_t>(end - rest.data());
    if (error != std::errc() || host < 0 || (used < rest.size() && rest[used] != ',')) {
      throw Error("PACELINE_TEST_HOST_OF_RANK", fmt::format("'{}' is not a list of numbers", text),
                  "write for example 0,0,1", Status::usage);
    }
    hosts.push_back(host);
    if (used == rest.size()) break;
    rest.remove_prefix(used + 1);
  }
  if (hosts.size() != static_cast<std::size_t>(size)) {
    throw Error("PACELINE_TEST_HOST_OF_RANK",
                fmt::format("'{}' names the hosts of {} ranks, not of {}", text, hosts.size(), size),
                "write one number for each rank", Status::usage);
  }
  return hosts;
}

Ranks::Ranks(MPI_Comm of, std::vector<int> host_of_rank) {
  MPI_Comm_rank(of, &rank);
  MPI_Comm_size(of, &size);
  if (const char* text = std::getenv("PACELINE_TEST_HOST_OF_RANK"); text && host_of_rank.empty()) {
    host_of_rank = parse_host_of_rank(text, size);
  }
  MPI_Comm_dup(of, &world);
  if (host_of_rank.empty()) {
    MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
  } else {
    MPI_Comm_split(world, host_of_rank.at(static_cast<std::size_t>(rank)), rank, &host);
  }
  MPI_Comm_rank(host, &local_rank);
  MPI_Comm_size(host, &local_size);
  MPI_Comm_split(world, local_rank, rank, &peers);
  const int leader = local_rank == 0 ? 1 : 0;
  MPI_Allreduce(&leader, &hosts, 1, MPI_INT, MPI_SUM, world);
  MPI_Allreduce(&local_size, &smallest_local_size, 1, MPI_INT, MPI_MIN, world);
}

Ranks::~Ranks() {
  MPI_Comm_free(&peers);
  MPI_Comm_free(&host);
  MPI_Comm_free(&world);
}

}  // namespace paceline::train
