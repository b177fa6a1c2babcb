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
// Times are nanoseconds from the run's zero. finish() sorts what is not sorted, computes depths, moves slices that
// cross another one (begin inside it and end after it) onto further tracks, so that every track nests, and leaves out
// tracks without slices, marks, samples and losses but for the main thread's. Cost: linear where slices come in the
// order of their starts, as a thread makes them.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/trace/trace.h"

namespace paceline::analysis {

class TrackBuilder {
 public:
  TrackBuilder(Trace& trace, TrackKind kind, std::string label, std::uint64_t thread_id, bool main);

  // A whole slice. Returns its handle, for argument().
  std::uint32_t add_slice(std::int64_t start_ns, std::int64_t end_ns, NameId name, std::uint16_t slice_class);
  std::uint32_t add_slice(std::int64_t start_ns, std::int64_t end_ns, std::string_view name,
                          std::string_view domain = "", std::string_view category = "");

  // A slice whose end is not known yet, and its end; what is never ended ends with the rank, "unfinished".
  std::uint32_t begin_slice(std::int64_t start_ns, NameId name, std::uint16_t slice_class);
  void end_slice(std::uint32_t slice, std::int64_t end_ns);

  // The same for slices that end in reverse order; pop() ends the latest one and says whether there was one to end.
  std::uint32_t push(std::int64_t start_ns, std::string_view name, std::string_view domain = "",
                     std::string_view category = "");
  bool pop(std::int64_t end_ns);

  std::uint32_t add_mark(std::int64_t time_ns, NameId name, std::uint16_t slice_class);
  std::uint32_t add_mark(std::int64_t time_ns, std::string_view name, std::string_view domain = "",
                         std::string_view category = "");

  // A value beside a slice or a mark, by handle; without a handle beside the slice that came last.
  void argument(std::uint32_t slice, NameId key, double number) { arguments_.push_back({slice, key, number, 0}); }
  void text_argument(std::uint32_t slice, NameId key, NameId text) { arguments_.push_back({slice, key, 0, text}); }
  void argument(std::string_view key, double number);
  void text_argument(std::string_view key, std::string_view text);
  // Of a counter.
  void add_sample(std::int64_t time_ns, double value);

  void mark_argument(std::uint32_t mark, NameId key, double number) {
    mark_arguments_.push_back({mark, key, number, 0});
  }
  void mark_text_argument(std::uint32_t mark, NameId key, NameId text) {
    mark_arguments_.push_back({mark, key, 0, text});
  }

  // Events of this track were lost between two times, both included. `events` is 0 where the number is not known;
  // `cause` is a key of Rank::dropped or "damage". The count in Rank::dropped is the caller's to set. Any order;
  // finish() sorts, merges stretches that overlap and clips them to the rank. Losses of the main thread become gaps of
  // the rank as well. An importer ends a range that is open when a loss begins at that time, "unfinished", unless it
  // knows the range's end.
  void add_lost(std::int64_t start_ns, std::int64_t end_ns, std::uint64_t events, std::string cause = "no_free_chunk") {
    track_.lost.push_back({start_ns, end_ns, events, std::move(cause)});
  }

  // Gives a slice another name.
  void rename(std::uint32_t slice, NameId name) { track_.slices.name[slice] = name; }

  // What came so far, as it came: neither sorted nor nested. Slices that are open have no duration yet.
  const Slices& slices() const { return track_.slices; }
  const std::vector<Argument>& slice_arguments() const { return arguments_; }
  bool is_open(std::uint32_t slice) const;

 private:
  friend class RankBuilder;
  // Appends the finished track, and one more for each set of slices that cross it. What is still open ends at `end_ns`.
  void finish(std::int64_t end_ns, std::vector<Track>& tracks);

  Trace* trace_;
  Track track_;  // its slices in the order they came; depths are filled in by finish()
  std::vector<Argument> arguments_, mark_arguments_;
  std::vector<std::uint32_t> open_;
};

class RankBuilder {
 public:
  RankBuilder(Trace& trace, Rank rank) : trace_(&trace), rank_(std::move(rank)) {}

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

  // Everything but the tracks. Where end_ns is not above start_ns, finish() takes the first and last event instead.
  Rank& info() { return rank_; }

 private:
  friend class TraceBuilder;
  Rank finish();
  void add_lost_gaps();

  Trace* trace_;
  Rank rank_;
  std::deque<TrackBuilder> tracks_;
};

class TraceBuilder {
 public:
  TraceBuilder() { trace_.classes.push_back({}); }
  TraceBuilder(const TraceBuilder&) = delete;  // the builders below it point at its trace
  TraceBuilder& operator=(const TraceBuilder&) = delete;

  RankBuilder& add_rank(Rank rank) { return ranks_.emplace_back(trace_, std::move(rank)); }
  RankBuilder& add_rank(int rank, int world_size = 1);
  Names& names() { return trace_.names; }
  std::uint16_t class_of(std::string_view domain, std::string_view category) {
    return trace_.class_of(domain, category);
  }
  const SliceClass& slice_class(std::uint16_t number) const { return trace_.classes[number]; }

  // The trace, its ranks sorted by rank. The builder is empty afterwards.
  Trace finish();

 private:
  Trace trace_;
  std::deque<RankBuilder> ranks_;
};

}  // namespace paceline::analysis
