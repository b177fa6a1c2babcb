// SPDX-License-Identifier: Apache-2.0
#include "analysis/load/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "analysis/clocks/alignment.h"
#include "analysis/clocks/trace_alignment.h"
#include "analysis/load/rank_numbers.h"
#include "analysis/text/lists.h"
#include "analysis/text/numbers.h"
#include "analysis/trace/adopt.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace run_sources {

using Starts = std::unordered_map<NameId, std::vector<std::int64_t>>;  // of slices, by name, rising

struct Stretch {
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();

  bool holds(std::int64_t time_ns) const { return first_ns <= time_ns && time_ns <= last_ns; }
};

// How the times of a source become those of the run.
struct Offset {
  std::int64_t ns = 0;
  double error_ns = unset_utc_error_ns;
  std::int64_t tolerance_ns = 1'000'000;  // between the starts of the same slice in both
  std::size_t slices = 0;                 // that both have; 0: by UTC
};

// Kernels and copies are one class, because profilers put them on different tracks.
TrackKind class_of(const Track& track) { return track.kind == TrackKind::copy ? TrackKind::stream : track.kind; }

Starts starts_of(const Trace& trace, const Rank& rank, bool only_threads, Slices Track::*column) {
  Starts starts;
  for (const Track& track : rank.tracks) {
    if (only_threads && track.kind != TrackKind::thread) continue;
    const Slices& slices = track.*column;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      starts[trace.kinds[slices.kind[i]].name].push_back(slices.start_ns[i]);
    }
  }
  for (auto& [name, times] : starts) std::ranges::sort(times);
  return starts;
}

// By the names that both have equally often: the k-th slice of the one is the k-th of the other.
std::optional<Offset> by_common_slices(const Starts& of_run, const Starts& of_source) {
  constexpr std::size_t least = 3;
  constexpr double largest_error_ns = 1e6;  // beyond that, the names are the same by chance
  std::vector<std::int64_t> differences;
  for (const auto& [name, times] : of_source) {
    const auto known = of_run.find(name);
    if (known == of_run.end() || known->second.size() != times.size()) continue;
    for (std::size_t i = 0; i < times.size(); ++i) differences.push_back(known->second[i] - times[i]);
  }
  if (differences.size() < least) return std::nullopt;
  std::ranges::sort(differences);
  const std::int64_t middle = differences[differences.size() / 2];
  std::vector<double> errors;
  for (const std::int64_t ns : differences) errors.push_back(std::abs(static_cast<double>(ns - middle)));
  std::ranges::sort(errors);
  const double error_ns = errors[errors.size() * 95 / 100];
  if (error_ns > largest_error_ns) return std::nullopt;
  const auto tolerance_ns =
      std::clamp(static_cast<std::int64_t>(errors.back()), std::int64_t{10'000}, Offset().tolerance_ns);
  return Offset{middle, error_ns, tolerance_ns, differences.size()};
}

std::optional<Offset> offset_of(const Trace& run, const Rank& rank, const Rank& added) {
  const auto found =
      by_common_slices(starts_of(run, rank, false, &Track::slices), starts_of(run, added, false, &Track::slices));
  if (found) return found;
  const auto utc = rank.utc_of_zero_ns, added_utc = added.utc_of_zero_ns;
  if (!utc || !added_utc) return std::nullopt;
  const std::int64_t ns = *added_utc - *utc;
  if (added.start_ns + ns > rank.end_ns || added.end_ns + ns < rank.start_ns) return std::nullopt;  // of another run
  return Offset{.ns = ns};
}

// Takes the slices out for which `leave_out(i)` is true, and returns their number. What remains nests.
template <class LeaveOut>
std::uint64_t take_out(Slices& slices, const LeaveOut& leave_out) {
  std::size_t kept = 0;
  std::vector<std::int64_t> open;  // ends of the slices around
  const bool marks = slices.depth.size() != slices.size();
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (leave_out(i)) continue;
    slices.start_ns[kept] = slices.start_ns[i];
    slices.duration_ns[kept] = slices.duration_ns[i];
    slices.kind[kept] = slices.kind[i];
    slices.record[kept] = slices.record[i];
    while (!open.empty() && (open.back() <= slices.start_ns[kept] && slices.end_ns(kept) > open.back()))
      open.pop_back();
    if (!marks) slices.depth[kept] = static_cast<std::uint16_t>(std::min<std::size_t>(open.size(), 65535));
    open.push_back(slices.end_ns(kept));
    ++kept;
  }
  const std::uint64_t taken = slices.size() - kept;
  for (auto* column : {&slices.start_ns, &slices.duration_ns}) column->resize(kept);
  slices.kind.resize(kept), slices.record.resize(kept);
  if (!marks) slices.depth.resize(kept);
  return taken;
}

// What one source adds to the run.
struct Added {
  std::vector<int> ranks;
  std::uint64_t slices = 0, duplicates = 0;
  double error_ns = 0;
  bool by_utc = false, by_slices = false;
};

class Joining {
 public:
  Joining(Trace& run, Rank& rank, std::int64_t tolerance_ns)
      : rank_(rank),
        threads_(starts_of(run, rank, true, &Track::slices)),
        marks_(starts_of(run, rank, true, &Track::marks)),
        run_(run),
        tolerance_ns_(tolerance_ns) {
    for (const Track& track : rank.tracks) {
      has_main_ = has_main_ || (track.main && track.slices.size() > 0);
      has_states_ = has_states_ || !track.states.empty();
      has_stacks_ = has_stacks_ || track.stacks.size() > 0;
      if (track.kind == TrackKind::counter) counters_.insert(track.label);
      Stretch& seen = seen_[class_of(track)];
      for (std::size_t i = 0; i < track.slices.size(); ++i) {
        seen.first_ns = std::min(seen.first_ns, track.slices.start_ns[i]);
        seen.last_ns = std::max(seen.last_ns, track.slices.end_ns(i));
      }
    }
  }

  void join(Rank added, const std::string& format, Added& all) {
    for (Track& track : added.tracks) {
      all.duplicates += take_duplicates(track);
      if (has_states_) track.states = {};
      if (has_stacks_) track.stacks = {};
      if (track.slices.size() + track.marks.size() + track.samples.size() + track.states.size() + track.stacks.size() ==
          0)
        continue;
      all.slices += track.slices.size() + track.marks.size();
      count(track);
      track.main = track.main && !has_main_;
      track.label += fmt::format(" ({})", format);
      rank_.tracks.push_back(std::move(track));
    }
    rank_.start_ns = std::min(rank_.start_ns, added.start_ns);
    rank_.end_ns = std::max(rank_.end_ns, added.end_ns);
    rank_.facts.merge(std::move(added.facts));
    for (const auto& [cause, events] : added.dropped) rank_.dropped[cause] += events;
    if (added.damaged) {
      rank_.damage += (rank_.damaged ? "; " : "") + fmt::format("{}: {}", added.path, added.damage);
      rank_.damaged = true;
    }
    if (rank_.host.empty()) rank_.host = added.host;
    if (rank_.pid <= 0) rank_.pid = added.pid;
    for (std::size_t i = 0; i < added.communicators.size(); ++i) {
      if (std::ranges::find(rank_.communicators, added.communicators[i]) != rank_.communicators.end()) continue;
      rank_.communicators.push_back(added.communicators[i]);
      rank_.communicator_ranks.push_back(added.communicator_ranks[i]);
    }
  }

 private:
  // Both begin at about the same time.
  bool is_known(const Starts& known, NameId name, std::int64_t start_ns) const {
    const auto found = known.find(name);
    if (found == known.end()) return false;
    const auto after = std::ranges::lower_bound(found->second, start_ns - tolerance_ns_);
    return after != found->second.end() && *after <= start_ns + tolerance_ns_;
  }

  std::uint64_t take_duplicates(Track& track) const {
    if (track.kind == TrackKind::counter && counters_.contains(track.label)) track.samples = {};
    const auto seen = seen_.find(class_of(track));
    const auto leave_out = [&](const Slices& slices, const Starts& known) {
      return [&](std::size_t i) {
        if (track.kind == TrackKind::thread) {
          return is_known(known, run_.kinds[slices.kind[i]].name, slices.start_ns[i]);
        }
        return seen != seen_.end() && seen->second.holds(slices.start_ns[i]);
      };
    };
    return take_out(track.slices, leave_out(track.slices, threads_)) +
           take_out(track.marks, leave_out(track.marks, marks_));
  }

  void count(const Track& track) {
    (track.kind == TrackKind::counter                                   ? rank_.counter_events
     : track.kind == TrackKind::nccl                                    ? rank_.nccl_events
     : track.kind == TrackKind::stream || track.kind == TrackKind::copy ? rank_.cuda_events
                                                                        : rank_.nvtx_events) +=
        track.slices.size() + track.marks.size() + track.samples.size();
  }

  Rank& rank_;
  const Starts threads_, marks_;
  const Trace& run_;
  const std::int64_t tolerance_ns_;
  bool has_main_ = false, has_states_ = false, has_stacks_ = false;
  std::set<std::string> counters_;
  std::map<TrackKind, Stretch> seen_;  // when the run has slices of each class
};

std::string files_text(const std::vector<TraceFile>& files) {
  return files.front().name + (files.size() > 1 ? fmt::format(" and {} more", files.size() - 1) : "");
}

std::string clock_text(const Added& added) {
  if (!added.by_slices) return "by UTC, of which nothing shows how good it is";
  const std::string error = seconds(added.error_ns * 1e-9);
  return fmt::format("by slices that both have, which agree within {} (95 %){}", error,
                     added.by_utc ? ", and by UTC for some ranks" : "");
}

// True if it added anything.
bool add_source(Trace& run, const RunFiles::Source& source, const Progress& progress) {
  Trace other = source.reader->read(source.files, progress);
  if (!source.reader->whole_runs) {
    number_ranks(other);
    align_ranks(other);
  }
  const std::string format(source.reader->name), name = files_text(source.files);
  std::vector<std::string> notes, of_source = std::move(other.notes);
  Added added;
  std::vector<int> absent, unplaced;
  for (Rank& from : adopt_ranks(std::move(other), run)) {
    const auto rank = std::ranges::find(run.ranks, from.rank, &Rank::rank);
    if (rank == run.ranks.end()) {
      absent.push_back(from.rank);
      continue;
    }
    Offset offset;
    if (!from.tracks.empty()) {
      const auto found = offset_of(run, *rank, from);
      if (!found) {
        unplaced.push_back(from.rank);
        continue;
      }
      offset = *found;
      shift_rank(from, offset.ns);
      (offset.slices > 0 ? added.by_slices : added.by_utc) = true;
      if (offset.slices > 0) added.error_ns = std::max(added.error_ns, offset.error_ns);
    } else {
      from.start_ns = from.end_ns = rank->start_ns;  // facts alone
    }
    added.ranks.push_back(from.rank);
    Joining(run, *rank, offset.tolerance_ns).join(std::move(from), format, added);
  }
  const auto left_out = [&](const std::vector<int>& ranks, const char* why) {
    if (!ranks.empty())
      notes.push_back(fmt::format("{}: left out: {} of the format {}: {}", name, rank_list(ranks), format, why));
  };
  left_out(absent, fmt::format("no file of the format {} has them", run.ranks.front().format).c_str());
  left_out(unplaced, "neither common slices nor UTC put them into the run's time: give them alone");
  if (!added.ranks.empty()) {
    run.notes.push_back(fmt::format(
        "sources: {} ({}): {}{}", name, format,
        added.by_slices || added.by_utc ? fmt::format("{} slices and marks of {}, on the clock {}", added.slices,
                                                      rank_list(added.ranks), clock_text(added))
                                        : fmt::format("facts of {}", rank_list(added.ranks)),
        added.duplicates > 0 ? fmt::format("; {} that the run has already were left out", added.duplicates) : ""));
  }
  std::ranges::move(notes, std::back_inserter(run.notes));
  if (!added.ranks.empty()) std::ranges::move(of_source, std::back_inserter(run.notes));
  return !added.ranks.empty();
}

}  // namespace run_sources

std::vector<const TraceReader*> add_sources(Trace& run, const RunFiles& files, const Progress& progress) {
  std::vector<const TraceReader*> without;
  for (const RunFiles::Source& source : files.others) {
    try {
      if (!run_sources::add_source(run, source, progress)) without.push_back(source.reader);
    } catch (const Error& error) {
      if (progress && !progress(0)) throw;
      const bool several = source.files.size() > 1;
      run.notes.push_back(
          fmt::format("{}: left out: {} of the format {}, and this run is read as {}: give {} alone: {}",
                      run_sources::files_text(source.files), several ? "they are" : "it is", source.reader->name,
                      files.reader->name, several ? "them" : "it", error.what()));
      without.push_back(source.reader);
    }
  }
  if (files.others.empty() || run.ranks.empty()) return without;
  // The run begins at 0.
  const std::int64_t first_ns = std::ranges::min_element(run.ranks, {}, &Rank::start_ns)->start_ns;
  if (first_ns < 0) {
    for (Rank& rank : run.ranks) shift_rank(rank, -first_ns);
  }
  return without;
}

}  // namespace paceline::analysis
