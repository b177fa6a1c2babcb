// SPDX-License-Identifier: Apache-2.0
// Simulated runs whose offsets and drifts are known.
#include "analysis/clocks/trace_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <string>

#include "analysis/clocks/alignment.h"
#include "analysis/communication/collectives.h"
#include "analysis/trace/builder.h"

namespace paceline::analysis {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// What the clock of a rank shows at a true time.
struct SimulatedClock {
  double offset_ns = 0, drift = 0;

  std::int64_t operator()(double true_ns) const { return std::llround(true_ns * (1 + drift) + offset_ns); }
};

struct Simulation {
  int collectives = 400;
  double period_ns = 5e6;
  double noise_ns = 3e3;  // standard deviation of the ends
  const char* operation = "MPI_Allreduce";
  const char* communicator = "MPI_COMM_WORLD";
  std::vector<int> without = {};          // ranks that take part in no collective
  std::vector<double> utc_error_ns = {};  // empty: no dates
};

// Each rank enters the collectives at random times up to a tenth of the period apart; all leave them together. A mark
// at the middle of the run shows each rank's clock.
Trace simulate(const std::vector<SimulatedClock>& clocks, const Simulation& what) {
  TraceBuilder run;
  std::mt19937 random(17);
  std::normal_distribution<double> noise(0, what.noise_ns);
  std::uniform_real_distribution<double> late(0, 0.1 * what.period_ns);
  std::vector<TrackBuilder*> threads;
  for (std::size_t r = 0; r < clocks.size(); ++r) {
    RankBuilder& rank = run.add_rank(static_cast<int>(r), static_cast<int>(clocks.size()));
    rank.info().path = "rank" + std::to_string(r);
    rank.info().host = "node" + std::to_string(r);
    if (!what.utc_error_ns.empty()) {
      // By the clock of the host the rank's time 0 was at this time.
      rank.info().utc_of_zero_ns = 1'700'000'000'000'000'000 + std::llround(what.utc_error_ns[r] - clocks[r].offset_ns);
    }
    threads.push_back(&rank.add_main_thread());
    threads.back()->add_slice(clocks[r](0), clocks[r](what.period_ns * 0.5), "start");
  }
  for (int i = 1; i <= what.collectives; ++i) {
    const double begin = what.period_ns * i, end = begin + 0.2 * what.period_ns;
    for (std::size_t r = 0; r < clocks.size(); ++r) {
      const double entered = begin + late(random), left = end + noise(random);
      if (std::ranges::find(what.without, static_cast<int>(r)) != what.without.end()) continue;
      threads[r]->add_slice(clocks[r](entered), clocks[r](left), what.operation, "mpi", "collective");
      if (what.communicator != nullptr) threads[r]->text_argument("communicator", what.communicator);
    }
  }
  const double middle = 0.5 * what.period_ns * what.collectives + 0.5 * what.period_ns;
  for (std::size_t r = 0; r < clocks.size(); ++r) {
    threads[r]->add_mark(clocks[r](middle), "middle");
    threads[r]->add_slice(clocks[r](what.period_ns * (what.collectives + 1)),
                          clocks[r](what.period_ns * (what.collectives + 1.5)), "end");
  }
  return run.finish();
}

std::int64_t time_of_mark(const Trace& trace, std::size_t rank) {
  return trace.ranks[rank].tracks.front().marks.start_ns.front();
}

std::int64_t time_of_end(const Trace& trace, std::size_t rank) {
  return trace.ranks[rank].tracks.front().slices.start_ns.back();
}

double error_at_end(const Trace& trace, std::size_t rank) {
  return std::abs(static_cast<double>(time_of_end(trace, rank) - time_of_end(trace, 0)));
}

double error_at_middle(const Trace& trace, std::size_t rank) {
  return std::abs(static_cast<double>(time_of_mark(trace, rank) - time_of_mark(trace, 0)));
}

TEST(TraceAlignment, FindsOffsetsByTheEndsOfCollectives) {
  Trace trace = simulate({{0, 0}, {7.5e9, 0}, {-3.2e12, 0}}, {});
  align_ranks(trace);
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(trace.ranks[r].clock_source, "collectives");
    EXPECT_LT(error_at_middle(trace, r), 1000) << r;
    EXPECT_LE(error_at_middle(trace, r), trace.ranks[r].clock_error_ns);
  }
  EXPECT_EQ(trace.ranks[0].clock_error_ns, 0);
  // The ends of two ranks differ by noise of 3 µs · √2, of which 95 % are below 1.96 times that.
  EXPECT_NEAR(trace.ranks[1].clock_error_ns, 1.96 * 3e3 * std::sqrt(2.0), 1200);
  EXPECT_THAT(trace.notes, Contains(HasSubstr("clocks: ranks 0, 1 and 2 aligned by collectives: the ends of 800")));
}

TEST(TraceAlignment, FindsDrifts) {
  Trace trace = simulate({{0, 0}, {1e9, 40e-6}, {0, -20e-6}}, {});
  align_ranks(trace);
  for (std::size_t r = 1; r < 3; ++r) {
    EXPECT_LT(error_at_middle(trace, r), 1500) << r;
    EXPECT_LT(error_at_end(trace, r), 3000) << r;  // 80 µs and 40 µs without the drift
  }
}

TEST(TraceAlignment, FindsNoDriftInNoise) {
  Trace trace = simulate({{0, 0}, {5e6, 0}}, {.noise_ns = 200e3});
  const std::int64_t before = time_of_end(trace, 1) - time_of_mark(trace, 1);
  align_ranks(trace);
  EXPECT_EQ(time_of_end(trace, 1) - time_of_mark(trace, 1), before);
  EXPECT_LT(error_at_middle(trace, 1), 60e3);
}

TEST(TraceAlignment, KeepsTheDurationsAndTheOrderOfSlicesWithDrift) {
  const Simulation what;
  Trace trace = simulate({{0, 0}, {0, 50e-6}}, what);
  // The drift is the difference of two medians of a third of the ends each, over two thirds of the run.
  const double ends_in_third = what.collectives / 3.0, run_ns = what.period_ns * what.collectives * 2 / 3;
  const double drift_error = 1.2533 * what.noise_ns * std::sqrt(2.0) * std::sqrt(2 / ends_in_third) / run_ns;
  const Slices before = trace.ranks[1].tracks.front().slices;
  align_ranks(trace);
  const Slices& after = trace.ranks[1].tracks.front().slices;
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto duration = static_cast<double>(before.duration_ns[i]);
    // Both ends are rounded.
    EXPECT_NEAR(static_cast<double>(after.duration_ns[i]), duration * (1 - 50e-6), 1 + 4 * drift_error * duration);
    if (i > 0) {
      EXPECT_GE(after.start_ns[i], after.start_ns[i - 1]);
    }
  }
}

TEST(TraceAlignment, IgnoresARankThatLeavesATenthOfTheCollectivesLate) {
  Simulation what;
  Trace trace = simulate({{0, 0}, {2e9, 0}}, what);
  Slices& slices = trace.ranks[1].tracks.front().slices;
  for (std::size_t i = 1; i + 1 < slices.size(); i += 10) slices.duration_ns[i] += 800'000;
  align_ranks(trace);
  EXPECT_LT(error_at_middle(trace, 1), 1500);
}

TEST(TraceAlignment, UsesUtcWhereTheCollectivesDoNotContradictIt) {
  Trace trace = simulate({{0, 0}, {9e9, 0}}, {.utc_error_ns = {0, 30e3}});
  align_ranks(trace);
  EXPECT_EQ(trace.ranks[1].clock_source, "utc");
  EXPECT_NEAR(error_at_middle(trace, 1), 30e3, 1);
  EXPECT_GE(trace.ranks[1].clock_error_ns, 30e3);
  EXPECT_LT(trace.ranks[1].clock_error_ns, 45e3);
  EXPECT_THAT(trace.notes, Contains(HasSubstr("clocks: ranks 0 and 1 aligned by UTC: the ends of 400")));
  // The zero is the earliest start of all.
  EXPECT_EQ(std::min(trace.ranks[0].start_ns, trace.ranks[1].start_ns), 0);
  EXPECT_EQ(trace.ranks[0].utc_of_zero_ns, trace.ranks[1].utc_of_zero_ns);
}

TEST(TraceAlignment, UsesCollectivesWhereUtcContradictsThem) {
  Trace trace = simulate({{0, 0}, {9e9, 0}}, {.utc_error_ns = {0, 3600e9}});
  align_ranks(trace);
  EXPECT_EQ(trace.ranks[1].clock_source, "collectives");
  EXPECT_LT(error_at_middle(trace, 1), 1000);
  EXPECT_THAT(trace.notes, Contains(HasSubstr("the UTC times in the files contradict them")));
}

TEST(TraceAlignment, DoesNotBelieveCollectivesThatNoClocksMakePossible) {
  Simulation what{.utc_error_ns = {0, 0}};
  Trace trace = simulate({{0, 0}, {9e9, 0}}, what);
  // The second rank's recording lacks every third collective, so that matching by order joins different ones.
  Slices& slices = trace.ranks[1].tracks.front().slices;
  const auto kind = slices.kind.front();
  for (std::size_t i = 1; i + 1 < slices.size(); i += 3) slices.kind[i] = kind;
  align_ranks(trace);
  EXPECT_EQ(trace.ranks[1].clock_source, "utc");
  EXPECT_EQ(error_at_middle(trace, 1), 0);
  EXPECT_EQ(trace.ranks[1].clock_error_ns, unset_utc_error_ns);
  EXPECT_THAT(trace.notes, Contains(HasSubstr("the collectives of the ranks do not belong together")));
  const Collectives collectives = match_collectives(trace);  // no wait is computed from them
  EXPECT_TRUE(collectives.matched.empty());
  EXPECT_GT(collectives.unmatched_calls, 0U);
}

TEST(TraceAlignment, BelievesUtcMoreThanCollectivesWithoutCommunicators) {
  Trace trace = simulate({{0, 0}, {9e9, 0}}, {.communicator = nullptr, .utc_error_ns = {0, 3600e9}});
  align_ranks(trace);
  EXPECT_EQ(trace.ranks[1].clock_source, "utc");
  Trace without_dates = simulate({{0, 0}, {9e9, 0}}, {.communicator = nullptr});
  align_ranks(without_dates);
  EXPECT_EQ(without_dates.ranks[1].clock_source, "collectives");
}

TEST(TraceAlignment, UsesUtcAloneWithoutCollectives) {
  Trace trace = simulate({{0, 0}, {9e9, 0}}, {.collectives = 0, .utc_error_ns = {0, 0}});
  align_ranks(trace);
  EXPECT_EQ(trace.ranks[1].clock_source, "utc");
  EXPECT_EQ(error_at_middle(trace, 1), 0);
  EXPECT_EQ(trace.ranks[1].clock_error_ns, unset_utc_error_ns);
  EXPECT_THAT(trace.notes, Contains(HasSubstr("nothing in the files shows how good that is")));
}

TEST(TraceAlignment, NamesARankWithoutCollectivesAndDate) {
  Trace trace = simulate({{4e9, 0}, {0, 0}, {1e9, 0}}, {.without = {0}});
  align_ranks(trace);
  EXPECT_EQ(trace.ranks[0].clock_source, "none");
  EXPECT_EQ(trace.ranks[1].clock_source, "collectives");
  EXPECT_EQ(trace.ranks[1].clock_error_ns, 0);  // the reference is in the largest group
  EXPECT_LT(std::abs(time_of_mark(trace, 1) - time_of_mark(trace, 2)), 1000);
  EXPECT_EQ(trace.ranks[0].start_ns, trace.ranks[1].start_ns);
  EXPECT_THAT(trace.notes, Contains(HasSubstr("clocks: rank 0 could not be aligned")));
}

TEST(TraceAlignment, KeepsTheOffsetOfRanksInOneFile) {
  Trace trace = simulate({{0, 0}, {1e9, 0}, {4e9, 0}}, {.without = {2}});
  for (const std::size_t r : {1, 2}) trace.ranks[r].path = "both", trace.ranks[r].host = "node";
  align_ranks(trace);
  EXPECT_EQ(trace.ranks[1].clock_source, "collectives");
  EXPECT_LT(error_at_middle(trace, 1), 1000);
  EXPECT_EQ(trace.ranks[2].clock_source, "file");
  EXPECT_EQ(time_of_mark(trace, 2) - time_of_mark(trace, 1), 3e9);
  EXPECT_EQ(trace.ranks[2].clock_error_ns, trace.ranks[1].clock_error_ns + same_clock_error_ns);
  EXPECT_THAT(trace.notes, Contains("clocks: rank 2 aligned by the clock of the file"));
}

TEST(TraceAlignment, DoesNotTrustTheEndsOfBroadcasts) {
  Trace trace = simulate({{0, 0}, {1e9, 0}}, {.operation = "MPI_Bcast"});
  align_ranks(trace);
  EXPECT_EQ(trace.ranks[1].clock_source, "none");
}

TEST(TraceAlignment, PutsASingleRankAtZero) {
  Trace trace = simulate({{123456789, 0}}, {.utc_error_ns = {0}});
  const std::int64_t utc = *trace.ranks[0].utc_of_zero_ns;
  align_ranks(trace);
  EXPECT_EQ(trace.ranks[0].start_ns, 0);
  EXPECT_EQ(trace.ranks[0].clock_source, "utc");
  EXPECT_EQ(trace.ranks[0].clock_error_ns, 0);
  EXPECT_EQ(*trace.ranks[0].utc_of_zero_ns, utc + 123456789);
  EXPECT_TRUE(trace.notes.empty());
}

TEST(TraceAlignment, LeavesRanksThatTheirReaderAlignedAsTheyAre) {
  Trace trace = simulate({{500, 0}, {1e9, 0}}, {});
  for (Rank& rank : trace.ranks) rank.clock_source = "otf2";
  align_ranks(trace);
  EXPECT_EQ(trace.ranks[0].start_ns, 500);
  EXPECT_EQ(error_at_middle(trace, 1), 1e9 - 500);
}

TEST(TraceAlignment, SurvivesTimesAtTheEndsOfTheRange) {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    rank.info().utc_of_zero_ns = r == 0 ? INT64_MAX : INT64_MIN;
    rank.add_main_thread().add_slice(r == 0 ? -4e18 : 4e18 - 10, r == 0 ? -4e18 + 10 : 4e18, "MPI_Barrier", "mpi",
                                     "collective");
  }
  Trace trace = run.finish();
  align_ranks(trace);
  for (const Rank& rank : trace.ranks) EXPECT_GE(rank.start_ns, 0);
}

}  // namespace
}  // namespace paceline::analysis
