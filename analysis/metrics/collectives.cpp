#include "analysis/metrics/collectives.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

namespace paceline::analysis {
namespace {

constexpr std::uint64_t no_sequence = ~std::uint64_t{0};

struct Candidate {
  NameId communicator = 0, operation = 0;
  std::uint64_t sequence = no_sequence;  // as recorded, else counted here
  std::uint64_t round = 0;               // of a persistent one: how often it was started before
  bool counted = false;
  bool unfinished = false;
  bool timed = true;
  std::uint64_t bytes = 0;
  std::uint32_t members = 0;  // of the communicator; 0 = not known
  std::uint64_t request = 0;  // of what another call completes; 0 = none
  bool starts_persistent = false;
  CollectiveCall call;

  auto key() const { return std::tuple(communicator, operation, counted, sequence, round); }
};

// The collective calls of a rank, track by track in the order of their starts.
class RankCollectives {
 public:
  RankCollectives(const Trace& trace, std::uint32_t rank) : trace_(trace), index_(rank), rank_(trace.ranks[rank]) {}

  std::vector<Candidate> find() {
    for (std::uint32_t t = 0; t < rank_.tracks.size(); ++t) look_at(t);
    name_persistent();
    complete();
    return std::move(found_);
  }
  // NCCL's calls that have no number.
  std::uint64_t unnumbered() const { return unnumbered_; }

 private:
  NameId name(const char* text) const { return trace_.names.find(text); }

  void look_at(std::uint32_t t) {
    const Track& track = rank_.tracks[t];
    for (std::uint32_t i = 0; i < track.slices.size(); ++i) {
      const Kind& of = trace_.kind_of(track.slices, i);
      const NameId operation = of.name;
      const bool starts = operation == start_ && operation != 0;
      const bool enqueues = of.category == enqueue_ && of.domain == nccl_ && enqueue_ != 0;
      if (!starts && !enqueues && (of.category != collective_ || collective_ == 0)) continue;
      Candidate candidate;
      candidate.operation = operation;
      candidate.call = {index_, t, i, track.slices.start_ns[i], track.slices.end_ns(i), track.slices.start_ns[i]};
      bool done = false;
      track.slices.each_argument(i, [&](const Argument& argument) { read(argument, candidate, done); });
      const bool numbered = candidate.sequence != no_sequence;
      if ((starts || enqueues) && !numbered) continue;  // a message; a call of NCCL's around the collective's own
      if (candidate.members == 1) continue;             // MPI_COMM_SELF and the like: nobody to wait for
      if (of.domain == nccl_ && nccl_ != 0 && !numbered) {
        ++unnumbered_;
        continue;
      }
      const std::string_view text = trace_.names[operation];
      if (text.ends_with("_init")) {
        initialised_[{candidate.communicator, candidate.sequence}] = operation;
        continue;
      }
      candidate.starts_persistent = starts;
      if (text.find("eighbor_") != text.npos || enqueues) candidate.timed = false;
      // What blocks has no request; what its own call completed is done.
      const bool returns_early = starts || text.starts_with("MPI_I");
      if (returns_early && candidate.request == 0) candidate.timed = false;
      if (!returns_early || done) candidate.request = 0;
      if (candidate.communicator == 0 || !numbered) {
        candidate.counted = true;
        candidate.sequence = counts_[{candidate.communicator, operation}]++;
      }
      found_.push_back(candidate);
    }
  }

  // A request that is there twice was posted and completed by the same call.
  void read(const Argument& argument, Candidate& candidate, bool& done) const {
    if (argument.key == bytes_) candidate.bytes = argument.whole();
    if (argument.key == communicator_) candidate.communicator = argument.text();
    if (argument.key == sequence_) candidate.sequence = argument.whole();
    if (argument.key == members_) candidate.members = static_cast<std::uint32_t>(argument.whole());
    if (argument.key == unfinished_) candidate.unfinished = true;
    if (argument.key != request_) return;
    done = candidate.request != 0;
    candidate.request = argument.whole();
  }

  // The starts of a persistent collective get its initialisation's name, and are counted: only one runs at a time.
  void name_persistent() {
    std::vector<Candidate*> starts;
    for (Candidate& candidate : found_) {
      if (candidate.starts_persistent) starts.push_back(&candidate);
    }
    std::ranges::stable_sort(starts, {}, [](const Candidate* start) { return start->call.start_ns; });
    std::map<std::pair<NameId, std::uint64_t>, std::uint64_t> rounds;
    for (Candidate* start : starts) {
      const std::pair key(start->communicator, start->sequence);
      start->round = ++rounds[key];
      const auto named = initialised_.find(key);
      if (named != initialised_.end()) start->operation = named->second;
      if (trace_.names[start->operation].find("eighbor_") != std::string::npos) start->timed = false;
    }
  }

  // Ends what was only started with the call that completed its request.
  void complete() {
    std::unordered_map<std::uint64_t, Candidate*> open;
    for (Candidate& candidate : found_) {
      if (candidate.request != 0) open[candidate.request] = &candidate;
    }
    if (open.empty()) return;
    for (const Track& track : rank_.tracks) {
      const Slices& slices = track.slices;
      for (std::uint32_t i = 0; i < slices.size(); ++i) {
        if (slices.record[i] == 0 || trace_.kind_of(slices, i).category != wait_) continue;
        slices.each_argument(i, [&](const Argument& argument) {
          if (argument.key != request_) return;
          const auto found = open.find(argument.whole());
          if (found == open.end() || slices.end_ns(i) < found->second->call.start_ns) return;
          CollectiveCall& call = found->second->call;
          call.end_ns = slices.end_ns(i);
          call.blocked_from_ns = std::max(call.start_ns, slices.start_ns[i]);
          if (slices.argument(i, unfinished_)) found->second->unfinished = true;
          open.erase(found);
        });
      }
    }
    for (const auto& [request, candidate] : open) candidate->timed = false;
  }

  const Trace& trace_;
  const std::uint32_t index_;
  const Rank& rank_;
  const NameId collective_ = name("collective"), enqueue_ = name("enqueue"), nccl_ = name("nccl"),
               start_ = name("MPI_Start"), wait_ = name("wait"), bytes_ = name("bytes"),
               communicator_ = name("communicator"), sequence_ = name("sequence"), members_ = name("members"),
               unfinished_ = name("unfinished"), request_ = name("request");
  std::vector<Candidate> found_;
  std::map<std::pair<NameId, NameId>, std::uint64_t> counts_;       // by communicator and operation
  std::map<std::pair<NameId, std::uint64_t>, NameId> initialised_;  // persistent ones, by communicator and sequence
  std::uint64_t unnumbered_ = 0;
};

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
    result.timed = result.timed && candidate->timed;
  }
  result.members = std::max(result.members, static_cast<std::uint32_t>(result.calls.size()));
  result.last_rank = last->call.rank;
  result.last_start_ns = last->call.start_ns;
  if (result.timed) result.transfer_ns = last_end - result.last_start_ns;
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
    if (!collective.timed) continue;
    ++row.timed;
    for (const CollectiveCall& call : collective.calls) row.wait_ns += collective.wait_ns(call);
    row.transfer_ns += collective.transfer_ns;
  }
  std::vector<CollectiveRow> rows;
  for (auto& [key, row] : grouped) {
    if (row.transfer_ns > 0) {
      const double bytes = static_cast<double>(row.bytes) * static_cast<double>(row.timed);
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
  Collectives result;
  for (std::uint32_t r = 0; r < trace.ranks.size(); ++r) {
    if (trace.ranks[r].world_size <= 1) continue;  // it has nobody to match with, and misses nobody
    RankCollectives of_rank(trace, r);
    const std::vector<Candidate> found = of_rank.find();
    candidates.insert(candidates.end(), found.begin(), found.end());
    result.unmatched_calls += of_rank.unnumbered();
  }
  // Stable: members stay in the order of their ranks.
  std::ranges::stable_sort(candidates, {}, &Candidate::key);

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
