// SPDX-License-Identifier: Apache-2.0
#include "trainer/comm/ring_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "trainer/core/error.h"

namespace paceline::train {

std::vector<int> parse_ring_order(const std::string& text, int size) {
  std::vector<int> order;
  if (text.empty()) return order;
  const auto refuse = [&](const std::string& what) {
    return Error(
        "‹ring-order› " + text, what,
        fmt::format("name each of the ranks 0 to {} once, e.g. {}", size - 1, size > 2 ? "0,2,1 and so on" : "1,0"),
        Status::usage);
  };
  std::string_view rest = text;
  while (true) {
    int rank = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
    const auto used = static_cast<std::size_t>(end - rest.data());
    if (error != std::errc() || (used < rest.size() && rest[used] != ',')) throw refuse("is not a list of ranks");
    if (rank < 0 || rank >= size) throw refuse(fmt::format("there is no rank {}", rank));
    if (std::ranges::count(order, rank) > 0) throw refuse(fmt::format("rank {} is there twice", rank));
    order.push_back(rank);
    if (used == rest.size()) break;
    rest.remove_prefix(used + 1);
  }
  if (order.size() < static_cast<std::size_t>(size)) {
    throw refuse(fmt::format("{} of {} ranks", order.size(), size));
  }
  return order;
}

int place_in_ring(const std::vector<int>& order, int rank) {
  if (order.empty()) return rank;
  return static_cast<int>(std::ranges::find(order, rank) - order.begin());
}

std::unique_ptr<Ranks> in_ring_order(const Ranks& ranks, const std::vector<int>& order) {
  // Each host is identified by the number of its first rank.
  int host = ranks.rank;
  MPI_Bcast(&host, 1, MPI_INT, 0, ranks.host);
  std::vector<int> hosts(static_cast<std::size_t>(ranks.size));
  MPI_Allgather(&host, 1, MPI_INT, hosts.data(), 1, MPI_INT, ranks.world);
  std::vector<int> host_of_place(hosts.size());
  for (int rank = 0; rank < ranks.size; ++rank) {
    host_of_place[static_cast<std::size_t>(place_in_ring(order, rank))] = hosts[static_cast<std::size_t>(rank)];
  }
  MPI_Comm ordered = MPI_COMM_NULL;
  MPI_Comm_split(ranks.world, 0, place_in_ring(order, ranks.rank), &ordered);
  auto result = std::make_unique<Ranks>(ordered, std::move(host_of_place));  // the result has a copy of `ordered`
  MPI_Comm_free(&ordered);
  return result;
}

}  // namespace paceline::train
