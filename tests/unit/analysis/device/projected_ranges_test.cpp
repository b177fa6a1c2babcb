// SPDX-License-Identifier: Apache-2.0
// Ranges of two threads on the streams on which their work ran, worked out on paper.
#include "analysis/device/projected_ranges.h"

#include <gtest/gtest.h>

#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

TEST(ProjectedRanges, LastFromTheFirstToTheLastWorkOnTheStream) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(0);
  TrackBuilder& main = rank.add_main_thread();
  TrackBuilder& autograd = rank.add_track(TrackKind::thread, "autograd", 2);
  TrackBuilder& stream = rank.add_track(TrackKind::stream, "stream 7", 7);
  TrackBuilder& other = rank.add_track(TrackKind::stream, "stream 8", 8);
  const auto launch = [](TrackBuilder& thread, std::int64_t at, TrackBuilder& on, std::int64_t begin, std::int64_t end,
                         int correlation) {
    thread.add_slice(at, at + 2, "cudaLaunchKernel", "cuda", "runtime");
    thread.argument("correlation", correlation);
    on.add_slice(begin, end, "kernel", "cuda", "kernel");
    on.argument("correlation", correlation);
  };
  main.push(0, "step", "trainer");
  main.push(10, "forward", "trainer");
  launch(main, 12, stream, 100, 140, 1);
  launch(main, 20, stream, 150, 160, 2);
  launch(main, 24, other, 105, 106, 3);
  main.pop(30);
  autograd.push(40, "backward", "torch");
  launch(autograd, 42, stream, 160, 200, 4);
  autograd.pop(50);
  launch(main, 60, stream, 210, 230, 5);
  main.add_slice(70, 80, "wait", "trainer");  // launches nothing
  main.pop(90);
  launch(main, 95, stream, 300, 310, 6);  // outside of all ranges
  const Trace trace = run.finish();
  const Rank& of = trace.ranks[0];
  const ProjectedRanges found = projected_ranges(trace, of, 2, Correlations(trace, of));
  ASSERT_EQ(found.slices.size(), 3u);
  struct Expected {
    const char* name;
    std::int64_t start_ns, end_ns;
    int depth;
    unsigned operations;
    std::int64_t work_ns;
  };
  const Expected expected[] = {
      {"step", 100, 230, 0, 3, 70}, {"forward", 100, 160, 1, 2, 50}, {"backward", 160, 200, 2, 1, 40}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(trace.name_of(found.slices, i), expected[i].name);
    EXPECT_EQ(found.slices.start_ns[i], expected[i].start_ns);
    EXPECT_EQ(found.slices.end_ns(i), expected[i].end_ns);
    EXPECT_EQ(found.slices.depth[i], expected[i].depth);
    EXPECT_EQ(found.origins[i].operations, expected[i].operations);
    EXPECT_EQ(found.origins[i].work_ns, expected[i].work_ns);
    const Slices& thread = of.tracks[found.origins[i].track].slices;
    EXPECT_EQ(trace.name_of(thread, found.origins[i].slice), expected[i].name);
  }
  const ProjectedRanges beside = projected_ranges(trace, of, 3, Correlations(trace, of));
  ASSERT_EQ(beside.slices.size(), 2u) << "the ranges around the one kernel of the other stream";
  EXPECT_EQ(beside.slices.end_ns(1), 106);
}

}  // namespace
}  // namespace paceline::analysis
