// SPDX-License-Identifier: Apache-2.0
#include "analysis/query/run_data.h"

#include <algorithm>

#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"

namespace paceline::analysis {

RunData::RunData(const RunIndex& index) : index_(index), trace_(index.trace()) {
  for (std::uint32_t r = 0; r < trace_.ranks.size(); ++r) {
    first_track_.push_back(static_cast<TrackNumber>(tracks_.size()));
    const auto& tracks = trace_.ranks[r].tracks;
    for (std::uint32_t t = 0; t < tracks.size(); ++t) {
      tracks_.push_back({r, t, &tracks[t]});
      slice_indexes_.emplace_back(tracks[t].slices);
      mark_indexes_.emplace_back(tracks[t].marks);
    }
  }
  first_track_.push_back(static_cast<TrackNumber>(tracks_.size()));
}

void RunData::check_interruption() const {
  if (interrupted.load(std::memory_order_relaxed)) throw Error("interrupted");
}

const std::vector<IterationEntry>& RunData::iterations() {
  if (!iterations_.empty()) return iterations_;
  for (std::uint32_t r = 0; r < trace_.ranks.size(); ++r) {
    for (const Iteration& iteration : times(r).iterations) iterations_.push_back({r, &iteration});
  }
  return iterations_;
}

const RankTimes& RunData::times(std::size_t rank) {
  index_.calls();
  return index_.times(rank);
}

const CollectiveData& RunData::collectives() {
  if (collectives_) return *collectives_;
  auto made = std::make_unique<CollectiveData>();
  const std::vector<CollectiveCalls>& calls = index_.calls();
  const std::vector<Collective>& matched = index_.collectives().matched;
  std::vector<std::size_t> first;  // entry of each rank
  for (std::uint32_t r = 0; r < calls.size(); ++r) {
    first.push_back(made->entries.size());
    for (const auto& known : calls[r].communicators) made->communicators[known.communicator] = known.text;
    for (std::uint32_t c = 0; c < calls[r].calls.size(); ++c) made->entries.push_back({.rank = r, .call = c});
  }
  std::vector<const MemberCall*> members;
  for (std::uint32_t c = 0; c < matched.size(); ++c) {
    members.clear();
    for (const MemberCall& call : matched[c].calls) members.push_back(&call);
    std::ranges::stable_sort(members, {}, &MemberCall::start_ns);
    for (std::uint32_t arrival = 0; arrival < members.size(); ++arrival) {
      CollectiveEntry& entry = made->entries[first[members[arrival]->rank] + members[arrival]->call];
      entry.collective = c;
      entry.arrival = arrival;
    }
  }
  collectives_ = std::move(made);
  return *collectives_;
}

const Messages& RunData::messages() {
  if (!messages_) messages_ = std::make_unique<Messages>(match_messages(trace_));
  return *messages_;
}

const std::vector<KindTotals>& RunData::kind_totals() {
  if (!kind_totals_.empty()) return kind_totals_;
  std::vector<std::vector<KindTotals>> of_track(tracks_.size());
  parallel_for(tracks_.size(), [&](std::size_t t) {
    of_track[t].resize(trace_.kinds.size());
    const Slices& slices = tracks_[t].of->slices;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      KindTotals& totals = of_track[t][slices.kind[i]];
      ++totals.count;
      totals.duration_ns += slices.duration_ns[i];
    }
  });
  kind_totals_.resize(trace_.kinds.size());
  for (const auto& totals : of_track) {
    for (std::size_t kind = 0; kind < totals.size(); ++kind) {
      kind_totals_[kind].count += totals[kind].count;
      kind_totals_[kind].duration_ns += totals[kind].duration_ns;
    }
  }
  return kind_totals_;
}

}  // namespace paceline::analysis
