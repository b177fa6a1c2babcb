// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/kineto/kineto_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "analysis/importers/kineto/own_ranks.h"
#include "analysis/importers/kineto/values.h"

namespace paceline::analysis::kineto {
namespace {

std::int64_t number_behind(std::string_view text, char mark) {
  const std::size_t at = text.rfind(mark);
  return at == text.npos ? 0 : whole_number(text.substr(at + 1)).value_or(0);
}

}  // namespace

KinetoRank::KinetoRank(RankBuilder& rank, Processes processes)
    : rank_(rank),
      collectives_(rank),
      processes_(processes),
      correlation_(rank.names().intern("correlation")),
      sequence_key_(rank.names().intern("Seq")) {}

KindInfo KinetoRank::kind_info(std::string_view compound, EventClass event_class) {
  const std::vector<std::string_view> fields = fields_of(compound);
  const bool own = fields.size() > 2;  // Paceline's export
  const std::string own_domain = own ? plain_text(fields[2]) : "";
  own_ = own_ || own;
  of_pytorch_ = of_pytorch_ || (event_class != EventClass::other && !own);
  return kineto::kind_info(rank_, event_class, plain_text(fields[0]), plain_text(fields[1]),
                           own ? &own_domain : nullptr);
}

KinetoRank::SetInfo KinetoRank::set_info(std::string_view compound) {
  SetInfo info;
  const std::vector<std::string_view> fields = fields_of(compound);
  Names& names = rank_.names();
  const bool collective = std::ranges::find(fields, "Collective name") != fields.end();
  if (collective) info.collective.emplace();
  for (std::size_t i = 0; i + 2 < fields.size(); i += 3) {
    const std::string_view key = fields[i], value = fields[i + 2];
    const char type = fields[i + 1].empty() ? '0' : fields[i + 1][0];
    if (collective && info.collective->take(key, value)) continue;
    if (key == "device" && type == '"') {
      info.device = plain_text(value);
      continue;
    }
    const NameId name = names.intern(plain_text(model_key(key)));
    if (type == '0') {
      if (auto parsed = number(value)) {
        parsed->key = name;
        info.arguments.push_back(*parsed);
        continue;
      }
    }
    const bool shape = type == '{' && (key == "grid" || key == "block");
    const std::string text = shape ? shape_text(value) : plain_text(value);
    if (!text.empty()) info.arguments.push_back(make_text(name, names.intern(text)));
  }
  return info;
}

void KinetoRank::look_up(EventParser& parser, Seen& seen) {
  const auto each_new = [](const Interner& theirs, Interner& ours, std::vector<std::uint32_t>& numbers, auto&& made) {
    for (auto number = static_cast<std::uint32_t>(numbers.size()); number < theirs.size(); ++number) {
      const std::uint32_t known = ours.size(), mine = ours.intern(theirs[number]);
      if (mine == known) made(number, theirs[number]);
      numbers.push_back(mine);
    }
  };
  each_new(parser.kinds(), kinds_, seen.kinds, [&](std::uint32_t number, std::string_view compound) {
    kind_infos_.push_back(kind_info(compound, parser.event_class(number)));
  });
  each_new(parser.threads(), threads_, seen.threads, [&](std::uint32_t, std::string_view compound) {
    const std::vector<std::string_view> fields = fields_of(compound);
    Thread& thread = thread_infos_.emplace_back();
    thread.process = plain_text(fields[0]);
    thread.thread = plain_text(fields[1]);
  });
  each_new(parser.sets(), sets_, seen.sets,
           [&](std::uint32_t, std::string_view compound) { set_infos_.push_back(set_info(compound)); });
  each_new(parser.counters(), counters_, seen.counters,
           [&](std::uint32_t, std::string_view) { samples_.emplace_back(); });
  for (auto number = static_cast<std::uint32_t>(seen.keys.size()); number < parser.keys().size(); ++number) {
    seen.keys.push_back(rank_.names().intern(plain_text(parser.keys()[number])));
  }
}

KinetoRank::TrackState& KinetoRank::track_of(std::uint32_t thread, Group group) {
  Thread& info = thread_infos_[thread];
  TrackState& track = info.tracks[group];
  if (track.builder == nullptr) {
    constexpr TrackKind kinds[] = {TrackKind::thread, TrackKind::stream, TrackKind::copy, TrackKind::copy,
                                   TrackKind::copy};
    const auto id = static_cast<std::uint64_t>(std::max<std::int64_t>(whole_number(info.thread).value_or(0), 0));
    track.builder = &rank_.add_track(kinds[group], "", id);
  }
  return track;
}

RecordId KinetoRank::record_of(TrackState& track, std::uint32_t set) {
  constexpr std::uint32_t most_kept = 1 << 17;
  const auto make = [&] {
    RecordId made = 0;
    for (const Argument& argument : set_infos_[set].arguments) made = track.builder->records().with(made, argument);
    return made;
  };
  if (set >= most_kept) return make();
  if (set >= track.records.size()) track.records.resize(std::min<std::size_t>(set_infos_.size(), most_kept), unknown);
  RecordId& record = track.records[set];
  if (record == unknown) {
    const RecordId made = make();
    if (!Records::is_shared(made)) return made;  // a key with very many values varies: a record for each slice
    record = made;
  }
  return record;
}

// The set with the kinds of memory that the name of a copy or a fill has.
std::uint32_t KinetoRank::copy_set(std::uint32_t set, std::uint32_t kind) {
  const auto [found, fresh] = copy_sets_.try_emplace(std::uint64_t{set} << 32 | kind, 0);
  if (!fresh) return found->second;
  SetInfo info = set_infos_[set];
  if (const CopiedMemory* memory = kind_infos_[kind].memory.get()) {
    std::ranges::move(memory_arguments(rank_.names(), *memory, info.device), std::back_inserter(info.arguments));
  }
  found->second = static_cast<std::uint32_t>(set_infos_.size());
  sets_.intern(fmt::format("copy {} {}", set, kind));  // keeps the numbers of both in step
  set_infos_.push_back(std::move(info));
  return found->second;
}

void KinetoRank::add_slice(const Event& event, std::uint32_t kind, std::uint32_t thread, std::uint32_t set,
                           std::span<const VaryingValue> values, const Seen& seen) {
  const KindInfo& info = kind_infos_[kind];
  const std::int64_t end_ns = event.time_ns + event.duration_ns;
  if (info.event_class == EventClass::copy || info.event_class == EventClass::set) set = copy_set(set, kind);
  TrackState& track = track_of(thread, group_of(info.event_class));
  const std::uint32_t slice = track.builder->begin_slice(event.time_ns, info.kind, record_of(track, set));
  track.builder->end_slice(slice, end_ns);
  std::uint64_t correlation = 0;
  std::optional<std::uint64_t> sequence;
  for (const VaryingValue& value : values) {
    const NameId key = seen.keys[value.key];
    if (key == correlation_) correlation = value.bits;
    if (key == sequence_key_) {
      sequence = value.bits;
      continue;
    }
    track.builder->add_argument(slice, {key, static_cast<ValueType>(value.type), value.bits}, true);
  }
  ++track.events;
  const auto& collective = set_infos_[set].collective;
  if (info.event_class == EventClass::kernel && (info.nccl || collective)) {
    const auto number = [](const std::string& text) { return whole_number(text).value_or(0); };
    const Collectives::Stream of(number(thread_infos_[thread].process), number(thread_infos_[thread].thread));
    collectives_.add_kernel({event.time_ns, end_ns, correlation, sequence, collective ? &*collective : nullptr,
                             rank_.vocabulary().kinds[info.kind].name, of});
  }
  if (info.communication && collective) {
    collectives_.add_operator({event.time_ns, end_ns, 0, sequence, &*collective});
  }
  if (info.backend_range) {
    collectives_.add_backend_range(event.time_ns, end_ns, rank_.vocabulary().kinds[info.kind].name, thread);
  }
  if (info.iteration && group_of(info.event_class) == host) {
    ++track.iterations;
    collectives_.add_step(event.time_ns, end_ns,
                          number_behind(rank_.names()[rank_.vocabulary().kinds[info.kind].name], '#'));
  }
}

void KinetoRank::add_mark(const Event& event, std::uint32_t kind, std::uint32_t thread, std::uint32_t set,
                          std::span<const VaryingValue> values, const Seen& seen) {
  TrackBuilder& track = *track_of(thread, host).builder;
  const std::uint32_t mark = track.add_mark(event.time_ns, kind_infos_[kind].kind);
  for (const Argument& argument : set_infos_[set].arguments) track.add_mark_argument(mark, argument);
  for (const VaryingValue& value : values) {
    track.add_mark_argument(mark, {seen.keys[value.key], static_cast<ValueType>(value.type), value.bits});
  }
}

void KinetoRank::add(EventParser& parser, std::size_t number) {
  while (seen_.size() <= number) seen_.emplace_back();
  Seen& seen = seen_[number];
  look_up(parser, seen);
  EventParser::Piece& piece = parser.piece();
  damaged_ += piece.damaged;
  left_out_ += piece.left_out;
  endless_ += piece.endless;
  std::uint32_t value = 0;
  for (const Event& event : piece.events) {
    const std::uint32_t kind = seen.kinds[event.kind], thread = seen.threads[event.thread], set = seen.sets[event.set];
    const std::span<const VaryingValue> values(piece.values.data() + value, event.values_end - value);
    value = event.values_end;
    const EventClass event_class = kind_infos_[kind].event_class;
    if (event_class == EventClass::span) {
      rank_.info().facts["kineto.recorded_ns"] = std::to_string(event.duration_ns);
    } else if (event.phase == 'X') {
      add_slice(event, kind, thread, set, values, seen);
    } else if (event.phase == 'B' || event.phase == 'E') {
      thread_infos_[thread].brackets.push_back({event.time_ns, kind, set,
                                                static_cast<std::uint32_t>(bracket_values_.size()),
                                                static_cast<std::uint32_t>(values.size()), event.phase == 'B'});
      for (VaryingValue kept : values) {
        kept.key = seen.keys[kept.key];
        bracket_values_.push_back(kept);
      }
    } else {
      add_mark(event, kind, thread, set, values, seen);
    }
  }
  for (const FlowEvent& flow : piece.flows) {
    const std::string_view category = fields_of(kinds_[seen.kinds[flow.kind]])[0];
    flows_.push_back({flow.time_ns, flow.id, seen.threads[flow.thread],
                      rank_.names().intern(category == "fwdbwd" ? "fwdbwd" : "flow")});
  }
  for (const CounterSample& sample : piece.samples) {
    samples_[seen.counters[sample.counter]].emplace_back(sample.time_ns, sample.value);
  }
  for (MetadataEvent& named : piece.metadata) {
    Thread& thread = thread_infos_[seen.threads[named.thread]];
    (named.of_process ? process_names_[thread.process] : thread.name) = std::move(named.text);
  }
}

// Pairs the events B and E of each thread. An E without a B is damage; a B without an E ends with the rank.
void KinetoRank::add_brackets() {
  for (std::uint32_t t = 0; t < thread_infos_.size(); ++t) {
    std::vector<Bracket>& brackets = thread_infos_[t].brackets;
    std::ranges::stable_sort(brackets, {}, &Bracket::time_ns);
    std::vector<std::pair<TrackState*, std::uint32_t>> open;
    const auto add_arguments = [&](TrackBuilder& track, std::uint32_t slice, const Bracket& bracket) {
      for (std::uint32_t v = 0; v < bracket.values; ++v) {
        const VaryingValue& value = bracket_values_[bracket.first_value + v];
        track.add_argument(slice, {value.key, static_cast<ValueType>(value.type), value.bits}, true);
      }
    };
    for (const Bracket& bracket : brackets) {
      if (!bracket.begins) {
        if (open.empty()) {
          ++damaged_;
          continue;
        }
        const auto [track, slice] = open.back();
        open.pop_back();
        track->builder->end_slice(slice, bracket.time_ns);
        for (const Argument& argument : set_infos_[bracket.set].arguments)
          track->builder->add_argument(slice, argument);
        add_arguments(*track->builder, slice, bracket);
        continue;
      }
      const KindInfo& info = kind_infos_[bracket.kind];
      TrackState& track = track_of(t, group_of(info.event_class));
      const std::uint32_t slice = track.builder->begin_slice(bracket.time_ns, info.kind, record_of(track, bracket.set));
      add_arguments(*track.builder, slice, bracket);
      ++track.events;
      track.iterations += info.iteration;
      open.emplace_back(&track, slice);
    }
    brackets = {};
  }
}

// A flow belongs to the slice that begins at its time, else to the innermost one around it.
void KinetoRank::add_flows() {
  std::ranges::stable_sort(flows_, {}, &Flow::thread);
  for (std::size_t begin = 0, end = 0; begin < flows_.size(); begin = end) {
    const std::uint32_t thread = flows_[begin].thread;
    while (end < flows_.size() && flows_[end].thread == thread) ++end;
    for (const Group group : {host, stream}) {
      TrackBuilder* const track = thread_infos_[thread].tracks[group].builder;
      if (track == nullptr) continue;
      const Slices& slices = track->slices();
      std::vector<std::uint32_t> order(slices.size());
      for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
      std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
        if (slices.start_ns[a] != slices.start_ns[b]) return slices.start_ns[a] < slices.start_ns[b];
        return slices.duration_ns[a] > slices.duration_ns[b];
      });
      for (std::size_t f = begin; f < end; ++f) {
        const Flow& flow = flows_[f];
        auto at =
            std::ranges::upper_bound(order, flow.time_ns, {}, [&](std::uint32_t i) { return slices.start_ns[i]; });
        constexpr int most_steps = 1000;  // back to a slice that may be around it
        for (int steps = 0; at != order.begin() && steps < most_steps; ++steps) {
          --at;
          if (!track->is_open(*at) && slices.end_ns(*at) < flow.time_ns) continue;
          track->varying_argument(*at, flow.key, flow.id);
          break;
        }
      }
      break;
    }
  }
}

void KinetoRank::add_counters() {
  for (std::uint32_t c = 0; c < samples_.size(); ++c) {
    auto& samples = samples_[c];
    if (samples.empty()) continue;
    std::ranges::stable_sort(samples, {}, &std::pair<std::int64_t, double>::first);
    const std::vector<std::string_view> fields = fields_of(counters_[c]);
    const std::string process = plain_text(fields[0]), name = plain_text(fields[1]), series = plain_text(fields[2]);
    if (own_) {
      add_own_counter(prefix_of(process), name, series == "value" ? "" : series, samples);
      samples = {};
      continue;
    }
    const bool only_value = series.empty() || series == name || series == "value";
    const bool of_device = !fields[3].empty();
    TrackBuilder& track = rank_.add_counter(only_value ? name : name + " " + series, std::string(fields[3]),
                                            prefix_of(process) + (of_device ? process : ""), false);
    for (const auto& [time_ns, value] : samples) track.add_sample(time_ns, value);
    rank_.info().counter_events += samples.size();
    samples = {};
  }
}

// Paceline's export names a counter "DEVICE: NAME", and its series after the unit.
void KinetoRank::add_own_counter(const std::string& prefix, const std::string& label, const std::string& unit,
                                 const Samples& samples) {
  const std::size_t colon = label.find(": ");
  const std::string device = prefix + (colon == label.npos ? "" : label.substr(0, colon));
  TrackBuilder& track = rank_.add_counter(colon == label.npos ? label : label.substr(colon + 2), unit, device, false);
  for (const auto& [time_ns, value] : samples) track.add_sample(time_ns, value);
  rank_.info().counter_events += samples.size();
}

// Those of Paceline's export are ranks, and those of PyTorch are not: it writes a file for each process, and several
// with numbers were merged by somebody else. Of other programs the processes with ranges count.
void KinetoRank::find_ranks() {
  std::set<std::pair<std::int64_t, std::string>> processes;  // by id, of which some are texts
  std::set<int> numbers;
  for (const Thread& thread : thread_infos_) {
    if (thread.tracks[host].builder == nullptr) continue;
    processes.emplace(whole_number(thread.process).value_or(largest_ns), thread.process);
    if (const auto own = rank_in_name(process_names_[thread.process])) numbers.insert(own->number);
  }
  if (!own_ && of_pytorch_) {
    std::erase_if(processes, [](const auto& process) { return process.first == largest_ns; });
    if (processes.size() > 1 && processes_ != Processes::one_rank) joined_processes_ = processes.size();
    return;
  }
  if (!own_ && (processes.size() < 2 || processes_ == Processes::one_rank)) return;
  if (own_ || numbers.size() == processes.size()) {
    for (const auto& [process, name] : process_names_) prefixes_[process] = rank_prefix(name, process);
  } else if (processes_ == Processes::ranks) {
    for (const auto& [id, process] : processes)
      prefixes_[process] = rank_prefix(fmt::format("rank {}", prefixes_.size()), process);
  } else {
    joined_processes_ = processes.size();
  }
}

std::string KinetoRank::prefix_of(const std::string& process) const {
  const auto found = prefixes_.find(process);
  return found == prefixes_.end() ? "" : found->second;
}

// The main thread is the one that iterates, else the process's first thread, else the one with the most slices.
void KinetoRank::label_tracks() {
  const auto rating = [](const Thread& thread) {
    const TrackState& track = thread.tracks[host];
    const bool first = !thread.thread.empty() && thread.process == thread.thread && track.builder != nullptr;
    return std::tuple(track.iterations, first, track.events);
  };
  const auto main = std::ranges::max_element(thread_infos_, {}, rating);
  if (main != thread_infos_.end()) rank_.info().pid = whole_number(main->process).value_or(0);
  const bool ranks = !own_ && !prefixes_.empty();
  for (Thread& thread : thread_infos_) {
    const std::string& process = process_names_[thread.process];
    const std::string prefix = prefix_of(thread.process);
    if (own_ && !prefix.empty()) {
      describe_own(thread, prefix);
      continue;
    }
    const bool is_main = !ranks && &thread == &*main && thread.tracks[host].builder != nullptr;
    const std::string of_gpu = fmt::format("GPU {} stream {}", thread.process, thread.thread);
    std::string label = thread.name.empty() ? "thread " + thread.thread : thread.name;
    if (ranks ? !rank_in_name(process) : thread.process != main->process) {
      label = (process.empty() ? "process " + thread.process : process) + " " + label;
    }
    const auto describe = [&](Group group, const std::string& text) {
      if (thread.tracks[group].builder != nullptr)
        thread.tracks[group].builder->describe(prefix + text, is_main && group == host);
    };
    describe(host, is_main ? "main thread" : label);
    describe(frames, (is_main ? "main thread" : label) + " Python functions");
    describe(stream, of_gpu);
    describe(annotations, of_gpu + " annotations");
    describe(waits, of_gpu + " waits");
  }
}

// Paceline's export names tracks by their labels.
void KinetoRank::describe_own(Thread& thread, const std::string& prefix) {
  for (TrackState& track : thread.tracks) {
    if (track.builder != nullptr) track.builder->describe(prefix + thread.name, thread.name == "main thread");
  }
  TrackState& calls = thread.tracks[host];
  if (calls.builder == nullptr || (thread.name != "NCCL" && !thread.name.starts_with("NCCL "))) return;
  calls.builder->become(TrackKind::nccl);
  rank_.info().nccl_events += calls.events;
  rank_.info().nvtx_events -= calls.events;
}

void KinetoRank::finish(const Header& header) {
  add_brackets();
  find_ranks();
  add_flows();
  add_counters();
  Rank& info = rank_.info();
  for (std::uint32_t t = 0; collectives_.wants_launches() && t < thread_infos_.size(); ++t) {
    const TrackState& track = thread_infos_[t].tracks[host];
    if (track.builder == nullptr) continue;
    const Slices& slices = track.builder->slices();
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      if (const auto found = slices.argument(i, correlation_)) {
        collectives_.add_launch(found->whole(), slices.start_ns[i], t);
      }
    }
  }
  // Paceline's export has the collectives beside their kernels.
  if (!own_) collectives_.finish(header, info.rank);
  for (const Thread& thread : thread_infos_) {
    info.nvtx_events += thread.tracks[host].events + thread.tracks[frames].events;
    info.cuda_events += thread.tracks[stream].events;
  }
  label_tracks();
}

}  // namespace paceline::analysis::kineto
