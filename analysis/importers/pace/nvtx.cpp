// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/nvtx.h"

#include <algorithm>
#include <bit>

namespace paceline::analysis {

using format::EventType;
using format::Slot;
using format::unpack;
namespace events = format::events;

namespace {

Argument payload_of(NameId key, format::PayloadType type, std::uint64_t bits) {
  switch (type) {
    case format::PayloadType::signed_integer:
      return make_argument(key, static_cast<std::int64_t>(bits));
    case format::PayloadType::floating:
      return make_argument(key, std::bit_cast<double>(bits));
    default:
      return make_argument(key, bits);
  }
}

std::uint16_t domain_of(const Slot& head) { return parts_of(scope_of(head)).domain; }

}  // namespace

void PaceNvtx::push(TrackBuilder& track, Thread& thread, std::int64_t time_ns, const Slot& head,
                    std::span<const Slot> payloads) {
  const DecodedPayloads& extended = decode(payloads, domain_of(head));
  const std::uint32_t slice = track.begin_slice(time_ns, kind(scope_of(head), extended));
  if (type_of(head) == EventType::push_payload) {
    const auto push = unpack<events::PushPayload>(&head);
    track.add_argument(slice, payload_of(context_.words.payload, push.payload_type, push.value), true);
  }
  add_values(track, slice, extended);
  thread.pushes_.push_back({slice, domain_of(head), ticks_of(head)});
}

void PaceNvtx::pop(TrackBuilder& track, Thread& thread, std::int64_t time_ns, const Slot& head,
                   std::span<const Slot> payloads) {
  const std::uint16_t domain = unpack<events::Pop>(&head).domain;
  const auto push = std::find_if(thread.pushes_.rbegin(), thread.pushes_.rend(),
                                 [&](const Thread::Push& candidate) { return candidate.domain == domain; });
  if (push == thread.pushes_.rend()) return;  // the end of a range that began before the recording
  track.end_slice(push->slice, time_ns);
  const DecodedPayloads& extended = decode(payloads, domain);
  if (!extended.message.empty()) track.rename(push->slice, context_.rank.names().intern(extended.message));
  add_values(track, push->slice, extended);
  const auto index = static_cast<std::size_t>(thread.pushes_.rend() - push) - 1;
  thread.pushes_.erase(std::next(push).base());
  // Ranges that began inside this push cross its end; pushes of other domains stay.
  std::erase_if(thread.open_ranges_, [&](const Thread::OpenRange& open) {
    if (open.pushes <= index) return false;
    thread.ranges_[open.range].crosses = true;
    return true;
  });
}

void PaceNvtx::mark(TrackBuilder& track, std::int64_t time_ns, const Slot& head, std::span<const Slot> payloads) {
  const DecodedPayloads& extended = decode(payloads, domain_of(head));
  const std::uint32_t mark = track.add_mark(time_ns, kind(scope_of(head), extended));
  if (type_of(head) == EventType::mark_payload) {
    const auto made = unpack<events::MarkPayload>(&head);
    track.add_mark_argument(mark, payload_of(context_.words.payload, made.payload_type, made.value));
  }
  add_mark_values(track, mark, extended);
}

void PaceNvtx::start(std::size_t track_index, Thread& thread, const Slot& head, std::span<const Slot> payloads) {
  Thread::Range range;
  range.start_ticks = ticks_of(head);
  range.scope = scope_of(head);
  std::uint64_t id = 0;
  if (type_of(head) == EventType::start_payload) {
    const auto start = unpack<events::StartPayload>(&head);
    id = start.range;
    range.payload = payload_of(context_.words.payload, start.payload_type, start.value);
  } else {
    id = unpack<events::Start>(&head).range;
  }
  range.extended = decode(payloads, domain_of(head));
  const auto end = range_ends().find(id);
  if (end != range_ends().end()) {
    if (!end->second.payloads.empty()) {
      context_.definitions.payloads.decode(domain_of(head), end->second.payloads, lookup_, range.extended);
    }
    if (end->second.ticks >= range.start_ticks) {
      range.ended = true;
      range.end_ticks = end->second.ticks;
      range.crosses = end->second.track != track_index;  // ended by another thread
    }
  }
  if (!range.crosses) {
    thread.open_ranges_.push_back({thread.ranges_.size(), thread.pushes_.size()});
    thread.range_of_id_[id] = thread.ranges_.size();
  }
  thread.ranges_.push_back(std::move(range));
}

void PaceNvtx::end(Thread& thread, const Slot& head) {
  const auto found = thread.range_of_id_.find(unpack<events::End>(&head).range);
  if (found == thread.range_of_id_.end()) return;
  const std::size_t range = found->second;
  thread.range_of_id_.erase(found);
  const auto at = std::ranges::find(thread.open_ranges_, range, &Thread::OpenRange::range);
  if (at == thread.open_ranges_.end()) return;  // crossed a pop before
  const bool is_innermost = std::next(at) == thread.open_ranges_.end() && at->pushes == thread.pushes_.size();
  thread.ranges_[range].crosses = !is_innermost;
  thread.open_ranges_.erase(at);
}

const PaceNvtx::RangeEnds& PaceNvtx::range_ends() {
  if (range_ends_) return *range_ends_;
  range_ends_.emplace();
  for (std::size_t t = 0; t < context_.events.tracks().size(); ++t) {
    PendingPayloads pending;
    context_.events.each(t, PaceEvents::Part::everything, [&](const Slot& head) {
      if (type_of(head) == EventType::end) {
        const auto payloads = pending.slots();
        (*range_ends_)[unpack<events::End>(&head).range] = {
            static_cast<std::uint32_t>(t), ticks_of(head), {payloads.begin(), payloads.end()}};
      }
      if (!pending.take(head)) pending.forget();
    });
  }
  return *range_ends_;
}

void PaceNvtx::cut(TrackBuilder& track, Thread& thread, const PaceGap& gap) {
  const auto is_cut = [&](const Thread::Push& push) {
    return push.ticks <= gap.off || (gap.paused && push.ticks < gap.on);
  };
  const auto kept = std::ranges::find_if_not(thread.pushes_, is_cut);
  for (auto push = thread.pushes_.begin(); push != kept; ++push) {
    track.end_slice(push->slice, context_.time(std::max(gap.off, push->ticks)));
    track.argument(push->slice, context_.words.unfinished, 1);
  }
  const auto cut = static_cast<std::size_t>(kept - thread.pushes_.begin());
  for (Thread::OpenRange& open : thread.open_ranges_) open.pushes -= std::min(open.pushes, cut);
  thread.pushes_.erase(thread.pushes_.begin(), kept);
}

void PaceNvtx::place_ranges(TrackBuilder& track, const Thread& thread, const std::string& label,
                            std::uint64_t thread_id) {
  TrackBuilder* crossing = nullptr;
  for (const Thread::Range& range : thread.ranges_) {
    if (range.crosses && crossing == nullptr) {
      crossing = &context_.rank.add_track(TrackKind::thread, label + ": ranges", thread_id);
    }
    TrackBuilder& to = range.crosses ? *crossing : track;
    const std::uint32_t slice = to.begin_slice(context_.time(range.start_ticks), kind(range.scope, range.extended));
    if (range.ended) {
      to.end_slice(slice, context_.time(range.end_ticks));
    } else {
      const auto gap = std::ranges::find_if(context_.gaps, [&](const PaceGap& g) { return g.on > range.start_ticks; });
      if (gap != context_.gaps.end()) {
        to.end_slice(slice, context_.time(std::max(gap->off, range.start_ticks)));
        to.argument(slice, context_.words.unfinished, 1);
      }
    }
    if (range.payload) to.add_argument(slice, *range.payload, true);
    add_values(to, slice, range.extended);
  }
}

const DecodedPayloads& PaceNvtx::decode_some(std::span<const Slot> payloads, std::uint16_t domain) {
  decoded_ = {};
  context_.definitions.payloads.decode(domain, payloads, lookup_, decoded_);
  return decoded_;
}

KindId PaceNvtx::named(KindId plain, const std::string& name) {
  Vocabulary& words = context_.rank.vocabulary();
  Kind kind = words.kinds[plain];
  kind.name = words.names.intern(name);
  return words.kinds.intern(kind);
}

std::optional<Argument> PaceNvtx::argument_of(const PayloadValue& value) {
  Names& names = context_.rank.names();
  const NameId key = names.intern(value.name);
  if (!value.is_text) return value.argument(key);
  if (value.text.empty()) return std::nullopt;  // the model has no empty texts
  return make_text(key, names.intern(value.text));
}

void PaceNvtx::add_mark_values(TrackBuilder& track, std::uint32_t mark, const DecodedPayloads& payloads) {
  for (const PayloadValue& value : payloads.values) {
    if (const auto argument = argument_of(value)) track.add_mark_argument(mark, *argument);
  }
}

}  // namespace paceline::analysis
