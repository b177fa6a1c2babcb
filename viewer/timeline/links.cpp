// SPDX-License-Identifier: Apache-2.0
#include "viewer/timeline/links.h"

#include <algorithm>
#include <tuple>

#include "analysis/communication/messages.h"
#include "viewer/drawing/labels.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace link_parts {

constexpr std::size_t most_partners = 64;

bool on_device(analysis::TrackKind kind) {
  using enum analysis::TrackKind;
  return kind == stream || kind == nccl || kind == copy;
}

auto place_of(const SliceRef& ref) { return std::tuple(ref.rank, ref.track, ref.slice); }

}  // namespace link_parts

Links::Links(Document& document) : document_(document), joined_(document.run().ranks.size()), messages_(document) {}

std::uint64_t Links::number_of(const Run& run, const SliceRef& ref) {
  const analysis::Slices& slices = slices_of(run, ref);
  for (const char* key : {"call", "correlation"}) {
    const auto found = slices.argument(ref.slice, run.trace.names.find(key));
    if (found && !found->is_text() && found->whole() > 0) return found->whole();
  }
  return 0;
}

std::vector<Links::Joined> Links::joined_of(const Run& run, std::size_t rank) {
  std::vector<Joined> joined;
  const auto& tracks = run.trace.ranks[rank].tracks;
  for (std::uint32_t track = 0; track < tracks.size(); ++track) {
    const bool on_device = link_parts::on_device(tracks[track].kind);
    for (std::uint32_t slice = 0; slice < tracks[track].slices.size(); ++slice) {
      if (tracks[track].slices.record[slice] == 0) continue;
      const std::uint64_t number = number_of(run, {.rank = rank, .track = track, .slice = slice});
      if (number > 0) joined.push_back({number, on_device, track, slice});
    }
  }
  std::ranges::sort(joined);
  return joined;
}

std::vector<Links::Ends> Links::ends_of(const Run& run) {
  std::vector<Ends> ends;
  for (const analysis::Message& message : analysis::match_messages(run.trace).all) {
    if (!message.matched()) continue;
    const auto ref = [](const analysis::MessageCall& call) {
      return SliceRef{.rank = call.rank, .track = call.track, .slice = call.slice};
    };
    ends.push_back({ref(*message.send), ref(*message.receive)});
    ends.push_back({ref(*message.receive), ref(*message.send)});
  }
  std::ranges::sort(ends, {}, [](const Ends& of) { return link_parts::place_of(of.one); });
  return ends;
}

std::vector<SliceRef> Links::joined_with(const SliceRef& ref, std::uint64_t number) {
  auto& index = joined_[ref.rank];
  if (!index) index = std::make_unique<OnDemand<std::vector<Joined>>>(document_);
  std::size_t slices = 0;
  const auto& tracks = document_.run().trace.ranks[ref.rank].tracks;
  for (const analysis::Track& track : tracks) slices += track.slices.size();
  const auto* joined = index->get(slices, [&run = document_.run(), rank = ref.rank] { return joined_of(run, rank); });
  std::vector<SliceRef> partners;
  if (joined == nullptr) return partners;
  const bool wanted = !link_parts::on_device(tracks[ref.track].kind);
  const auto key = [](const Joined& one) { return std::pair(one.number, one.on_device); };
  for (const Joined& one : std::ranges::equal_range(*joined, std::pair(number, wanted), {}, key)) {
    if (partners.size() < link_parts::most_partners) {
      partners.push_back({.rank = ref.rank, .track = one.track, .slice = one.slice});
    }
  }
  return partners;
}

std::vector<SliceRef> Links::other_ends(const SliceRef& ref) {
  const auto* messages = messages_.get(document_.run().slices, [&run = document_.run()] { return ends_of(run); });
  std::vector<SliceRef> partners;
  if (messages == nullptr) return partners;
  const auto key = [](const Ends& of) { return link_parts::place_of(of.one); };
  for (const Ends& ends : std::ranges::equal_range(*messages, link_parts::place_of(ref), {}, key)) {
    if (partners.size() < link_parts::most_partners) partners.push_back(ends.other);
  }
  return partners;
}

std::vector<SliceRef> Links::partners(const SliceRef& ref) {
  const Run& run = document_.run();
  if (ref.mark) return {};
  std::vector<SliceRef> partners;
  if (run.trace.names[kind_of(run, ref).category] == "point-to-point") {
    partners = other_ends(ref);
  } else if (const std::uint64_t number = number_of(run, ref); number > 0) {
    partners = joined_with(ref, number);
  }
  std::ranges::stable_sort(partners, {}, [&](const SliceRef& one) { return slices_of(run, one).start_ns[one.slice]; });
  return partners;
}

QString launch_lines(const Run& run, const SliceRef& work, const std::vector<SliceRef>& partners) {
  if (partners.empty() || !link_parts::on_device(track_of(run, work).kind)) return {};
  const analysis::Slices& calls = slices_of(run, partners.front());
  const std::uint32_t call = partners.front().slice;
  const std::int64_t delay = slices_of(run, work).start_ns[work.slice] - calls.end_ns(call);
  return tooltip_line("launched", time_text(double(calls.start_ns[call]), 1, run.end_ns)) +
         tooltip_line("start after its call", duration_text(std::max<std::int64_t>(delay, 0)));
}

}  // namespace paceline::viewer
