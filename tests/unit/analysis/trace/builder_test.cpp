// SPDX-License-Identifier: Apache-2.0
// A trace made by hand, or by an importer, nests, is sorted, and keeps its arguments at the right slices.
#include "analysis/trace/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/analysis/imported.h"

namespace paceline::analysis {
namespace {

using ::testing::ElementsAre;
using testing::names_of;

TEST(TraceBuilder, GivesEachPushedSliceItsDepthAndEnd) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.push(0, "iteration");
  main.push(10, "forward");
  EXPECT_TRUE(main.pop(60));
  main.push(60, "backward");
  EXPECT_TRUE(main.pop(90));
  EXPECT_TRUE(main.pop(100));
  const Trace trace = run.finish();
  const Track& track = trace.ranks.at(0).tracks.at(0);
  EXPECT_THAT(names_of(trace, track), ElementsAre("iteration", "forward", "backward"));
  EXPECT_THAT(track.slices.start_ns, ElementsAre(0, 10, 60));
  EXPECT_THAT(track.slices.duration_ns, ElementsAre(100, 50, 30));
  EXPECT_THAT(track.slices.depth, ElementsAre(0, 1, 1));
  EXPECT_EQ(track.depths, 2);
  EXPECT_EQ(trace.ranks[0].start_ns, 0);
  EXPECT_EQ(trace.ranks[0].end_ns, 100);
  EXPECT_EQ(trace.span_ns(), 100);
}

TEST(TraceBuilder, APopWithoutAPushIsRefusedAndChangesNothing) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  EXPECT_FALSE(main.pop(5));
  EXPECT_TRUE(run.finish().ranks[0].tracks[0].slices.start_ns.empty());
}

TEST(TraceBuilder, WhatIsStillOpenEndsWithTheRankAndSaysSo) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().end_ns = 500;
  TrackBuilder& main = rank.add_main_thread();
  main.push(100, "iteration");
  main.push(200, "forward");
  const Trace trace = run.finish();
  const Track& track = trace.ranks[0].tracks[0];
  EXPECT_THAT(track.slices.duration_ns, ElementsAre(400, 300));
  const NameId unfinished = trace.names.find("unfinished");
  EXPECT_EQ(track.slices.number(0, unfinished), 1.0);
  EXPECT_EQ(track.slices.number(1, unfinished), 1.0);
}

TEST(TraceBuilder, SlicesInAnyOrderComeOutByStartWithTheirArguments) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.add_slice(50, 60, "late");
  main.argument("payload", 3);
  main.add_slice(0, 20, "inner");
  main.argument("payload", 2);
  main.add_slice(0, 40, "outer");
  main.text_argument("communicator", "world");
  const Trace trace = run.finish();
  const Track& track = trace.ranks[0].tracks[0];
  EXPECT_THAT(names_of(trace, track), ElementsAre("outer", "inner", "late"));
  EXPECT_THAT(track.slices.depth, ElementsAre(0, 1, 0));
  const NameId payload = trace.names.find("payload");
  EXPECT_EQ(track.slices.number(0, payload), std::nullopt);
  EXPECT_EQ(track.slices.number(1, payload), 2.0);
  EXPECT_EQ(track.slices.number(2, payload), 3.0);
  EXPECT_EQ(trace.names[track.slices.text(0, trace.names.find("communicator"))], "world");
}

TEST(TraceBuilder, SlicesThatCrossOthersMoveToFurtherTracks) {
  TraceBuilder run;
  TrackBuilder& track = run.add_rank(0).add_track(TrackKind::thread, "ranges", 7);
  track.add_slice(0, 10'000, "a");
  track.add_slice(5000, 15'000, "b");  // crosses a
  track.argument("payload", 2);
  track.add_slice(8000, 20'000, "c");    // crosses a and b
  track.add_slice(10'000, 12'000, "d");  // begins where a ends: no crossing
  const Trace trace = run.finish();
  ASSERT_EQ(trace.ranks[0].tracks.size(), 3U);
  EXPECT_THAT(names_of(trace, trace.ranks[0].tracks[0]), ElementsAre("c", "d"));  // c is the longest
  EXPECT_THAT(names_of(trace, trace.ranks[0].tracks[1]), ElementsAre("a"));
  EXPECT_THAT(names_of(trace, trace.ranks[0].tracks[2]), ElementsAre("b"));
  EXPECT_EQ(trace.ranks[0].tracks[1].label, "ranges (2)");
  EXPECT_EQ(trace.ranks[0].tracks[2].label, "ranges (3)");
  EXPECT_EQ(trace.ranks[0].tracks[2].thread_id, 7U);
  EXPECT_EQ(trace.ranks[0].tracks[2].slices.number(0, trace.names.find("payload")), 2.0);
}

TEST(TraceBuilder, ARangeKeepsItsPlaceBesideAShortCallThatItBeganIn) {
  TraceBuilder run;
  TrackBuilder& track = run.add_rank(0).add_main_thread();
  track.add_slice(0, 100'000, "enter");  // the call in which the iteration begins
  track.add_slice(1000, 4000, "inside");
  track.add_slice(50'000, 900'000, "iteration");
  track.add_slice(60'000, 70'000, "forward");
  const Trace trace = run.finish();
  ASSERT_EQ(trace.ranks[0].tracks.size(), 2U);
  const Track& main = trace.ranks[0].tracks[0];
  EXPECT_THAT(names_of(trace, main), ElementsAre("inside", "iteration", "forward"));
  EXPECT_THAT(main.slices.depth, ElementsAre(0, 0, 1));
  EXPECT_THAT(names_of(trace, trace.ranks[0].tracks[1]), ElementsAre("enter"));
  EXPECT_EQ(main.depths, 2);
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_THAT(trace.notes[0], ::testing::StartsWith("1 slice of main threads and streams is on"));
}

TEST(TraceBuilder, OverlapsOfAtMostAMicrosecondAreCutAndCounted) {
  TraceBuilder run;
  TrackBuilder& stream = run.add_rank(0).add_track(TrackKind::stream, "stream 7", 7);
  stream.add_slice(0, 10'001, "a");
  stream.add_slice(10'000, 20'000, "b");  // begins 1 ns before a ends
  stream.add_slice(20'000, 40'000, "around");
  stream.add_slice(30'000, 41'000, "inside");  // ends 1000 ns after the slice around it
  stream.add_slice(50'000, 60'000, "real");
  stream.add_slice(58'999, 70'000, "concurrent");  // 1001 ns
  const Trace trace = run.finish();
  ASSERT_EQ(trace.ranks[0].tracks.size(), 2U);
  const Track& kept = trace.ranks[0].tracks[0];
  EXPECT_THAT(names_of(trace, kept), ElementsAre("a", "b", "around", "inside", "concurrent"));
  EXPECT_THAT(kept.slices.start_ns, ElementsAre(0, 10'000, 20'000, 30'000, 58'999));
  EXPECT_THAT(kept.slices.duration_ns, ElementsAre(10'000, 10'000, 20'000, 10'000, 11'001));
  EXPECT_THAT(kept.slices.depth, ElementsAre(0, 0, 0, 1, 0));
  ASSERT_EQ(trace.notes.size(), 2U);
  EXPECT_THAT(trace.notes[0], ::testing::StartsWith("2 slices were cut"));
  EXPECT_THAT(trace.notes[1], ::testing::StartsWith("1 slice of main threads and streams"));
}

TEST(TraceBuilder, EqualStringsHaveOneIdInAllRanksAndRanksAreSorted) {
  TraceBuilder run;
  run.add_rank(1, 2).add_main_thread().add_slice(0, 1, "forward", "trainer", "step");
  run.add_rank(0, 2).add_main_thread().add_slice(0, 1, "forward", "trainer", "step");
  const Trace trace = run.finish();
  EXPECT_EQ(trace.ranks[0].rank, 0);
  EXPECT_EQ(trace.ranks[1].rank, 1);
  EXPECT_EQ(trace.ranks[0].tracks[0].slices.kind, trace.ranks[1].tracks[0].slices.kind);
  EXPECT_EQ(trace.kinds.size(), 2U);
}

TEST(TraceBuilder, MarksAreSortedAndKeepTheirValues) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.mark_argument(main.add_mark(20, "accuracy"), "payload", 0.9);
  main.mark_argument(main.add_mark(10, "accuracy"), "payload", 0.5);
  const Trace trace = run.finish();
  const NameId payload = trace.names.find("payload");
  const Track& track = trace.ranks[0].tracks[0];
  EXPECT_THAT(track.marks.start_ns, ElementsAre(10, 20));
  EXPECT_EQ(track.marks.number(0, payload), 0.5);
  EXPECT_EQ(track.marks.number(1, payload), 0.9);
}

TEST(TraceBuilder, SortsMergesAndClipsTheLossesOfATrack) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().end_ns = 1000;
  TrackBuilder& helper = rank.add_track(TrackKind::thread, "helper", 2);
  helper.add_lost(700, 2000, 5, "disk");
  helper.add_lost(100, 200, 3);
  helper.add_lost(150, 300, 4);
  const Trace trace = run.finish();
  ASSERT_EQ(trace.ranks[0].tracks.size(), 1U) << "a track of which everything was lost stays";
  const std::vector<LostInterval>& lost = trace.ranks[0].tracks[0].lost;
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_EQ(lost[0].start_ns, 100);
  EXPECT_EQ(lost[0].end_ns, 300);
  EXPECT_EQ(lost[0].events, 7U);
  EXPECT_EQ(lost[0].cause, "no_free_chunk");
  EXPECT_EQ(lost[1].end_ns, 1000);
  EXPECT_TRUE(trace.ranks[0].gaps.empty()) << "the main thread lost nothing";
}

TEST(TraceBuilder, LossesOfTheMainThreadAndOfTheRankBecomeGapsBesidePauses) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  rank.info().end_ns = 1000;
  rank.info().gaps.push_back({200, 300, "switched off"});
  rank.add_main_thread().add_lost(100, 400, 5);
  rank.add_lost(600, 600, 0, "damage");
  const Trace trace = run.finish();
  const std::vector<Gap>& gaps = trace.ranks[0].gaps;
  ASSERT_EQ(gaps.size(), 4U);
  const std::vector<std::pair<std::int64_t, std::int64_t>> times = {{100, 200}, {200, 300}, {300, 400}, {600, 600}};
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    EXPECT_EQ(std::pair(gaps[i].start_ns, gaps[i].end_ns), times[i]);
    EXPECT_EQ(gaps[i].lost, i != 1);
  }
  EXPECT_EQ(trace.ranks[0].recorded_ns(), 700);
  EXPECT_EQ(main_thread_losses(trace.ranks[0]).size(), 2U);
}

}  // namespace
}  // namespace paceline::analysis
