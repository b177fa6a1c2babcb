// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/definitions.h"

#include <algorithm>

namespace paceline::analysis {
namespace {

using format::EventType;
using format::Slot;
using format::unpack;
namespace events = format::events;

constexpr std::uint32_t most_names = 1U << 20;  // four times what the recorder hands out; a higher id is damage

template <typename T>
T& grow_to(std::vector<T>& values, std::size_t index) {
  if (values.size() <= index) values.resize(index + 1);
  return values[index];
}

}  // namespace

void PaceDefinitions::take(const Slot& head, std::uint64_t start) {
  last_ticks = std::max(last_ticks, last_ticks_of(&head));
  const auto keep = [&]<class Event, class Number>(auto& by_number, Number Event::*number) {
    const auto event = unpack<Event>(&head);
    by_number[event.*number] = event;
  };
  switch (type_of(head)) {
    case EventType::name: {
      const auto name = unpack<events::Name>(&head);
      if (name.id >= most_names) break;
      const auto text = bytes_of(head);
      grow_to(names, name.id).assign(reinterpret_cast<const char*>(text.data()), text.size());
      break;
    }
    case EventType::domain: {
      const auto domain = unpack<events::Domain>(&head);
      grow_to(domains, domain.domain) = domain.name;
      break;
    }
    case EventType::category: {
      const auto category = unpack<events::Category>(&head);
      grow_to(categories, category.domain)[category.category] = category.name;
      break;
    }
    case EventType::thread_name: {
      const auto thread = unpack<events::ThreadName>(&head);
      thread_names[thread.thread_id] = thread.name;
      break;
    }
    case EventType::communicator:
      keep(communicators, &events::Communicator::communicator);
      break;
    case EventType::mpi_file:
      keep(mpi_files, &events::MpiFile::file);
      break;
    case EventType::counter:
      keep(counters, &events::Counter::counter);
      break;
    case EventType::resource: {
      const auto resource = unpack<events::Resource>(&head);
      resources[{resource.resource_type, resource.identifier}] = resource.name;
      break;
    }
    case EventType::schema:
    case EventType::schema_entry:
    case EventType::enumeration:
    case EventType::enumerator:
      payloads.take(head);
      break;
    case EventType::clock_pair: {
      const auto pair = unpack<events::ClockPair>(&head);
      pairs.push_back({start + ticks_of(head), pair.width, pair.realtime_ns, pair.monotonic_raw_ns});
      break;
    }
    case EventType::clock_exchange: {
      const auto trip = unpack<events::ClockExchange>(&head);
      exchanges.push_back(
          {trip.peer_rank, static_cast<int>(trip.phase), start + ticks_of(head), trip.received_ticks, trip.peer_ticks});
      break;
    }
    case EventType::setting: {
      const auto setting = unpack<events::Setting>(&head);
      setting_names_.emplace_back(setting.key, setting.value);
      break;
    }
    case EventType::process_end:
      if (const auto status = unpack<events::ProcessEnd>(&head).status; status != 0) {
        settings["exit_status"] = std::to_string(status);
      }
      break;
    case EventType::recording:
      recording.push_back({ticks_of(head), unpack<events::Recording>(&head).reasons});
      break;
    case EventType::trigger:
      triggers.push_back({unpack<events::Trigger>(&head), ticks_of(head)});
      break;
    default:
      break;
  }
}

void PaceDefinitions::finish() {
  std::ranges::stable_sort(recording, {}, &RecordingState::ticks);
  std::ranges::stable_sort(triggers, {}, &TriggerEvent::ticks);
  payloads.finish();
  for (const auto& [key, value] : setting_names_) settings[std::string(name(key))] = name(value);
}

PaceDefinitions definitions_of(const PaceEvents& file_events) {
  const format::TraceFacts& file = file_events.facts();
  PaceDefinitions found;
  found.last_ticks = file_events.last_ticks();
  file_events.each(PaceEvents::Part::definitions, [&](const Slot& head) { found.take(head, file.header.start_ticks); });
  for (const format::LostStretch& lost : file.lost) {  // the process was still there
    if (lost.cause != format::lost_by_damage && lost.last_ticks >> 55 == 0) {
      found.last_ticks = std::max(found.last_ticks, lost.last_ticks);
    }
  }
  found.finish();
  return found;
}

}  // namespace paceline::analysis
