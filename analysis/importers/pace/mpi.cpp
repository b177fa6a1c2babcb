// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/mpi.h"

namespace paceline::analysis {

using format::EventType;
using format::Slot;
using format::unpack;
namespace events = format::events;

namespace {

// The kind of call that a remembered record belongs to.
constexpr std::uint64_t is_peer = std::uint64_t{1} << 63, is_collective = std::uint64_t{1} << 62;

constexpr std::uint64_t in_one_word(std::uint32_t low, std::int32_t high) {
  return low | std::uint64_t{static_cast<std::uint32_t>(high)} << 32;
}

}  // namespace

PaceMpi::Call PaceMpi::begin(TrackBuilder& track, std::int64_t time_ns, const Slot& head) {
  Call open{0, ticks_of(head)};
  switch (type_of(head)) {
    case EventType::mpi_begin_peer: {
      const auto call = unpack<events::MpiBeginPeer>(&head);
      const RecordId record =
          latest_or(static_cast<std::uint32_t>(call.tag) | is_peer, call.bytes,
                    in_one_word(call.communicator, call.peer), [&] { return peer_record(track.records(), call); });
      open.slice = track.begin_slice(time_ns, context_.words.mpi(call.function), record);
      break;
    }
    case EventType::mpi_begin_coll: {
      const auto call = unpack<events::MpiBeginColl>(&head);
      const RecordId record = latest_or(is_collective, call.bytes, call.communicator,
                                        [&] { return collective_record(track.records(), call); });
      open.slice = track.begin_slice(time_ns, context_.words.mpi(call.function), record);
      track.varying_argument(open.slice, context_.words.sequence, call.sequence);
      if (call.root >= 0) track.argument(open.slice, context_.words.root, call.root);
      break;
    }
    case EventType::mpi_begin_file: {
      const auto call = unpack<events::MpiBeginFile>(&head);
      open.slice = track.begin_slice(time_ns, context_.words.mpi(call.function));
      add_file(track, open.slice, call);
      break;
    }
    case EventType::mpi_begin_window: {
      const auto call = unpack<events::MpiBeginWindow>(&head);
      open.slice = track.begin_slice(time_ns, context_.words.mpi(call.function));
      add_window(track, open.slice, call);
      break;
    }
    default:
      return begin_simple(track, time_ns, head);
  }
  return open;
}

// `what` is not 0. A record with values of its own belongs to one slice and cannot be given to another one.
template <class Make>
RecordId PaceMpi::latest_or(std::uint64_t what, std::uint64_t bytes, std::uint64_t rest, Make&& make) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  const std::uint64_t hash = ((what * odd ^ bytes) * odd ^ rest) * odd;
  Latest& latest = latest_[hash >> 54];
  if (latest.what == what && latest.bytes == bytes && latest.rest == rest) return latest.record;
  const RecordId record = make();
  if (Records::is_shared(record)) latest = {what, bytes, rest, record};
  return record;
}

RecordId PaceMpi::peer_record(Records& records, const events::MpiBeginPeer& call) const {
  RecordId record = records.with(0, make_argument(context_.words.bytes, call.bytes));
  const auto communicator = context_.communicators.find(call.communicator);
  if (communicator != context_.communicators.end()) {
    record = records.with(record, make_text(context_.words.communicator, communicator->second.text));
  }
  record = records.with(record, make_argument(context_.words.peer, call.peer));
  return records.with(record, make_argument(context_.words.tag, call.tag));
}

RecordId PaceMpi::collective_record(Records& records, const events::MpiBeginColl& call) const {
  RecordId record = records.with(0, make_argument(context_.words.bytes, call.bytes));
  const auto communicator = context_.communicators.find(call.communicator);
  if (communicator == context_.communicators.end()) return record;
  record = records.with(record, make_text(context_.words.communicator, communicator->second.text));
  return records.with(record, make_argument(context_.words.members, communicator->second.members));
}

// Zero bytes, an unknown file and an offset of -1 (at a file pointer) are omitted.
void PaceMpi::add_file(TrackBuilder& track, std::uint32_t slice, const events::MpiBeginFile& call) const {
  if (call.bytes > 0) track.argument(slice, context_.words.bytes, call.bytes);
  const std::uint32_t id = call.file;  // a field without alignment: find() would take a reference to it
  if (const auto file = context_.definitions.mpi_files.find(id); file != context_.definitions.mpi_files.end()) {
    track.text_argument(slice, context_.words.file,
                        context_.rank.names().intern(context_.definitions.name(file->second.path)));
  }
  if (call.offset >= 0) track.varying_argument(slice, context_.words.offset, call.offset);
}

// Zero bytes and a target of -1 (none) are omitted.
void PaceMpi::add_window(TrackBuilder& track, std::uint32_t slice, const events::MpiBeginWindow& call) const {
  if (call.bytes > 0) track.argument(slice, context_.words.bytes, call.bytes);
  if (call.target >= 0) track.argument(slice, context_.words.peer, call.target);
  track.argument(slice, context_.words.window, call.window);
}

}  // namespace paceline::analysis
