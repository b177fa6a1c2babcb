// SPDX-License-Identifier: Apache-2.0
#include "analysis/trace/builder.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "analysis/trace/adopt.h"
#include "profiler/format/error.h"

namespace paceline::analysis {
namespace {

constexpr std::uint32_t most_slices = std::numeric_limits<std::uint32_t>::max();  // in a track

// Asks for the memory of the elements from `begin` to `end` at once: a page fault for each page costs a third more.
void populate(std::byte* begin, std::byte* end) {
  constexpr std::uintptr_t page = 4096;
  const auto first = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
  const auto last = reinterpret_cast<std::uintptr_t>(end) / page * page;
  // A kernel that does not know the advice, or has no memory left, leaves the pages to the faults.
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_POPULATE_WRITE);
}

bool did_something(const ThreadStates& states) {
  return !states.empty() && states.running_ns.back() + states.waiting_ns.back() > 0;
}

// Depths come later.
void resize_columns(Slices& slices, std::size_t size) {
  const auto resize = [&](auto& column) {
    if (column.capacity() < size) column.reserve(std::max(size, 2 * column.size()));
    if (size > column.size()) {
      auto* const bytes = reinterpret_cast<std::byte*>(column.data());
      populate(bytes + column.size() * sizeof(column[0]), bytes + size * sizeof(column[0]));
    }
    column.resize(size);
  };
  resize(slices.start_ns);
  resize(slices.duration_ns);
  resize(slices.kind);
  resize(slices.record);
}

// Calls pick(column) for each column, one after the other, so that only one of them is in memory twice.
template <class SlicesType, class Pick>
void each_column(SlicesType& slices, Pick&& pick) {
  pick(slices.start_ns);
  pick(slices.duration_ns);
  pick(slices.kind);
  pick(slices.depth);
  pick(slices.record);
}

void reorder(Slices& slices, const std::vector<std::uint32_t>& order) {
  each_column(slices, [&](auto& column) {
    std::remove_reference_t<decltype(column)> picked;
    picked.reserve(order.size());
    for (const std::uint32_t i : order) picked.push_back(column[i]);
    column = std::move(picked);
  });
}

// Takes the slices at `chosen`, which rises, out of `slices`; both keep their order.
Slices take_out(Slices& slices, const std::vector<std::uint32_t>& chosen) {
  Slices taken;
  taken.records = slices.records;
  const auto move_column = [&](auto& column, auto& target) {
    std::size_t next = 0, kept = 0;
    for (std::size_t i = 0; i < column.size(); ++i) {
      if (next < chosen.size() && chosen[next] == i) {
        target.push_back(column[i]);
        ++next;
      } else {
        column[kept++] = column[i];
      }
    }
    column.resize(kept);
  };
  move_column(slices.start_ns, taken.start_ns);
  move_column(slices.duration_ns, taken.duration_ns);
  move_column(slices.kind, taken.kind);
  move_column(slices.depth, taken.depth);
  move_column(slices.record, taken.record);
  return taken;
}

// Outer slices before the slices inside them; what starts and ends together stays as it came.
bool begins_before(const Slices& slices, std::uint32_t a, std::uint32_t b) {
  if (slices.start_ns[a] != slices.start_ns[b]) return slices.start_ns[a] < slices.start_ns[b];
  return slices.duration_ns[a] > slices.duration_ns[b];
}

void sort_by_start(Slices& slices) {
  std::vector<std::uint32_t> order(slices.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return begins_before(slices, a, b); });
  reorder(slices, order);
}

bool in_order(const Slices& slices) {
  for (std::uint32_t i = 1; i < slices.size(); ++i) {
    if (begins_before(slices, i, i - 1)) return false;
  }
  return true;
}

// Sets the depths of slices that are in order. Of two slices that cross, the shorter one has to move: a range of
// minutes keeps its place beside a short call that it began in. An overlap that the rounding of times and the errors
// of clocks explain is cut instead.
class Nesting {
 public:
  explicit Nesting(Slices& slices) : slices_(slices) {}

  void run() {
    const auto size = static_cast<std::uint32_t>(slices_.size());
    for (std::uint32_t i = 0; i < size; ++i) {
      while (!open_.empty() && end_ns(open_.back()) <= slices_.start_ns[i]) open_.pop_back();
      if (!open_.empty() && crosses(i, open_.back()) && !settle(i)) continue;
      slices_.depth[i] = static_cast<std::uint16_t>(std::min<std::size_t>(open_.size(), 65535));
      open_.push_back(i);
      deepest_ = std::max(deepest_, open_.size());
    }
    std::ranges::sort(moved_);
  }

  // The slices that have to move, rising. Where there are any, the depths mean nothing.
  const std::vector<std::uint32_t>& moved() const { return moved_; }
  std::uint64_t cut() const { return cut_; }
  std::uint16_t depths() const { return static_cast<std::uint16_t>(std::min<std::size_t>(deepest_, 65535)); }

 private:
  static constexpr std::int64_t largest_error_ns = 1000;  // many profilers round to microseconds

  std::int64_t end_ns(std::uint32_t slice) const { return slices_.end_ns(slice); }
  bool crosses(std::uint32_t i, std::uint32_t around) const { return end_ns(i) > end_ns(around); }
  bool is_error(std::int64_t overlap_ns, std::uint32_t a, std::uint32_t b) const {
    const std::int64_t shorter_ns = std::min(slices_.duration_ns[a], slices_.duration_ns[b]);
    return overlap_ns <= largest_error_ns && 2 * overlap_ns < shorter_ns;
  }

  // Slice i crosses open slices. Returns false if it has to move; else it nests in those that are still open.
  bool settle(std::uint32_t i) {
    const std::int64_t start_ns = slices_.start_ns[i];
    for (std::size_t o = open_.size(); o > 0 && crosses(i, open_[o - 1]); --o) {
      const std::uint32_t around = open_[o - 1];
      const std::int64_t least = std::min(end_ns(around) - start_ns, end_ns(i) - end_ns(around));
      if (is_error(least, i, around) || slices_.duration_ns[around] < slices_.duration_ns[i]) continue;
      moved_.push_back(i);
      return false;
    }
    while (!open_.empty() && crosses(i, open_.back())) {
      const std::uint32_t around = open_.back();
      const std::int64_t overlap_ns = end_ns(around) - start_ns, beyond_ns = end_ns(i) - end_ns(around);
      if (!is_error(std::min(overlap_ns, beyond_ns), i, around)) {
        moved_.push_back(around);
        open_.pop_back();
        continue;
      }
      ++cut_;
      if (beyond_ns <= overlap_ns) {
        slices_.duration_ns[i] -= beyond_ns;
      } else {
        slices_.duration_ns[around] -= overlap_ns;
        open_.pop_back();
      }
    }
    return true;
  }

  Slices& slices_;
  std::vector<std::uint32_t> open_, moved_;
  std::size_t deepest_ = 0;
  std::uint64_t cut_ = 0;
};

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

// Brings the samples of ranks from their own stacks and names to those of the trace.
void merge_stacks(const Stacks& own, const std::vector<NameId>& names, std::span<Rank> ranks, Stacks& all) {
  std::vector<StackId> ids(own.size());
  for (StackId stack = 1; stack < ids.size(); ++stack) {
    const Frame& frame = own[own.innermost(stack)];
    ids[stack] = all.stack(ids[own.caller(stack)], all.frame({names[frame.function], names[frame.file], frame.line}));
  }
  for (Rank& rank : ranks) {
    for (Track& track : rank.tracks) {
      for (StackId& stack : track.stacks.stack) stack = ids[stack];
    }
  }
}

// Brings ranks from their own names and kinds to those of the trace. Ranks of one program mostly agree, and then
// nothing is to be done. The names and kinds of the first rank become those of the trace: with millions of names, a
// second copy would take as much memory as the slices.
void merge(Vocabulary words, const Communicators& communicators, Stacks stacks, std::span<Rank> ranks, Trace& trace) {
  if (trace.names.size() == 1 && trace.kinds.size() == 1) {
    trace.names = std::move(words.names);
    trace.kinds = std::move(words.kinds);
    trace.stacks = std::move(stacks);
    for (const Communicator& communicator : communicators) trace.communicators.add(communicator);
    return;
  }
  bool same_names = true, same_kinds = true;
  std::vector<NameId> names(words.names.size());
  for (NameId id = 0; id < names.size(); ++id) {
    names[id] = trace.names.intern(words.names[id]);
    same_names = same_names && names[id] == id;
  }
  std::vector<KindId> kinds(words.kinds.size());
  for (KindId id = 0; id < kinds.size(); ++id) {
    const Kind& kind = words.kinds[id];
    kinds[id] = trace.kinds.intern({names[kind.domain], names[kind.category], names[kind.name]});
    same_kinds = same_kinds && kinds[id] == id;
  }
  for (const Communicator& communicator : communicators) {
    trace.communicators.add({names[communicator.text], communicator.identity, communicator.members});
  }
  merge_stacks(stacks, names, ranks, trace.stacks);
  for (Rank& rank : ranks) {
    for (NameId& text : rank.communicators) text = names[text];
    for (Track& track : rank.tracks) {
      for (Slices* slices : {&track.slices, &track.marks}) {
        if (!same_kinds) {
          for (KindId& kind : slices->kind) kind = kinds[kind];
        }
        if (!same_names) slices->records.rename(names);
      }
    }
  }
}

}  // namespace

TrackBuilder::TrackBuilder(Vocabulary& words, TrackKind kind, std::string label, std::uint64_t thread_id, bool main)
    : words_(&words) {
  track_.kind = kind;
  track_.label = std::move(label);
  track_.thread_id = thread_id;
  track_.main = main;
}

void TrackBuilder::reserve(std::size_t slices) {
  each_column(track_.slices, [&](auto& column) { column.reserve(slices); });
}

void TrackBuilder::add_room() {
  constexpr std::uint32_t least = 16, most = 8192;
  if (size_ == most_slices) throw Error("more than 4,294,967,295 slices in a track");
  room_ = size_ + std::min(std::clamp(size_, least, most), most_slices - size_);
  // Where the number of slices was announced, the last piece ends with the memory.
  const std::size_t reserved = track_.slices.start_ns.capacity();
  if (reserved > size_) room_ = static_cast<std::uint32_t>(std::min<std::size_t>(room_, reserved));
  resize_columns(track_.slices, room_);
}

void TrackBuilder::cut_room() {
  if (room_ == size_) return;
  room_ = size_;
  resize_columns(track_.slices, room_);
}

std::uint32_t TrackBuilder::add_slice(std::int64_t start_ns, std::int64_t end_ns, KindId kind) {
  return append(start_ns, std::max<std::int64_t>(end_ns - start_ns, 0), kind, 0);
}

std::uint32_t TrackBuilder::add_slice(std::int64_t start_ns, std::int64_t end_ns, std::string_view name,
                                      std::string_view domain, std::string_view category) {
  return add_slice(start_ns, end_ns, words_->kind(name, domain, category));
}

void TrackBuilder::end_open_slices(std::int64_t end_ns) {
  for (std::uint32_t i = 0; open_slices_ > 0 && i < size_; ++i) {
    if (!is_open(i)) continue;
    argument(i, words_->names.intern("unfinished"), 1);
    end_slice(i, end_ns);
  }
}

std::uint32_t TrackBuilder::push(std::int64_t start_ns, std::string_view name, std::string_view domain,
                                 std::string_view category) {
  open_.push_back(begin_slice(start_ns, words_->kind(name, domain, category)));
  return open_.back();
}

bool TrackBuilder::pop(std::int64_t end_ns) {
  if (open_.empty()) return false;
  end_slice(open_.back(), end_ns);
  open_.pop_back();
  return true;
}

std::uint32_t TrackBuilder::add_mark(std::int64_t time_ns, KindId kind) {
  Slices& marks = track_.marks;
  if (marks.size() == most_slices) throw Error("more than 4,294,967,295 marks in a track");
  marks.start_ns.push_back(time_ns);
  marks.duration_ns.push_back(0);
  marks.kind.push_back(kind);
  marks.record.push_back(0);
  return static_cast<std::uint32_t>(marks.size() - 1);
}

std::uint32_t TrackBuilder::add_mark(std::int64_t time_ns, std::string_view name, std::string_view domain,
                                     std::string_view category) {
  return add_mark(time_ns, words_->kind(name, domain, category));
}

void TrackBuilder::rename(std::uint32_t slice, NameId name) {
  KindId& kind = track_.slices.kind[slice];
  Kind renamed = words_->kinds[kind];
  renamed.name = name;
  kind = words_->kinds.intern(renamed);
}

void TrackBuilder::add_sample(std::int64_t time_ns, double value) {
  track_.samples.time_ns.push_back(time_ns);
  track_.samples.value.push_back(value);
}

void TrackBuilder::add_states(ThreadStates states) {
  ThreadStates& all = track_.states;
  if (all.empty()) {
    all = std::move(states);
    return;
  }
  all.exact = all.exact && states.exact;
  const std::int64_t running = all.running_ns.back(), waiting = all.waiting_ns.back();
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states.time_ns[i] <= all.time_ns.back()) continue;
    all.time_ns.push_back(states.time_ns[i]);
    all.running_ns.push_back(running + states.running_ns[i]);
    all.waiting_ns.push_back(waiting + states.waiting_ns[i]);
  }
}

void TrackBuilder::finish(std::int64_t end_ns, std::vector<Track>& tracks) {
  cut_room();
  if (track_.slices.size() == 0 && track_.marks.size() == 0 && track_.samples.size() == 0 &&
      track_.stacks.size() == 0 && track_.lost.empty() && !track_.main && !did_something(track_.states)) {
    return;
  }
  end_open_slices(end_ns);
  for (Slices* slices : {&track_.slices, &track_.marks}) {
    slices->depth.resize(slices->size());
    slices->records.finish();
  }
  if (!std::ranges::is_sorted(track_.marks.start_ns)) sort_by_start(track_.marks);

  if (!in_order(track_.slices)) sort_by_start(track_.slices);

  // Each turn keeps what nests and carries the rest over to a track of its own.
  const std::string label = track_.label;
  for (int number = 1;; ++number) {
    if (number > 1) track_.label = label + " (" + std::to_string(number) + ")";
    Nesting nesting(track_.slices);
    nesting.run();
    cut_slices_ += nesting.cut();
    Track rest;
    if (!nesting.moved().empty()) {
      rest.kind = track_.kind;
      rest.thread_id = track_.thread_id;
      rest.slices = take_out(track_.slices, nesting.moved());
      Nesting kept(track_.slices);  // without what moved, others may be less deep
      kept.run();
      track_.depths = kept.depths();
    } else {
      track_.depths = nesting.depths();
    }
    if (number == 1 && (track_.main || track_.kind == TrackKind::stream)) moved_slices_ = rest.slices.size();
    tracks.push_back(std::move(track_));
    if (rest.slices.size() == 0) return;
    track_ = std::move(rest);
  }
}

TrackBuilder& RankBuilder::add_track(TrackKind kind, std::string label, std::uint64_t thread_id, bool main) {
  return tracks_.emplace_back(words_, kind, std::move(label), thread_id, main);
}

TrackBuilder& RankBuilder::add_counter(std::string name, std::string unit, std::string device, bool is_sum) {
  TrackBuilder& track = add_track(TrackKind::counter, device.empty() ? name : device + ": " + name);
  track.track_.samples.name = std::move(name);
  track.track_.samples.unit = std::move(unit);
  track.track_.samples.device = std::move(device);
  track.track_.samples.is_sum = is_sum;
  return track;
}

void RankBuilder::finish() {
  if (finished_) return;
  finished_ = true;
  if (rank_.end_ns <= rank_.start_ns) {
    std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = std::numeric_limits<std::int64_t>::min();
    for (TrackBuilder& track : tracks_) {
      track.cut_room();
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
      for (const std::int64_t time_ns : track.track_.stacks.time_ns) {
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
    cut_slices_ += track.cut_slices_;
    moved_slices_ += track.moved_slices_;
  }
  tracks_.clear();
  rank_.lost = clipped(std::move(rank_.lost), rank_);
  add_lost_gaps();
}

void RankBuilder::add_communicator(const Communicator& communicator, std::int32_t own_rank) {
  communicators_.add(communicator);
  rank_.communicators.push_back(communicator.text);
  rank_.communicator_ranks.push_back(own_rank);
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

std::vector<Rank> adopt_ranks(Trace source, Trace& trace) {
  std::vector<Rank> ranks = std::move(source.ranks);
  merge({std::move(source.names), std::move(source.kinds)}, source.communicators, std::move(source.stacks), ranks,
        trace);
  return ranks;
}

Trace TraceBuilder::finish() {
  Trace trace;
  std::uint64_t cut = 0, moved = 0;
  for (RankBuilder& builder : ranks_) {
    builder.finish();
    cut += builder.cut_slices_;
    moved += builder.moved_slices_;
    merge(std::exchange(builder.words_, {}), builder.communicators_, std::move(builder.stacks_),
          std::span(&builder.rank_, 1), trace);
    trace.ranks.push_back(std::move(builder.rank_));
  }
  ranks_.clear();
  std::ranges::stable_sort(trace.ranks, {}, &Rank::rank);
  if (cut > 0) {
    trace.notes.push_back(fmt::format("{} {} that overlapped {} neighbour by at most 1 µs, as rounded times do", cut,
                                      cut == 1 ? "slice was cut" : "slices were cut", cut == 1 ? "its" : "their"));
  }
  if (moved > 0) {
    trace.notes.push_back(
        fmt::format("{} of main threads and streams {} on tracks of their own, because they cross "
                    "longer ones: the phases leave out those of main threads",
                    moved == 1 ? "1 slice" : fmt::format("{} slices", moved), moved == 1 ? "is" : "are"));
  }
  return trace;
}

}  // namespace paceline::analysis
