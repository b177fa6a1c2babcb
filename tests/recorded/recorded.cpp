// SPDX-License-Identifier: Apache-2.0
#include "tests/recorded/recorded.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace paceline::test {

using format::EventType;
using format::Slot;
using format::Track;

namespace {

// Calls `see(head, extensions, track)` for each event.
template <class See>
void for_each_event(const std::vector<Track>& tracks, See see) {
  for (const Track& track : tracks) {
    for (std::size_t at = 0; at < track.slots.size(); at += 1 + format::extension_slots(track.slots[at])) {
      see(track.slots[at], &track.slots[at] + 1, track.id);
    }
  }
}

}  // namespace

RecordedFile read_recorded(const std::filesystem::path& path) {
  RecordedFile recorded;
  recorded.file = format::read_trace_file(path);
  std::map<std::uint32_t, std::string> names, domains;
  for_each_event(recorded.file.tracks, [&](const Slot& head, const Slot* extension, std::uint32_t) {
    if (type_of(head) != EventType::name) return;
    names[static_cast<std::uint32_t>(head.low)] =
        std::string(reinterpret_cast<const char*>(extension), static_cast<std::size_t>(head.low >> 32));
  });
  for_each_event(recorded.file.tracks, [&](const Slot& head, const Slot*, std::uint32_t) {
    if (type_of(head) == EventType::domain) domains[head.low & 0xffff] = names[head.low >> 32];
  });
  for_each_event(recorded.file.tracks, [&](const Slot& head, const Slot* extension, std::uint32_t track) {
    RecordedEvent event;
    event.type = type_of(head);
    event.ticks = ticks_of(head);
    event.track = track;
    event.head = head;
    if (format::has_bytes(event.type)) {
      event.bytes.assign(reinterpret_cast<const char*>(extension), static_cast<std::size_t>(head.low >> 32));
    }
    for (std::uint32_t slot = 0; slot < format::extension_slots(head) && slot < 2; ++slot) {
      event.extension[slot] = extension[slot];
    }
    switch (event.type) {
      case EventType::push:
      case EventType::push_payload:
      case EventType::mark:
      case EventType::mark_payload:
      case EventType::start:
      case EventType::start_payload:
        event.name = names[static_cast<std::uint32_t>(head.low)];
        event.category = head.low >> 32 & 0xffff;
        event.domain = domains[head.low >> 48];
        break;
      case EventType::pop:
        event.domain = domains[head.low & 0xffff];
        break;
      case EventType::name:
      case EventType::setting:
        event.name = names[static_cast<std::uint32_t>(head.low)];
        break;
      case EventType::resource:
      case EventType::schema:
      case EventType::schema_entry:
      case EventType::enumeration:
      case EventType::enumerator:
      case EventType::domain:
      case EventType::thread_name:
        event.name = names[head.low >> 32];
        break;
      case EventType::category:
        event.name = names[static_cast<std::uint32_t>(extension[0].high)];
        event.category = static_cast<std::uint32_t>(head.low >> 32);
        event.domain = domains[head.low & 0xffff];
        break;
      case EventType::mpi_file:
        event.name = names[head.low >> 32];
        break;
      case EventType::communicator:
        event.name = names[extension[0].low >> 32];
        break;
      case EventType::mpi_begin:
      case EventType::mpi_begin_peer:
      case EventType::mpi_begin_coll:
      case EventType::mpi_begin_file:
      case EventType::mpi_begin_window:
      case EventType::mpi_end:
        if (const format::MpiFunction* function = format::find_mpi_function(head.low & 0xffff)) {
          const bool by_tool = event.type == EventType::mpi_begin && (head.low >> 16 & 0xffff) != 0;
          event.name = (by_tool ? "P" : "") + std::string(function->name);
        }
        break;
      default:
        break;
    }
    recorded.events.push_back(event);
  });
  return recorded;
}

std::vector<RecordedEvent> RecordedFile::of(EventType type) const {
  std::vector<RecordedEvent> found;
  std::copy_if(events.begin(), events.end(), std::back_inserter(found), [&](const auto& e) { return e.type == type; });
  return found;
}

std::vector<RecordedEvent> RecordedFile::named(EventType type, const std::string& name) const {
  std::vector<RecordedEvent> found = of(type);
  std::erase_if(found, [&](const auto& event) { return event.name != name; });
  return found;
}

std::string RecordedFile::setting(const std::string& key) const {
  for (const RecordedEvent& event : named(EventType::setting, key)) {
    for (const RecordedEvent& name : of(EventType::name)) {
      if (static_cast<std::uint32_t>(name.head.low) == event.head.low >> 32) return name.name;
    }
  }
  return "";
}

std::uint64_t RecordedFile::dropped() const {
  return std::accumulate(std::begin(file.header.dropped), std::end(file.header.dropped), file.interrupted);
}

std::vector<RecordedFile> read_recorded_directory(const std::filesystem::path& directory) {
  std::vector<RecordedFile> files;
  if (!std::filesystem::exists(directory)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file() && format::is_trace_file(entry.path())) files.push_back(read_recorded(entry.path()));
  }
  std::sort(files.begin(), files.end(), [](const RecordedFile& a, const RecordedFile& b) {
    return std::pair(a.file.header.rank, a.file.path) < std::pair(b.file.header.rank, b.file.path);
  });
  return files;
}

}  // namespace paceline::test
