// SPDX-License-Identifier: Apache-2.0
// Perfetto's protobuf format (https://perfetto.dev/docs/reference/trace-packet-proto), which is smaller and opens
// faster than JSON: a process for each rank, threads and tracks under it, slices as begin and end, marks as instants,
// counters (a sum as its rise per second), arguments as debug annotations, a flow from each call to the GPU work that
// it started, the states of a thread as slices on a track below it, because Perfetto's own thread states need the
// numbers of CPUs, and samples of stacks as Perfetto's samples of a profiler. Names, categories, texts and stacks are
// written once (interned). Packets are in the order of the tracks; readers sort them by time.
//
// Timestamps are unsigned, on the clock "boottime", whose zero is the run's zero. Where a run has earlier times, all
// times are moved so that the earliest one is 0. A clock snapshot relates the run's zero to UTC, where that is known.
#include <algorithm>
#include <array>

#include "analysis/exporters/exporter.h"
#include "analysis/exporters/json_arguments.h"
#include "analysis/exporters/protobuf.h"
#include "analysis/importers/own_exports.h"
#include "analysis/index/correlations.h"
#include "analysis/statistics/counters.h"
#include "analysis/text/text_output.h"
#include "analysis/trace/stack_frames.h"
#include "analysis/trace/state_stretches.h"

namespace paceline::analysis {
namespace perfetto_writer {

// The numbers of fields and enums in Perfetto's .proto files.
namespace trace_fields {
constexpr std::uint32_t packet = 1;
}
namespace packet_fields {
constexpr std::uint32_t clock_snapshot = 6, timestamp = 8, sequence = 10, track_event = 11, interned_data = 12,
                        sequence_flags = 13, track_descriptor = 60, perf_sample = 66;
}
namespace descriptor_fields {
constexpr std::uint32_t uuid = 1, name = 2, process = 3, thread = 4, parent = 5, counter = 8, child_ordering = 11,
                        sibling_order = 12, description = 14;
}
namespace event_fields {
constexpr std::uint32_t categories = 3, annotations = 4, type = 9, name = 10, track = 11, counter_value = 44,
                        flows = 47, ending_flows = 48;
}
namespace interned_fields {
constexpr std::uint32_t categories = 1, names = 2, annotation_names = 3, functions = 5, frames = 6, stacks = 7,
                        mapping_paths = 17, source_paths = 18, mappings = 19, annotation_texts = 29;
}
namespace sample_fields {
constexpr std::uint32_t process = 2, thread = 3, stack = 4, cpu_mode = 5;
}
namespace mapping_fields {
constexpr std::uint32_t id = 1, path = 7;
}
namespace frame_fields {
constexpr std::uint32_t id = 1, function = 2, mapping = 3, address = 4, source_path = 5, line = 6;
}
namespace stack_fields {
constexpr std::uint32_t id = 1, frame = 2;
}
namespace annotation_fields {
constexpr std::uint32_t name = 1, unsigned_value = 3, signed_value = 4, real_value = 5, text_value = 17;
}
enum EventType : std::uint32_t { slice_begin = 1, slice_end = 2, instant = 3, counter_sample = 4 };
constexpr std::uint32_t state_cleared = 1, needs_state = 2;  // sequence flags
constexpr std::uint32_t realtime = 1, boottime = 6;          // of the built-in clocks
constexpr std::uint32_t explicit_order = 3;                  // of a track's children
constexpr std::uint32_t user_mode = 2;                       // of a sample's CPU
// Perfetto takes a thread whose number is that of a process for that one's main thread.
constexpr std::uint32_t first_thread = 1 << 24;

// Texts that packets refer to by number.
class Interned {
 public:
  Interned(std::uint32_t field, std::size_t names) : field_(field), known_(names) {}

  // The number of a name, which is added to `data` the first time.
  std::uint64_t operator()(NameId name, CleanNames& texts, ProtoMessage& data) {
    if (!known_[name]) {
      known_[name] = true;
      add(std::uint64_t{name} + 1, texts[name], data);
    }
    return std::uint64_t{name} + 1;
  }
  // The same of a text that is not one of the trace's names. There are few of them.
  std::uint64_t operator()(std::string_view text, ProtoMessage& data) {
    auto found = std::ranges::find(others_, text);
    const auto number = known_.size() + 1 + static_cast<std::size_t>(found - others_.begin());
    if (found == others_.end()) {
      others_.emplace_back(text);
      add(number, text, data);
    }
    return number;
  }

 private:
  void add(std::uint64_t number, std::string_view text, ProtoMessage& data) const {
    ProtoMessage entry;
    entry.integer(1, number);
    entry.text(2, text);
    data.message(field_, entry);
  }
  const std::uint32_t field_;
  std::vector<bool> known_;
  std::vector<std::string> others_;
};

class PerfettoWriter {
 public:
  PerfettoWriter(const ExportJob& job, std::FILE* file)
      : job_(job),
        out_(file),
        texts_(job.trace()),
        categories_(interned_fields::categories, job.trace().names.size()),
        names_(interned_fields::names, job.trace().names.size()),
        keys_(interned_fields::annotation_names, job.trace().names.size()),
        values_(interned_fields::annotation_texts, job.trace().names.size()),
        functions_(interned_fields::functions, job.trace().names.size()),
        mapping_paths_(interned_fields::mapping_paths, job.trace().names.size()),
        source_paths_(interned_fields::source_paths, job.trace().names.size()),
        mappings_known_(job.trace().names.size()),
        frames_known_(job.trace().stacks.frames()),
        stacks_known_(job.trace().stacks.size()),
        kinds_(job.trace().kinds.size()),
        correlation_(job.trace().names.find("correlation")),
        shift_ns_(-std::min<std::int64_t>(job.earliest_ns(), 0)) {}

  void write() {
    clock();
    for (const Rank* rank : job_.ranks()) write(*rank);
    out_.flush();
  }

 private:
  void clock() {
    ProtoMessage snapshot, at_zero;
    at_zero.integer(1, boottime);
    at_zero.integer(2, static_cast<std::uint64_t>(shift_ns_));
    snapshot.message(1, at_zero);
    if (const auto utc = job_.utc_of_zero_ns()) {
      at_zero.clear();
      at_zero.integer(1, realtime);
      at_zero.integer(2, static_cast<std::uint64_t>(*utc));
      snapshot.message(1, at_zero);
    }
    snapshot.integer(2, boottime);
    packet_.message(packet_fields::clock_snapshot, snapshot);
    packet_.integer(packet_fields::timestamp, static_cast<std::uint64_t>(shift_ns_));
    packet_.integer(packet_fields::sequence_flags, state_cleared);
    end_packet();
  }

  void write(const Rank& rank) {
    const auto number = static_cast<std::uint64_t>(rank.rank) + 1;  // 0 is the kernel's idle process
    const std::uint64_t process_uuid = uuid(job_.first_track(rank)) + (std::uint64_t{1} << 40);
    ProtoMessage process, descriptor;
    process.integer(1, number);
    for (const std::string& word : rank.command) process.text(2, valid_utf8(word));
    process.text(6, valid_utf8(process_name(rank)));
    process.integer(7, static_cast<std::uint64_t>(rank.start_ns + shift_ns_));
    process.text(8, fmt::format("pid {}", rank.pid));
    process.text(8, fmt::format("{} ranks", rank.world_size));
    descriptor.integer(descriptor_fields::uuid, process_uuid);
    descriptor.message(descriptor_fields::process, process);
    descriptor.integer(descriptor_fields::child_ordering, explicit_order);
    describe(descriptor);

    const bool has_streams =
        std::ranges::any_of(rank.tracks, [](const Track& track) { return track.kind == TrackKind::stream; });
    if (has_streams && correlation_ != 0) correlations_ = std::make_unique<Correlations>(job_.trace(), rank);
    for (std::size_t t = 0; t < rank.tracks.size(); ++t) {
      const Track& track = rank.tracks[t];
      const TrackNumber track_number = job_.first_track(rank) + static_cast<TrackNumber>(t);
      track_ = uuid(track_number);
      CounterCurve curve;
      descriptor.clear();
      descriptor.integer(descriptor_fields::uuid, track_);
      descriptor.integer(descriptor_fields::parent, process_uuid);
      descriptor.integer(descriptor_fields::sibling_order, t);
      if (track.kind == TrackKind::thread) {
        ProtoMessage thread;
        thread.integer(1, number);
        thread.integer(2, first_thread + track_number);
        thread.text(5, valid_utf8(track.label));
        descriptor.message(descriptor_fields::thread, thread);
      } else {
        descriptor.text(descriptor_fields::name, valid_utf8(track.label));
      }
      if (track.kind == TrackKind::counter) {
        curve = curve_of(track.samples);
        ProtoMessage counter;
        counter.text(6, valid_utf8(curve.unit));
        descriptor.message(descriptor_fields::counter, counter);
      }
      descriptor.text(descriptor_fields::description, perfetto_tracks[static_cast<std::size_t>(track.kind)]);
      describe(descriptor);
      if (track.kind == TrackKind::counter) {
        samples(curve);
      } else {
        slices(rank, track, track_number);
        states(track);
        stacks(track.stacks, number, first_thread + track_number);
      }
    }
    correlations_.reset();
  }

  static std::uint64_t uuid(TrackNumber number) { return std::uint64_t{number} + 1; }

  void describe(const ProtoMessage& descriptor) {
    packet_.message(packet_fields::track_descriptor, descriptor);
    end_packet();
  }

  void slices(const Rank& rank, const Track& track, TrackNumber number) {
    open_.clear();
    job_.each(track.slices, [&](const SelectedSlice& slice) {
      while (!open_.empty() && open_.back() <= slice.start_ns) end_slice();
      begin_event(slice_begin);
      content(track.slices, slice);
      flows(rank, track, slice, number);
      end_event(slice.start_ns);
      open_.push_back(slice.end_ns());
    });
    while (!open_.empty()) end_slice();
    job_.each(track.marks, [&](const SelectedSlice& mark) {
      begin_event(instant);
      content(track.marks, mark);
      end_event(mark.start_ns);
    });
  }

  void end_slice() {
    begin_event(slice_end);
    end_event(open_.back());
    open_.pop_back();
  }

  void begin_event(EventType type) {
    event_.clear();
    event_.integer(event_fields::type, type);
    event_.integer(event_fields::track, track_);
  }

  // The fields before the event go into packet_; the event is written from where it is, without a copy.
  void end_event(std::int64_t time_ns, std::uint32_t field = packet_fields::track_event) {
    packet_.integer(packet_fields::sequence, 1);
    packet_.integer(packet_fields::sequence_flags, needs_state);
    packet_.integer(packet_fields::timestamp, static_cast<std::uint64_t>(time_ns + shift_ns_));
    if (!interned_.empty()) {
      packet_.message(packet_fields::interned_data, interned_);
      interned_.clear();
    }
    packet_.begin(field, event_.bytes().size());
    frame_.clear();
    frame_.begin(trace_fields::packet, packet_.bytes().size() + event_.bytes().size());
    out_.text(frame_.bytes());
    out_.text(packet_.bytes());
    out_.text(event_.bytes());
    out_.line_done();
    packet_.clear();
  }

  void end_packet() {
    packet_.integer(packet_fields::sequence, 1);
    frame_.clear();
    frame_.message(trace_fields::packet, packet_);
    out_.text(frame_.bytes());
    out_.line_done();
    packet_.clear();
  }

  // Category, name and arguments.
  void content(const Slices& slices, const SelectedSlice& slice) {
    const KindId id = slices.kind[slice.index];
    const Kind& kind = job_.trace().kinds[id];
    std::string& words = kinds_[id];
    if (words.empty()) {
      const NameId category = kind.category != 0 ? kind.category : kind.domain;
      ProtoMessage made;
      if (category != 0) made.integer(event_fields::categories, categories_(category, texts_, interned_));
      made.integer(event_fields::name, names_(kind.name, texts_, interned_));
      if (kind.domain != 0) annotate("domain", kind.domain, made);
      words = made.bytes();
    }
    event_.append(words);
    const RecordId record = slices.record[slice.index];
    if (!Records::is_shared(record)) {
      slices.each_argument(slice.index, [&](const Argument& argument) { annotate(argument, event_); });
    } else if (record != 0) {
      Latest& latest = latest_[record % latest_.size()];
      if (latest.record != record || latest.slices != &slices) {
        latest.slices = &slices, latest.record = record;
        latest.arguments.clear();
        slices.each_argument(slice.index, [&](const Argument& argument) { annotate(argument, latest.arguments); });
      }
      event_.append(latest.arguments.bytes());
    }
    if (slice.clipped == Clipped::no) return;
    annotation_.clear();
    annotation_.integer(annotation_fields::name, keys_("clipped", interned_));
    annotation_.integer(annotation_fields::text_value, values_(clipped_text(slice.clipped), interned_));
    event_.message(event_fields::annotations, annotation_);
  }

  void annotate(std::string_view key, NameId text, ProtoMessage& to) {
    annotation_.clear();
    annotation_.integer(annotation_fields::name, keys_(key, interned_));
    annotation_.integer(annotation_fields::text_value, values_(text, texts_, interned_));
    to.message(event_fields::annotations, annotation_);
  }

  void annotate(const Argument& argument, ProtoMessage& to) {
    annotation_.clear();
    annotation_.integer(annotation_fields::name, keys_(argument.key, texts_, interned_));
    switch (argument.type) {
      case ValueType::text:
        annotation_.integer(annotation_fields::text_value, values_(argument.text(), texts_, interned_));
        break;
      case ValueType::signed_integer:
        annotation_.integer(annotation_fields::signed_value, argument.bits);
        break;
      case ValueType::unsigned_integer:
        annotation_.integer(annotation_fields::unsigned_value, argument.bits);
        break;
      case ValueType::real:
        annotation_.real(annotation_fields::real_value, argument.number());
        break;
    }
    to.message(event_fields::annotations, annotation_);
  }

  // A flow has the id of the work that was started, one above 0. It ends there.
  void flows(const Rank& rank, const Track& track, const SelectedSlice& slice, TrackNumber number) {
    if (!correlations_) return;
    const auto correlation = track.slices.argument(slice.index, correlation_);
    if (!correlation) return;
    const auto key = static_cast<std::uint32_t>(correlation->whole());
    const auto calls = correlations_->calls(key);
    if (calls.empty()) return;
    const Correlations::Place& call = calls.front();
    const auto flow = [](TrackNumber of, std::uint32_t position) {
      return static_cast<std::uint64_t>(slice_id(of, position)) + 1;
    };
    if (track.kind == TrackKind::stream) {
      if (job_.selection().slice(rank.tracks[call.track].slices, call.slice)) {
        event_.fixed64(event_fields::ending_flows, flow(number, slice.index));
      }
      return;
    }
    if (&rank.tracks[call.track] != &track || call.slice != slice.index) return;
    for (const Correlations::Place& work : correlations_->started_by(key)) {
      if (!job_.selection().slice(rank.tracks[work.track].slices, work.slice)) continue;
      event_.fixed64(event_fields::flows, flow(job_.first_track(rank) + work.track, work.slice));
    }
  }

  // The track of the thread is the current one.
  void states(const Track& track) {
    if (track.states.empty()) return;
    ProtoMessage descriptor;
    descriptor.integer(descriptor_fields::parent, track_);
    track_ += std::uint64_t{1} << 41;
    descriptor.integer(descriptor_fields::uuid, track_);
    descriptor.text(descriptor_fields::name, track.states.exact ? "scheduler" : "scheduler, shares of the time");
    descriptor.text(descriptor_fields::description, track.states.exact ? perfetto_exact_states : perfetto_state_shares);
    describe(descriptor);
    each_state(track.states, [&](ThreadState state, std::int64_t start_ns, std::int64_t duration_ns) {
      const auto part = job_.selection().clipped(start_ns, start_ns + duration_ns);
      if (!part) return;
      begin_event(slice_begin);
      event_.integer(event_fields::categories, categories_("scheduler", interned_));
      event_.integer(event_fields::name, names_(thread_state_name(state), interned_));
      end_event(part->from_ns);
      begin_event(slice_end);
      end_event(part->until_ns);
    });
  }

  void stacks(const StackSamples& samples, std::uint64_t process, std::uint64_t thread) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (!job_.selection().window().holds(samples.time_ns[i])) continue;
      event_.clear();
      event_.integer(sample_fields::process, process);
      event_.integer(sample_fields::thread, thread);
      event_.integer(sample_fields::cpu_mode, user_mode);
      if (samples.stack[i] != 0) event_.integer(sample_fields::stack, stack(samples.stack[i]));
      end_event(samples.time_ns[i], packet_fields::perf_sample);
    }
  }

  std::uint64_t stack(StackId id) {
    if (!stacks_known_[id]) {
      stacks_known_[id] = true;
      ProtoMessage made;
      made.integer(stack_fields::id, id);
      for (const FrameId of : frames_of(job_.trace().stacks, id)) made.integer(stack_fields::frame, frame(of));
      interned_.message(interned_fields::stacks, made);
    }
    return id;
  }

  // Perfetto knows a function by its mapping and address: the file and the line.
  std::uint64_t frame(FrameId id) {
    if (!frames_known_[id]) {
      frames_known_[id] = true;
      const Frame& of = job_.trace().stacks[id];
      ProtoMessage made;
      made.integer(frame_fields::id, std::uint64_t{id} + 1);
      made.integer(frame_fields::function, functions_(of.function, texts_, interned_));
      made.integer(frame_fields::mapping, mapping(of.file));
      made.integer(frame_fields::address, of.line);
      if (of.line != 0) {
        made.integer(frame_fields::source_path, source_paths_(of.file, texts_, interned_));
        made.integer(frame_fields::line, of.line);
      }
      interned_.message(interned_fields::frames, made);
    }
    return std::uint64_t{id} + 1;
  }

  std::uint64_t mapping(NameId file) {
    if (!mappings_known_[file]) {
      mappings_known_[file] = true;
      ProtoMessage made;
      made.integer(mapping_fields::id, std::uint64_t{file} + 1);
      if (file != 0) made.integer(mapping_fields::path, mapping_paths_(file, texts_, interned_));
      interned_.message(interned_fields::mappings, made);
    }
    return std::uint64_t{file} + 1;
  }

  void samples(const CounterCurve& curve) {
    const auto [first, last] = job_.selection().samples(curve.time_ns);
    for (std::size_t i = first; i < last; ++i) {
      begin_event(counter_sample);
      event_.real(event_fields::counter_value, curve.value[i]);
      end_event(curve.time_ns[i]);
    }
  }

  const ExportJob& job_;
  TextOutput out_;
  CleanNames texts_;
  Interned categories_, names_, keys_, values_, functions_, mapping_paths_, source_paths_;
  std::vector<bool> mappings_known_, frames_known_, stacks_known_;  // by file, FrameId, StackId
  std::vector<std::string> kinds_;  // by kind: its category, name and domain as fields of an event
  const NameId correlation_;
  const std::int64_t shift_ns_;
  std::unique_ptr<Correlations> correlations_;  // of the rank that is being written

  std::uint64_t track_ = 0;
  std::vector<std::int64_t> open_;  // ends of the slices that are open
  ProtoMessage frame_, packet_, event_, interned_, annotation_;

  // The arguments of records that many slices have, as fields of an event.
  struct Latest {
    const Slices* slices = nullptr;
    RecordId record = 0;
    ProtoMessage arguments;
  };
  std::array<Latest, 256> latest_;
};

}  // namespace perfetto_writer

constexpr Exporter perfetto_exporter{
    .name = "perfetto",
    .what = "Perfetto's own format",
    .target = Exporter::Target::stream,
    .write = [](const ExportJob& job, std::FILE* out) { perfetto_writer::PerfettoWriter(job, out).write(); }};

}  // namespace paceline::analysis
