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

PaceMpi::PaceMpi(RankBuilder& rank, PaceVocabulary& words, const PaceDefinitions& definitions)
    : rank_(rank), words_(words), definitions_(definitions) {
  for (const auto& [local, communicator] : definitions.communicators) {
    communicators_[local] = {words.communicator_text(communicator.identity), communicator.members,
                             communicator.identity, communicator.rank};
  }
}

void PaceMpi::add_communicators() {
  for (const auto& [local, communicator] : communicators_) {
    rank_.add_communicator({communicator.text, communicator.identity, communicator.members},
                           static_cast<std::int32_t>(communicator.rank));
  }
}

PaceMpi::Call PaceMpi::begin(TrackBuilder& track, std::int64_t time_ns, const Slot& head) {
  Call open{0, ticks_of(head)};
  switch (type_of(head)) {
    case EventType::mpi_begin_peer: {
      const auto call = unpack<events::MpiBeginPeer>(&head);
      const RecordId record =
          latest_or(static_cast<std::uint32_t>(call.tag) | is_peer, call.bytes,
                    in_one_word(call.communicator, call.peer), [&] { return peer_record(track.records(), call); });
      open.slice = track.begin_slice(time_ns, words_.mpi(call.function), record);
      break;
    }
    case EventType::mpi_begin_coll: {
      const auto call = unpack<events::MpiBeginColl>(&head);
      const RecordId record = latest_or(is_collective, call.bytes, call.communicator,
                                        [&] { return collective_record(track.records(), call); });
      open.slice = track.begin_slice(time_ns, words_.mpi(call.function), record);
      track.varying_argument(open.slice, words_.sequence, call.sequence);
      if (call.root >= 0) track.argument(open.slice, words_.root, call.root);
      break;
    }
    case EventType::mpi_begin_file: {
      const auto call = unpack<events::MpiBeginFile>(&head);
      open.slice = track.begin_slice(time_ns, words_.mpi(call.function));
      add_file(track, open.slice, call);
      break;
    }
    case EventType::mpi_begin_window: {
      const auto call = unpack<events::MpiBeginWindow>(&head);
      open.slice = track.begin_slice(time_ns, words_.mpi(call.function));
      add_window(track, open.slice, call);
      break;
    }
    default:
      open.slice = track.begin_slice(time_ns, words_.mpi(unpack<events::MpiBegin>(&head).function));
      break;
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
  RecordId record = records.with(0, make_argument(words_.bytes, call.bytes));
  const auto communicator = communicators_.find(call.communicator);
  if (communicator != communicators_.end()) {
    record = records.with(record, make_text(words_.communicator, communicator->second.text));
  }
  record = records.with(record, make_argument(words_.peer, call.peer));
  return records.with(record, make_argument(words_.tag, call.tag));
}

RecordId PaceMpi::collective_record(Records& records, const events::MpiBeginColl& call) const {
  RecordId record = records.with(0, make_argument(words_.bytes, call.bytes));
  const auto communicator = communicators_.find(call.communicator);
  if (communicator == communicators_.end()) return record;
  record = records.with(record, make_text(words_.communicator, communicator->second.text));
  return records.with(record, make_argument(words_.members, communicator->second.members));
}

// Zero bytes, an unknown file and an offset of -1 (at a file pointer) are omitted.
void PaceMpi::add_file(TrackBuilder& track, std::uint32_t slice, const events::MpiBeginFile& call) const {
  if (call.bytes > 0) track.argument(slice, words_.bytes, call.bytes);
  if (const auto file = definitions_.mpi_files.find(call.file); file != definitions_.mpi_files.end()) {
    track.text_argument(slice, words_.file, rank_.names().intern(definitions_.name(file->second.path)));
  }
  if (call.offset >= 0) track.varying_argument(slice, words_.offset, call.offset);
}

// Zero bytes and a target of -1 (none) are omitted.
void PaceMpi::add_window(TrackBuilder& track, std::uint32_t slice, const events::MpiBeginWindow& call) const {
  if (call.bytes > 0) track.argument(slice, words_.bytes, call.bytes);
  if (call.target >= 0) track.argument(slice, words_.peer, call.target);
  track.argument(slice, words_.window, call.window);
}

}  // namespace paceline::analysis
