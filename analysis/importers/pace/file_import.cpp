// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/file_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace paceline::analysis {

using format::EventType;
using format::Slot;
using format::unpack;
namespace events = format::events;

namespace {

// The scope of the ranges in which a thread waited for the recorder (--lossless).
std::optional<std::uint64_t> recorder_wait_scope(const PaceDefinitions& definitions) {
  const auto name = std::ranges::find(definitions.names, "recorder wait");
  const auto domain =
      std::ranges::find_if(definitions.domains, [&](std::uint32_t id) { return definitions.name(id) == "paceline"; });
  if (name == definitions.names.end() || domain == definitions.domains.end()) return std::nullopt;
  return format::pack_scope(static_cast<std::uint32_t>(name - definitions.names.begin()), 0,
                            static_cast<std::uint16_t>(domain - definitions.domains.begin()));
}

// True for what a thread does itself at the ticks of the event: its ranges, marks and calls begin and end there. No
// call of CUDA crosses such a moment.
bool is_edge(EventType type) {
  switch (type) {
    case EventType::pop:
    case EventType::end:
    case EventType::mpi_end:
    case EventType::nccl_call:
    case EventType::nccl_end:
      return true;
    default:
      return family_of(type) == format::Family::nvtx || family_of(type) == format::Family::mpi;
  }
}

}  // namespace

PaceFileImport::PaceFileImport(PaceContext& context, std::string process)
    : context_(context),
      process_(std::move(process)),
      cuda_(context),
      nccl_(context),
      nvtx_(context),
      mpi_(context),
      stacks_(context),
      recorder_wait_(recorder_wait_scope(context.definitions)) {}

void PaceFileImport::add_rank_facts() {
  Rank& info = context_.rank.info();
  for (const PaceGap& gap : context_.gaps) {
    const std::int64_t start = gap.off == 0 ? info.start_ns : std::max(context_.time(gap.off), info.start_ns);
    const std::int64_t end = std::min(context_.time(gap.on), info.end_ns);
    if (end > start) info.gaps.push_back({start, end, gap.reason});
  }
  for (const auto& trigger : context_.definitions.triggers) {
    info.triggers.push_back({context_.time(trigger.ticks), trigger_text(trigger)});
  }
  for (const auto& [number, communicator] : context_.communicators) {
    const std::uint32_t own_rank = context_.definitions.communicators.at(number).rank;
    context_.rank.add_communicator(communicator, static_cast<std::int32_t>(own_rank));
  }
}

TrackBuilder* PaceFileImport::add_tracks(std::size_t main_index, bool is_rank_main, TrackBuilder* onto) {
  TrackBuilder* main = nullptr;
  for (std::size_t t = 0; t < context_.events.tracks().size(); ++t) {
    const bool is_main = t == main_index;
    TrackBuilder& track = add_track(t, is_main, is_main && is_rank_main, is_main ? onto : nullptr);
    if (is_main) main = &track;
    stacks_.add_thread(context_.events.tracks()[t].thread_id, track);
  }
  stacks_.add_samples(process_);
  add_lost_elsewhere();
  threads_.add_states(context_.time, thread_tracks_, process_, context_.rank);
  nccl_.add_tracks(cuda_, process_);
  cuda_.add_tracks(process_);
  add_counts();
  return main;
}

void PaceFileImport::add_counts() {
  Rank& info = context_.rank.info();
  const auto left_out = [&](format::Family family) {
    return context_.events.left_out().events[static_cast<std::size_t>(family)];
  };
  info.cuda_events += cuda_.events() + left_out(format::Family::cuda);
  info.nccl_events += nccl_.events() + left_out(format::Family::nccl);
  info.nvtx_events += left_out(format::Family::nvtx);
  info.mpi_events += left_out(format::Family::mpi);
  info.counter_events += left_out(format::Family::counter);
}

TrackBuilder& PaceFileImport::add_track(std::size_t index, bool is_main, bool is_rank_main, TrackBuilder* onto) {
  const PaceEvents::TrackId& from = context_.events.tracks()[index];
  const PaceDefinitions& definitions = context_.definitions;
  std::string label = is_main ? "main thread" : fmt::format("thread {}", from.thread_id);
  if (const auto named = definitions.thread_names.find(from.thread_id); named != definitions.thread_names.end()) {
    label = definitions.name(named->second);
  }
  label = process_ + label;
  TrackBuilder& track =
      onto != nullptr ? *onto : context_.rank.add_track(TrackKind::thread, label, from.thread_id, is_rank_main);
  thread_tracks_[from.thread_id] = &track;
  track.reserve(track.size() + from.ranges);
  mpi_.start_track();

  Open open;
  open.track_index = index;
  const std::vector<PaceGap> gaps = with_damage(from.id);
  const auto end_of_gap = [&] {
    return open.gap < gaps.size() ? gaps[open.gap].on : std::numeric_limits<std::uint64_t>::max();
  };
  std::uint64_t next_cut = end_of_gap();
  const bool simple = cuda_.events() == 0 && !recorder_wait_;
  context_.events.each(index, PaceEvents::Part::everything, [&](const Slot& head) {
    if (ticks_of(head) >= next_cut) {
      for (; ticks_of(head) >= end_of_gap(); ++open.gap) cut(track, open, gaps[open.gap]);
      next_cut = end_of_gap();
    }
    if (simple && pending_.slots().empty() && simple_event(track, open, head)) return;
    if (pending_.take(head)) return;
    event(track, open, head);
    pending_.forget();
  });
  pending_.forget();
  // A pause ends ranges also where the thread did nothing after it.
  for (; open.gap < gaps.size(); ++open.gap) {
    if (gaps[open.gap].paused) cut(track, open, gaps[open.gap]);
  }
  for (const format::LostStretch& lost : context_.events.facts().lost) {
    if (lost.track == from.id && !lost.any_thread) add_lost(track, lost);
  }
  nvtx_.place_ranges(track, open.ranges, label, from.thread_id);
  nccl_.add_calls(static_cast<std::uint32_t>(index), from.thread_id, track);
  if (cuda_.events() > 0) {
    if (!std::ranges::is_sorted(open.edges)) std::ranges::sort(open.edges);
    cuda_.add_calls(from.thread_id, open.edges, track);
  }
  return track;
}

[[gnu::always_inline]] inline bool PaceFileImport::simple_event(TrackBuilder& track, Open& open, const Slot& head) {
  switch (type_of(head)) {
    case EventType::push:
      if (!pending_.slots().empty()) return false;
      ++context_.rank.info().nvtx_events;
      nvtx_.simple_push(track, open.ranges, context_.time(ticks_of(head)), head);
      return true;
    case EventType::pop:
      return pending_.slots().empty() && nvtx_.simple_pop(track, open.ranges, context_.time(ticks_of(head)), head);
    case EventType::mpi_begin:
      ++context_.rank.info().mpi_events;
      open.calls.push_back(mpi_.begin_simple(track, context_.time(ticks_of(head)), head));
      return true;
    case EventType::mpi_end:
      if (open.calls.empty()) return true;
      track.end_slice(open.calls.back().slice, context_.time(ticks_of(head)));
      open.calls.pop_back();
      return true;
    default:
      return false;
  }
}

void PaceFileImport::event(TrackBuilder& track, Open& open, const Slot& head) {
  const EventType type = type_of(head);
  const std::int64_t time_ns = context_.time(ticks_of(head));
  Rank& info = context_.rank.info();
  if (cuda_.events() > 0 && is_edge(type)) open.edges.push_back(time_ns);
  if (recorder_wait_) add_recorder_wait(open, time_ns, head);
  if (simple_event(track, open, head)) return;
  switch (type) {
    case EventType::push:
    case EventType::push_payload:
      ++info.nvtx_events;
      nvtx_.push(track, open.ranges, time_ns, head, pending_.slots());
      break;
    case EventType::pop:
      nvtx_.pop(track, open.ranges, time_ns, head, pending_.slots());
      break;
    case EventType::mark:
    case EventType::mark_payload:
      ++info.nvtx_events;
      nvtx_.mark(track, time_ns, head, pending_.slots());
      break;
    case EventType::start:
    case EventType::start_payload:
      ++info.nvtx_events;
      nvtx_.start(open.track_index, open.ranges, head, pending_.slots());
      break;
    case EventType::end:
      nvtx_.end(open.ranges, head);
      break;
    case EventType::mpi_begin_peer:
    case EventType::mpi_begin_coll:
    case EventType::mpi_begin_file:
    case EventType::mpi_begin_window:
      ++info.mpi_events;
      open.calls.push_back(mpi_.begin(track, time_ns, head));
      break;
    case EventType::mpi_posted:
      if (!open.calls.empty()) mpi_.request(track, open.calls.back(), unpack<events::MpiPosted>(&head).request);
      break;
    case EventType::mpi_completed:
      if (!open.calls.empty()) mpi_.request(track, open.calls.back(), unpack<events::MpiCompleted>(&head).request);
      break;
    case EventType::stack:
      stacks_.define(head);
      break;
    case EventType::stack_sample:
      stacks_.sample(head);
      break;
    case EventType::sample:
      counters_.sample(head, info);
      break;
    default:
      threads_.event(head);
      break;
  }
}

// A range that is open when a gap begins ends inside the gap or at an unknown time after it. It is cut at the begin of
// the gap and marked as unfinished.
void PaceFileImport::cut(TrackBuilder& track, Open& open, const PaceGap& gap) {
  nvtx_.cut(track, open.ranges, gap);
  if (!gap.incomplete) return;  // the ends of calls are recorded in a pause
  const auto kept = std::ranges::find_if(open.calls, [&](const PaceMpi::Call& call) { return call.ticks > gap.off; });
  for (auto call = open.calls.begin(); call != kept; ++call) {
    track.end_slice(call->slice, context_.time(std::max(gap.off, call->ticks)));
    track.argument(call->slice, context_.words.unfinished, 1);
  }
  open.calls.erase(open.calls.begin(), kept);
}

// A wait is a push and its pop right after it.
void PaceFileImport::add_recorder_wait(Open& open, std::int64_t time_ns, const Slot& head) {
  if (open.waits_since_ns && type_of(head) == EventType::pop) {
    context_.rank.info().recorder_wait_ns += time_ns - *open.waits_since_ns;
  }
  open.waits_since_ns.reset();
  if (type_of(head) == EventType::push && scope_of(head) == *recorder_wait_) open.waits_since_ns = time_ns;
}

// What a track does not cover: the gaps of the file, and its damaged blocks. (In an overload the recorder keeps the
// ends of what it has recorded.)
std::vector<PaceGap> PaceFileImport::with_damage(std::uint32_t track) const {
  std::vector<PaceGap> gaps = context_.gaps;
  for (const format::LostStretch& lost : context_.events.facts().lost) {
    if (lost.track != track || lost.any_thread || lost.cause != format::lost_by_damage) continue;
    gaps.push_back(
        {lost.first_ticks, std::min(lost.last_ticks, context_.definitions.last_ticks), false, true, "damage"});
  }
  if (gaps.size() > context_.gaps.size()) join_gaps(gaps);
  return gaps;
}

void PaceFileImport::add_lost(TrackBuilder& track, const format::LostStretch& lost) const {
  track.add_lost(context_.time(lost.first_ticks),
                 context_.time(std::min(lost.last_ticks, context_.definitions.last_ticks)), lost.events,
                 lost_cause_text(lost.cause));
}

// Losses of threads that have no other events in the file, or of threads that are not known.
void PaceFileImport::add_lost_elsewhere() {
  std::map<std::uint32_t, TrackBuilder*> made;
  for (const format::LostStretch& lost : context_.events.facts().lost) {
    if (lost.any_thread) {
      context_.rank.add_lost(context_.time(lost.first_ticks),
                             context_.time(std::min(lost.last_ticks, context_.definitions.last_ticks)), lost.events,
                             lost_cause_text(lost.cause));
      continue;
    }
    if (std::ranges::find(context_.events.tracks(), lost.track, &PaceEvents::TrackId::id) !=
        context_.events.tracks().end()) {
      continue;
    }
    TrackBuilder*& track = made[lost.track];
    if (track == nullptr) {
      track = &context_.rank.add_track(TrackKind::thread, fmt::format("{}thread {}", process_, lost.thread_id),
                                       lost.thread_id);
    }
    add_lost(*track, lost);
  }
}

void PaceFileImport::add_counters(const std::string& process) {
  counters_.add_tracks(context_.definitions, context_.time, process, context_.rank);
  threads_.add_counters(context_.time, context_.rank);
}

}  // namespace paceline::analysis
