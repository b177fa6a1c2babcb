#include "analysis/importers/pace/definitions.h"
#include "analysis/importers/pace/halves.h"

#include <algorithm>
#include <cstring>

namespace paceline::analysis {
namespace {

using format::EventType;
using format::Slot;

constexpr std::uint32_t most_names = 1U << 20;  // four times what the recorder hands out; a higher id is damage

template <typename T>
T& grow_to(std::vector<T>& values, std::size_t index) {
  if (values.size() <= index) values.resize(index + 1);
  return values[index];
}

}  // namespace

PaceDefinitions definitions_of(const PaceEvents& events) {
  const format::TraceFacts& file = events.facts();
  PaceDefinitions found;
  found.last_ticks = events.last_ticks();
  const std::uint64_t start = file.header.start_ticks;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> settings;  // resolved at the end, when all names are known
  events.each(PaceEvents::Part::definitions, [&](const Slot& head, const Slot* extension) {
    found.last_ticks = std::max(found.last_ticks, ticks_of(head));
    switch (type_of(head)) {
      case EventType::name:
        if (low_half(head.low) < most_names) {
          grow_to(found.names, low_half(head.low))
              .assign(reinterpret_cast<const char*>(extension), high_half(head.low));
        }
        break;
      case EventType::domain:
        grow_to(found.domains, head.low & 0xffff) = high_half(head.low);
        break;
      case EventType::category:
        grow_to(found.categories, head.low & 0xffff)[high_half(head.low)] = low_half(extension->high);
        break;
      case EventType::thread_name:
        found.thread_names[extension->high] = high_half(head.low);
        break;
      case EventType::communicator:
        found.communicators[low_half(head.low)] = {extension->high, high_half(extension->low), high_half(head.low)};
        break;
      case EventType::mpi_file:
        found.mpi_files[low_half(head.low)] = {high_half(head.low), low_half(extension->low)};
        break;
      case EventType::counter:
        found.counters[head.low & 0xffff] = {
            high_half(head.low), low_half(extension->high), high_half(extension->high),
            (head.low >> 16 & 0xffff) == static_cast<std::uint16_t>(format::CounterKind::sum)};
        break;
      case EventType::resource:
        found.resources[{low_half(extension->low), extension->high}] = high_half(head.low);
        break;
      case EventType::schema:
      case EventType::schema_entry:
      case EventType::enumeration:
      case EventType::enumerator:
      case EventType::scope:
        found.payloads.take(head, extension);
        break;
      case EventType::time_domain:
      case EventType::time_sync:
        found.nvtx_clocks.take(head, extension);
        break;
      case EventType::clock_pair:
        found.pairs.push_back({start + ticks_of(head), extension->low, static_cast<std::int64_t>(head.low),
                               static_cast<std::int64_t>(extension->high)});
        break;
      case EventType::clock_exchange:
        found.exchanges.push_back({static_cast<int>(low_half(head.low)), static_cast<int>(high_half(head.low)),
                                   start + ticks_of(head), extension->high, extension->low});
        break;
      case EventType::setting:
        settings.emplace_back(low_half(head.low), high_half(head.low));
        break;
      case EventType::recording:
        found.recording.push_back({ticks_of(head), head.low});
        break;
      case EventType::trigger:
        found.triggers.push_back(
            {ticks_of(head), extension->high, static_cast<unsigned>(head.low & 0xff), head.low >> 8});
        break;
      case EventType::cuda_call:
      case EventType::cuda_kernel_run:
      case EventType::cuda_copy:
      case EventType::cuda_set:
      case EventType::cuda_graph: {                                // told with its duration
        constexpr std::uint64_t longest = std::uint64_t{1} << 55;  // else damage
        if (extension->high < longest) found.last_ticks = std::max(found.last_ticks, ticks_of(head) + extension->high);
        break;
      }
      default:
        break;
    }
  });
  for (const format::LostStretch& lost : file.lost) {  // the process was still there
    if (lost.cause != format::lost_by_damage && lost.last_ticks >> 55 == 0) {
      found.last_ticks = std::max(found.last_ticks, lost.last_ticks);
    }
  }
  std::ranges::stable_sort(found.recording, {}, &PaceDefinitions::RecordingState::ticks);
  std::ranges::stable_sort(found.triggers, {}, &PaceDefinitions::TriggerEvent::ticks);
  found.payloads.finish();
  found.nvtx_clocks.finish(start, file.header.ticks_per_second, file.header.clock_source == format::ClockSource::tsc);
  for (const auto& [key, value] : settings) found.settings[std::string(found.name(key))] = found.name(value);
  return found;
}

}  // namespace paceline::analysis
