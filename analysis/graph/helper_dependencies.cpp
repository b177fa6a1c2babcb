// SPDX-License-Identifier: Apache-2.0
// Work that a main thread handed to the helper threads of its process, and its waits for them.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "analysis/graph/dependencies.h"
#include "analysis/trace/innermost.h"

namespace paceline::analysis {
namespace helper_parts {

constexpr std::int64_t pause_ns = 50'000;  // a helper that begins after a longer pause was woken

// A piece of a helper's work: an outermost slice, with the slices of category "wait" just before it.
struct Job {
  std::uint32_t track = 0;
  std::int64_t start_ns = 0, end_ns = 0, previous_end_ns = 0;
  NameId category = 0;
  std::uint64_t bytes = 0;
  std::optional<Phase> phase;
  bool announced = false;
};

class Helpers {
 public:
  Helpers(const PhaseTable& table, const Rank& rank, const CollectiveCalls& calls)
      : table_(table), trace_(table.trace()), rank_(rank) {
    for (const CollectiveCall& call : calls.calls) {
      const bool earlier = !call.of_range && call.end_ns < rank.tracks[call.track].slices.end_ns(call.slice);
      if (earlier) ends_.emplace(std::pair(call.track, call.slice), call.end_ns);
    }
  }

  std::vector<OwnDependencies> run() {
    for (std::uint32_t t = 0; t < rank_.tracks.size(); ++t) {
      if (rank_.tracks[t].main) main_ = t;
    }
    if (main_ == no_track) return {};
    for (std::uint32_t t = 0; t < rank_.tracks.size(); ++t) {
      const Track& track = rank_.tracks[t];
      if (track.kind == TrackKind::thread && t != main_) collect(t);
    }
    if (jobs_.empty()) return {};
    add_announced();
    for (const Job& job : jobs_) {
      if (!job.announced && job.start_ns - job.previous_end_ns > pause_ns) {
        add(job.track, {job.previous_end_ns, job.start_ns, job.start_ns, main_, DependencyKind::hand_over});
      }
    }
    add_waits();
    return std::move(out_);
  }

 private:
  void collect(std::uint32_t track) {
    const Slices& slices = rank_.tracks[track].slices;
    std::int64_t previous_end = rank_.start_ns;
    bool waiting = false;
    std::int64_t waiting_since = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (slices.depth[i] != 0) continue;
      const Kind& kind = trace_.kind_of(slices, i);
      const std::int64_t start = waiting ? waiting_since : slices.start_ns[i];
      // A send, a receive or a probe is released by another rank, and is no work that the main thread handed over.
      if (kind.domain == mpi_ && kind.category == point_to_point_ && mpi_ != 0) {
        waiting = false;
        previous_end = slices.end_ns(i);
        continue;
      }
      if (kind.category == wait_ && wait_ != 0) {
        waiting = true;
        waiting_since = start;
        continue;
      }
      waiting = false;
      Job job{track, start, slices.end_ns(i), previous_end, kind.category, 0, table_.phase(slices.kind[i]), false};
      // A thread that was woken may go on before the helper notes the end.
      if (const auto end = ends_.find({track, i}); end != ends_.end()) job.end_ns = end->second;
      if (payload_ != 0) {
        if (const auto bytes = slices.argument(i, payload_)) job.bytes = bytes->whole();
      }
      previous_end = job.end_ns;
      jobs_.push_back(job);
    }
  }

  // A mark with the category and the payload of a job announces it, one after the other.
  void add_announced() {
    using Key = std::pair<NameId, std::uint64_t>;  // category and bytes
    struct Mark {
      std::int64_t time_ns;
      std::uint32_t track;
    };
    std::map<Key, std::vector<Mark>> marks;
    std::map<Key, std::vector<Job*>> jobs;
    for (Job& job : jobs_) {
      if (job.bytes > 0 && job.category != 0) jobs[{job.category, job.bytes}].push_back(&job);
    }
    for (std::uint32_t t = 0; t < rank_.tracks.size(); ++t) {
      const Slices& of = rank_.tracks[t].marks;
      for (std::size_t i = 0; i < of.size() && payload_ != 0; ++i) {
        const auto bytes = of.argument(i, payload_);
        if (!bytes) continue;
        const Key key(trace_.kind_of(of, i).category, bytes->whole());
        if (jobs.contains(key)) marks[key].push_back({of.start_ns[i], t});
      }
    }
    for (auto& [key, announced] : marks) {
      std::vector<Job*>& of = jobs[key];
      if (of.size() != announced.size()) continue;
      std::ranges::sort(of, {}, &Job::start_ns);
      std::ranges::sort(announced, {}, &Mark::time_ns);
      for (std::size_t k = 0; k < of.size(); ++k) {
        if (announced[k].track == of[k]->track) continue;
        of[k]->announced = true;
        // The helper's clock is the same, but a mark may come just after the work was handed over.
        const std::int64_t cause = std::min(announced[k].time_ns, of[k]->start_ns);
        add(of[k]->track, {.from_ns = of[k]->previous_end_ns,
                           .until_ns = of[k]->start_ns,
                           .cause_ns = cause,
                           .cause = announced[k].track,
                           .kind = DependencyKind::hand_over,
                           .bytes = of[k]->bytes});
      }
    }
  }

  // Where the main thread stands in a range of a helper's phase, and not in a call of its own, it waited for the last
  // job of that phase that ended there. A job that ended before is a dependency that did not bind.
  void add_waits() {
    std::map<Phase, std::vector<const Job*>> by_phase;
    for (const Job& job : jobs_) {
      if (job.phase == Phase::communication || job.phase == Phase::preprocess) by_phase[*job.phase].push_back(&job);
    }
    if (by_phase.empty()) return;
    for (auto& [phase, jobs] : by_phase) std::ranges::sort(jobs, {}, &Job::end_ns);
    const NameId nccl = trace_.names.find("nccl"), cuda = trace_.names.find("cuda");
    std::vector<std::uint8_t> waits(trace_.kinds.size(), 0);
    for (KindId kind = 0; kind < trace_.kinds.size(); ++kind) {
      const NameId domain = trace_.kinds[kind].domain;
      const bool call = domain != 0 && (domain == mpi_ || domain == nccl || domain == cuda);
      const auto phase = table_.phase(kind);
      waits[kind] = !call && phase && by_phase.contains(*phase);
    }
    std::map<Phase, const Job*> last;  // that the main thread waited for
    const Slices& slices = rank_.tracks[main_].slices;
    const auto visit = [&](std::int64_t from, std::int64_t until, std::uint32_t slice) {
      const KindId kind = slices.kind[slice];
      if (waits[kind] == 0) return;
      const Phase phase = *table_.phase(kind);
      const auto& jobs = by_phase[phase];
      const auto after = std::ranges::upper_bound(jobs, until, {}, &Job::end_ns);
      if (after == jobs.begin()) return;
      const Job* job = *std::prev(after);
      if (job == std::exchange(last[phase], job)) return;
      // The main thread goes on where the job ends.
      const std::int64_t on = std::max(from, job->end_ns);
      add(main_, {from, on, job->end_ns, job->track, DependencyKind::helper});
    };
    // Only what is inside a range that waits cuts its time.
    std::int64_t waits_until = std::numeric_limits<std::int64_t>::min();
    each_innermost(slices, rank_.end_ns, visit, [&](std::uint32_t slice) {
      if (waits[slices.kind[slice]] != 0) waits_until = std::max(waits_until, slices.end_ns(slice));
      return slices.start_ns[slice] >= waits_until;
    });
  }

  void add(std::uint32_t track, const Dependency& wait) { out_.push_back({track, wait}); }

  const PhaseTable& table_;
  const Trace& trace_;
  const Rank& rank_;
  const NameId payload_ = trace_.names.find("payload"), wait_ = trace_.names.find("wait");
  const NameId mpi_ = trace_.names.find("mpi"), point_to_point_ = trace_.names.find("point-to-point");
  std::uint32_t main_ = no_track;
  std::map<std::pair<std::uint32_t, std::size_t>, std::int64_t> ends_;  // of collectives that end before their slice
  std::vector<Job> jobs_;
  std::vector<OwnDependencies> out_;
};

}  // namespace helper_parts

std::vector<OwnDependencies> helper_dependencies(const PhaseTable& table, const Rank& rank,
                                                 const CollectiveCalls& calls) {
  return helper_parts::Helpers(table, rank, calls).run();
}

}  // namespace paceline::analysis
