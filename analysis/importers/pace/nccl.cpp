// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/nccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace paceline::analysis {
namespace {

using format::EventType;
using format::NcclCall;
using format::Slot;
using format::unpack;
namespace events = format::events;

std::string_view take_word(std::string_view& text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space);
  text.remove_prefix(std::min(space + 1, text.size()));
  return word == "-" ? std::string_view() : word;
}

std::uint32_t number_of(std::string_view word) {
  std::uint32_t number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

// Communicators that only ranges name get numbers from here downward. The file's own numbers begin at 1 (MPI) and at
// one more than this (NCCL).
constexpr std::uint32_t last_of_ranges = 0x7fff'ffff;

// True if no NCCL call is missing: nothing was lost, and the recording only paused between iterations, which all ranks
// do alike.
bool has_all_calls(const PaceEvents& file_events, const PaceDefinitions& definitions) {
  const auto& dropped = file_events.facts().header.dropped;
  const bool lost = std::any_of(std::begin(dropped), std::begin(dropped) + static_cast<int>(format::DropCause::device),
                                [](std::uint64_t count) { return count > 0; });
  const bool paused = std::ranges::any_of(definitions.recording, [](const PaceDefinitions::RecordingState& state) {
    return (state.reasons & ~std::uint64_t{format::outside_iterations}) != 0;
  });
  return !lost && !paused && file_events.facts().header.kept_from == 0;
}

// The rates of the device's clock and the host's differ by less than one part in 1000: oscillators differ by 100 ppm,
// and a daemon may slew the host's clock by 500 ppm.
constexpr std::uint64_t largest_drift = 1000;

}  // namespace

PaceNccl::PaceNccl(PaceContext& context)
    : context_(context),
      rank_(context.rank),
      counts_all_(has_all_calls(context.events, context.definitions)),
      ranges_(context.rank, counts_all_) {
  collect();
  if (events_ == 0) return;
  names_ = context.definitions.names;
  communicators_ = context.communicators;
  for (const auto& [id, work] : works_) {
    if (work.type != EventType::nccl_collective && work.type != EventType::nccl_peer) continue;
    const auto communicator = communicators_.find(work.communicator);
    if (communicator != communicators_.end()) told_.insert(communicator->second.identity);
  }
  place_channels();
}

void PaceNccl::collect() {
  const PaceEvents& file_events = context_.events;
  const PaceClock& time = context_.time;
  for (std::uint32_t t = 0; t < file_events.tracks().size(); ++t) {
    file_events.each(t, PaceEvents::Part::nccl, [&](const Slot& head) {
      const auto work = [&](std::uint64_t id) -> Work& {
        ++events_;
        Work& made = works_[id];
        made.type = type_of(head);
        made.track = t;
        made.start_ns = time(ticks_of(head));
        return made;
      };
      const auto communication = [&](const auto& event) -> Work& {
        Work& made = work(event.id);
        made.operation = event.operation;
        made.communicator = event.communicator;
        made.bytes = event.bytes;
        return made;
      };
      switch (type_of(head)) {
        case EventType::nccl_collective: {
          const auto collective = unpack<events::NcclCollective>(&head);
          Work& made = communication(collective);
          made.sequence = collective.sequence, made.root = collective.root, made.group = collective.group;
          break;
        }
        case EventType::nccl_peer: {
          const auto message = unpack<events::NcclPeer>(&head);
          Work& made = communication(message);
          made.peer = message.peer, made.group = message.group;
          break;
        }
        case EventType::nccl_call: {
          const auto call = unpack<events::NcclApiCall>(&head);
          Work& made = communication(call);
          made.call = call.kind, made.captured = call.captured == 1;
          calls_[t].push_back(call.id);
          break;
        }
        case EventType::nccl_proxy: {
          const auto proxy = unpack<events::NcclProxy>(&head);
          Work& made = work(proxy.id);
          made.channel = proxy.channel, made.sends = proxy.sends != 0, made.peer = proxy.peer;
          made.steps = proxy.steps, made.works_for = proxy.work;
          break;
        }
        case EventType::nccl_channel: {
          const auto channel = unpack<events::NcclChannel>(&head);
          ++events_;
          edges_.push_back({channel.work, channel.device_ns, time(ticks_of(head)), channel.edge == 1});
          break;
        }
        default:
          break;
      }
    });
  }
  if (events_ == 0) return;
  file_events.each(PaceEvents::Part::nccl, [&](const Slot& head) {
    if (type_of(head) != EventType::nccl_end) return;
    const auto found = works_.find(unpack<events::NcclEnd>(&head).id);
    if (found == works_.end()) return;
    found->second.end_ns = time(ticks_of(head));
    if (found->second.type != EventType::nccl_proxy) return;
    auto& latest = proxies_.try_emplace(found->second.works_for, *found->second.end_ns).first->second;
    latest = std::max(latest, *found->second.end_ns);
  });
}

// An edge is reported after it happened. The host's clock at the report minus the device's clock is therefore the
// distance of the clocks plus the report's delay. A prompt report bounds the distance at other times too, because the
// clocks' rates differ by less than largest_drift. The least bound is taken.
void PaceNccl::place_channels() {
  std::ranges::stable_sort(edges_, {}, &Edge::device_ns);
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> distances;
  for (const Edge& edge : edges_) {
    distances.push_back(static_cast<std::int64_t>(static_cast<std::uint64_t>(edge.told_ns) - edge.device_ns));
  }
  const auto bound_by = [&](std::size_t i, std::size_t other) {
    const std::uint64_t between = edges_[std::max(i, other)].device_ns - edges_[std::min(i, other)].device_ns;
    std::int64_t bound = most;
    if (__builtin_add_overflow(distances[other], static_cast<std::int64_t>(between / largest_drift), &bound)) return;
    distances[i] = std::min(distances[i], bound);
  };
  for (std::size_t i = 1; i < edges_.size(); ++i) bound_by(i, i - 1);
  for (std::size_t i = edges_.size(); i-- > 1;) bound_by(i - 1, i);
  // All channels of a collective lie at the least distance of its edges, so that it lasts as long as by the device's
  // clock.
  std::unordered_map<std::uint64_t, std::int64_t> distance_of;
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    auto& least = distance_of.try_emplace(edges_[i].id, distances[i]).first->second;
    least = std::min(least, distances[i]);
  }
  for (const Edge& edge : edges_) {
    constexpr std::int64_t bound = 4'000'000'000'000'000'000;  // so that no difference overflows
    const auto device = edge.device_ns + static_cast<std::uint64_t>(distance_of[edge.id]);
    const auto at = std::clamp(static_cast<std::int64_t>(device), -bound, bound);
    Span& span = channels_.try_emplace(edge.id, Span{most, -most}).first->second;
    if (edge.end) {
      span.end_ns = std::max(span.end_ns, at);
    } else {
      span.start_ns = std::min(span.start_ns, at);
    }
  }
}

KindId PaceNccl::kind(NameId name, std::string_view category) {
  return rank_.kind(rank_.names()[name], "nccl", category);
}

const PaceNccl::Operation& PaceNccl::operation(std::uint32_t name) {
  const auto [found, fresh] = operations_.try_emplace(name);
  if (!fresh) return found->second;
  std::string_view text = name < names_.size() ? std::string_view(names_[name]) : "";
  const std::string_view function = take_word(text);
  const auto next = [&] { return rank_.names().intern(take_word(text)); };
  Operation& operation = found->second;
  operation.name = rank_.names().intern(fmt::format("nccl{}", function));
  operation.datatype = next();
  operation.algorithm = next();
  operation.protocol = next();
  operation.channels = number_of(take_word(text));
  operation.warps = number_of(take_word(text));
  const auto is = [&](std::initializer_list<std::string_view> all) {
    return std::ranges::find(all, function) != all.end();
  };
  operation.for_each_rank = is({"AllGather", "ReduceScatter", "AlltoAll", "Gather", "Scatter"});
  operation.rooted = is({"Broadcast", "Reduce", "Gather", "Scatter"});
  return operation;
}

void PaceNccl::add_calls(std::uint32_t track_index, std::uint64_t thread, TrackBuilder& track) {
  ranges_.read(thread, track);
  Names& names = rank_.names();
  const auto calls = calls_.find(track_index);
  if (calls == calls_.end()) return;
  for (const std::uint64_t id : calls->second) {
    const Work& work = works_.at(id);
    const char* category = work.call == NcclCall::group_api       ? "group"
                           : work.call == NcclCall::kernel_launch ? "launch"
                           : work.call == NcclCall::group         ? "enqueue"
                                                                  : "api";
    const std::uint32_t slice = track.begin_slice(work.start_ns, kind(operation(work.operation).name, category));
    if (work.end_ns) track.end_slice(slice, *work.end_ns);
    if (work.bytes > 0) track.argument(slice, names.intern("bytes"), work.bytes);
    if (work.captured) track.argument(slice, names.intern("captured"), 1);
    const auto communicator = communicators_.find(work.communicator);
    if (communicator != communicators_.end())
      track.text_argument(slice, names.intern("communicator"), communicator->second.text);
  }
}

std::uint64_t PaceNccl::thread_of(const Work& work) const { return context_.events.tracks()[work.track].thread_id; }

// A plan is enqueued right after its kernel was launched, on the same thread; each kernel is one plan's.
bool PaceNccl::launched_by_its_thread(std::uint64_t id, const Work& work, const PaceCuda& cuda, Span* kernel) {
  const std::uint64_t thread = thread_of(work);
  const auto& launches = cuda.nccl_launches(thread);
  const auto after = std::ranges::upper_bound(launches, work.start_ns, {}, &PaceCuda::Launch::time_ns);
  if (after == launches.begin()) return false;
  const PaceCuda::Launch& launch = *std::prev(after);
  const std::uint64_t group = work.group != 0 ? work.group : id;
  *kernel = {launch.start_ns, launch.end_ns};
  return launch_of_group_.try_emplace({thread, launch.time_ns}, group).first->second == group;
}

void PaceNccl::join_callbacks(const PaceCuda& cuda) {
  using Plans = std::vector<std::pair<std::uint64_t, std::int64_t>>;  // ids and times
  std::map<std::uint32_t, Plans> plans;                               // by communicator, as are the launches
  std::map<std::uint32_t, std::vector<PaceCuda::Launch>> launches;
  Span kernel;
  for (const auto& [id, work] : works_) {
    if (work.type != EventType::nccl_call || work.call != NcclCall::group) continue;
    if (!launched_by_its_thread(id, work, cuda, &kernel)) plans[work.communicator].emplace_back(id, work.start_ns);
  }
  if (plans.empty()) return;
  for (const auto& [id, work] : works_) {
    if (work.type != EventType::nccl_call || work.call != NcclCall::kernel_launch || !work.end_ns) continue;
    const std::uint64_t thread = thread_of(work);
    const auto& all = cuda.nccl_launches(thread);
    const auto launch = std::ranges::lower_bound(all, work.start_ns, {}, &PaceCuda::Launch::time_ns);
    if (launch == all.end() || launch->time_ns > *work.end_ns) continue;  // captured: nothing ran
    if (!launch_of_group_.contains({thread, launch->time_ns})) launches[work.communicator].push_back(*launch);
  }
  const auto pair = [&](const Plans& of, const std::vector<PaceCuda::Launch>& kernels) {
    if (of.size() != kernels.size()) return;  // one of them was not seen
    for (std::size_t i = 0; i < of.size(); ++i) {
      if (kernels[i].start_ns < of[i].second) return;  // a kernel waits for the callback
    }
    for (std::size_t i = 0; i < of.size(); ++i) callbacks_[of[i].first] = {kernels[i].start_ns, kernels[i].end_ns};
  };
  for (const auto& [communicator, of] : plans) pair(of, launches[communicator]);
  std::erase_if(plans, [&](const auto& of) { return callbacks_.contains(of.second.front().first); });
  if (plans.size() == 1) pair(plans.begin()->second, cuda.nccl_kernels_of_graphs());
}

std::optional<PaceNccl::Span> PaceNccl::ran(std::uint64_t id, const Work& work, const PaceCuda& cuda) {
  const auto channels = channels_.find(id);
  if (channels != channels_.end() && channels->second.start_ns <= channels->second.end_ns) return channels->second;
  if (const auto plan = callbacks_.find(work.group); plan != callbacks_.end()) return plan->second;
  if (Span kernel; launched_by_its_thread(id, work, cuda, &kernel)) return kernel;
  const auto proxy = proxies_.find(id);
  if (proxy != proxies_.end()) return Span{work.start_ns, proxy->second};
  return std::nullopt;
}

void PaceNccl::add_work(const Work& work, std::optional<Span> ran, NcclRanges::Call* call) {
  Names& names = rank_.names();
  const auto communicator = communicators_.find(work.communicator);
  const NameId of = communicator != communicators_.end() ? communicator->second.text : 0;
  TrackBuilder*& made = tracks_[of];
  if (made == nullptr) made = &rank_.add_track(TrackKind::nccl, process_ + "NCCL " + names[of]);
  TrackBuilder& track = *made;
  const bool collective = work.type == EventType::nccl_collective;
  const Operation& done = operation(work.operation);
  const char* category = !ran ? "enqueue" : collective ? "collective" : "point-to-point";
  const std::uint32_t slice = track.begin_slice(ran ? ran->start_ns : work.start_ns, kind(done.name, category));
  if (ran) {
    track.end_slice(slice, ran->end_ns);
  } else if (work.end_ns) {
    track.end_slice(slice, *work.end_ns);
  }
  const std::uint32_t members = communicator != communicators_.end() ? communicator->second.members : 0;
  // As in nccl-tests: for calls with a part for each rank, the bytes of all parts.
  const std::uint64_t bytes = done.for_each_rank && members > 0 ? work.bytes * members : work.bytes;
  track.argument(slice, names.intern("bytes"), bytes);
  if (communicator != communicators_.end()) {
    track.text_argument(slice, names.intern("communicator"), communicator->second.text);
    if (members > 0) track.argument(slice, names.intern("members"), members);
  }
  if (collective) {
    const bool numbered = told_.contains(communicator != communicators_.end() ? communicator->second.identity : 0);
    if (numbered || counts_all_) track.varying_argument(slice, names.intern("sequence"), work.sequence);
    if (done.rooted) track.argument(slice, names.intern("root"), work.root);
  } else {
    track.argument(slice, names.intern("peer"), work.peer);
  }
  const auto text = [&](const char* key, NameId value) {
    if (value != 0) track.text_argument(slice, names.intern(key), value);
  };
  text("datatype", done.datatype);
  text("algorithm", done.algorithm);
  text("protocol", done.protocol);
  if (done.channels > 0) track.argument(slice, names.intern("channels"), done.channels);
  if (ran) track.varying_argument(slice, names.intern("enqueued_before"), ran->start_ns - work.start_ns);
  if (call == nullptr) return;
  text("reduction", call->reduction);
  ++last_call_;
  track.varying_argument(slice, names.intern("call"), last_call_);
  call->track->varying_argument(call->slice, names.intern("call"), last_call_);
}

void PaceNccl::add_untold_calls(const PaceCuda& cuda) {
  std::vector<NcclRanges::Call*> calls;
  for (NcclRanges::Call& call : ranges_.calls()) {
    if (!told_.contains(call.communicator)) calls.push_back(&call);
  }
  std::ranges::stable_sort(calls, {}, &NcclRanges::Call::start_ns);
  std::map<std::uint64_t, std::uint32_t> locals;                       // by identity
  std::map<NameId, std::uint32_t> operations;                          // by name
  std::map<std::pair<std::uint64_t, NameId>, std::uint32_t> sequence;  // by communicator and name
  for (NcclRanges::Call* call : calls) {
    Work work;
    const std::string& name = rank_.names()[call->name];
    const bool message = name == "ncclSend" || name == "ncclRecv";
    work.type = message ? EventType::nccl_peer : EventType::nccl_collective;
    work.start_ns = call->start_ns;
    if (!call->track->is_open(call->slice)) work.end_ns = call->track->end_ns(call->slice);
    if (const auto [found, fresh] = operations.try_emplace(call->name, static_cast<std::uint32_t>(names_.size()));
        fresh) {
      names_.push_back(name.substr(4));  // without "nccl"
      operations_.erase(found->second);
    }
    work.operation = operations[call->name];
    const std::uint32_t next = last_of_ranges - static_cast<std::uint32_t>(locals.size());
    if (const auto [found, fresh] = locals.try_emplace(call->communicator, next); fresh) {
      communicators_[found->second] = {context_.words.communicator_text(call->communicator), call->communicator,
                                       ranges_.members(call->communicator)};
    }
    work.communicator = locals[call->communicator];
    work.bytes = call->bytes;
    work.peer = call->peer, work.root = call->root;
    if (!message) work.sequence = sequence[{call->communicator, call->name}]++;
    uncounted_ += !message && !counts_all_;

    // A group launches its kernels together. With several kernels it is unknown which one belongs to this call.
    std::optional<Span> ran;
    const auto& launches = cuda.nccl_launches(call->thread);
    const auto launch = std::ranges::lower_bound(launches, call->start_ns, {}, &PaceCuda::Launch::time_ns);
    const auto after = std::ranges::upper_bound(launches, call->enqueued_ns, {}, &PaceCuda::Launch::time_ns);
    if (after - launch == 1) ran = Span{launch->start_ns, launch->end_ns};
    add_work(work, ran, call);
  }
}

std::string PaceNccl::missing() const {
  if (events_ == 0 && ranges_.without_communicator() > 0) {
    return fmt::format(
        "{} NCCL calls cannot be matched with other ranks': their NVTX ranges name no communicator. NCCL 2.27 or newer "
        "does, and its profiler plugin tells more",
        ranges_.without_communicator());
  }
  if (uncounted_ > 0) {
    return fmt::format(
        "{} NCCL calls cannot be matched with other ranks': only their NVTX ranges were recorded, and not all of them, "
        "so that they cannot be counted. NCCL 2.23 or newer numbers them in its profiler plugin",
        uncounted_);
  }
  return "";
}

void PaceNccl::add_tracks(const PaceCuda& cuda, const std::string& process) {
  process_ = process;
  last_call_ = rank_.info().nccl_events;  // above the numbers of the rank's other processes
  TrackBuilder* proxies = nullptr;
  join_callbacks(cuda);
  for (const auto& [id, work] : works_) {
    if (work.type == EventType::nccl_proxy) {
      if (proxies == nullptr) proxies = &rank_.add_track(TrackKind::nccl, process + "NCCL proxies");
      const std::uint32_t slice =
          proxies->begin_slice(work.start_ns, rank_.kind(work.sends ? "proxy send" : "proxy receive", "nccl", "proxy"));
      if (work.end_ns) proxies->end_slice(slice, *work.end_ns);
      proxies->argument(slice, rank_.names().intern("channel"), work.channel);
      proxies->argument(slice, rank_.names().intern("peer"), work.peer);
      proxies->argument(slice, rank_.names().intern("steps"), work.steps);
      continue;
    }
    if (work.type == EventType::nccl_call) continue;
    const auto communicator = communicators_.find(work.communicator);
    NcclRanges::Call* call = nullptr;
    if (communicator != communicators_.end()) {
      const bool message = work.type == EventType::nccl_peer;
      const std::int32_t peer = message ? work.peer : -1;
      call = ranges_.take(thread_of(work), work.start_ns, communicator->second.identity, operation(work.operation).name,
                          work.bytes, peer);
    }
    add_work(work, ran(id, work, cuda), call);
  }
  add_untold_calls(cuda);
}

}  // namespace paceline::analysis
