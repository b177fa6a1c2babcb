// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/perfetto/descriptors.h"

#include "analysis/importers/kineto/values.h"
#include "analysis/importers/perfetto/fields.h"

namespace paceline::analysis::perfetto {
namespace perfetto_descriptors {

// Texts of a usual length.
std::string text_of(std::string_view plain) { return std::string(plain.substr(0, 4096)); }

std::int64_t pid_of(std::uint64_t value) { return static_cast<std::int32_t>(value); }

void take_counter(std::string_view bytes, TrackInfo& track) {
  constexpr std::string_view units[] = {"", "ns", "", "bytes"};
  Fields fields(bytes);
  Field field;
  while (fields.next(field)) {
    if (field.tag == integer_tag(3) && field.value < std::size(units)) track.unit = units[field.value];
    if (field.tag == text_tag(6)) track.unit = text_of(field.bytes);
    if (field.tag == integer_tag(4) && field.value != 0) track.multiplier = field.whole();
    if (field.tag == integer_tag(5)) track.increments = field.value != 0;
  }
}

}  // namespace perfetto_descriptors

std::int64_t Descriptors::add_process(std::string_view bytes) {
  ProcessInfo made;
  Fields fields(bytes);
  Field field;
  while (fields.next(field)) {
    if (field.tag == integer_tag(1)) made.pid = perfetto_descriptors::pid_of(field.value);
    if (field.tag == text_tag(2)) made.command.push_back(perfetto_descriptors::text_of(field.bytes));
    if (field.tag == text_tag(6)) made.name = perfetto_descriptors::text_of(field.bytes);
    if (field.tag == text_tag(8)) made.labels.push_back(perfetto_descriptors::text_of(field.bytes));
    if (field.tag == integer_tag(7)) made.start = field.value;
  }
  const std::int64_t pid = made.pid;
  ProcessInfo& known = processes_[pid];
  if (known.name.empty() || !made.name.empty()) known = std::move(made);
  return pid;
}

void Descriptors::take_thread(std::string_view bytes, TrackInfo& track) {
  Fields fields(bytes);
  Field field;
  track.thread = 0;
  while (fields.next(field)) {
    if (field.tag == integer_tag(1)) track.pid = perfetto_descriptors::pid_of(field.value);
    if (field.tag == integer_tag(2)) track.thread = field.whole();
    if (field.tag == text_tag(5) && !field.bytes.empty()) track.name = perfetto_descriptors::text_of(field.bytes);
  }
  if (track.pid) processes_[*track.pid].pid = *track.pid;
}

void Descriptors::add_thread(std::uint64_t sequence, std::string_view bytes) {
  TrackInfo& track = tracks_[thread_track(sequence)];
  track.uuid = thread_track(sequence);
  take_thread(bytes, track);
}

void Descriptors::add_track(std::string_view bytes) {
  using perfetto_descriptors::text_of;
  TrackInfo made;
  Fields fields(bytes);
  Field field;
  while (fields.next(field)) {
    if (field.tag == integer_tag(1)) made.uuid = field.value;
    if (field.tag == integer_tag(5)) made.parent = field.value;
    if (field.tag == text_tag(2) || field.tag == text_tag(10) || field.tag == text_tag(13))
      made.name = text_of(field.bytes);
    if (field.tag == text_tag(14)) made.description = text_of(field.bytes);
    if (field.tag == integer_tag(15)) made.merging = field.value;
    if (field.tag == text_tag(16)) made.merge_key = text_of(field.bytes);
    if (field.tag == integer_tag(17)) made.merge_number = field.value;
    if (field.tag == text_tag(8)) perfetto_descriptors::take_counter(field.bytes, made);
    if (field.tag == text_tag(4)) take_thread(field.bytes, made);
    if (field.tag == text_tag(3)) {
      made.is_process = true;
      made.pid = add_process(field.bytes);
    }
  }
  if (made.thread) made.is_process = false;
  TrackInfo& known = tracks_[made.uuid];
  if (known.name.empty() || !made.name.empty()) known = std::move(made);
}

const TrackInfo* Descriptors::track(std::uint64_t uuid) const {
  const auto found = tracks_.find(uuid);
  return found == tracks_.end() ? nullptr : &found->second;
}

std::optional<std::int64_t> Descriptors::process_of(const TrackInfo& track) const {
  constexpr int deepest = 100;
  const TrackInfo* at = &track;
  for (int depth = 0; at != nullptr && depth < deepest; ++depth) {
    if (at->pid) return at->pid;
    if (at->parent == 0) return std::nullopt;
    at = this->track(at->parent);
  }
  return std::nullopt;
}

}  // namespace paceline::analysis::perfetto
