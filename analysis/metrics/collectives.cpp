#include "analysis/metrics/collectives.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>

namespace paceline::analysis {
namespace {

constexpr std::uint64_t no_sequence = ~std::uint64_t{0};

struct Candidate {
  NameId communicator = 0, operation = 0;
  std::uint64_t sequence = no_sequence;  // as recorded, else counted here
  bool counted = false;
  bool unfinished = false;
  std::uint64_t bytes = 0;
  std::uint32_t members = 0;  // of the communicator; 0 = not known
  CollectiveCall call;

  auto key() const { return std::tuple(communicator, operation, counted, sequence); }
};

bool returns_early(std::string_view name) {
  // MPI_Iallreduce, MPI_Allreduce_init: the work is done later.
  return (name.starts_with("MPI_I") && !name.starts_with("MPI_Init")) || name.ends_with("_init");
}

// The blocking collectives of a rank, in the order of their starts on each track.
void collect(const Trace& trace, std::uint32_t rank_index, std::vector<Candidate>& candidates) {
  const NameId collective = trace.names.find("collective");
  if (collective == 0) return;
  const NameId bytes = trace.names.find("bytes"), communicator = trace.names.find("communicator"),
               sequence = trace.names.find("sequence"), members = trace.names.find("members"),
               unfinished = trace.names.find("unfinished");
  const Rank& rank = trace.ranks[rank_index];
  std::map<std::pair<NameId, NameId>, std::uint64_t> counts;  // by communicator and operation
  for (std::uint32_t t = 0; t < rank.tracks.size(); ++t) {
    const Track& track = rank.tracks[t];
    for (std::uint32_t i = 0; i < track.slices.size(); ++i) {
      if (trace.classes[track.slices.slice_class[i]].category != collective) continue;
      Candidate candidate;
      candidate.operation = track.slices.name[i];
      if (returns_early(trace.names[candidate.operation])) continue;
      candidate.call = {rank_index, t, i, track.slices.start_ns[i], track.slices.end_ns(i)};
      for (const Argument& argument : arguments_of(track.slice_arguments, i)) {
        if (argument.key == bytes) candidate.bytes = static_cast<std::uint64_t>(std::max(argument.number, 0.0));
        if (argument.key == communicator) candidate.communicator = argument.text;
        if (argument.key == sequence) candidate.sequence = static_cast<std::uint64_t>(argument.number);
        if (argument.key == members) candidate.members = static_cast<std::uint32_t>(argument.number);
        if (argument.key == unfinished) candidate.unfinished = true;
      }
      if (candidate.members == 1) continue;  // MPI_COMM_SELF and the like: nobody to wait for
      if (candidate.communicator == 0 || candidate.sequence == no_sequence) {
        candidate.counted = true;
        candidate.sequence = counts[{candidate.communicator, candidate.operation}]++;
      }
      candidates.push_back(candidate);
    }
  }
}

// One collective out of the calls with one key; false where they are no whole collective.
bool join(const Candidate* begin, const Candidate* end, Collective& result) {
  if (end - begin < 2) return false;
  result.operation = begin->operation;
  result.communicator = begin->communicator;
  std::int64_t last_end = begin->call.end_ns;
  const Candidate* last = begin;
  for (const Candidate* candidate = begin; candidate != end; ++candidate) {
    const bool twice = candidate != begin && candidate->call.rank == candidate[-1].call.rank;
    if (twice || candidate->unfinished) return false;
    result.bytes = std::max(result.bytes, candidate->bytes);
    result.members = std::max(result.members, candidate->members);
    result.calls.push_back(candidate->call);
    last_end = std::max(last_end, candidate->call.end_ns);
    if (candidate->call.start_ns > last->call.start_ns) last = candidate;
  }
  result.members = std::max(result.members, static_cast<std::uint32_t>(result.calls.size()));
  result.last_rank = last->call.rank;
  result.last_start_ns = last->call.start_ns;
  result.transfer_ns = last_end - result.last_start_ns;
  return true;
}

std::vector<CollectiveRow> table_of(const Trace& trace, const std::vector<Collective>& collectives) {
  std::map<std::tuple<NameId, std::uint64_t, std::uint32_t>, CollectiveRow> grouped;
  for (const Collective& collective : collectives) {
    CollectiveRow& row = grouped[{collective.operation, collective.bytes, collective.members}];
    row.operation = collective.operation;
    row.bytes = collective.bytes;
    row.members = collective.members;
    ++row.count;
    for (const CollectiveCall& call : collective.calls) row.wait_ns += collective.wait_ns(call);
    row.transfer_ns += collective.transfer_ns;
  }
  std::vector<CollectiveRow> rows;
  for (auto& [key, row] : grouped) {
    if (row.transfer_ns > 0) {
      const double bytes = static_cast<double>(row.bytes) * static_cast<double>(row.count);
      row.busbw_bytes_per_s =
          bytes * bus_factor(trace.names[row.operation], row.members) / (static_cast<double>(row.transfer_ns) * 1e-9);
    }
    rows.push_back(row);
  }
  std::ranges::stable_sort(rows, std::greater{},
                           [](const CollectiveRow& row) { return row.wait_ns + row.transfer_ns; });
  return rows;
}

}  // namespace

double bus_factor(std::string_view operation, std::uint32_t members) {
  if (members == 0) return 0;
  std::string name;  // "MPI_Reduce_scatter_block", "ncclReduceScatter" -> "reducescatterblock", "ncclreducescatter"
  for (const char c : operation) {
    if (c != '_') name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  const auto is = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  const double n = members;
  if (is("barrier")) return 0;
  if (is("allreduce")) return 2 * (n - 1) / n;
  if (is("reducescatter") || is("allgather") || is("alltoall")) return (n - 1) / n;
  return 1;
}

Collectives match_collectives(const Trace& trace) {
  std::vector<Candidate> candidates;
  for (std::uint32_t r = 0; r < trace.ranks.size(); ++r) {
    // A job of one rank has nobody to match with, and misses nobody.
    if (trace.ranks[r].world_size > 1) collect(trace, r, candidates);
  }
  // Stable: members stay in the order of their ranks.
  std::ranges::stable_sort(candidates, {}, &Candidate::key);

  Collectives result;
  for (std::size_t begin = 0, end = 0; begin < candidates.size(); begin = end) {
    while (end < candidates.size() && candidates[end].key() == candidates[begin].key()) ++end;
    Collective collective;
    if (join(candidates.data() + begin, candidates.data() + end, collective)) {
      result.matched.push_back(std::move(collective));
    } else {
      result.unmatched_calls += end - begin;
    }
  }
  std::ranges::stable_sort(result.matched, {}, &Collective::last_start_ns);
  result.rows = table_of(trace, result.matched);
  return result;
}

}  // namespace paceline::analysis
