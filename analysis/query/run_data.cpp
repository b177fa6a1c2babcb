#include "analysis/query/run_data.h"

#include <algorithm>

#include "analysis/metrics/phase_walk.h"
#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"

namespace paceline::analysis {

RunData::RunData(const Trace& trace) : trace_(trace) {
  for (std::uint32_t r = 0; r < trace.ranks.size(); ++r) {
    first_track_.push_back(static_cast<TrackNumber>(tracks_.size()));
    const auto& tracks = trace.ranks[r].tracks;
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

const PhaseTable& RunData::phase_rules() {
  if (!phase_rules_) phase_rules_ = std::make_unique<PhaseTable>(trace_);
  return *phase_rules_;
}

const PhaseData& RunData::phases() {
  if (phases_) return *phases_;
  const PhaseTable& rules = phase_rules();
  const std::size_t ranks = trace_.ranks.size();
  std::vector<std::array<std::int64_t, phase_count>> totals(ranks);
  std::vector<std::vector<Iteration>> iterations(ranks);
  parallel_for(ranks, [&](std::size_t r) {
    totals[r] = {};
    if (main_track(trace_.ranks[r]) == nullptr) return;
    iterations[r] = iterations_of(rules, trace_.ranks[r]);
    IterationPhases sums(iterations[r]);
    each_phase_interval(rules, trace_.ranks[r], [&](const PhaseInterval& interval) {
      totals[r][static_cast<std::size_t>(interval.phase)] += interval.end_ns - interval.start_ns;
      sums.add(interval);
    });
  });
  auto made = std::make_unique<PhaseData>();
  made->totals_ns = std::move(totals);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    for (const Iteration& iteration : iterations[r]) made->iterations.emplace_back(r, iteration);
  }
  phases_ = std::move(made);
  return *phases_;
}

const CollectiveData& RunData::collectives() {
  if (collectives_) return *collectives_;
  auto made = std::make_unique<CollectiveData>();
  made->calls.resize(trace_.ranks.size());
  parallel_for(made->calls.size(), [&](std::size_t r) { made->calls[r] = collective_calls(trace_, trace_.ranks[r]); });
  made->matched = match_collectives(made->calls);
  std::vector<std::size_t> first;  // entry of each rank
  for (std::uint32_t r = 0; r < made->calls.size(); ++r) {
    first.push_back(made->entries.size());
    for (const auto& known : made->calls[r].communicators) made->communicators[known.communicator] = known.text;
    for (std::uint32_t c = 0; c < made->calls[r].calls.size(); ++c) made->entries.push_back({.rank = r, .call = c});
  }
  std::vector<const MemberCall*> members;
  for (std::uint32_t c = 0; c < made->matched.matched.size(); ++c) {
    members.clear();
    for (const MemberCall& call : made->matched.matched[c].calls) members.push_back(&call);
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
