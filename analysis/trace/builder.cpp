#include "analysis/trace/builder.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "profiler/format/error.h"

namespace paceline::analysis {
namespace {

constexpr std::int64_t still_open = std::numeric_limits<std::int64_t>::min();

std::uint32_t append(Slices& slices, std::int64_t start_ns, std::int64_t duration_ns, NameId name,
                     std::uint16_t slice_class) {
  if (slices.size() == std::numeric_limits<std::uint32_t>::max())
    throw Error("more than 4,294,967,295 slices in a track");
  slices.start_ns.push_back(start_ns);
  slices.duration_ns.push_back(duration_ns);
  slices.name.push_back(name);
  slices.slice_class.push_back(slice_class);
  slices.depth.push_back(0);
  return static_cast<std::uint32_t>(slices.size() - 1);
}

// The slices at `order`, in that order; `arguments` follow them.
Slices select(const Slices& from, const std::vector<std::uint32_t>& order) {
  Slices to;
  const auto pick = [&](auto& target, const auto& source) {
    target.reserve(order.size());
    for (const std::uint32_t i : order) target.push_back(source[i]);
  };
  pick(to.start_ns, from.start_ns);
  pick(to.duration_ns, from.duration_ns);
  pick(to.name, from.name);
  pick(to.slice_class, from.slice_class);
  pick(to.depth, from.depth);
  return to;
}

std::vector<Argument> select(const std::vector<Argument>& from, const std::vector<std::uint32_t>& order,
                             std::size_t slices) {
  constexpr std::uint32_t elsewhere = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> position(slices, elsewhere);
  for (std::uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  std::vector<Argument> to;
  to.reserve(from.size());
  for (Argument argument : from) {
    argument.slice = position[argument.slice];
    if (argument.slice != elsewhere) to.push_back(argument);
  }
  std::ranges::stable_sort(to, {}, &Argument::slice);
  return to;
}

// Outer slices before the slices inside them; what starts and ends together stays as it came.
bool begins_before(const Slices& slices, std::uint32_t a, std::uint32_t b) {
  if (slices.start_ns[a] != slices.start_ns[b]) return slices.start_ns[a] < slices.start_ns[b];
  return slices.duration_ns[a] > slices.duration_ns[b];
}

bool sorted(const Slices& slices) {
  for (std::uint32_t i = 1; i < slices.size(); ++i) {
    if (begins_before(slices, i, i - 1)) return false;
  }
  return true;
}

// Sets depths; returns the slices that cross an earlier one, whose depths mean nothing.
std::vector<std::uint32_t> nest(Slices& slices, std::uint16_t& depths) {
  std::vector<std::uint32_t> crossing;
  std::vector<std::int64_t> open_ends;
  std::size_t deepest = 0;
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    const std::int64_t end = slices.end_ns(i);
    while (!open_ends.empty() && open_ends.back() <= slices.start_ns[i]) open_ends.pop_back();
    if (!open_ends.empty() && end > open_ends.back()) {
      crossing.push_back(i);
      continue;
    }
    slices.depth[i] = static_cast<std::uint16_t>(std::min<std::size_t>(open_ends.size(), 65535));
    open_ends.push_back(end);
    deepest = std::max(deepest, open_ends.size());
  }
  depths = static_cast<std::uint16_t>(std::min<std::size_t>(deepest, 65535));
  return crossing;
}

std::vector<LostInterval> clipped(std::vector<LostInterval> losses, const Rank& rank) {
  for (LostInterval& loss : losses) {
    loss.start_ns = std::clamp(loss.start_ns, rank.start_ns, rank.end_ns);
    loss.end_ns = std::clamp(loss.end_ns, loss.start_ns, rank.end_ns);
  }
  return merged_losses(std::move(losses));
}

std::string lost_reason(const std::string& cause) {
  if (cause == "damage") return "damaged in the file";
  return cause == "disk" ? "events lost: the file could not be written" : "events lost: the buffers were full";
}

}  // namespace

TrackBuilder::TrackBuilder(Trace& trace, TrackKind kind, std::string label, std::uint64_t thread_id, bool main)
    : trace_(&trace) {
  track_.kind = kind;
  track_.label = std::move(label);
  track_.thread_id = thread_id;
  track_.main = main;
}

std::uint32_t TrackBuilder::add_slice(std::int64_t start_ns, std::int64_t end_ns, NameId name,
                                      std::uint16_t slice_class) {
  return append(track_.slices, start_ns, std::max<std::int64_t>(end_ns - start_ns, 0), name, slice_class);
}

std::uint32_t TrackBuilder::add_slice(std::int64_t start_ns, std::int64_t end_ns, std::string_view name,
                                      std::string_view domain, std::string_view category) {
  return add_slice(start_ns, end_ns, trace_->names.intern(name), trace_->class_of(domain, category));
}

std::uint32_t TrackBuilder::begin_slice(std::int64_t start_ns, NameId name, std::uint16_t slice_class) {
  return append(track_.slices, start_ns, still_open, name, slice_class);
}

void TrackBuilder::end_slice(std::uint32_t slice, std::int64_t end_ns) {
  track_.slices.duration_ns[slice] = std::max<std::int64_t>(end_ns - track_.slices.start_ns[slice], 0);
}

bool TrackBuilder::is_open(std::uint32_t slice) const { return track_.slices.duration_ns[slice] == still_open; }

std::uint32_t TrackBuilder::push(std::int64_t start_ns, std::string_view name, std::string_view domain,
                                 std::string_view category) {
  open_.push_back(begin_slice(start_ns, trace_->names.intern(name), trace_->class_of(domain, category)));
  return open_.back();
}

bool TrackBuilder::pop(std::int64_t end_ns) {
  if (open_.empty()) return false;
  end_slice(open_.back(), end_ns);
  open_.pop_back();
  return true;
}

std::uint32_t TrackBuilder::add_mark(std::int64_t time_ns, NameId name, std::uint16_t slice_class) {
  return append(track_.marks, time_ns, 0, name, slice_class);
}

std::uint32_t TrackBuilder::add_mark(std::int64_t time_ns, std::string_view name, std::string_view domain,
                                     std::string_view category) {
  return add_mark(time_ns, trace_->names.intern(name), trace_->class_of(domain, category));
}

void TrackBuilder::argument(std::string_view key, double number) {
  argument(static_cast<std::uint32_t>(track_.slices.size() - 1), trace_->names.intern(key), number);
}

void TrackBuilder::text_argument(std::string_view key, std::string_view text) {
  text_argument(static_cast<std::uint32_t>(track_.slices.size() - 1), trace_->names.intern(key),
                trace_->names.intern(text));
}

void TrackBuilder::add_sample(std::int64_t time_ns, double value) {
  track_.samples.time_ns.push_back(time_ns);
  track_.samples.value.push_back(value);
}

void TrackBuilder::finish(std::int64_t end_ns, std::vector<Track>& tracks) {
  if (track_.slices.size() == 0 && track_.marks.size() == 0 && track_.samples.size() == 0 && track_.lost.empty() &&
      !track_.main) {
    return;
  }
  for (std::uint32_t i = 0; i < track_.slices.size(); ++i) {
    if (track_.slices.duration_ns[i] != still_open) continue;
    argument(i, trace_->names.intern("unfinished"), 1.0);
    end_slice(i, end_ns);
  }

  std::vector<std::uint32_t> order;
  const auto bring_in_order = [&](Slices& slices, std::vector<Argument>& arguments) {
    if (!sorted(slices)) {
      order.resize(slices.size());
      std::iota(order.begin(), order.end(), 0U);
      std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return begins_before(slices, a, b); });
      arguments = select(arguments, order, slices.size());
      slices = select(slices, order);
    } else if (!std::ranges::is_sorted(arguments, {}, &Argument::slice)) {
      std::ranges::stable_sort(arguments, {}, &Argument::slice);
    }
  };
  bring_in_order(track_.marks, mark_arguments_);
  track_.mark_arguments = std::move(mark_arguments_);
  bring_in_order(track_.slices, arguments_);

  // Each turn keeps what nests and carries the rest over to a track of its own.
  const std::string label = track_.label;
  for (int number = 1;; ++number) {
    const std::vector<std::uint32_t> crossing = nest(track_.slices, track_.depths);
    if (number > 1) track_.label = label + " (" + std::to_string(number) + ")";
    if (crossing.empty()) {
      track_.slice_arguments = std::move(arguments_);
      tracks.push_back(std::move(track_));
      return;
    }
    std::vector<std::uint32_t> nesting;
    nesting.reserve(track_.slices.size() - crossing.size());
    for (std::uint32_t i = 0, next = 0; i < track_.slices.size(); ++i) {
      if (next < crossing.size() && crossing[next] == i) {
        ++next;
      } else {
        nesting.push_back(i);
      }
    }
    Track rest;
    rest.kind = track_.kind;
    rest.thread_id = track_.thread_id;
    rest.slices = select(track_.slices, crossing);
    std::vector<Argument> rest_arguments = select(arguments_, crossing, track_.slices.size());
    track_.slice_arguments = select(arguments_, nesting, track_.slices.size());
    track_.slices = select(track_.slices, nesting);
    tracks.push_back(std::move(track_));
    track_ = std::move(rest);
    arguments_ = std::move(rest_arguments);
  }
}

TrackBuilder& RankBuilder::add_track(TrackKind kind, std::string label, std::uint64_t thread_id, bool main) {
  return tracks_.emplace_back(*trace_, kind, std::move(label), thread_id, main);
}

TrackBuilder& RankBuilder::add_counter(std::string name, std::string unit, std::string device, bool is_sum) {
  TrackBuilder& track = add_track(TrackKind::counter, device.empty() ? name : device + ": " + name);
  track.track_.samples.name = std::move(name);
  track.track_.samples.unit = std::move(unit);
  track.track_.samples.device = std::move(device);
  track.track_.samples.is_sum = is_sum;
  return track;
}

Rank RankBuilder::finish() {
  if (rank_.end_ns <= rank_.start_ns) {
    std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = std::numeric_limits<std::int64_t>::min();
    for (const TrackBuilder& track : tracks_) {
      for (const Slices* slices : {&track.track_.slices, &track.track_.marks}) {
        for (std::size_t i = 0; i < slices->size(); ++i) {
          first = std::min(first, slices->start_ns[i]);
          last = std::max(last, slices->start_ns[i] + std::max<std::int64_t>(slices->duration_ns[i], 0));
        }
      }
      for (const std::int64_t time_ns : track.track_.samples.time_ns) {
        first = std::min(first, time_ns);
        last = std::max(last, time_ns);
      }
      for (const LostInterval& loss : track.track_.lost) {
        first = std::min(first, loss.start_ns);
        last = std::max(last, loss.end_ns);
      }
    }
    if (first <= last) rank_.start_ns = first, rank_.end_ns = last;
  }
  for (TrackBuilder& track : tracks_) {
    track.track_.lost = clipped(std::move(track.track_.lost), rank_);
    track.finish(rank_.end_ns, rank_.tracks);
  }
  rank_.lost = clipped(std::move(rank_.lost), rank_);
  add_lost_gaps();
  return std::move(rank_);
}

// Time that is a loss and a pause is a pause: nothing was to be recorded there.
void RankBuilder::add_lost_gaps() {
  std::vector<Gap> gaps = std::move(rank_.gaps);
  const std::size_t pauses = gaps.size();
  for (const LostInterval& loss : main_thread_losses(rank_)) {
    std::int64_t from = loss.start_ns;
    bool covered = false;
    for (std::size_t p = 0; p < pauses && !covered; ++p) {
      const std::int64_t pause_start = gaps[p].start_ns, pause_end = gaps[p].end_ns;
      if (pause_end <= from || pause_start >= loss.end_ns) continue;
      if (pause_start > from) gaps.push_back({from, pause_start, lost_reason(loss.cause), true});
      from = pause_end;
      covered = from >= loss.end_ns;
    }
    if (!covered) gaps.push_back({from, loss.end_ns, lost_reason(loss.cause), true});
  }
  std::ranges::stable_sort(gaps, {}, &Gap::start_ns);
  rank_.gaps = std::move(gaps);
}

RankBuilder& TraceBuilder::add_rank(int rank, int world_size) {
  Rank info;
  info.rank = rank;
  info.world_size = world_size;
  info.host = "localhost";
  return add_rank(std::move(info));
}

Trace TraceBuilder::finish() {
  for (RankBuilder& rank : ranks_) trace_.ranks.push_back(rank.finish());
  ranks_.clear();
  std::ranges::stable_sort(trace_.ranks, {}, &Rank::rank);
  return std::move(trace_);
}

}  // namespace paceline::analysis
