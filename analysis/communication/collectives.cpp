// SPDX-License-Identifier: Apache-2.0
#include "analysis/communication/collectives.h"

#include <map>
#include <tuple>
#include <unordered_map>

namespace paceline::analysis {
namespace collective_matching {

struct Candidate {
  std::uint32_t rank = 0;
  std::uint32_t index = 0;      // of the call
  std::uint32_t operation = 0;  // the same number on all ranks
  const CollectiveCall* call = nullptr;

  auto key() const { return std::tuple(call->communicator, operation, call->counted, call->sequence, call->round); }
};

// Joins the calls with one key; false where they are no whole collective.
bool join(std::span<const Candidate> candidates, Collective& result) {
  if (candidates.size() < 2) return false;
  result.operation = candidates.front().operation;
  result.communicator = candidates.front().call->communicator;
  result.of_range = candidates.front().call->of_range;
  const Candidate* last = &candidates.front();
  std::int64_t last_end = last->call->end_ns;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const CollectiveCall& call = *candidates[i].call;
    const bool twice = i > 0 && candidates[i].rank == candidates[i - 1].rank;
    if (twice || call.unfinished) return false;
    result.bytes = std::max(result.bytes, call.bytes);
    result.members = std::max(result.members, call.members);
    result.calls.push_back({candidates[i].rank, candidates[i].index, call.start_ns, call.end_ns, call.blocked_from_ns});
    last_end = std::max(last_end, call.end_ns);
    if (call.start_ns > last->call->start_ns) last = &candidates[i];
    result.timed = result.timed && call.timed;
  }
  result.members = std::max(result.members, static_cast<std::uint32_t>(result.calls.size()));
  result.last_rank = last->rank;
  result.last_start_ns = last->call->start_ns;
  if (result.timed) result.transfer_ns = last_end - result.last_start_ns;
  return true;
}

std::vector<std::vector<BlockedTime>> blocked_in(const Collectives& collectives,
                                                 std::span<const CollectiveCalls> ranks) {
  std::vector<std::vector<BlockedTime>> blocked(ranks.size());
  for (std::size_t c = 0; c < collectives.matched.size(); ++c) {
    const Collective& collective = collectives.matched[c];
    if (!collective.timed) continue;
    for (const MemberCall& member : collective.calls) {
      const CollectiveCalls& of = ranks[member.rank];
      const CollectiveCall& call = of.calls[member.call];
      add_uncovered({call.polled_from_ns, call.end_ns, collective.last_start_ns, static_cast<std::uint32_t>(c)},
                    of.covered[static_cast<std::size_t>(call.blocking)], blocked[member.rank]);
    }
  }
  for (std::vector<BlockedTime>& of_rank : blocked) of_rank = outermost(std::move(of_rank));
  return blocked;
}

std::vector<CollectiveRow> rows_of(const Collectives& collectives) {
  std::vector<std::int64_t> wait_ns(collectives.matched.size());
  for (const auto& of_rank : collectives.blocked) {
    for (const BlockedTime& interval : of_rank) wait_ns[interval.collective] += interval.wait_ns();
  }
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>, CollectiveRow> grouped;
  for (std::size_t c = 0; c < collectives.matched.size(); ++c) {
    const Collective& collective = collectives.matched[c];
    CollectiveRow& row = grouped[{collective.operation, collective.bytes, collective.members}];
    row.operation = collectives.operations[collective.operation];
    row.bytes = collective.bytes;
    row.members = collective.members;
    ++row.count;
    if (!collective.timed) continue;
    ++row.timed;
    row.wait_ns += wait_ns[c];
    row.transfer_ns += collective.transfer_ns;
  }
  std::vector<CollectiveRow> rows;
  for (auto& [key, row] : grouped) {
    if (row.transfer_ns > 0) {
      const double bytes = static_cast<double>(row.bytes) * static_cast<double>(row.timed);
      row.busbw_bytes_per_s =
          bytes * bus_factor(row.operation, row.members) / (static_cast<double>(row.transfer_ns) * 1e-9);
    }
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, std::greater{},
                           [](const CollectiveRow& row) { return row.wait_ns + row.transfer_ns; });
  return rows;
}

}  // namespace collective_matching

std::string plain_operation(std::string_view operation) {
  std::string name;
  for (const char c : operation) {
    if (c != '_') name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return name;
}

double bus_factor(std::string_view operation, std::uint32_t members) {
  if (members == 0) return 0;
  const std::string name = plain_operation(operation);
  const auto is = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  const double n = members;
  if (is("barrier")) return 0;
  if (is("allreduce")) return 2 * (n - 1) / n;
  if (is("reducescatter") || is("allgather") || is("alltoall")) return (n - 1) / n;
  return 1;
}

Collectives match_collectives(std::span<const CollectiveCalls> ranks) {
  using namespace collective_matching;
  Collectives result;
  std::unordered_map<std::string, std::uint32_t> operations;
  std::vector<Candidate> candidates;
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].world_size <= 1) continue;  // it has nobody to match with, and misses nobody
    result.unmatched_calls += ranks[r].unnumbered;
    std::vector<std::uint32_t> number;  // by the rank's own number
    for (const std::string& operation : ranks[r].operations) {
      const auto [found, fresh] = operations.try_emplace(operation, static_cast<std::uint32_t>(operations.size()));
      if (fresh) result.operations.push_back(operation);
      number.push_back(found->second);
    }
    for (std::uint32_t c = 0; c < ranks[r].calls.size(); ++c) {
      const CollectiveCall& call = ranks[r].calls[c];
      if (call.type != CallType::initialisation) candidates.push_back({r, c, number[call.operation], &call});
    }
  }
  // Stable: members stay in the order of their ranks.
  std::ranges::stable_sort(candidates, {}, &Candidate::key);
  for (std::size_t begin = 0, end = 0; begin < candidates.size(); begin = end) {
    while (end < candidates.size() && candidates[end].key() == candidates[begin].key()) ++end;
    Collective collective;
    if (join(std::span(candidates).subspan(begin, end - begin), collective)) {
      result.matched.push_back(std::move(collective));
    } else {
      result.unmatched_calls += end - begin;
    }
  }
  std::ranges::stable_sort(result.matched, {}, &Collective::last_start_ns);
  result.blocked = blocked_in(result, ranks);
  result.rows = rows_of(result);
  return result;
}

std::vector<RankWaits> waits_of(const Collectives& collectives, std::size_t ranks) {
  std::vector<RankWaits> waits(ranks);
  for (const Collective& collective : collectives.matched) {
    if (collective.timed) ++waits[collective.last_rank].last_count;
  }
  for (std::size_t r = 0; r < collectives.blocked.size(); ++r) {
    for (const BlockedTime& interval : collectives.blocked[r]) {
      waits[r].waited_ns += interval.wait_ns();
      waits[r].blocked_ns += interval.length_ns();
      waits[collectives.matched[interval.collective].last_rank].caused_ns += interval.wait_ns();
    }
  }
  return waits;
}

}  // namespace paceline::analysis
