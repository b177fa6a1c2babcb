// SPDX-License-Identifier: Apache-2.0
// Makes a Trace out of events as they come: what importers write into, and how tests make a trace by hand.
//
//   TraceBuilder run;
//   RankBuilder& rank = run.add_rank(0);
//   TrackBuilder& main = rank.add_main_thread();
//   main.push(0, "iteration", "paceline.trainer", "iteration");
//   main.argument("payload", 0);
//   main.push(10, "forward", "paceline.trainer", "forward");
//   main.pop(60);
//   main.pop(100);
//   Trace trace = run.finish();
//
// Times are nanoseconds from the run's zero. finish() sorts what is not sorted, computes depths, and leaves out tracks
// without slices, marks, samples, losses and states in which the thread did something, but for the main thread's. Every
// track nests afterwards: where a slice begins inside another one and ends after it, an overlap of at most 1 µs that is
// less than half of both is cut, and else the shorter of the two moves onto a further track. Notes of the trace count
// what was cut, and what moved away from main threads and streams. Cost: linear where slices come in the order of their
// starts, as a thread makes them.
//
// Each rank has names and kinds of its own until finish(), so that several threads can build one rank each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

class TrackBuilder {
 public:
  TrackBuilder(Vocabulary& words, TrackKind kind, std::string label, std::uint64_t thread_id, bool main);

  // Announces how many slices this track will have. The memory is not resident before they come.
  void reserve(std::size_t slices);

  // A whole slice. Returns its handle, for argument(). `kind` is one of this rank's.
  std::uint32_t add_slice(std::int64_t start_ns, std::int64_t end_ns, KindId kind);
  std::uint32_t add_slice(std::int64_t start_ns, std::int64_t end_ns, std::string_view name,
                          std::string_view domain = "", std::string_view category = "");

  // A slice whose end is not known yet, and its end; what is never ended ends with the rank, "unfinished". `record` is
  // one of records().
  [[gnu::always_inline]] std::uint32_t begin_slice(std::int64_t start_ns, KindId kind, RecordId record = 0) {
    ++open_slices_;
    return append(start_ns, still_open, kind, record);
  }
  [[gnu::always_inline]] void end_slice(std::uint32_t slice, std::int64_t end_ns) {
    std::int64_t& duration_ns = track_.slices.duration_ns[slice];
    open_slices_ -= duration_ns == still_open;
    duration_ns = std::max<std::int64_t>(end_ns - track_.slices.start_ns[slice], 0);
  }
  // Ends all slices that are open, "unfinished".
  void end_open_slices(std::int64_t end_ns);

  // The same for slices that end in reverse order; pop() ends the latest one and says whether there was one to end.
  std::uint32_t push(std::int64_t start_ns, std::string_view name, std::string_view domain = "",
                     std::string_view category = "");
  bool pop(std::int64_t end_ns);

  std::uint32_t add_mark(std::int64_t time_ns, KindId kind);
  std::uint32_t add_mark(std::int64_t time_ns, std::string_view name, std::string_view domain = "",
                         std::string_view category = "");

  // Adds an argument to a slice or a mark, by handle; without a handle to the slice that came last. `varying`: the
  // value differs from slice to slice, so that equal sets of arguments are not to be expected (records.h).
  void add_argument(std::uint32_t slice, const Argument& argument, bool varying = false) {
    Slices& slices = track_.slices;
    slices.record[slice] = slices.records.with(slices.record[slice], argument, varying);
  }
  void add_mark_argument(std::uint32_t mark, const Argument& argument) {
    Slices& marks = track_.marks;
    marks.record[mark] = marks.records.with(marks.record[mark], argument);
  }
  RecordId record(std::uint32_t slice) const { return track_.slices.record[slice]; }
  bool has_arguments(std::uint32_t slice) const { return track_.slices.record[slice] != 0; }
  bool has_argument(std::uint32_t slice, NameId key) const { return track_.slices.argument(slice, key).has_value(); }
  // Gives a slice without arguments all arguments of a record of records(), which must be shared (records.h).
  void set_record(std::uint32_t slice, RecordId record) { track_.slices.record[slice] = record; }
  template <class Number>
  void argument(std::uint32_t slice, NameId key, Number value) {
    add_argument(slice, make_argument(key, value));
  }
  template <class Number>
  void varying_argument(std::uint32_t slice, NameId key, Number value) {
    add_argument(slice, make_argument(key, value), true);
  }
  void text_argument(std::uint32_t slice, NameId key, NameId text) { add_argument(slice, make_text(key, text)); }
  template <class Number>
  void argument(std::string_view key, Number value) {
    argument(last_slice(), words_->names.intern(key), value);
  }
  void text_argument(std::string_view key, std::string_view text) {
    text_argument(last_slice(), words_->names.intern(key), words_->names.intern(text));
  }
  template <class Number>
  void mark_argument(std::uint32_t mark, std::string_view key, Number value) {
    add_mark_argument(mark, make_argument(words_->names.intern(key), value));
  }

  // Of a counter.
  void add_sample(std::int64_t time_ns, double value);

  // Of a thread. More states of the same thread come in the order of time, their sums from 0 again; between two of them
  // the thread is blocked.
  void add_states(ThreadStates states);

  // What the thread was doing, in the order of time. `stack` is one of RankBuilder::stacks(). The period is the time
  // that a sample stands for.
  void add_stack_sample(std::int64_t time_ns, StackId stack) {
    track_.stacks.time_ns.push_back(time_ns);
    track_.stacks.stack.push_back(stack);
  }
  void set_sample_period(std::int64_t period_ns) { track_.stacks.period_ns = period_ns; }

  // Events of this track were lost between two times, both included. `events` is 0 where the number is not known;
  // `cause` is a key of Rank::dropped or "damage". The count in Rank::dropped is the caller's to set. Any order;
  // finish() sorts, merges stretches that overlap and clips them to the rank. Losses of the main thread become gaps of
  // the rank as well. An importer ends a range that is open when a loss begins at that time, "unfinished", unless it
  // knows the range's end.
  void add_lost(std::int64_t start_ns, std::int64_t end_ns, std::uint64_t events, std::string cause = "no_free_chunk") {
    track_.lost.push_back({start_ns, end_ns, events, std::move(cause)});
  }

  // Sets what add_track() was told, where an importer learns it later.
  void describe(std::string label, bool main) {
    track_.label = std::move(label);
    track_.main = main;
  }

  void become(TrackKind kind) { track_.kind = kind; }
  void set_thread_id(std::uint64_t id) { track_.thread_id = id; }

  // Gives a slice another name.
  void rename(std::uint32_t slice, NameId name);

  // The slices so far, in the order in which they were added, not yet sorted or nested. An open slice has no duration
  // yet. The reference holds until the next slice is added.
  const Slices& slices() {
    cut_room();
    return track_.slices;
  }
  std::size_t size() const { return size_; }  // slices so far
  std::int64_t start_ns(std::uint32_t slice) const { return track_.slices.start_ns[slice]; }
  std::int64_t end_ns(std::uint32_t slice) const { return track_.slices.end_ns(slice); }
  bool is_open(std::uint32_t slice) const { return track_.slices.duration_ns[slice] == still_open; }
  // Where records for begin_slice() come from.
  Records& records() { return track_.slices.records; }

 private:
  friend class RankBuilder;
  static constexpr std::int64_t still_open = std::numeric_limits<std::int64_t>::min();
  std::uint32_t last_slice() const { return size_ - 1; }
  [[gnu::always_inline]] std::uint32_t append(std::int64_t start_ns, std::int64_t duration_ns, KindId kind,
                                              RecordId record) {
    if (size_ == room_) add_room();
    Slices& slices = track_.slices;
    slices.start_ns[size_] = start_ns;
    slices.duration_ns[size_] = duration_ns;
    slices.kind[size_] = kind;
    slices.record[size_] = record;
    return size_++;
  }
  // The columns of the slices are longer than the slices that came, so that most of these need no check of their own.
  void add_room();
  void cut_room();
  // Appends the finished track, and one more for each set of slices that cross it. What is still open ends at `end_ns`.
  void finish(std::int64_t end_ns, std::vector<Track>& tracks);

  Vocabulary* words_;
  Track track_;                      // its slices in the order they came; depths are filled in by finish()
  std::uint32_t size_ = 0;           // slices that came
  std::uint32_t room_ = 0;           // length of the columns, except for depths
  std::vector<std::uint32_t> open_;  // by push()
  std::size_t open_slices_ = 0;
  std::uint64_t cut_slices_ = 0, moved_slices_ = 0;  // by finish()
};

class RankBuilder {
 public:
  explicit RankBuilder(Rank rank) : rank_(std::move(rank)) {}
  RankBuilder(const RankBuilder&) = delete;  // the track builders point at its vocabulary
  RankBuilder& operator=(const RankBuilder&) = delete;

  // The reference stays good until finish().
  TrackBuilder& add_track(TrackKind kind, std::string label, std::uint64_t thread_id = 0, bool main = false);
  // A track of kind counter; its samples come in the order of time.
  TrackBuilder& add_counter(std::string name, std::string unit, std::string device, bool is_sum);
  TrackBuilder& add_main_thread() { return add_track(TrackKind::thread, "main thread", 1, true); }

  // Events were lost of which the track is not known (a damaged part of a file): like TrackBuilder::add_lost, for every
  // track of the rank.
  void add_lost(std::int64_t start_ns, std::int64_t end_ns, std::uint64_t events, std::string cause) {
    rank_.lost.push_back({start_ns, end_ns, events, std::move(cause)});
  }
  // The rank is a member, with the rank `own_rank` in the communicator (-1: not known), whose text is one of this
  // rank's names.
  void add_communicator(const Communicator& communicator, std::int32_t own_rank = -1);

  // Everything but the tracks. Where end_ns is not above start_ns, finish() takes the first and last event instead.
  Rank& info() { return rank_; }

  Names& names() { return words_.names; }
  KindId kind(std::string_view name, std::string_view domain = "", std::string_view category = "") {
    return words_.kind(name, domain, category);
  }
  Vocabulary& vocabulary() { return words_; }
  Stacks& stacks() { return stacks_; }  // of this rank's names

  // Sorts and nests the tracks. Nothing may be added afterwards. TraceBuilder::finish() does it for those that are not
  // finished; whoever builds ranks on several threads calls it there.
  void finish();

 private:
  friend class TraceBuilder;
  void add_lost_gaps();

  Vocabulary words_;
  Communicators communicators_;
  Stacks stacks_;
  Rank rank_;
  std::deque<TrackBuilder> tracks_;
  bool finished_ = false;
  std::uint64_t cut_slices_ = 0, moved_slices_ = 0;
};

class TraceBuilder {
 public:
  RankBuilder& add_rank(Rank rank) { return ranks_.emplace_back(std::move(rank)); }
  RankBuilder& add_rank(int rank, int world_size = 1);

  // The trace, its ranks sorted by rank, their names and kinds interned together. The builder is empty afterwards.
  Trace finish();

 private:
  std::deque<RankBuilder> ranks_;
};

}  // namespace paceline::analysis
