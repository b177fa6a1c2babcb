// SPDX-License-Identifier: Apache-2.0
// The search by name over all ranks of a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>
#include <vector>

#include "analysis/trace/builder.h"
#include "viewer/panels/search.h"

namespace paceline::viewer {
namespace {

TEST(Search, KeepsTheEarliestHitsOfAllRanks) {
  analysis::TraceBuilder builder;
  for (int r = 0; r < 3; ++r) {
    analysis::TrackBuilder& main = builder.add_rank(r, 3).add_main_thread();
    for (int i = 0; i < 10; ++i) main.add_slice(100 * i - 30 * r + 60, 100 * i - 30 * r + 70, "work");
  }
  const auto run = index_run("three", builder.finish());
  const std::atomic<bool> open = false;
  const Hits hits = find_by_name(*run, "work", Ticket(open), 4);
  ASSERT_EQ(hits.found.size(), 4u);
  EXPECT_TRUE(hits.more);
  std::vector<std::int64_t> starts;
  for (const SliceRef& ref : hits.found) starts.push_back(slices_of(*run, ref).start_ns[ref.slice]);
  EXPECT_EQ(starts, (std::vector<std::int64_t>{0, 30, 60, 100}));
}

TEST(Search, OfALargeRunFindsWhatALoopOverAllSlicesFinds) {
  // Three tracks of different density, so that the parts of the run have different numbers of slices of each.
  constexpr int count = 300'000;
  analysis::TraceBuilder builder;
  for (int r = 0; r < 3; ++r) {
    analysis::TrackBuilder& main = builder.add_rank(r, 3).add_main_thread();
    for (int i = 0; i < count; ++i) {
      const std::int64_t start = std::int64_t{i} * i / (count >> (4 * r));
      main.add_slice(start, start, i % 7 == 0 ? "work" : "other");
    }
  }
  const auto run = index_run("dense", builder.finish());
  std::vector<std::pair<std::int64_t, SliceRef>> all;
  for (std::size_t r = 0; r < 3; ++r) {
    const auto& slices = run->trace.ranks[r].tracks[0].slices;
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      const SliceRef ref{.rank = r, .track = 0, .slice = i};
      if (run->trace.names[kind_of(*run, ref).name] == "work") all.emplace_back(slices.start_ns[i], ref);
    }
  }
  std::ranges::stable_sort(all, {}, &std::pair<std::int64_t, SliceRef>::first);
  const std::atomic<bool> open = false;
  for (const std::size_t limit : {std::size_t{1}, all.size() / 3, all.size() - 1, all.size(), all.size() + 1}) {
    const Hits hits = find_by_name(*run, "Work", Ticket(open), limit);
    const std::size_t kept = std::min(limit, all.size());
    ASSERT_EQ(hits.found.size(), kept);
    EXPECT_EQ(hits.more, limit < all.size());
    EXPECT_TRUE(
        std::ranges::equal(hits.found, std::span(all).first(kept), {}, {}, &std::pair<std::int64_t, SliceRef>::second));
  }
}

TEST(Search, TakesATextAndARegularExpression) {
  analysis::TraceBuilder builder;
  analysis::TrackBuilder& main = builder.add_rank(0).add_main_thread();
  int start = 0;
  for (const char* name : {"conv1", "conv2.weight", "operator()(int)", "bn1"}) {
    main.add_slice(start, start + 5, name);
    start += 10;
  }
  const auto run = index_run("names", builder.finish());
  const std::atomic<bool> open = false;
  const auto hits = [&](const char* text) { return find_by_name(*run, text, Ticket(open)).found.size(); };
  EXPECT_EQ(hits("^(conv|BN)[0-9]$"), 2u);
  EXPECT_EQ(hits("operator()("), 1u) << "no regular expression";
  EXPECT_EQ(hits("weight"), 1u);
  EXPECT_EQ(hits("conv2.w"), 1u);
  EXPECT_EQ(hits("[a"), 0u);
}

TEST(Search, ZoomsToAHitThatIsTooNarrowToBeSeen) {
  analysis::TraceBuilder builder;
  analysis::TrackBuilder& main = builder.add_rank(0).add_main_thread();
  main.add_slice(0, 10'000'000'000, "step");
  main.add_slice(5'000'000'000, 5'000'001'000, "short");
  const auto run = index_run("narrow", builder.finish());
  Document document(run);
  ViewState state(*run);
  state.time.set_width(1000);
  state.selection.reveal_closely({.rank = 0, .track = 0, .slice = 1});
  EXPECT_NEAR(state.time.axis().visible().length(), 10'000, 1) << "a tenth of the width";
  state.time.show_all();
  state.selection.reveal_closely({.rank = 0, .track = 0, .slice = 0});
  EXPECT_EQ(state.time.axis().visible(), state.time.axis().whole());
}

}  // namespace
}  // namespace paceline::viewer
