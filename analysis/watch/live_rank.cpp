// SPDX-License-Identifier: Apache-2.0
#include "analysis/watch/live_rank.h"

#include <algorithm>
#include <unordered_set>

#include "profiler/format/mpi_functions.h"

namespace paceline::analysis {

using format::EventType;
using format::Slot;
using format::unpack;
namespace events = format::events;

namespace live_rank_parts {

constexpr std::size_t most_readings = 128;  // clock pairs or exchanges; of more, every second one is dropped
constexpr std::size_t most_stacks = 1 << 20;

template <class Reading>
void thin_out(std::vector<Reading>& readings) {
  while (readings.size() >= most_readings) {
    std::size_t kept = 0;  // the first and the last ones stay
    for (std::size_t i = 0; i < readings.size(); ++i) {
      if (i % 2 == 0 || i + 1 == readings.size()) readings[kept++] = readings[i];
    }
    readings.resize(kept);
  }
}

// A range, a mark, a call of MPI, or the end of one.
bool is_of_the_program(EventType type) {
  if (type == EventType::pop || type == EventType::end || type == EventType::mpi_end) return true;
  return family_of(type) == format::Family::nvtx || family_of(type) == format::Family::mpi;
}

bool is_about_the_next(EventType type) { return type == EventType::payload || type == EventType::payload_part; }

bool is_in_window(EventType type) {
  return is_of_the_program(type) || is_about_the_next(type) || type == EventType::mpi_posted ||
         type == EventType::mpi_completed;
}

bool initialises(const Slot& head) {
  if (type_of(head) != EventType::mpi_begin_coll) return false;
  const format::MpiFunction* function = format::find_mpi_function(unpack<events::MpiBeginColl>(&head).function);
  return function != nullptr && function->name.ends_with("_init");
}

bool starts_again(const Slot& head) {
  return type_of(head) == EventType::mpi_begin_coll &&
         unpack<events::MpiBeginColl>(&head).function == static_cast<std::uint16_t>(format::MpiId::Start);
}

// The slots of a track from which a window is cut, up to the first event at or after its begin.
class Cut {
 public:
  // `ended`: the ranges by start and end that ended before the begin, on any track.
  Cut(const std::vector<Slot>& slots, std::uint64_t begin, const std::unordered_set<std::uint64_t>& ended)
      : slots_(slots) {
    while (at_ < slots.size() && ticks_of(slots[at_]) < begin) {
      const std::size_t next = format::next_head(slots.data(), at_);
      if (!is_about_the_next(type_of(slots[at_]))) {
        take(slots[at_], next, ended);
        from_ = next;
      }
      at_ = next;
    }
  }

  // What stays of the track. `started` is called for each start of a persistent collective that does not.
  template <class Started>
  std::vector<Slot> rest(Started&& started) const {
    for (const Slot* start : starts_) {
      const auto is_it = [&](const Part& part) { return part.from <= index(start) && index(start) < part.to; };
      if (std::ranges::none_of(open_, is_it)) started(*start);
    }
    std::vector<Part> parts = kept_;
    parts.insert(parts.end(), open_.begin(), open_.end());
    std::ranges::sort(parts, {}, &Part::from);
    std::vector<Slot> rest;
    for (const Part& part : parts) append(rest, part.from, part.to);
    append(rest, from_, slots_.size());
    return rest;
  }

 private:
  struct Part {
    EventType type = EventType::none;  // of its begin
    std::uint64_t id = 0;
    std::size_t from = 0, to = 0;  // with the payloads before it
  };

  std::size_t index(const Slot* slot) const { return static_cast<std::size_t>(slot - slots_.data()); }
  void append(std::vector<Slot>& to, std::size_t from, std::size_t until) const {
    to.insert(to.end(), slots_.begin() + static_cast<std::ptrdiff_t>(from),
              slots_.begin() + static_cast<std::ptrdiff_t>(until));
  }

  void take(const Slot& head, std::size_t next, const std::unordered_set<std::uint64_t>& ended) {
    switch (type_of(head)) {
      case EventType::push:
      case EventType::push_payload:
        open_.push_back({EventType::push, parts_of(scope_of(head)).domain, from_, next});
        break;
      case EventType::pop:
        close(EventType::push, unpack<events::Pop>(&head).domain);
        break;
      case EventType::start:
      case EventType::start_payload: {
        const std::uint64_t range = unpack<events::Start>(&head).range;
        if (!ended.contains(range)) open_.push_back({EventType::start, range, from_, next});
        break;
      }
      case EventType::mpi_end:
        if (const auto call = close(EventType::mpi_begin, 0); call && initialises(slots_[call->from])) {
          kept_.push_back({EventType::mpi_begin, 0, call->from, next});
        }
        break;
      default:
        if (family_of(type_of(head)) != format::Family::mpi) break;
        if (starts_again(head)) starts_.push_back(&head);
        open_.push_back({EventType::mpi_begin, 0, from_, next});
        break;
    }
  }

  std::optional<Part> close(EventType type, std::uint64_t id) {
    const auto last =
        std::find_if(open_.rbegin(), open_.rend(), [&](const Part& o) { return o.type == type && o.id == id; });
    if (last == open_.rend()) return std::nullopt;
    const Part closed = *last;
    open_.erase(std::next(last).base());
    return closed;
  }

  const std::vector<Slot>& slots_;
  std::size_t from_ = 0, at_ = 0;  // of the next event: its first payload, its head
  std::vector<Part> open_, kept_;
  std::vector<const Slot*> starts_;
};

}  // namespace live_rank_parts

void LiveRank::add(std::span<const NewEvents> news, const format::TraceFacts& facts, std::size_t most_slots) {
  if (tracks_.empty()) process_.file = facts;
  process_.file.header = facts.header;
  for (const NewEvents& part : news) {
    const auto place = std::ranges::lower_bound(tracks_, part.track, {}, &format::Track::id);
    if (place == tracks_.end() || place->id != part.track) tracks_.insert(place, {part.track, part.thread_id, {}});
  }
  // The main thread, as the importer chooses it. Its events come first, because those of others are no news after them.
  const auto own =
      std::ranges::find(tracks_, main_thread_of(process_.file, process_.definitions), &format::Track::thread_id);
  const std::uint32_t main = own != tracks_.end() ? own->id : tracks_.empty() ? 0 : tracks_.front().id;
  for (const bool of_main : {true, false}) {
    for (const NewEvents& part : news) {
      if ((part.track == main) == of_main) take(part, of_main);
    }
  }
  if (std::exchange(defined_, false)) {
    process_.definitions.finish();
    live_rank_parts::thin_out(process_.definitions.pairs);
    live_rank_parts::thin_out(process_.definitions.exchanges);
  }
  std::size_t slots = 0;
  for (const format::Track& track : tracks_) slots += track.slots.size();
  if (slots <= most_slots) return;
  std::vector<std::uint64_t> ticks;
  for (const format::Track& track : tracks_) {
    format::for_each_event(std::span(track.slots),
                           [&](const Slot& head, const Slot*) { ticks.push_back(ticks_of(head)); });
  }
  const auto kept = static_cast<std::ptrdiff_t>(ticks.size() * most_slots / slots / 2);
  std::ranges::nth_element(ticks, ticks.end() - kept);
  drop_before(*(ticks.end() - kept));
  skipped_ = true;
}

void LiveRank::take(const NewEvents& part, bool main) {
  using namespace live_rank_parts;
  std::vector<Slot>& window = std::ranges::lower_bound(tracks_, part.track, {}, &format::Track::id)->slots;
  if (part.after_skipped && !part.slots.empty()) {
    window.clear();
    begin_ = std::max(begin_, ticks_of(part.slots.front()));
    skipped_ = true;
  }
  format::for_each_event(part.slots, [&](const Slot& head, const Slot*) {
    const EventType type = type_of(head);
    end_ticks_ = std::max(end_ticks_, last_ticks_of(&head));
    if (!is_in_window(type)) return define(head);
    window.insert(window.end(), &head, &head + 1 + format::extension_slots(head));
    if (!is_of_the_program(type)) return;
    const std::uint64_t ticks = ticks_of(head);
    if (main && last_ticks_ != 0 && ticks > last_ticks_) {
      longest_silence_ = std::max(longest_silence_, ticks - last_ticks_);
    }
    last_ticks_ = std::max(last_ticks_, ticks);
  });
}

void LiveRank::define(const Slot& head) {
  switch (type_of(head)) {
    case EventType::stack:
      if (stacks_.size() < live_rank_parts::most_stacks) {
        const auto made = unpack<events::Stack>(&head);
        stacks_[made.stack] = made;
      }
      return;
    case EventType::stack_sample: {
      const auto made = unpack<events::StackSample>(&head);
      if (made.period_ns == 0 && made.thread_id == process_.file.header.pid) {
        recorded_stack_ = {ticks_of(head), made.stack};
      }
      return;
    }
    default:
      if (format::content_of(type_of(head)) == 0) return;
      process_.definitions.take(head, process_.file.header.start_ticks);
      defined_ = true;
  }
}

const PaceProcess& LiveRank::window(int number, std::uint64_t now_ticks, const std::string& damage) {
  format::FileHeader& header = process_.file.header;
  header.kept_from = std::max(header.kept_from, begin_);
  process_.file.damaged = !damage.empty();
  process_.file.damage = damage;
  process_.rank = number;
  process_.definitions.last_ticks = std::max(end_ticks_, now_ticks);
  format::TraceFile file;
  file.header = header;
  file.tracks = tracks_;
  process_.events = PaceEvents(std::move(file));
  return process_;
}

void LiveRank::drop_before(std::uint64_t ticks) {
  using namespace live_rank_parts;
  if (ticks <= begin_) return;
  begin_ = ticks;
  std::unordered_set<std::uint64_t> ended;
  for (const format::Track& track : tracks_) {
    format::for_each_event(std::span(track.slots), [&](const Slot& head, const Slot*) {
      if (type_of(head) == EventType::end && ticks_of(head) < begin_) ended.insert(unpack<events::End>(&head).range);
    });
  }
  for (format::Track& track : tracks_) {
    track.slots = Cut(track.slots, begin_, ended).rest([&](const Slot& start) {
      const auto made = unpack<events::MpiBeginColl>(&start);
      const std::uint32_t communicator = made.communicator;
      const auto known = process_.definitions.communicators.find(communicator);
      if (known == process_.definitions.communicators.end()) return;
      ++process_.earlier_starts[{known->second.identity, made.sequence}];
    });
  }
}

std::optional<LiveRank::RecordedStack> LiveRank::recorded_stack() const {
  if (!recorded_stack_) return std::nullopt;
  RecordedStack recorded{.ticks = recorded_stack_->first, .frames = {}};
  for (std::uint32_t stack = recorded_stack_->second; stack != 0;) {
    const auto found = stacks_.find(stack);
    if (found == stacks_.end() || found->second.caller >= stack) break;  // callers have smaller numbers
    const auto& frame = found->second;
    const auto name = [&](std::uint32_t id) { return std::string(process_.definitions.name(id)); };
    recorded.frames.push_back({name(frame.function), frame.file == 0 ? "" : name(frame.file), frame.line});
    stack = frame.caller;
  }
  std::ranges::reverse(recorded.frames);
  return recorded;
}

}  // namespace paceline::analysis
