// SPDX-License-Identifier: Apache-2.0
#include "analysis/watch/live_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "analysis/communication/collective_calls.h"
#include "analysis/device/overlap.h"
#include "analysis/importers/mpi_names.h"
#include "analysis/importers/pace/events.h"
#include "analysis/phases/iterations.h"
#include "profiler/format/mpi_functions.h"

namespace paceline::analysis {

using format::EventType;
using format::Slot;
using format::unpack;
namespace events = format::events;

namespace live_rank_parts {

constexpr std::size_t most_readings = 128;  // clock pairs or exchanges; of more, every second one is dropped
constexpr std::size_t most_recent = 64;     // iterations
constexpr std::size_t most_open = 4096;     // ranges of a thread, requests, kinds and persistent collectives
constexpr std::size_t most_name_bytes = 512, most_names = 200'000, most_stacks = 1 << 20;
constexpr std::uint16_t start_function = static_cast<std::uint16_t>(format::MpiId::Start);

template <class Reading>
void keep(std::vector<Reading>& readings, const Reading& reading) {
  readings.push_back(reading);
  if (readings.size() < most_readings) return;
  std::size_t kept = 0;  // the first and the last ones stay
  for (std::size_t i = 0; i < readings.size(); ++i) {
    if (i % 2 == 0 || i + 1 == readings.size()) readings[kept++] = readings[i];
  }
  readings.resize(kept);
}

std::optional<std::int64_t> number_of(format::PayloadType type, std::uint64_t bits) {
  if (type == format::PayloadType::none) return std::nullopt;
  if (type != format::PayloadType::floating) return static_cast<std::int64_t>(bits);
  const double value = std::bit_cast<double>(bits);
  if (!(std::abs(value) < 9e15)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

bool is_test(std::uint16_t function) {
  const format::MpiFunction* known = format::find_mpi_function(function);
  return known != nullptr && known->name.starts_with("MPI_Test");
}

// Nothing for calls that return before the message was sent or received.
std::optional<LiveRank::OpenMessage> message_of(const Slot& head) {
  const auto made = unpack<events::MpiBeginPeer>(&head);
  const format::MpiFunction* known = format::find_mpi_function(made.function);
  if (known == nullptr || (!blocks_in_send(known->name) && !blocks_in_receive(known->name))) return std::nullopt;
  return LiveRank::OpenMessage{.communicator = made.communicator,
                               .function = made.function,
                               .peer = made.peer,
                               .tag = made.tag,
                               .since = ticks_of(head)};
}

}  // namespace live_rank_parts

void LiveRank::add(std::span<const NewEvents> news, std::uint64_t start_ticks) {
  // All iterations of this poll are kept until its other threads were followed.
  while (recent_.size() > live_rank_parts::most_recent) recent_.pop_front();
  for (const NewEvents& part : news) define(part, start_ticks);
  // The main thread first: the calls of other threads belong to its iterations.
  std::vector<const NewEvents*> others;
  for (const NewEvents& part : news) {
    if (is_main(part)) {
      follow(part);
    } else {
      others.push_back(&part);
    }
  }
  for (const NewEvents* part : others) follow(*part);
  refresh_open_calls();
}

std::optional<LiveRank::RecordedStack> LiveRank::recorded_stack() const {
  if (!recorded_stack_) return std::nullopt;
  RecordedStack recorded{.ticks = recorded_stack_->first, .frames = {}};
  for (std::uint32_t stack = recorded_stack_->second; stack != 0;) {
    const auto found = stacks_.find(stack);
    if (found == stacks_.end() || found->second.caller >= stack) break;  // callers have smaller numbers
    const auto& frame = found->second;
    recorded.frames.push_back({name(frame.function), frame.file == 0 ? "" : name(frame.file), frame.line});
    stack = frame.caller;
  }
  std::ranges::reverse(recorded.frames);
  return recorded;
}

// The thread whose number is the process's, else the track with the lowest number.
bool LiveRank::is_main(const NewEvents& part) {
  const bool certain = part.thread_id == process_id_;
  if (!main_ || (certain && !main_is_certain_) || (!main_is_certain_ && part.track < *main_)) {
    main_ = part.track;
    main_is_certain_ = certain;
    current_.reset();
  }
  return part.track == *main_;
}

void LiveRank::define(const NewEvents& part, std::uint64_t start_ticks) {
  using namespace live_rank_parts;
  format::for_each_event(part.slots, [&](const Slot& head, const Slot*) {
    switch (type_of(head)) {
      case EventType::name: {
        const auto made = unpack<events::Name>(&head);
        if (names_.size() >= most_names) return;
        const auto bytes = bytes_of(head);
        names_[made.id].assign(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), most_name_bytes));
        return;
      }
      case EventType::stack: {
        const auto made = unpack<events::Stack>(&head);
        if (stacks_.size() < most_stacks) stacks_[made.stack] = made;
        return;
      }
      case EventType::stack_sample: {
        const auto made = unpack<events::StackSample>(&head);
        if (made.period_ns == 0 && made.thread_id == process_id_) recorded_stack_ = {ticks_of(head), made.stack};
        return;
      }
      case EventType::domain: {
        const auto made = unpack<events::Domain>(&head);
        domains_[made.domain] = made.name;
        return;
      }
      case EventType::category: {
        const auto made = unpack<events::Category>(&head);
        if (categories_.size() < most_names) categories_[{made.domain, made.category}] = made.name;
        return;
      }
      case EventType::communicator: {
        const auto made = unpack<events::Communicator>(&head);
        if (communicators_.size() < most_open) {
          communicators_[made.communicator] = {made.identity, name(made.name), made.size, static_cast<int>(made.rank)};
        }
        return;
      }
      case EventType::clock_pair: {
        const auto pair = unpack<events::ClockPair>(&head);
        keep(pairs_, {start_ticks + ticks_of(head), pair.width, pair.realtime_ns, pair.monotonic_raw_ns});
        return;
      }
      case EventType::clock_exchange: {
        const auto trip = unpack<events::ClockExchange>(&head);
        keep(exchanges_, {trip.peer_rank, static_cast<int>(trip.phase), start_ticks + ticks_of(head),
                          trip.received_ticks, trip.peer_ticks});
        return;
      }
      case EventType::setting: {
        const auto made = unpack<events::Setting>(&head);
        const std::string& key = name(made.key);
        for (const char* wanted : {"rank", "world_size", "counter_error_ns", "iteration_name"}) {
          if (key != wanted) continue;
          settings_[key] = name(made.value);
          if (key == "iteration_name") rules_.clear();
        }
        return;
      }
      case EventType::recording:
        paused_ = unpack<events::Recording>(&head).reasons != 0;
        return;
      case EventType::process_end:
        process_ended_ = true;
        return;
      default:
        return;
    }
  });
}

const std::string& LiveRank::name(std::uint32_t id) const {
  static const std::string none;
  const auto found = names_.find(id);
  return found != names_.end() ? found->second : none;
}

const KindRule& LiveRank::rule(std::uint64_t scope) {
  if (rules_.size() > 16 * live_rank_parts::most_open) rules_.clear();
  const auto [found, fresh] = rules_.try_emplace(scope);
  if (!fresh) return found->second;
  const ScopeParts parts = parts_of(scope);
  const auto domain = domains_.find(parts.domain);
  const auto category = categories_.find({parts.domain, parts.category});
  const auto pattern = settings_.find("iteration_name");
  found->second = kind_rule(domain != domains_.end() ? name(domain->second) : "",
                            category != categories_.end() ? name(category->second) : "", name(parts.name),
                            pattern != settings_.end() ? pattern->second : "");
  return found->second;
}

const KindRule& LiveRank::mpi_rule(std::uint32_t function) {
  const auto [found, fresh] = mpi_rules_.try_emplace(function);
  if (!fresh) return found->second;
  const format::MpiFunction* known = format::find_mpi_function(function);
  if (known != nullptr) found->second = kind_rule("mpi", mpi_category(known->kind), known->name, "");
  found->second.iteration = false;
  return found->second;
}

Phase LiveRank::phase_of(const Open* open) {
  return open != nullptr && open->phase.phase ? *open->phase.phase : Phase::other;
}

const LiveRank::Open* LiveRank::nested(const Thread& thread) {
  for (auto open = thread.open.rbegin(); open != thread.open.rend(); ++open) {
    if (open->type != Open::Type::start || open->iteration) return &*open;
  }
  return nullptr;
}

// Gives the main thread's time up to `ticks` to the phase of its innermost slice, as PhaseWalk does.
void LiveRank::give_time(std::uint64_t ticks) {
  if (ticks <= given_) return;
  if (current_) {
    Thread& thread = threads_[*main_];
    const Open* const innermost = nested(thread);
    const Phase phase = phase_of(innermost);
    const std::uint64_t from = std::max(given_, current_->start);
    if (ticks > from) {
      if (!thread.open.empty() && &thread.open.back() != innermost) thread.open.back().own += ticks - from;
      current_->phase[static_cast<std::size_t>(phase)] += ticks - from;
      auto& working = current_->working;
      if (works(phase)) {
        if (working.empty() || working.back().second != from) working.emplace_back(from, from);
        working.back().second = ticks;
      }
    }
  }
  given_ = ticks;
}

void LiveRank::begin(Thread& thread, bool main, std::uint64_t ticks, Open open, std::optional<std::int64_t> number) {
  if (main) give_time(ticks);
  // Ends that were never seen: a gap, or a flight recorder.
  if (thread.open.size() >= live_rank_parts::most_open) thread.open.clear();
  open.since = ticks;
  const bool tests = open.type == Open::Type::mpi && name_of(open).starts_with("MPI_Test");
  if (!tests) {
    thread.polls_from.reset();
  } else if (!thread.polls_from) {
    thread.polls_from = ticks;
  }
  const Open* const outer = nested(thread);
  open.phase = nested_phase(outer == nullptr ? nullptr : &outer->phase, open.phase.phase);
  const bool first = main && open.iteration && !current_;
  if (first) {
    current_.emplace();
    current_->start = ticks;
    const auto named = number ? number : trailing_number(name_of(open));
    current_->number = named.value_or(static_cast<std::int64_t>(iteration_count_));
    seen_iteration_ = true;
  }
  open.iteration = first;
  thread.open.push_back(open);
}

void LiveRank::end(Thread& thread, bool main, std::uint64_t ticks, std::size_t at) {
  if (main) give_time(ticks);
  if (thread.open[at].type == Open::Type::push && thread.open[at].call) finish(*thread.open[at].call, ticks, main);
  for (std::size_t inner = at + 1; inner < thread.open.size(); ++inner) thread.open[inner].crosses = true;
  if (thread.open[at].type == Open::Type::start && !thread.open[at].iteration && main) give_own_time(thread, at);
  if (thread.open[at].iteration && current_) {
    current_->end = std::max(ticks, current_->start);
    recent_.push_back({current_->number, current_->start, current_->end});
    ended_iterations_.push_back(std::move(*current_));
    ++iteration_count_;
    current_.reset();
  }
  thread.open.erase(thread.open.begin() + static_cast<std::ptrdiff_t>(at));
}

// A range by start and end that turned out to nest: its own time had gone to the phase around it.
void LiveRank::give_own_time(const Thread& thread, std::size_t at) {
  const Open& range = thread.open[at];
  if (!current_ || range.crosses || at + 1 != thread.open.size() || !range.phase.phase) return;
  const Phase before = phase_of(nested(thread));
  const std::uint64_t own = std::min(range.own, current_->phase[static_cast<std::size_t>(before)]);
  current_->phase[static_cast<std::size_t>(before)] -= own;
  current_->phase[static_cast<std::size_t>(*range.phase.phase)] += own;
}

std::optional<std::int64_t> LiveRank::iteration_at(std::uint64_t ticks) const {
  if (current_ && ticks >= current_->start) return current_->number;
  const auto after = std::ranges::upper_bound(recent_, ticks, {}, &Recent::start);
  if (after == recent_.begin() || std::prev(after)->end <= ticks) return std::nullopt;
  return std::prev(after)->number;
}

void LiveRank::finish(LiveCall call, std::uint64_t end, bool main) {
  call.end = end;
  call.on_main = main;
  call.blocked_iteration = iteration_at(call.polled_from);
  ended_calls_.push_back(call);
}

void LiveRank::begin_collective(Thread& thread, bool main, const Slot& head) {
  using namespace live_rank_parts;
  const auto made = unpack<events::MpiBeginColl>(&head);
  Open open{.type = Open::Type::mpi,
            .id = made.function,
            .scope = 0,
            .since = 0,
            .phase = {},
            .iteration = false,
            .own = 0,
            .crosses = false,
            .call = {},
            .message = {}};
  thread.polling_since.reset();
  const KindRule known = mpi_rule(made.function);
  open.phase.phase = known.phase;
  const std::uint32_t number = made.communicator;
  const auto communicator = communicators_.find(number);
  const format::MpiFunction* function = format::find_mpi_function(made.function);
  if (communicator != communicators_.end() && communicator->second.members > 1 && function != nullptr) {
    LiveCall call{.communicator = communicator->second.identity,
                  .sequence = made.sequence,
                  .members = communicator->second.members,
                  .round = 0,
                  .function = made.function,
                  .range = 0,
                  .timed = function->name.find("eighbor_") == std::string_view::npos,
                  .start = ticks_of(head),
                  .end = 0,
                  .blocked_from = ticks_of(head),
                  .polled_from = ticks_of(head),
                  .on_main = main,
                  .iteration = iteration_at(ticks_of(head)),
                  .blocked_iteration = {}};
    const std::pair key(call.communicator, call.sequence);
    if (function->name.ends_with("_init")) {
      if (persistent_.size() < most_open) persistent_[key] = {made.function, 0};
    } else {
      if (made.function == start_function) {
        auto& [initialisation, starts] = persistent_[key];
        call.round = ++starts;
        if (initialisation != 0) call.function = initialisation;
      }
      const bool returns_early = made.function == start_function || function->nonblocking;
      if (returns_early) {
        thread.posted.push_back(call);
      } else {
        open.call = call;
      }
    }
  }
  begin(thread, main, ticks_of(head), open, std::nullopt);
}

bool LiveRank::in_category(std::uint64_t scope, std::string_view domain, std::string_view category) const {
  const ScopeParts parts = parts_of(scope);
  const auto of_domain = domains_.find(parts.domain);
  const auto of_category = categories_.find({parts.domain, parts.category});
  return of_domain != domains_.end() && of_category != categories_.end() && name(of_domain->second) == domain &&
         name(of_category->second) == category;
}

// A range of the category "collective" in the domain "torch", whose payload has the fields communicator, bytes,
// sequence, members and request (profiler/inject/sources/script/ranges.cpp).
std::optional<LiveRank::ScriptCollective> LiveRank::script_collective(Thread& thread, std::uint64_t scope,
                                                                      std::uint64_t ticks) {
  const std::vector<std::uint64_t> fields = std::exchange(thread.payload, {});
  if (fields.size() != 5 || fields[3] < 2 || !in_category(scope, "torch", "collective")) return std::nullopt;
  const std::string& communicator = name(static_cast<std::uint32_t>(fields[0]));
  const std::uint64_t identity = name_identity(communicator);
  const auto members = static_cast<std::uint32_t>(fields[3]);
  if (communicators_.size() < live_rank_parts::most_open) {
    communicators_[std::uint64_t{1} << 32 | static_cast<std::uint32_t>(fields[0])] = {identity, communicator, members,
                                                                                      -1};
  }
  return ScriptCollective{.call = {.communicator = identity,
                                   .sequence = static_cast<std::uint32_t>(fields[2]),
                                   .members = members,
                                   .round = 0,
                                   .function = 0,
                                   .range = parts_of(scope).name,
                                   .timed = true,
                                   .start = ticks,
                                   .end = 0,
                                   .blocked_from = ticks,
                                   .polled_from = ticks,
                                   .on_main = false,
                                   .iteration = iteration_at(ticks),
                                   .blocked_iteration = {}},
                          .request = fields[4]};
}

void LiveRank::start_script_request(Thread& thread, std::uint64_t scope, std::uint64_t range, std::uint64_t ticks) {
  auto made = script_collective(thread, scope, ticks);
  if (!made || made->request == 0) return;
  if (script_requests_.size() >= live_rank_parts::most_open) script_requests_.clear(), script_ranges_.clear();
  script_ranges_[made->request] = range;
  script_requests_.insert_or_assign(range, *made);
}

// A range of the category "wait", whose payload has the first and the last of the requests that it waits for.
void LiveRank::await_script_requests(Thread& thread, std::uint64_t scope, std::uint64_t ticks) {
  const std::vector<std::uint64_t> fields = std::exchange(thread.payload, {});
  if (fields.size() != 2 || fields[0] == 0 || !in_category(scope, "torch", "wait")) return;
  const std::uint64_t last = std::min(std::max(fields[0], fields[1]), fields[0] + live_rank_parts::most_open);
  for (std::uint64_t request = fields[0]; request <= last; ++request) {
    const auto range = script_ranges_.find(request);
    const auto of = range == script_ranges_.end() ? script_requests_.end() : script_requests_.find(range->second);
    if (of == script_requests_.end() || of->second.awaited) continue;
    of->second.awaited = std::max(ticks, of->second.call.start);
  }
}

// The script was blocked in the collective from its wait on. A wait that begins later finds it done.
void LiveRank::end_script_request(std::uint64_t range, std::uint64_t ticks) {
  const auto found = script_requests_.find(range);
  if (found == script_requests_.end()) return;
  const ScriptCollective of = found->second;
  script_requests_.erase(found);
  if (const auto own = script_ranges_.find(of.request); own != script_ranges_.end() && own->second == range) {
    script_ranges_.erase(own);
  }
  LiveCall call = of.call;
  call.blocked_from = call.polled_from = std::min(of.awaited.value_or(ticks), ticks);
  finish(call, ticks, true);
}

// Ends the latest open MPI call and the operations that it completed.
void LiveRank::end_call(Thread& thread, bool main, std::uint64_t ticks) {
  const auto latest =
      std::find_if(thread.open.rbegin(), thread.open.rend(), [](const Open& o) { return o.type == Open::Type::mpi; });
  if (latest == thread.open.rend()) return;
  if (latest->call) finish(*latest->call, ticks, main);
  for (const std::uint64_t request : std::exchange(thread.completed, {})) {
    const auto found = requests_.find(request);
    if (found == requests_.end()) continue;
    LiveCall call = found->second;
    requests_.erase(found);
    finish(call, ticks, main);
  }
  // Without a request it is not known when the operation ends.
  for (LiveCall& call : thread.posted) {
    call.timed = false;
    finish(call, ticks, main);
  }
  thread.posted.clear();
  end(thread, main, ticks, static_cast<std::size_t>(std::distance(latest, thread.open.rend())) - 1);
}

void LiveRank::follow(const NewEvents& part) {
  using namespace live_rank_parts;
  const bool main = main_ && part.track == *main_;
  Thread& thread = threads_[part.track];
  if (part.after_skipped) {
    thread = {};
    if (main) current_.reset(), given_ = 0;
  }
  const auto open_range = [&](Open::Type type, std::uint64_t id, std::uint64_t scope) {
    const KindRule& known = rule(scope);
    return Open{.type = type,
                .id = id,
                .scope = scope,
                .since = 0,
                .phase = {known.phase, std::nullopt},
                .iteration = known.iteration,
                .own = 0,
                .crosses = false,
                .call = {},
                .message = {}};
  };
  const auto find_open = [&](Open::Type type, std::uint64_t id) -> std::optional<std::size_t> {
    for (std::size_t at = thread.open.size(); at-- > 0;) {
      if (thread.open[at].type == type && thread.open[at].id == id) return at;
    }
    return std::nullopt;
  };
  format::for_each_event(part.slots, [&](const Slot& head, const Slot*) {
    const std::uint64_t ticks = ticks_of(head);
    const EventType type = type_of(head);
    switch (type) {
      case EventType::push: {
        const std::uint64_t scope = scope_of(head);
        Open open = open_range(Open::Type::push, parts_of(scope).domain, scope);
        if (thread.payload.size() == 2) await_script_requests(thread, scope, ticks);
        if (!thread.payload.empty()) {
          if (const auto made = script_collective(thread, scope, ticks); made && made->request == 0) {
            open.call = made->call;
          }
        }
        begin(thread, main, ticks, open, std::nullopt);
        break;
      }
      case EventType::push_payload: {
        const auto made = unpack<events::PushPayload>(&head);
        begin(thread, main, ticks, open_range(Open::Type::push, parts_of(made.scope).domain, made.scope),
              number_of(made.payload_type, made.value));
        break;
      }
      case EventType::pop:
        if (const auto at = find_open(Open::Type::push, unpack<events::Pop>(&head).domain)) {
          end(thread, main, ticks, *at);
        }
        break;
      case EventType::start: {
        const auto made = unpack<events::Start>(&head);
        if (!thread.payload.empty()) start_script_request(thread, made.scope, made.range, ticks);
        begin(thread, main, ticks, open_range(Open::Type::start, made.range, made.scope), std::nullopt);
        break;
      }
      case EventType::start_payload: {
        const auto made = unpack<events::StartPayload>(&head);
        begin(thread, main, ticks, open_range(Open::Type::start, made.range, made.scope),
              number_of(made.payload_type, made.value));
        break;
      }
      case EventType::end:
        end_script_request(unpack<events::End>(&head).range, ticks);
        if (const auto at = find_open(Open::Type::start, unpack<events::End>(&head).range)) {
          end(thread, main, ticks, *at);
        }
        break;
      case EventType::payload: {
        const auto made = unpack<events::Payload>(&head);
        thread.payload.clear();
        if (made.bytes == 16 || made.bytes == 40) {
          thread.payload.resize(made.bytes / 8);
          std::memcpy(thread.payload.data(), bytes_of(head).data(), made.bytes);
        }
        return;
      }
      case EventType::mpi_begin_coll:
        begin_collective(thread, main, head);
        break;
      case EventType::mpi_begin:
      case EventType::mpi_begin_peer:
      case EventType::mpi_begin_file:
      case EventType::mpi_begin_window: {
        const std::uint16_t function = unpack<events::MpiBegin>(&head).function;
        const bool by_tool = type_of(head) == EventType::mpi_begin && unpack<events::MpiBegin>(&head).by_tool != 0;
        note_polling(thread, function, ticks);
        begin(thread, main, ticks,
              Open{.type = Open::Type::mpi,
                   .id = function,
                   .scope = 0,
                   .since = 0,
                   .phase = {by_tool ? std::nullopt : mpi_rule(function).phase, std::nullopt},
                   .iteration = false,
                   .own = 0,
                   .crosses = false,
                   .call = {},
                   .message = type == EventType::mpi_begin_peer ? message_of(head) : std::nullopt},
              std::nullopt);
        break;
      }
      case EventType::mpi_end:
        end_call(thread, main, ticks);
        break;
      case EventType::mpi_posted:
        if (!thread.posted.empty()) {
          if (requests_.size() >= most_open) requests_.clear();
          requests_[unpack<events::MpiPosted>(&head).request] = thread.posted.back();
          thread.posted.pop_back();
        }
        return;
      case EventType::mpi_completed: {
        const auto found = requests_.find(unpack<events::MpiCompleted>(&head).request);
        if (found == requests_.end()) return;
        thread.completed.push_back(found->first);
        const auto call = std::find_if(thread.open.rbegin(), thread.open.rend(),
                                       [](const Open& o) { return o.type == Open::Type::mpi; });
        if (call == thread.open.rend()) return;
        LiveCall& completed = found->second;
        completed.blocked_from = completed.polled_from = std::max(completed.start, call->since);
        if (!main && thread.polls_from) completed.polled_from = std::max(completed.start, *thread.polls_from);
        return;
      }
      default:
        if (type != EventType::mark && type != EventType::mark_payload) return;
        break;
    }
    if (main && last_ticks_ != 0 && ticks > last_ticks_) {
      longest_silence_ = std::max(longest_silence_, ticks - last_ticks_);
    }
    last_ticks_ = std::max(last_ticks_, ticks);
  });
}

void LiveRank::note_polling(Thread& thread, std::uint16_t function, std::uint64_t ticks) {
  if (!live_rank_parts::is_test(function)) {
    thread.polling_since.reset();
    return;
  }
  if (!thread.polling_since) thread.polling_since = ticks;
  thread.polled = ticks;
}

// The waits and the polling are those of collective_calls.h.
void LiveRank::refresh_open_calls() {
  open_collectives_.clear();
  open_messages_.clear();
  const Thread* polling = nullptr;
  for (const auto& [track, thread] : threads_) {
    for (const Open& open : thread.open) {
      if (open.call) open_collectives_.push_back(*open.call);
      if (open.message) open_messages_.push_back(*open.message);
    }
    for (const std::uint64_t request : thread.completed) {
      if (const auto found = requests_.find(request); found != requests_.end()) {
        open_collectives_.push_back(found->second);
      }
    }
    if (thread.polling_since && (polling == nullptr || thread.polled > polling->polled)) polling = &thread;
  }
  if (polling == nullptr) return;
  for (const auto& [request, posted] : requests_) {
    if (posted.start > polling->polled) continue;
    LiveCall& call = open_collectives_.emplace_back(posted);
    call.blocked_from = std::max(posted.start, *polling->polling_since);
    call.polled = polling->polled;
  }
}

std::optional<std::uint64_t> LiveRank::in_mpi_since() const {
  const auto thread = main_ ? threads_.find(*main_) : threads_.end();
  if (thread == threads_.end()) return std::nullopt;
  for (const Open& open : thread->second.open) {
    if (open.type == Open::Type::mpi) return open.since;
  }
  return std::nullopt;
}

std::string LiveRank::name_of(const Open& open) const {
  if (open.type != Open::Type::mpi) return name(parts_of(open.scope).name);
  const format::MpiFunction* function = format::find_mpi_function(static_cast<std::uint32_t>(open.id));
  return function != nullptr ? std::string(function->name) : fmt::format("MPI function {}", open.id);
}

std::string LiveRank::doing() const {
  if (!main_) return "";
  const auto thread = threads_.find(*main_);
  return thread == threads_.end() || thread->second.open.empty() ? "" : name_of(thread->second.open.back());
}

std::string LiveRank::open_range() const {
  if (!main_) return "";
  const auto thread = threads_.find(*main_);
  if (thread == threads_.end()) return "";
  const auto& open = thread->second.open;
  const auto range = std::find_if(open.rbegin(), open.rend(), [](const Open& o) { return o.type != Open::Type::mpi; });
  return range == open.rend() ? "" : name_of(*range);
}

}  // namespace paceline::analysis
