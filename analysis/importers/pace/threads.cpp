// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>

#include "analysis/importers/scheduling.h"

namespace paceline::analysis {
namespace pace_threads {

template <std::size_t size>
std::string text_of(const char (&name)[size]) {
  return {name, strnlen(name, size)};
}

ThreadActivity activity_of(format::ThreadState state) {
  switch (state) {
    case format::ThreadState::running:
      return ThreadActivity::running;
    case format::ThreadState::waiting:
      return ThreadActivity::waiting;
    case format::ThreadState::blocked:
      return ThreadActivity::blocked;
    case format::ThreadState::ended:
      return ThreadActivity::ended;
    default:
      return ThreadActivity::unknown;
  }
}

// The elements with ticks in [begin, end) of a vector that is sorted by ticks.
template <class Element>
std::span<const Element> between(const std::vector<Element>& all, std::uint64_t begin, std::uint64_t end) {
  const auto from = std::ranges::lower_bound(all, begin, {}, &Element::ticks);
  const auto to = std::ranges::lower_bound(from, all.end(), end, {}, &Element::ticks);
  return {from, to};
}

}  // namespace pace_threads

void PaceThreads::event(const format::Slot& head) {
  namespace events = format::events;
  const std::uint64_t ticks = ticks_of(head);
  switch (type_of(head)) {
    case format::EventType::thread_found: {
      const auto found = format::unpack<events::ThreadFound>(&head);
      threads_[found.thread].found.push_back({ticks, pace_threads::text_of(found.name)});
      break;
    }
    case format::EventType::thread_switch: {
      const auto one = format::unpack<events::ThreadSwitch>(&head);
      threads_[one.thread].switches.push_back({ticks, one.state});
      break;
    }
    case format::EventType::thread_times: {
      const auto times = format::unpack<events::ThreadTimes>(&head);
      threads_[times.thread].times.push_back({ticks, times.running_ns, times.waiting_ns});
      break;
    }
    case format::EventType::other_program: {
      const auto other = format::unpack<events::OtherProgram>(&head);
      others_[pace_threads::text_of(other.name)].push_back({ticks, other.cpu_ns, other.interval_ns});
      break;
    }
    default:
      break;
  }
}

void PaceThreads::add_states(const PaceClock& clock, const std::map<std::uint64_t, TrackBuilder*>& tracks,
                             const std::string& process, RankBuilder& rank) {
  for (auto& [id, thread] : threads_) {
    std::ranges::stable_sort(thread.found, {}, &Found::ticks);
    std::ranges::stable_sort(thread.switches, {}, &Switch::ticks);
    std::ranges::stable_sort(thread.times, {}, &Times::ticks);
    if (thread.found.empty()) thread.found.push_back({});  // its begin is lost
    thread.found.front().ticks = 0;
    const auto known = tracks.find(id);
    TrackBuilder* track = known != tracks.end() ? known->second : nullptr;
    for (std::size_t i = 0; i < thread.found.size(); ++i) {
      const std::uint64_t from = thread.found[i].ticks;
      const std::uint64_t to =
          i + 1 < thread.found.size() ? thread.found[i + 1].ticks : std::numeric_limits<std::uint64_t>::max();
      std::vector<ThreadSwitch> switches;
      for (const Switch& one : pace_threads::between(thread.switches, from, to)) {
        switches.push_back({clock(one.ticks), pace_threads::activity_of(one.state)});
      }
      std::vector<ThreadReading> readings;
      for (const Times& one : pace_threads::between(thread.times, from, to)) {
        readings.push_back(
            {clock(one.ticks), static_cast<std::int64_t>(one.running_ns), static_cast<std::int64_t>(one.waiting_ns)});
      }
      ThreadStates states = thread_states_of(switches, readings);
      if (states.empty()) continue;
      if (track == nullptr) {
        std::string label = fmt::format("{}thread {}", process, id);
        if (!thread.found[i].name.empty()) label += fmt::format(" ({})", thread.found[i].name);
        track = &rank.add_track(TrackKind::thread, std::move(label), id);
      }
      track->add_states(std::move(states));
    }
  }
}

void PaceThreads::add_counters(const PaceClock& clock, RankBuilder& rank) {
  struct Span {
    std::int64_t begin_ns, end_ns;
    double cpus;
  };
  for (auto& [name, uses] : others_) {
    std::ranges::stable_sort(uses, {}, &Use::ticks);
    // Several processes may run one program. Those of one look at the system were recorded one after the other.
    std::vector<Span> spans;
    for (const Use& use : uses) {
      const std::int64_t end_ns = clock(use.ticks);
      const auto interval_ns = static_cast<std::int64_t>(std::min<std::uint64_t>(use.interval_ns, 60'000'000'000));
      if (interval_ns <= 0) continue;
      const double cpus = static_cast<double>(use.cpu_ns) / static_cast<double>(use.interval_ns);
      if (!spans.empty() && end_ns - spans.back().end_ns < interval_ns / 2) {
        spans.back().cpus += cpus;
      } else {
        spans.push_back({end_ns - interval_ns, end_ns, cpus});
      }
    }
    if (spans.empty()) continue;
    TrackBuilder& track = rank.add_counter("CPUs used by another program", "CPUs", name, false);
    std::int64_t last_end = std::numeric_limits<std::int64_t>::min();
    for (std::size_t i = 0; i < spans.size(); ++i) {
      track.add_sample(std::max(spans[i].begin_ns, last_end), spans[i].cpus);
      last_end = spans[i].end_ns;
      if (i + 1 == spans.size() || spans[i + 1].begin_ns > last_end) track.add_sample(last_end, 0);
    }
  }
}

}  // namespace paceline::analysis
