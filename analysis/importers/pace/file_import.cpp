#include "analysis/importers/pace/file_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace paceline::analysis {

using format::EventType;
using format::Slot;

namespace {

Argument payload_of(NameId key, std::uint64_t type, std::uint64_t bits) {
  switch (static_cast<format::PayloadType>(type)) {
    case format::PayloadType::signed_integer:
      return make_argument(key, static_cast<std::int64_t>(bits));
    case format::PayloadType::floating:
      return make_argument(key, std::bit_cast<double>(bits));
    default:
      return make_argument(key, bits);
  }
}

}  // namespace

std::int64_t whole_ns(double ns) { return std::llround(std::clamp(ns, -4e18, 4e18)); }

PaceFileImport::PaceFileImport(PaceVocabulary& words, RankBuilder& rank, const PaceDefinitions& definitions,
                               const std::vector<PaceGap>& gaps, const PiecewiseLine& clock, double zero)
    : words_(words), rank_(rank), definitions_(definitions), gaps_(gaps), clock_(clock), zero_(zero) {
  names_.reserve(definitions.names.size());
  for (const std::string& name : definitions.names) names_.push_back(rank.names().intern(name));
  for (const auto& [local, communicator] : definitions.communicators) {
    communicators_[local] = {words.communicator_text(communicator.identity), communicator.members,
                             communicator.identity};
  }
}

void PaceFileImport::gaps() {
  Rank& info = rank_.info();
  for (const PaceGap& gap : gaps_) {
    const std::int64_t start = gap.off == 0 ? info.start_ns : std::max(time(gap.off), info.start_ns);
    const std::int64_t end = std::min(time(gap.on), info.end_ns);
    if (end > start) info.gaps.push_back({start, end, gap.reason});
  }
  for (const auto& trigger : definitions_.triggers)
    info.triggers.push_back({time(trigger.ticks), trigger_text(trigger)});
  for (const auto& [local, communicator] : communicators_) {
    rank_.add_communicator({communicator.text, communicator.identity, communicator.members});
  }
}

void PaceFileImport::read_devices(const format::TraceFile& file) {
  const auto time_of = [this](std::uint64_t ticks) { return time(ticks); };
  cuda_.emplace(rank_, file, definitions_, time_of);
  nccl_.emplace(rank_, file, definitions_, time_of,
                [this](std::uint64_t identity) { return words_.communicator_text(identity); });
}

void PaceFileImport::count_left_out(const format::TraceFile& file) {
  const auto events = [&](format::Family family) { return file.left_out.events[static_cast<std::size_t>(family)]; };
  Rank& info = rank_.info();
  info.nvtx_events += events(format::Family::nvtx);
  info.mpi_events += events(format::Family::mpi);
  info.cuda_events += events(format::Family::cuda);
  info.nccl_events += events(format::Family::nccl);
  info.counter_events += events(format::Family::counter);
}

void PaceFileImport::add_devices(const format::TraceFile& file, const std::string& process) {
  count_left_out(file);
  nccl_->add_tracks(file, *cuda_, process);
  cuda_->add_tracks(process);
  rank_.info().cuda_events += cuda_->events();
  rank_.info().nccl_events += nccl_->events();
}

std::int64_t PaceFileImport::time(std::uint64_t ticks) const {
  return whole_ns(clock_(static_cast<double>(ticks)) - zero_);
}

void PaceFileImport::add_lost(TrackBuilder& track, const format::LostStretch& lost) const {
  track.add_lost(time(lost.first_ticks), time(std::min(lost.last_ticks, definitions_.last_ticks)), lost.events,
                 lost_cause_text(lost.cause));
}

void PaceFileImport::lost_elsewhere(const format::TraceFile& file, const std::string& process) {
  std::map<std::uint32_t, TrackBuilder*> made;
  for (const format::LostStretch& lost : file.lost) {
    if (lost.any_thread) {
      rank_.add_lost(time(lost.first_ticks), time(std::min(lost.last_ticks, definitions_.last_ticks)), lost.events,
                     lost_cause_text(lost.cause));
      continue;
    }
    if (std::ranges::find(file.tracks, lost.track, &format::Track::id) != file.tracks.end()) continue;
    TrackBuilder*& track = made[lost.track];
    if (track == nullptr) {
      track = &rank_.add_track(TrackKind::thread, fmt::format("{}thread {}", process, lost.thread_id), lost.thread_id);
    }
    add_lost(*track, lost);
  }
}

TrackBuilder& PaceFileImport::track(const format::TraceFile& file, std::uint32_t index, bool main,
                                    const std::string& process, TrackBuilder* onto) {
  const format::Track& from = file.tracks[index];
  std::string label = main ? "main thread" : fmt::format("thread {}", from.thread_id);
  if (const auto named = definitions_.thread_names.find(from.thread_id); named != definitions_.thread_names.end()) {
    label = definitions_.name(named->second);
  }
  label = process + label;
  Open open;
  TrackBuilder& track =
      onto != nullptr ? *onto : rank_.add_track(TrackKind::thread, label, from.thread_id, main && process.empty());
  const std::vector<PaceGap> gaps = with_damage(from.id, file);
  each_event(from.slots, [&](const Slot& head, const Slot* extension) {
    for (; open.gap < gaps.size() && ticks_of(head) >= gaps[open.gap].on; ++open.gap) cut(track, open, gaps[open.gap]);
    if (pending_.take(head)) return;
    event(track, index, open, head, extension);
    pending_.forget();
  });
  pending_.forget();
  // A pause ends ranges also where the thread did nothing after it.
  for (; open.gap < gaps.size(); ++open.gap) {
    if (gaps[open.gap].paused) cut(track, open, gaps[open.gap]);
  }
  for (const format::LostStretch& lost : file.lost) {
    if (lost.track == from.id && !lost.any_thread) add_lost(track, lost);
  }
  rank_.info().recorder_wait_ns += recorder_wait_ns(from);
  place_ranges(track, label, from.thread_id, open.ranges);
  if (nccl_) nccl_->add_calls(index, from.thread_id, track);
  if (cuda_ && cuda_->events() > 0) cuda_->add_calls(from.thread_id, edges_of(from), track);
  return track;
}

// The sum of the ranges that say how long a thread waited for the recorder (--lossless): each a push, and its pop right
// after it.
std::int64_t PaceFileImport::recorder_wait_ns(const format::Track& from) const {
  const auto name = std::ranges::find(definitions_.names, "recorder wait");
  const auto domain =
      std::ranges::find_if(definitions_.domains, [&](std::uint32_t id) { return definitions_.name(id) == "paceline"; });
  if (name == definitions_.names.end() || domain == definitions_.domains.end()) return 0;
  const std::uint64_t scope = format::pack_scope(static_cast<std::uint32_t>(name - definitions_.names.begin()), 0,
                                                 static_cast<std::uint16_t>(domain - definitions_.domains.begin()));
  std::int64_t sum = 0, began = 0;
  bool waits = false;
  each_event(from.slots, [&](const Slot& head, const Slot*) {
    if (waits && type_of(head) == EventType::pop) sum += time(ticks_of(head)) - began;
    waits = type_of(head) == EventType::push && head.low == scope;
    if (waits) began = time(ticks_of(head));
  });
  return sum;
}

// What a track does not cover: as the file, and where a block of it is damaged. (In an overload the recorder keeps the
// ends of what it has recorded.)
std::vector<PaceGap> PaceFileImport::with_damage(std::uint32_t track, const format::TraceFile& file) const {
  std::vector<PaceGap> gaps = gaps_;
  for (const format::LostStretch& lost : file.lost) {
    if (lost.track != track || lost.any_thread || lost.cause != format::lost_by_damage) continue;
    gaps.push_back({lost.first_ticks, std::min(lost.last_ticks, definitions_.last_ticks), false, true, "damage"});
  }
  if (gaps.size() > gaps_.size()) join_gaps(gaps);
  return gaps;
}

void PaceFileImport::counters(const std::string& process) {
  for (auto& [id, readings] : readings_) {
    const auto known = definitions_.counters.find(id);
    PaceDefinitions::Counter counter;
    if (known != definitions_.counters.end()) counter = known->second;
    std::string name(definitions_.name(counter.name));
    if (name.empty()) name = fmt::format("counter {}", id);  // its definition is lost
    std::string device(definitions_.name(counter.device));
    if (!process.empty()) device = device.empty() ? process : process + ", " + device;
    TrackBuilder& track = rank_.add_counter(std::move(name), std::string(definitions_.name(counter.unit)),
                                            std::move(device), counter.is_sum);
    std::ranges::stable_sort(readings, {}, &Reading::ticks);
    // A sum may stand at any number when the recording begins, and a double has 53 bits.
    const std::uint64_t start = counter.is_sum ? readings.front().value : 0;
    for (const Reading& reading : readings) {
      track.add_sample(time(reading.ticks), static_cast<double>(static_cast<std::int64_t>(reading.value - start)));
    }
  }
}

std::vector<std::int64_t> PaceFileImport::edges_of(const format::Track& from) const {
  std::vector<std::int64_t> edges;
  each_event(from.slots, [&](const Slot& head, const Slot*) {
    const EventType type = type_of(head);
    const auto number = static_cast<unsigned>(type);
    const bool is_edge = (number >= 16 && number < 48) || (number >= 64 && number < 96) ||  // NVTX and MPI
                         type == EventType::nccl_call || type == EventType::nccl_end;
    if (is_edge) edges.push_back(time(ticks_of(head)));
  });
  if (!std::ranges::is_sorted(edges)) std::ranges::sort(edges);
  return edges;
}

NameId PaceFileImport::name(std::uint64_t scope) const {
  const auto id = static_cast<std::uint32_t>(scope);
  return id < names_.size() ? names_[id] : 0;
}

KindId PaceFileImport::kind(std::uint64_t scope) {
  if (scope == last_scope_) return last_kind_;
  const auto [found, fresh] = kinds_.try_emplace(scope, KindId{0});
  if (fresh) {
    const auto category = static_cast<std::uint32_t>(scope >> 32 & 0xffff);
    const auto domain = static_cast<std::uint32_t>(scope >> 48);
    Kind kind{0, 0, name(scope)};
    if (domain < definitions_.domains.size()) {
      kind.domain = rank_.names().intern(definitions_.name(definitions_.domains[domain]));
    }
    if (domain < definitions_.categories.size()) {
      const auto named = definitions_.categories[domain].find(category);
      if (named != definitions_.categories[domain].end()) {
        kind.category = rank_.names().intern(definitions_.name(named->second));
      }
    }
    found->second = rank_.vocabulary().kinds.intern(kind);
  }
  last_scope_ = scope;
  return last_kind_ = found->second;
}

KindId PaceFileImport::kind(std::uint64_t scope, const DecodedPayloads& payloads) {
  const KindId plain = kind(scope);
  if (payloads.message.empty()) return plain;
  Kind named = rank_.vocabulary().kinds[plain];
  named.name = rank_.names().intern(payloads.message);
  return rank_.vocabulary().kinds.intern(named);
}

void PaceFileImport::event(TrackBuilder& track, std::uint32_t index, Open& open, const Slot& head,
                           const Slot* extension) {
  const std::uint64_t ticks = ticks_of(head);
  Rank& info = rank_.info();
  switch (type_of(head)) {
    case EventType::push:
    case EventType::push_payload: {
      ++info.nvtx_events;
      const DecodedPayloads payloads = decode(pending_.before(head), head.low >> 48);
      const std::uint32_t slice = track.begin_slice(time(ticks), kind(head.low, payloads));
      if (type_of(head) == EventType::push_payload) {
        track.add_argument(slice, payload_of(words_.payload, extension->high, extension->low), true);
      }
      add_values(track, slice, payloads);
      open.pushes.push_back({slice, static_cast<std::uint16_t>(head.low >> 48), ticks});
      open.nesting.push_back(-1);
      break;
    }
    case EventType::pop:
      pop(track, open, head);
      break;
    case EventType::mark:
    case EventType::mark_payload: {
      ++info.nvtx_events;
      const DecodedPayloads payloads = decode(pending_.before(head), head.low >> 48);
      const std::uint32_t mark = track.add_mark(time(ticks), kind(head.low, payloads));
      if (type_of(head) == EventType::mark_payload) {
        track.add_mark_argument(mark, payload_of(words_.payload, extension->high, extension->low));
      }
      add_mark_values(track, mark, payloads);
      break;
    }
    case EventType::submit:
      ++info.nvtx_events;
      submitted(head);
      break;
    case EventType::start:
    case EventType::start_payload:
      ++info.nvtx_events;
      start_range(index, open, head, extension);
      break;
    case EventType::end:
      end_range(open, head.low);
      break;
    case EventType::mpi_begin:
    case EventType::mpi_begin_peer:
    case EventType::mpi_begin_coll:
    case EventType::mpi_begin_file:
    case EventType::mpi_begin_window:
      ++info.mpi_events;
      open.calls.push_back({begin_call(track, head, extension), ticks});
      break;
    case EventType::mpi_posted:
    case EventType::mpi_completed:
      if (!open.calls.empty()) {
        track.varying_argument(open.calls.back().slice, words_.request, head.low);
      }
      break;
    case EventType::mpi_end:
      if (open.calls.empty()) break;
      track.end_slice(open.calls.back().slice, time(ticks));
      open.calls.pop_back();
      break;
    case EventType::sample:
      if (head.low > 0xffff) break;  // no counter can have this number: damage
      ++info.counter_events;
      readings_[static_cast<std::uint32_t>(head.low)].push_back({ticks, extension->high});
      break;
    default:
      break;
  }
}

void PaceFileImport::cut(TrackBuilder& track, Open& open, const PaceGap& gap) {
  const auto end = [&](std::uint32_t slice, std::uint64_t began) {
    track.end_slice(slice, time(std::max(gap.off, began)));
    track.argument(slice, words_.unfinished, 1);
  };
  const auto is_cut = [&](const auto& begun) { return begun.ticks <= gap.off || (gap.paused && begun.ticks < gap.on); };
  const auto pushes = std::ranges::find_if_not(open.pushes, is_cut);
  for (auto push = open.pushes.begin(); push != pushes; ++push) end(push->slice, push->ticks);
  for (auto left = pushes - open.pushes.begin(); left > 0; --left)
    open.nesting.erase(std::ranges::find(open.nesting, -1));
  open.pushes.erase(open.pushes.begin(), pushes);
  if (!gap.incomplete) return;  // the ends of calls are recorded in a pause
  const auto calls = std::ranges::find_if(open.calls, [&](const Call& call) { return call.ticks > gap.off; });
  for (auto call = open.calls.begin(); call != calls; ++call) end(call->slice, call->ticks);
  open.calls.erase(open.calls.begin(), calls);
}

void PaceFileImport::pop(TrackBuilder& track, Open& open, const Slot& head) {
  const auto domain = static_cast<std::uint16_t>(head.low);
  const auto push = std::find_if(open.pushes.rbegin(), open.pushes.rend(),
                                 [&](const Push& candidate) { return candidate.domain == domain; });
  if (push == open.pushes.rend()) return;  // the end of a range that began before the recording
  track.end_slice(push->slice, time(ticks_of(head)));
  const DecodedPayloads payloads = decode(pending_.before(head), domain);
  if (!payloads.message.empty()) track.rename(push->slice, rank_.names().intern(payloads.message));
  add_values(track, push->slice, payloads);
  auto pushes_above = push - open.pushes.rbegin();
  open.pushes.erase(std::next(push).base());
  // Ranges that began inside this push cross its end; pushes of other domains stay.
  auto entry = std::prev(open.nesting.end());
  for (; *entry != -1 || pushes_above-- > 0; --entry) {
    if (*entry == -1) continue;
    open.ranges[static_cast<std::size_t>(*entry)].crosses = true;
    entry = open.nesting.erase(entry);
  }
  open.nesting.erase(entry);
}

std::uint32_t PaceFileImport::begin_call(TrackBuilder& track, const Slot& head, const Slot* extension) {
  const KindId kind = words_.mpi(static_cast<std::uint32_t>(head.low & 0xffff));
  const std::uint32_t slice = track.begin_slice(time(ticks_of(head)), kind);
  if (type_of(head) == EventType::mpi_begin) return slice;
  const auto root_or_tag = static_cast<std::int32_t>(static_cast<std::uint32_t>(head.low >> 16));
  if (type_of(head) == EventType::mpi_begin_file || type_of(head) == EventType::mpi_begin_window) {
    object_arguments(track, slice, head, extension);
    return slice;
  }
  track.argument(slice, words_.bytes, extension->high);
  const auto communicator = communicators_.find(static_cast<std::uint32_t>(extension->low));
  const bool known = communicator != communicators_.end();
  if (known) track.text_argument(slice, words_.communicator, communicator->second.text);
  if (type_of(head) == EventType::mpi_begin_coll) {
    if (known) track.argument(slice, words_.members, communicator->second.members);
    track.varying_argument(slice, words_.sequence, extension->low >> 32);
    if (root_or_tag >= 0) track.argument(slice, words_.root, root_or_tag);
  } else {
    track.argument(slice, words_.peer, static_cast<std::int32_t>(extension->low >> 32));
    track.argument(slice, words_.tag, root_or_tag);
  }
  return slice;
}

void PaceFileImport::object_arguments(TrackBuilder& track, std::uint32_t slice, const Slot& head,
                                      const Slot* extension) {
  const auto object_or_target = static_cast<std::uint32_t>(head.low >> 16);
  if (extension->high > 0) track.argument(slice, words_.bytes, extension->high);
  if (type_of(head) == EventType::mpi_begin_window) {
    const auto target = static_cast<std::int32_t>(object_or_target);
    if (target >= 0) track.argument(slice, words_.peer, target);
    track.argument(slice, words_.window, extension->low & 0xffffffff);
    return;
  }
  if (const auto file = definitions_.mpi_files.find(object_or_target); file != definitions_.mpi_files.end()) {
    track.text_argument(slice, words_.file, name(file->second.path));
  }
  const auto offset = static_cast<std::int64_t>(extension->low);
  if (offset >= 0) track.varying_argument(slice, words_.offset, offset);
}

void PaceFileImport::start_range(std::uint32_t index, Open& open, const Slot& head, const Slot* extension) {
  Range range;
  range.start_ticks = ticks_of(head);
  range.scope = head.low;
  const std::uint64_t id = extension->high;
  if (type_of(head) == EventType::start_payload) {
    range.payload = payload_of(words_.payload, extension[1].high, extension->low);
  }
  range.extended = decode(pending_.before(head), head.low >> 48);
  if (const auto more = definitions_.end_payloads.find(id); more != definitions_.end_payloads.end()) {
    definitions_.payloads.decode(static_cast<std::uint16_t>(head.low >> 48), more->second, lookup_, range.extended);
  }
  const auto end = definitions_.range_ends.find(id);
  if (end != definitions_.range_ends.end() && end->second.ticks >= range.start_ticks) {
    range.ended = true;
    range.end_ticks = end->second.ticks;
    range.crosses = end->second.track != index;  // ended by another thread
  }
  if (!range.crosses) {
    open.nesting.push_back(static_cast<std::int64_t>(open.ranges.size()));
    open.range_of_id[id] = open.ranges.size();
  }
  open.ranges.push_back(range);
}

void PaceFileImport::end_range(Open& open, std::uint64_t id) {
  const auto found = open.range_of_id.find(id);
  if (found == open.range_of_id.end()) return;
  const auto range = static_cast<std::int64_t>(found->second);
  open.range_of_id.erase(found);
  const auto at = std::find(open.nesting.rbegin(), open.nesting.rend(), range);
  if (at == open.nesting.rend()) return;  // crossed a pop before
  open.ranges[static_cast<std::size_t>(range)].crosses = at != open.nesting.rbegin();
  open.nesting.erase(std::next(at).base());
}

void PaceFileImport::place_ranges(TrackBuilder& track, const std::string& label, std::uint64_t thread_id,
                                  const std::vector<Range>& ranges) {
  TrackBuilder* crossing = nullptr;
  for (const Range& range : ranges) {
    if (range.crosses && crossing == nullptr) {
      crossing = &rank_.add_track(TrackKind::thread, label + ": ranges", thread_id);
    }
    TrackBuilder& to = range.crosses ? *crossing : track;
    const std::uint32_t slice = to.begin_slice(time(range.start_ticks), kind(range.scope, range.extended));
    if (range.ended) {
      to.end_slice(slice, time(range.end_ticks));
    } else {
      const auto gap = std::ranges::find_if(gaps_, [&](const PaceGap& g) { return g.on > range.start_ticks; });
      if (gap != gaps_.end()) {
        to.end_slice(slice, time(std::max(gap->off, range.start_ticks)));
        to.argument(slice, words_.unfinished, 1);
      }
    }
    if (range.payload) to.add_argument(slice, *range.payload, true);
    add_values(to, slice, range.extended);
  }
}

DecodedPayloads PaceFileImport::decode(std::span<const Slot> payloads, std::uint64_t domain) const {
  DecodedPayloads decoded;
  if (!payloads.empty()) {
    definitions_.payloads.decode(static_cast<std::uint16_t>(domain), payloads, lookup_, decoded);
  }
  return decoded;
}

std::optional<Argument> PaceFileImport::argument_of(const PayloadValue& value) {
  const NameId key = rank_.names().intern(value.name);
  if (!value.is_text) return value.argument(key);
  if (value.text.empty()) return std::nullopt;  // the model has no empty texts
  return make_text(key, rank_.names().intern(value.text));
}

void PaceFileImport::add_values(TrackBuilder& track, std::uint32_t slice, const DecodedPayloads& payloads) {
  for (const PayloadValue& value : payloads.values) {
    if (const auto argument = argument_of(value)) track.add_argument(slice, *argument);
  }
}

void PaceFileImport::add_mark_values(TrackBuilder& track, std::uint32_t mark, const DecodedPayloads& payloads) {
  for (const PayloadValue& value : payloads.values) {
    if (const auto argument = argument_of(value)) track.add_mark_argument(mark, *argument);
  }
}

void PaceFileImport::submitted(const Slot& head) {
  const auto domain = static_cast<std::uint16_t>(head.low >> 48);
  const DecodedPayloads payloads = decode(pending_.before(head), domain);
  std::optional<std::int64_t> begin, end;
  for (const PayloadTime& stamp : payloads.times) {
    const std::optional<double> ticks = definitions_.nvtx_clocks.ticks(domain, stamp.time_domain, stamp.value);
    if (!ticks) continue;
    const std::int64_t at = whole_ns(clock_(*ticks) - zero_);
    if (at >= rank_.info().start_ns && at <= rank_.info().end_ns) (stamp.is_end ? end : begin) = at;
  }
  if (!begin) {
    ++untimed_;
    return;
  }
  TrackBuilder*& track = submitted_[domain];
  if (track == nullptr) {
    std::string_view of = domain < definitions_.domains.size() ? definitions_.name(definitions_.domains[domain]) : "";
    if (of.empty()) of = "default domain";
    track = &rank_.add_track(TrackKind::thread, fmt::format("submitted: {}", of));
  }
  const KindId of = kind(head.low, payloads);
  if (end) {
    add_values(*track, track->add_slice(*begin, *end, of), payloads);
  } else {
    add_mark_values(*track, track->add_mark(*begin, of), payloads);
  }
}

}  // namespace paceline::analysis
