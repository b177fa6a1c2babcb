// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/perfetto/file_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "analysis/importers/kineto/own_ranks.h"
#include "analysis/importers/kineto/values.h"
#include "analysis/importers/own_exports.h"
#include "profiler/format/error.h"

namespace paceline::analysis::perfetto {

using kineto::Group;

// Of an event. More would take memory with their square.
constexpr std::size_t most_arguments = 100;
// Of a file. More are damage: each takes much more memory than the bytes that make it.
constexpr std::size_t most_sequences = 1 << 16, most_tracks = 1 << 20;

FileImport::FileImport(const TraceFile& file, const AddRank& add_rank, ProgressCounter& progress)
    : file_name_(file.name), processes_(file.processes) {
  texts_.intern("");
  domain_key_ = texts_.intern("domain");
  describe(file.path, progress);
  make_ranks(add_rank);
  read_events(file.path, progress);
  if (events_ == 0) {
    throw Error(fmt::format("{}: it has no slices, marks or counters{}{}: record track events", file_name_,
                            losses_.end.empty() ? "" : "; ", losses_.end));
  }
  finish();
}

void FileImport::describe(const std::filesystem::path& path, ProgressCounter& progress) {
  Packets packets(path, progress);
  std::string_view bytes;
  while (packets.next(bytes)) {
    if (has_event(bytes)) continue;
    Packet packet;
    packet.parse(bytes);
    if (const auto track = packet.track(); !track.empty()) descriptors_.add_track(track);
    if (const auto process = packet.process(); !process.empty()) descriptors_.add_process(process);
    if (const auto thread = packet.thread(); !thread.empty()) descriptors_.add_thread(packet.sequence, thread);
    if (const auto clocks = packet.clocks(); !clocks.empty()) clocks_.add_snapshot(packet.sequence, clocks);
  }
  losses_.end = packets.damage();
}

// A process is a rank where its name has the number of one, or where all are to be ranks. Other processes are tracks of
// the first rank.
void FileImport::make_ranks(const AddRank& add_rank) {
  std::map<int, RankModel*> numbered;
  const auto add = [&](int number) -> RankModel* {
    Rank info;
    info.rank = number;
    info.path = file_name_;
    info.format = "perfetto";
    starts_.emplace_back();
    return &ranks_.emplace_back(add_rank(std::move(info)), texts_);
  };
  const auto& processes = descriptors_.processes();
  const auto has_number = [](const auto& process) { return kineto::rank_in_name(process.second.name).has_value(); };
  const bool by_pid = processes_ == Processes::ranks && !std::ranges::all_of(processes, has_number);
  for (const auto& [pid, process] : processes) {
    const auto own = by_pid ? std::nullopt : kineto::rank_in_name(process.name);
    if (processes_ == Processes::one_rank || (!own && !by_pid)) continue;
    RankModel*& known = by_pid ? rank_of_process_[pid] : numbered[own->number];
    const bool fresh = known == nullptr;
    if (fresh) known = add(own ? own->number : unknown_rank);
    rank_of_process_[pid] = known;
    Rank& info = known->builder().info();
    if (own) info.host = own->host;
    info.pid = pid;
    info.command = process.command;
    for (const std::string& label : process.labels) {  // of Paceline's export
      if (label.starts_with("pid ")) info.pid = kineto::whole_number(std::string_view(label).substr(4)).value_or(pid);
      if (!label.ends_with(" ranks")) continue;
      const auto size = kineto::whole_number(std::string_view(label).substr(0, label.size() - 6));
      if (size && *size > 0 && *size <= 100'000'000) info.world_size = static_cast<int>(*size);
    }
    if (!process.start || !fresh) continue;
    const std::int64_t start_ns = clocks_.time_ns(0, 0, *process.start);
    if (start_ns != no_time) starts_.back() = start_ns;
  }
  if (ranks_.empty()) add(unknown_rank);
  for (const auto& [number, rank] : numbered) {
    int& size = rank->builder().info().world_size;
    size = std::max(size, numbered.rbegin()->first + 1);
  }
}

void FileImport::read_events(const std::filesystem::path& path, ProgressCounter& progress) {
  Packets packets(path, progress);
  std::string_view bytes;
  while (packets.next(bytes)) {
    Packet packet;
    if (!packet.parse(bytes)) ++losses_.damaged;
    take(packet);
  }
}

void FileImport::take(const Packet& packet) {
  constexpr std::uint64_t needs_state = 2;
  losses_.kernel += packet.of_kernel;
  losses_.samples += packet.has_sample;
  losses_.compressed += packet.compressed;
  if (sequences_.size() >= most_sequences && !sequences_.contains(packet.sequence)) {
    ++losses_.damaged;
    return;
  }
  if (last_sequence_ == nullptr || packet.sequence != last_number_) {
    last_sequence_ = &sequences_[packet.sequence];
    last_number_ = packet.sequence;
  }
  Sequence& sequence = *last_sequence_;
  if (packet.dropped) sequence.known = false;
  if (packet.cleared) {
    sequence = {};
    sequence.known = true;
  }
  if (packet.has_more) {
    sequence.take_defaults(packet.defaults());
    sequence.take_interned(packet.interned(), texts_);
    clocks_.restart(packet.sequence, packet.clocks());
  }
  if (packet.has_more || sequence.state == 0) sequence.state = ++states_;
  if (!packet.has_event) return;
  if ((packet.flags & needs_state) != 0 && !sequence.known) {
    ++losses_.stateless;
    return;
  }
  const std::int64_t time_ns =
      clocks_.time_ns(packet.sequence, packet.clock != 0 ? packet.clock : sequence.clock, packet.timestamp);
  Made& made = all_made_[Texts::hash_of(packet.event) >> (64 - 12)];
  const bool known = made.state == sequence.state && kineto::same_text(made.bytes, packet.event);
  if (known && time_ns != no_time && tracks_.size() < most_tracks) return add_again(made, time_ns, sequence);
  if (time_ns == no_time || !parse(packet.event, sequence)) {
    ++losses_.damaged;
    return;
  }
  if (!event_.has_track)
    event_.track = sequence.track != 0 ? sequence.track : Descriptors::thread_track(packet.sequence);
  made_.track = nullptr, made_.lane = nullptr;
  add_event(time_ns, sequence);
  if (made_.track == nullptr || packet.event.size() > 64 || !event_.extra.empty() || !event_.real_extra.empty()) return;
  made = made_;
  made.bytes = packet.event;
  made.state = sequence.state;
}

void FileImport::add_again(const Made& made, std::int64_t time_ns, const Sequence& sequence) {
  latest_ = made.track;
  if (made.lane == nullptr) {
    event_.annotations.clear();
    return end_slice(*made.track, time_ns, sequence);
  }
  ++made.lane->events, ++events_;
  made.track->open.push_back({made.lane, made.lane->builder->begin_slice(time_ns, made.kind, made.record)});
}

// The numbers of a list are fields of their own, or packed into a text.
void FileImport::Event::take_list(const Field& field) {
  const auto integers = [&]<class Number>(std::uint32_t number, std::vector<Number>& list) {
    if (field.tag == integer_tag(number)) list.push_back(static_cast<Number>(field.value));
    if (field.tag != text_tag(number)) return;
    const char *at = field.bytes.data(), *end = at + field.bytes.size();
    for (std::uint64_t value = 0; Fields::varint(at, end, value);) list.push_back(static_cast<Number>(value));
  };
  const auto words = [&]<class Number>(std::uint32_t number, std::vector<Number>& list) {
    if (field.tag == fixed64_tag(number)) list.push_back(std::bit_cast<Number>(field.value));
    if (field.tag != text_tag(number) || field.bytes.size() < 8) return;  // an empty list may have no address
    const std::size_t before = list.size();
    list.resize(before + field.bytes.size() / 8);
    std::memcpy(list.data() + before, field.bytes.data(), 8 * (list.size() - before));
  };
  integers(36, flows), integers(42, flows), words(47, flows), words(48, flows);
  integers(12, extra), integers(31, counters), words(46, real_extra), integers(45, real_counters);
}

bool FileImport::parse(std::string_view bytes, const Sequence& sequence) {
  Event& event = event_;
  event.type = event.correlation = 0;
  event.category = event.name = 0;
  event.has_track = event.has_value = false;
  event.categories.clear(), event.annotations.clear(), event.flows.clear(), event.extra.clear(),
      event.real_extra.clear();
  event.counters.clear(), event.real_counters.clear();
  Fields fields(bytes);
  Field field;
  while (fields.next(field)) {
    switch (field.tag) {
      case integer_tag(9):
        event.type = field.value;
        break;
      case integer_tag(11):
        event.track = field.value;
        event.has_track = true;
        break;
      case integer_tag(3):
        event.categories.push_back(sequence.categories[field.value]);
        break;
      case text_tag(22):
        event.categories.push_back(texts_.intern(field.bytes));
        break;
      case integer_tag(10):
        event.name = sequence.names[field.value];
        break;
      case text_tag(23):
        event.name = texts_.intern(field.bytes);
        break;
      case text_tag(4):
        event.annotations.push_back(field.bytes);
        break;
      case integer_tag(30):
        event.value = static_cast<double>(field.whole());
        event.has_value = true;
        break;
      case fixed64_tag(44):
        event.value = field.real();
        event.has_value = true;
        break;
      case fixed64_tag(47):
      case fixed64_tag(48):
        event.flows.push_back(field.value);
        break;
      case integer_tag(52):
        event.correlation = field.value;
        break;
      default:
        event.take_list(field);
    }
  }
  event.category = category();
  if (event.flows.size() > most_arguments) {
    losses_.arguments += event.flows.size() - most_arguments;
    event.flows.resize(most_arguments);
  }
  return !fields.damaged();
}

// Several categories become one, "a,b".
TextId FileImport::category() {
  constexpr std::size_t most = 8;
  if (event_.categories.empty()) return 0;
  if (event_.categories.size() == 1) return event_.categories.front();
  std::string joined;
  for (std::size_t i = 0; i < event_.categories.size() && i < most; ++i) {
    joined += (i == 0 ? "" : ",") + std::string(texts_[event_.categories[i]].substr(0, 256));
  }
  return texts_.intern(joined);
}

void FileImport::add_event(std::int64_t time_ns, const Sequence& sequence) {
  enum Type : std::uint64_t { slice_begin = 1, slice_end = 2, instant = 3, counter = 4 };
  const auto add_extra = [&](const auto& values, const auto& own, const auto& usual) {
    const auto& tracks = own.empty() ? usual : own;
    for (std::size_t i = 0; i < values.size() && i < tracks.size(); ++i) {
      add_sample(tracks[i], time_ns, static_cast<double>(values[i]));
    }
  };
  add_extra(event_.extra, event_.counters, sequence.counters);
  add_extra(event_.real_extra, event_.real_counters, sequence.real_counters);
  switch (event_.type) {
    case slice_begin:
      begin_slice(track_of(event_.track), time_ns, sequence);
      break;
    case slice_end:
      end_slice(track_of(event_.track), time_ns, sequence);
      if (event_.annotations.empty()) made_.track = latest_;
      return;
    case instant:
      add_mark(track_of(event_.track), time_ns, sequence);
      break;
    case counter:
      if (event_.has_value) add_sample(event_.track, time_ns, event_.value);
      break;
    default:
      ++losses_.unplaced;
      return;
  }
  ++events_;
}

FileImport::TrackState& FileImport::track_of(std::uint64_t uuid) {
  if (latest_ != nullptr && latest_->uuid == uuid) return *latest_;
  if (tracks_.size() >= most_tracks) uuid = 0;
  const auto [found, fresh] = tracks_.try_emplace(uuid);
  TrackState& track = found->second;
  latest_ = &track;
  if (!fresh) return track;
  in_order_.push_back(&track);
  track.uuid = uuid;
  track.info = descriptors_.track(uuid);
  track.rank = &ranks_.front();
  if (track.info == nullptr) return track;
  if (const auto pid = descriptors_.process_of(*track.info)) {
    track.pid = *pid;
    const auto rank = rank_of_process_.find(*pid);
    if (rank != rank_of_process_.end()) track.rank = rank->second;
  }
  const std::string& description = track.info->description;
  const auto kind = std::ranges::find(perfetto_tracks, description);
  track.own = kind != perfetto_tracks.end();
  if (track.own) track.kind = static_cast<TrackKind>(kind - perfetto_tracks.begin());
  if (description == perfetto_exact_states || description == perfetto_state_shares) {
    track.states = std::make_unique<StateReader>(description == perfetto_exact_states);
  }
  return track;
}

// Tracks that are drawn as one are one row, and so are those of the same name below one parent.
Lane& FileImport::lane_of(TrackState& track, Group group) {
  enum Merging : std::uint64_t { none = 2, by_key = 3 };
  if (track.lanes[group] != nullptr) return *track.lanes[group];
  std::string key = track.info == nullptr ? "not described" : fmt::format("uuid {}", track.uuid);
  if (const TrackInfo* info = track.info; info != nullptr && !track.own) {
    if (info->thread) {
      key = fmt::format("thread {} {}", track.pid, *info->thread);
    } else if (info->merging == by_key && (!info->merge_key.empty() || info->merge_number != 0)) {
      key = fmt::format("key {} {} {}", info->parent, info->merge_number, info->merge_key);
    } else if (info->merging != none && !info->is_process && !info->name.empty()) {
      key = fmt::format("name {} {}", info->parent, info->name);
    }
  }
  Lane*& merged = merged_[{track.rank, group, key}];
  if (merged == nullptr) {
    constexpr TrackKind kinds[] = {TrackKind::thread, TrackKind::stream, TrackKind::copy, TrackKind::copy,
                                   TrackKind::copy};
    merged = &lanes_.emplace_back();
    merged->kind = track.own ? track.kind : kinds[group];
    merged->builder = &track.rank->builder().add_track(merged->kind, "");
    merged->group = group;
    merged->device = track.pid;
    if (track.info != nullptr) {  // "stream 7", "GPU annotations stream 7"
      constexpr std::string_view before = "stream ";
      const std::size_t found = track.info->name.rfind(before);
      if (found != std::string::npos) merged->stream = track.info->name.substr(found + before.size());
    }
    std::vector<const Lane*>& all = lanes_of_rank_[track.rank];
    merged->number = static_cast<std::uint32_t>(all.size());
    all.push_back(merged);
  }
  return *(track.lanes[group] = merged);
}

void FileImport::read_values(const Sequence& sequence) {
  values_.clear();
  for (const std::string_view annotation : event_.annotations) add_values(annotation, sequence, texts_, values_);
  if (values_.size() <= most_arguments) return;
  losses_.arguments += values_.size() - most_arguments;
  values_.resize(most_arguments);
}

// Paceline's export gives the domain as the first argument.
TextId FileImport::take_domain() {
  arguments_ = values_;
  if (values_.empty() || values_.front().type != ValueType::text || values_.front().key != domain_key_) return 0;
  arguments_ = arguments_.subspan(1);
  return static_cast<TextId>(values_.front().bits);
}

const kineto::KindInfo& FileImport::kind_of(TrackState& track, TextId domain) {
  const std::uint32_t key[] = {event_.category, event_.name, domain, track.own};
  const std::uint32_t number = kinds_.intern({reinterpret_cast<const char*>(key), sizeof key});
  return track.rank->kind(number, {event_.category, event_.name, domain, track.own || domain != 0});
}

void FileImport::begin_slice(TrackState& track, std::int64_t time_ns, const Sequence& sequence) {
  if (track.states != nullptr) {
    track.states->begin(time_ns, texts_[event_.name]);
    track.open.push_back({});
    return;
  }
  read_values(sequence);
  const TextId domain = take_domain();
  const kineto::KindInfo& kind = kind_of(track, domain);
  if (event_.correlation != 0 && kineto::group_of(kind.event_class) == kineto::stream) {
    const TextId correlation = texts_.intern("correlation");
    if (std::ranges::find(values_, correlation, &Value::key) == values_.end()) {
      values_.push_back({correlation, ValueType::unsigned_integer, event_.correlation});
      arguments_ = std::span(values_).last(arguments_.size() + 1);
    }
  }
  Lane& lane = lane_of(track, kineto::group_of(kind.event_class));
  ++lane.events;
  const std::uint32_t slice = lane.builder->begin_slice(time_ns, kind.kind);
  track.open.push_back({&lane, slice});
  const bool plain = track.rank->add_arguments(lane, slice, time_ns, kind, arguments_, event_.flows);
  const RecordId record = lane.builder->record(slice);
  if (plain && Records::is_shared(record)) made_ = {{}, 0, &track, &lane, kind.kind, record};
}

void FileImport::end_slice(TrackState& track, std::int64_t time_ns, const Sequence& sequence) {
  if (track.open.empty()) {
    ++losses_.beginless;
    return;
  }
  const Open open = track.open.back();
  track.open.pop_back();
  if (open.lane == nullptr) return track.states->end(time_ns);
  losses_.backward += time_ns < open.lane->builder->start_ns(open.slice);
  open.lane->builder->end_slice(open.slice, time_ns);
  if (event_.annotations.empty()) return;
  read_values(sequence);
  track.rank->add_end_arguments(*open.lane->builder, open.slice, values_);
}

void FileImport::add_mark(TrackState& track, std::int64_t time_ns, const Sequence& sequence) {
  read_values(sequence);
  const TextId domain = take_domain();
  const kineto::KindInfo& kind = kind_of(track, domain);
  TrackBuilder& builder = *lane_of(track, kineto::host).builder;
  track.rank->add_mark_arguments(builder, builder.add_mark(time_ns, kind.kind), arguments_);
}

void FileImport::add_sample(std::uint64_t uuid, std::int64_t time_ns, double value) {
  TrackState& track = track_of(uuid);
  if (track.info != nullptr) {
    value *= static_cast<double>(track.info->multiplier);
    if (track.info->increments) value = track.sum += value;
  }
  if (!std::isfinite(value)) {
    ++losses_.damaged;
    return;
  }
  track.samples.emplace_back(time_ns, value);
}

std::uint64_t FileImport::unnumbered() const {
  std::uint64_t all = 0;
  for (const RankModel& rank : ranks_) all += rank.unnumbered();
  return all;
}

void FileImport::finish() {
  losses_.unrelated_clocks = clocks_.unrelated();
  for (RankModel& rank : ranks_) rank.finish(lanes_of_rank_[&rank]);
  add_counters();
  const bool of_pytorch = std::ranges::any_of(ranks_, &RankModel::of_pytorch);
  std::map<const RankModel*, std::set<std::int64_t>> processes;
  const std::vector<TrackState*> all = in_order_;  // more may come
  for (TrackState* track : all) {
    if (track->states != nullptr && track->info != nullptr) {
      const auto thread = tracks_.find(track->info->parent);
      TrackState& parent = thread == tracks_.end() ? track_of(track->info->parent) : thread->second;
      if (parent.states == nullptr) lane_of(parent, kineto::host).builder->add_states(track->states->finish());
    }
    if (track->lanes[kineto::host] != nullptr) {
      processes[track->rank].insert(track->pid);
      Rank& info = track->rank->builder().info();
      if (info.rank == unknown_rank && info.pid == 0) info.pid = track->pid;
      if (track->info != nullptr && track->info->thread) threaded_.insert(track->rank);
    }
  }
  if (processes_ == Processes::automatic && ranks_.size() == 1 && !of_pytorch &&
      processes[&ranks_.front()].size() > 1 && ranks_.front().builder().info().rank == unknown_rank) {
    joined_processes_ = processes[&ranks_.front()].size();
  }
  const auto is_nameless = [&](RankModel& rank) {
    return ranks_.size() > 1 && rank.builder().info().rank == unknown_rank;
  };
  for (const TrackState* track : in_order_) {
    label(*track, processes[track->rank].size() > 1 || is_nameless(*track->rank));
  }
  std::size_t left = ranks_.size();
  for (RankModel& rank : ranks_) {
    Rank& info = rank.builder().info();
    for (const Lane* lane : lanes_of_rank_[&rank]) {
      (lane->kind == TrackKind::stream ? info.cuda_events
       : lane->kind == TrackKind::nccl ? info.nccl_events
                                       : info.nvtx_events) += lane->events;
    }
    const bool is_empty = info.nvtx_events + info.cuda_events + info.nccl_events + info.counter_events == 0;
    if (is_empty && is_nameless(rank) && left > 1) info.format.clear(), --left;
  }
}

// Paceline's export names a counter "DEVICE: NAME".
void FileImport::add_counters() {
  for (TrackState* track : in_order_) {
    if (track->samples.empty()) continue;
    std::ranges::stable_sort(track->samples, {}, &std::pair<std::int64_t, double>::first);
    std::string name = track->info == nullptr ? "" : track->info->name, device;
    if (name.empty()) name = fmt::format("counter {}", track->uuid);
    if (const std::size_t colon = name.find(": "); track->own && colon != name.npos) {
      device = name.substr(0, colon);
      name.erase(0, colon + 2);
    }
    TrackBuilder& counter =
        track->rank->builder().add_counter(name, track->info == nullptr ? "" : track->info->unit, device, false);
    for (const auto& [time_ns, value] : track->samples) counter.add_sample(time_ns, value);
    track->rank->builder().info().counter_events += track->samples.size();
    track->samples = {};
  }
}

std::string FileImport::process_label(std::int64_t pid) const {
  const auto process = descriptors_.processes().find(pid);
  if (process == descriptors_.processes().end() || process->second.name.empty()) return fmt::format("process {}", pid);
  return process->second.name;
}

void FileImport::label(const TrackState& track, bool several_processes) {
  const TrackInfo* const info = track.info;
  std::string label = info == nullptr ? "" : info->name;
  std::uint64_t number = 0;
  if (info != nullptr && info->thread) {
    number = static_cast<std::uint64_t>(std::max<std::int64_t>(*info->thread, 0));
    if (label.empty()) label = fmt::format("thread {}", *info->thread);
  } else if (label.starts_with("thread ")) {  // "thread 4711 (python)", as PyTorch names them
    const std::string_view rest = std::string_view(label).substr(7);
    number = static_cast<std::uint64_t>(
        std::max<std::int64_t>(kineto::whole_number(rest.substr(0, rest.find(' '))).value_or(0), 0));
  }
  if (info == nullptr) {
    label = "tracks without a description";
  } else if (label.empty()) {
    label = info->is_process ? process_label(track.pid) : fmt::format("track {}", track.uuid);
  }
  if (several_processes && !track.own) label = process_label(track.pid) + " " + label;
  for (const Lane* lane : track.lanes) {
    if (lane == nullptr) continue;
    TrackBuilder& builder = *lane->builder;
    if (lane->group == kineto::frames) {
      builder.describe(label + " Python functions", false);
    } else if (lane->group != kineto::host) {
      const char* const what = lane->group == kineto::annotations ? " annotations"
                               : lane->group == kineto::waits     ? " waits"
                                                                  : "";
      builder.describe(
          (lane->stream.empty() ? label : fmt::format("GPU {} stream {}", lane->device, lane->stream)) + what, false);
    } else {
      builder.describe(label, track.own && label == "main thread");
      // Without threads, any track may be the main one.
      if (number == 0 && !threaded_.contains(track.rank)) number = lane->number + 1;
      if (!track.own) builder.set_thread_id(number);
    }
  }
}

}  // namespace paceline::analysis::perfetto
