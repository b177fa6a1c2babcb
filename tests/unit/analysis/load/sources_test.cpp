// SPDX-License-Identifier: Apache-2.0
// One run from several sources: the clock between them, what is kept once, and what cannot be joined.
#include "analysis/load/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What the reader of the second format returns.
Trace second;
const TraceReader first_reader{"first", nullptr, nullptr, true};
const TraceReader second_reader{
    "second", nullptr, [](std::span<const TraceFile>, const Progress&) { return std::exchange(second, {}); }, true};

RunFiles files() {
  RunFiles run;
  run.reader = &first_reader;
  run.others.push_back({&second_reader, {{"b.second", "b.second"}}});
  return run;
}

const Track* track_called(const Rank& rank, const std::string& label) {
  const auto found = std::ranges::find(rank.tracks, label, &Track::label);
  return found == rank.tracks.end() ? nullptr : &*found;
}

// Three steps with a forward pass in each, at `shift_ns`; later steps are longer.
void add_steps(RankBuilder& rank, std::int64_t shift_ns) {
  TrackBuilder& main = rank.add_main_thread();
  for (const std::int64_t at : {100'000, 300'000, 700'000}) {
    main.push(shift_ns + at, "step");
    main.push(shift_ns + at + 50'000, "forward");
    main.pop(shift_ns + at + 90'000);
    main.pop(shift_ns + at + 100'000);
  }
}

TEST(Sources, CommonSlicesGiveTheClockAndAreKeptOnce) {
  TraceBuilder run;
  add_steps(run.add_rank(0), 0);
  Trace trace = run.finish();
  TraceBuilder other;
  RankBuilder& rank = other.add_rank(0);
  add_steps(rank, 5'000'000);
  TrackBuilder& worker = rank.add_track(TrackKind::thread, "worker", 7);
  worker.push(5'150'000, "forward");  // the one that the run has
  worker.push(5'160'000, "aten::add");
  worker.pop(5'170'000);
  worker.pop(5'190'000);
  rank.add_track(TrackKind::stream, "stream 7").add_slice(5'160'000, 5'180'000, "kernel");
  second = other.finish();
  EXPECT_THAT(add_sources(trace, files()), ElementsAre());
  ASSERT_EQ(trace.ranks.size(), 1U);
  const Rank& joined = trace.ranks[0];
  ASSERT_EQ(joined.tracks.size(), 3U);
  EXPECT_EQ(joined.tracks[0].slices.size(), 6U);
  EXPECT_TRUE(joined.tracks[0].main);
  const Track* added = track_called(joined, "worker (second)");
  ASSERT_NE(added, nullptr);
  EXPECT_THAT(added->slices.start_ns, ElementsAre(160'000));
  EXPECT_THAT(added->slices.depth, ElementsAre(0));
  EXPECT_EQ(trace.name_of(added->slices, 0), "aten::add");
  const Track* stream = track_called(joined, "stream 7 (second)");
  ASSERT_NE(stream, nullptr);
  EXPECT_THAT(stream->slices.start_ns, ElementsAre(160'000));
  EXPECT_THAT(trace.notes,
              ElementsAre(HasSubstr("sources: b.second (second): 2 slices and marks of rank 0, on the clock "
                                    "by slices that both have, which agree within ")));
  EXPECT_THAT(trace.notes[0], HasSubstr("; 7 that the run has already were left out"));
}

TEST(Sources, ASliceThatBothSawIsKeptOnceHoweverLateOneWasInIt) {
  constexpr int calls = 40;
  TraceBuilder run, other;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  TrackBuilder& again = other.add_rank(0).add_track(TrackKind::thread, "gloo");
  for (int i = 0; i < calls; ++i) {
    const std::int64_t at = i * (1'000'000 + 1000 * i);
    main.add_slice(at, at + 500'000, "gloo:all_reduce");
    again.add_slice(at + (i == 7 ? 300'000 : 0), at + 300'000, "gloo:all_reduce");
  }
  Trace trace = run.finish();
  second = other.finish();
  add_sources(trace, files());
  EXPECT_THAT(trace.notes, ElementsAre(HasSubstr("; 40 that the run has already were left out")));
  EXPECT_EQ(trace.ranks[0].tracks.size(), 1U);
}

TEST(Sources, GpuWorkOfTheSameTimeIsKeptOnce) {
  TraceBuilder run;
  TrackBuilder& stream = run.add_rank(0).add_track(TrackKind::stream, "GPU 0 stream 7");
  for (const std::int64_t at : {0, 1000, 2000}) stream.add_slice(at, at + 500, "kernel");
  Trace trace = run.finish();
  trace.ranks[0].utc_of_zero_ns = 1'000'000'000;
  TraceBuilder other;
  TrackBuilder& again = other.add_rank(0).add_track(TrackKind::stream, "stream 7");
  for (const std::int64_t at : {0, 1000, 2000, 3000}) again.add_slice(at, at + 500, "the kernel by another name");
  second = other.finish();
  second.ranks[0].utc_of_zero_ns = 1'000'000'010;
  add_sources(trace, files());
  const Track* added = track_called(trace.ranks[0], "stream 7 (second)");
  ASSERT_NE(added, nullptr);
  EXPECT_THAT(added->slices.start_ns, ElementsAre(3010)) << "by UTC, behind what the run has";
  EXPECT_THAT(trace.notes, ElementsAre(HasSubstr("by UTC, of which nothing shows how good it is; 3 that the run has")));
}

TEST(Sources, WithoutACommonClockAreLeftOut) {
  TraceBuilder run;
  add_steps(run.add_rank(0), 0);
  Trace trace = run.finish();
  trace.ranks[0].format = "first";
  TraceBuilder other;
  other.add_rank(0).add_track(TrackKind::stream, "stream").add_slice(0, 5, "kernel");
  other.add_rank(1).add_track(TrackKind::stream, "stream").add_slice(0, 5, "kernel");
  second = other.finish();
  EXPECT_THAT(add_sources(trace, files()), ElementsAre(&second_reader));
  EXPECT_EQ(trace.ranks.size(), 1U);
  EXPECT_EQ(trace.ranks[0].tracks.size(), 1U);
  EXPECT_THAT(trace.notes,
              ElementsAre("b.second: left out: rank 1 of the format second: no file of the format first has them",
                          HasSubstr("b.second: left out: rank 0 of the format second: neither common slices nor UTC")));
}

TEST(Sources, OfAnotherDayAreLeftOut) {
  TraceBuilder run;
  add_steps(run.add_rank(0), 0);
  Trace trace = run.finish();
  trace.ranks[0].utc_of_zero_ns = 1'000'000'000'000;
  TraceBuilder other;
  other.add_rank(0).add_track(TrackKind::stream, "stream").add_slice(0, 5, "kernel");
  second = other.finish();
  second.ranks[0].utc_of_zero_ns = 2'000'000'000'000;
  EXPECT_THAT(add_sources(trace, files()), ElementsAre(&second_reader));
  EXPECT_EQ(trace.ranks[0].tracks.size(), 1U);
}

TEST(Sources, FactsNeedNoClock) {
  TraceBuilder run;
  add_steps(run.add_rank(0), 0);
  Trace trace = run.finish();
  const std::int64_t end_ns = trace.ranks[0].end_ns;
  TraceBuilder other;
  other.add_rank(0).info().facts["nccl.network"] = "IB";
  second = other.finish();
  add_sources(trace, files());
  EXPECT_EQ(trace.ranks[0].facts.at("nccl.network"), "IB");
  EXPECT_EQ(trace.ranks[0].end_ns, end_ns);
  EXPECT_THAT(trace.notes, ElementsAre("sources: b.second (second): facts of rank 0"));
}

}  // namespace
}  // namespace paceline::analysis
