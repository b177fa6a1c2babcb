#include "analysis/importers/pace/mpi.h"

#include "analysis/importers/pace/halves.h"

namespace paceline::analysis {

using format::EventType;
using format::Slot;

namespace {

// What the remembered record is of.
constexpr std::uint64_t is_peer = std::uint64_t{1} << 63, is_collective = std::uint64_t{1} << 62;

}  // namespace

PaceMpi::PaceMpi(RankBuilder& rank, PaceVocabulary& words, const PaceDefinitions& definitions)
    : rank_(rank), words_(words), definitions_(definitions) {
  for (const auto& [local, communicator] : definitions.communicators) {
    communicators_[local] = {words.communicator_text(communicator.identity), communicator.members,
                             communicator.identity};
  }
}

void PaceMpi::add_communicators() {
  for (const auto& [local, communicator] : communicators_) {
    rank_.add_communicator({communicator.text, communicator.identity, communicator.members});
  }
}

PaceMpi::Call PaceMpi::begin(TrackBuilder& track, std::int64_t time_ns, const Slot& head, const Slot* extension) {
  const KindId kind = words_.mpi(static_cast<std::uint32_t>(head.low & 0xffff));
  Call call{0, ticks_of(head)};
  switch (type_of(head)) {
    case EventType::mpi_begin_peer: {
      const RecordId record = latest_or(head.low >> 16 | is_peer, extension->high, extension->low,
                                        [&] { return peer_record(track.records(), head, extension); });
      call.slice = track.begin_slice(time_ns, kind, record);
      break;
    }
    case EventType::mpi_begin_coll: {
      const std::uint32_t communicator = low_half(extension->low);
      const RecordId record = latest_or(is_collective, extension->high, communicator,
                                        [&] { return collective_record(track.records(), extension); });
      call.slice = track.begin_slice(time_ns, kind, record);
      track.varying_argument(call.slice, words_.sequence, high_half(extension->low));
      const auto root = static_cast<std::int32_t>(low_half(head.low >> 16));
      if (root >= 0) track.argument(call.slice, words_.root, root);
      break;
    }
    case EventType::mpi_begin_file:
    case EventType::mpi_begin_window:
      call.slice = track.begin_slice(time_ns, kind);
      add_object(track, call.slice, head, extension);
      break;
    default:
      call.slice = track.begin_slice(time_ns, kind);
      break;
  }
  return call;
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

RecordId PaceMpi::peer_record(Records& records, const Slot& head, const Slot* extension) const {
  RecordId record = records.with(0, make_argument(words_.bytes, extension->high));
  const auto communicator = communicators_.find(low_half(extension->low));
  if (communicator != communicators_.end()) {
    record = records.with(record, make_text(words_.communicator, communicator->second.text));
  }
  record = records.with(record, make_argument(words_.peer, static_cast<std::int32_t>(high_half(extension->low))));
  return records.with(record, make_argument(words_.tag, static_cast<std::int32_t>(low_half(head.low >> 16))));
}

RecordId PaceMpi::collective_record(Records& records, const Slot* extension) const {
  RecordId record = records.with(0, make_argument(words_.bytes, extension->high));
  const auto communicator = communicators_.find(low_half(extension->low));
  if (communicator == communicators_.end()) return record;
  record = records.with(record, make_text(words_.communicator, communicator->second.text));
  return records.with(record, make_argument(words_.members, communicator->second.members));
}

// Of a call on a file or a window. Zero and absent values are omitted.
void PaceMpi::add_object(TrackBuilder& track, std::uint32_t slice, const Slot& head, const Slot* extension) const {
  const std::uint32_t object_or_target = low_half(head.low >> 16);
  if (extension->high > 0) track.argument(slice, words_.bytes, extension->high);
  if (type_of(head) == EventType::mpi_begin_window) {
    const auto target = static_cast<std::int32_t>(object_or_target);
    if (target >= 0) track.argument(slice, words_.peer, target);
    track.argument(slice, words_.window, low_half(extension->low));
    return;
  }
  if (const auto file = definitions_.mpi_files.find(object_or_target); file != definitions_.mpi_files.end()) {
    track.text_argument(slice, words_.file, rank_.names().intern(definitions_.name(file->second.path)));
  }
  const auto offset = static_cast<std::int64_t>(extension->low);
  if (offset >= 0) track.varying_argument(slice, words_.offset, offset);
}

}  // namespace paceline::analysis
