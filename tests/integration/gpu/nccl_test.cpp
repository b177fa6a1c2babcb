// SPDX-License-Identifier: Apache-2.0
// libpaceline-nccl.so, loaded and called as NCCL does, under `paceline record`; what comes out is read by the analysis.
// No NCCL and no GPU take part: that NCCL calls in this way is from its source.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "analysis/communication/collectives.h"
#include "analysis/load/load.h"
#include "tests/integration/record/run.h"

namespace paceline::test {
namespace {

using analysis::Rank;
using analysis::Trace;
using analysis::Track;
using ::testing::HasSubstr;
using ::testing::Not;

class NcclTest : public RecordTest {
 protected:
  // One after another, both ranks of a job record the host program.
  Trace both_ranks(int version, int count, const std::string& options, const std::string& way = "") {
    for (const char* rank : {"0", "1"}) {
      const Ended ended = run(std::string("env PACELINE_JOB=test WORLD_SIZE=2 LOCAL_RANK=0 RANK=") + rank +
                              " " PACELINE " record -o run " + options + " -- " NCCL_HOST " " +
                              std::to_string(version) + " " + std::to_string(count) + " " + way);
      EXPECT_TRUE(ended.by_itself(0)) << ended.err;
      EXPECT_EQ(ended.err, "");
    }
    return analysis::load_run(directory / "run");
  }

  static std::vector<const Track*> tracks_of(const Rank& rank, analysis::TrackKind kind) {
    std::vector<const Track*> tracks;
    for (const Track& track : rank.tracks) {
      if (track.kind == kind) tracks.push_back(&track);
    }
    return tracks;
  }

  static int count(const Trace& trace, const Rank& rank, std::string_view category, std::string_view name) {
    int found = 0;
    for (const Track& track : rank.tracks) {
      for (std::size_t i = 0; i < track.slices.size(); ++i) {
        const analysis::Kind& of = trace.kind_of(track.slices, i);
        found += trace.names[of.domain] == "nccl" && trace.names[of.category] == category &&
                 trace.name_of(track.slices, i) == name;
      }
    }
    return found;
  }
};

class NcclVersionTest : public NcclTest, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Interface, NcclVersionTest, ::testing::Values(4, 5, 6),
                         [](const auto& version) { return std::string(1, 'v').append(std::to_string(version.param)); });

TEST_P(NcclVersionTest, CollectivesOfTwoRanksAreMatchedByHashAndSequence) {
  const Trace trace = both_ranks(GetParam(), 40, "--nccl-kernel-channels");
  ASSERT_EQ(trace.ranks.size(), 2U);
  const analysis::Collectives collectives = analysis::match_collectives(trace);
  EXPECT_EQ(collectives.matched.size(), 80U);  // 40 on each of two communicators
  EXPECT_EQ(collectives.unmatched_calls, 0U);
  ASSERT_EQ(collectives.rows.size(), 1U);
  EXPECT_EQ(collectives.rows[0].operation, "ncclAllReduce");
  EXPECT_EQ(collectives.rows[0].bytes, 262144U * 4);
  EXPECT_EQ(collectives.rows[0].members, 2U);
  std::vector<std::string> communicators;
  for (const auto& collective : collectives.matched) {
    ASSERT_EQ(collective.calls.size(), 2U);
    // By the device's clock each rank's part took 50 µs.
    for (const auto& call : collective.calls) EXPECT_EQ(call.end_ns - call.start_ns, 50'000);
    const auto known =
        std::ranges::find(trace.communicators, collective.communicator, &analysis::Communicator::identity);
    ASSERT_NE(known, trace.communicators.end());
    communicators.push_back(trace.names[known->text]);
  }
  EXPECT_EQ(std::ranges::count(communicators, "data parallel"), 40);
  EXPECT_EQ(std::ranges::count(communicators, "feed000000000002"), 40);
}

TEST_P(NcclVersionTest, TheDevicesClockIsPutOnTheHosts) {
  const Trace trace = both_ranks(GetParam(), 40, "--nccl-kernel-channels");
  for (const Rank& rank : trace.ranks) {
    ASSERT_EQ(tracks_of(rank, analysis::TrackKind::nccl).size(), 2U);
    double least = 1e9;
    for (const Track* track : tracks_of(rank, analysis::TrackKind::nccl)) {
      for (std::size_t i = 0; i < track->slices.size(); ++i) {
        if (trace.names[trace.kind_of(track->slices, i).category] != "collective") continue;
        // The device's clock is an hour ahead; the slices lie within the process's life, after their enqueueing.
        EXPECT_GE(track->slices.start_ns[i], rank.start_ns);
        EXPECT_LE(track->slices.end_ns(i), rank.end_ns);
        const auto before = track->slices.number(static_cast<std::uint32_t>(i), trace.names.find("enqueued_before"));
        ASSERT_TRUE(before);
        least = std::min(least, *before);
      }
    }
    // It began right after the enqueueing. An edge is told 10 µs after it was at the soonest (the host sleeps longer
    // than the channel works), so all seem that much later, and the quickest telling of all decides how much more.
    EXPECT_GT(least, 10'000);
    EXPECT_LT(least, 10'000'000);
  }
}

TEST_P(NcclVersionTest, WithoutACompletionACollectiveIsOnlyEnqueued) {
  const Trace trace = both_ranks(GetParam(), 25, "");
  const analysis::Collectives collectives = analysis::match_collectives(trace);
  ASSERT_EQ(collectives.rows.size(), 1U);
  EXPECT_EQ(collectives.rows[0].count, 50U);
  EXPECT_EQ(collectives.rows[0].timed, 0U);
  for (const Rank& rank : trace.ranks) {
    EXPECT_EQ(count(trace, rank, "enqueue", "ncclAllReduce"), 50);
    EXPECT_EQ(count(trace, rank, "collective", "ncclAllReduce"), 0);
    EXPECT_EQ(count(trace, rank, "api", "ncclAllReduce"), GetParam() == 4 ? 0 : 50);
    EXPECT_EQ(count(trace, rank, "group", "ncclGroup"), GetParam() == 4 ? 0 : 50);
    EXPECT_EQ(count(trace, rank, "launch", "ncclKernelLaunch"), GetParam() == 4 ? 0 : 50);
    EXPECT_EQ(count(trace, rank, "enqueue", "ncclSend"), GetParam() == 4 ? 0 : 4);  // in each life of the plugin
    EXPECT_EQ(rank.nccl_events, GetParam() == 4 ? 100U : 50U * 5 + 8);
    EXPECT_TRUE(rank.dropped.empty());
    // All that was begun has ended.
    for (const Track& track : rank.tracks) {
      for (std::size_t i = 0; i < track.slices.size(); ++i) {
        EXPECT_FALSE(track.slices.argument(i, trace.names.find("unfinished")));
      }
    }
  }
}

class OldNcclTest : public NcclTest, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Interface, OldNcclTest, ::testing::Values(1, 2, 3),
                         [](const auto& version) { return std::string(1, 'v').append(std::to_string(version.param)); });

TEST_P(OldNcclTest, TheCommunicatorThatEachEventNamesMatchesTheCollectivesOfTwoRanks) {
  const Trace trace = both_ranks(GetParam(), 40, "--nccl-kernel-channels --nccl-proxy");
  ASSERT_EQ(trace.ranks.size(), 2U);
  const analysis::Collectives collectives = analysis::match_collectives(trace);
  EXPECT_EQ(collectives.matched.size(), 80U);  // 40 on each of two communicators
  EXPECT_EQ(collectives.unmatched_calls, 0U);
  ASSERT_EQ(collectives.rows.size(), 1U);
  EXPECT_EQ(collectives.rows[0].operation, "ncclAllReduce");
  EXPECT_EQ(collectives.rows[0].bytes, 262144U * 4);
  EXPECT_EQ(collectives.rows[0].timed, 80U);  // by their proxies
  std::vector<std::string> communicators;
  for (const analysis::Communicator& communicator : trace.communicators)
    communicators.push_back(trace.names[communicator.text]);
  EXPECT_THAT(communicators, ::testing::UnorderedElementsAre("data parallel", "feed000000000002"));
  for (const Rank& rank : trace.ranks) {
    EXPECT_EQ(count(trace, rank, "collective", "ncclAllReduce"), 80);
    EXPECT_EQ(count(trace, rank, "proxy", "proxy send"), 160);
    const Track& track = *tracks_of(rank, analysis::TrackKind::nccl).front();
    const auto text = [&](const char* key) { return trace.names[track.slices.text(0, trace.names.find(key))]; };
    EXPECT_EQ(text("datatype") + " " + text("algorithm") + " " + text("protocol"), "ncclFloat32 RING SIMPLE");
  }
}

// Each collective of a rank and the call that it came from, by their number: bytes and reduction of both.
struct Joined {
  double bytes = 0, said = 0;  // by the plugin, by the range
  std::string reduction, operation;
};
std::map<double, Joined> joined(const Trace& trace, const Rank& rank) {
  std::map<double, Joined> all;
  const analysis::NameId call = trace.names.find("call");
  for (const Track& track : rank.tracks) {
    for (std::size_t i = 0; i < track.slices.size(); ++i) {
      const auto joins = track.slices.number(i, call);
      if (!joins || call == 0) continue;
      Joined& one = all[*joins];
      const auto number = [&](const char* key) { return track.slices.number(i, trace.names.find(key)).value_or(-1); };
      const auto text = [&](const char* key) { return trace.names[track.slices.text(i, trace.names.find(key))]; };
      if (track.kind == analysis::TrackKind::nccl) {
        one.bytes = number("bytes");
        one.reduction = text("reduction");
      } else {
        one.said = number("Message size [bytes]");
        one.operation = text("Reduction operation");
      }
    }
  }
  return all;
}

TEST_P(NcclVersionTest, ACollectiveAndTheRangeOfItsCallNameEachOther) {
  const Trace trace = both_ranks(GetParam(), 40, "--nccl-kernel-channels", "ranges");
  const analysis::Collectives collectives = analysis::match_collectives(trace);
  EXPECT_EQ(collectives.unmatched_calls, 0U);
  std::uint64_t matched = 0;
  for (const auto& row : collectives.rows) matched += row.count;
  EXPECT_EQ(matched, 80U);  // counted once
  for (const Rank& rank : trace.ranks) {
    const std::map<double, Joined> all = joined(trace, rank);
    EXPECT_EQ(all.size(), 80U);
    std::map<std::string, int> reductions;
    for (const auto& [number, one] : all) {
      EXPECT_EQ(one.bytes, one.said) << number;
      EXPECT_EQ(one.reduction, one.operation) << number;
      ++reductions[one.reduction];
      EXPECT_EQ(one.bytes == 4000, one.reduction == "Max") << number;
    }
    // 0 alone, 1 and 2 in a group, 3 and 4 in a group (as 3 is odd), …, 39 alone.
    EXPECT_EQ(reductions, (std::map<std::string, int>{{"Max", 38}, {"Product", 38}, {"Sum", 4}}));
    EXPECT_EQ(tracks_of(rank, analysis::TrackKind::nccl).size(), 2U);
  }
}

TEST_F(NcclTest, WithoutAPluginTheRangesAloneAreMatchedAndWhatIsMissingIsSaid) {
  const Trace trace = both_ranks(0, 10, "--no-nccl", "ranges");
  EXPECT_TRUE(trace.notes.empty());
  const analysis::Collectives collectives = analysis::match_collectives(trace);
  EXPECT_EQ(collectives.unmatched_calls, 0U);
  std::map<std::uint64_t, std::uint64_t> counts;
  for (const auto& row : collectives.rows) {
    EXPECT_EQ(row.operation, "ncclAllReduce");
    EXPECT_EQ(row.members, 2U);
    EXPECT_EQ(row.timed, 0U);
    counts[row.bytes] += row.count;
  }
  EXPECT_EQ(counts, (std::map<std::uint64_t, std::uint64_t>{{4000, 8}, {262144U * 4, 12}}));
  for (const Rank& rank : trace.ranks) {
    EXPECT_EQ(count(trace, rank, "enqueue", "ncclAllReduce"), 20);
    EXPECT_EQ(joined(trace, rank).size(), 20U);
    EXPECT_EQ(rank.nccl_events, 0U);
  }
  const Ended report = run(PACELINE " report run");
  EXPECT_THAT(report.out,
              HasSubstr("20 NCCL collectives were recorded when enqueued, but not when running on the device"));
}

TEST_F(NcclTest, ProxiesAreRecordedOnRequestAndThoseOfOtherProcessesBelongToNothing) {
  const Trace trace = both_ranks(5, 10, "--nccl-proxy");
  for (const Rank& rank : trace.ranks) {
    EXPECT_EQ(count(trace, rank, "proxy", "proxy send"), 40);
    EXPECT_EQ(count(trace, rank, "collective", "ncclAllReduce"), 20);  // completion: the last proxy
  }
}

TEST_F(NcclTest, AUsersOwnPluginIsKeptAndThatIsSaid) {
  const Ended ended =
      run("env NCCL_PROFILER_PLUGIN=none " PACELINE " record -o run -- sh -c \"echo \\$NCCL_PROFILER_PLUGIN\"");
  EXPECT_TRUE(ended.by_itself(0));
  EXPECT_EQ(ended.out, "none\n");
  EXPECT_THAT(ended.err, HasSubstr("NCCL_PROFILER_PLUGIN=none is kept, so NCCL is not recorded"));
}

TEST_F(NcclTest, NoNcclLeavesNcclAlone) {
  const Ended ended = run(
      PACELINE " record --no-nccl --no-cuda -o run -- sh -c \"echo \\$NCCL_PROFILER_PLUGIN:\\$CUDA_INJECTION64_PATH\"");
  EXPECT_EQ(ended.out, ":\n");
  EXPECT_THAT(ended.err, Not(HasSubstr("NCCL")));
}

TEST_F(NcclTest, WithoutARecorderThePluginFailsInInitAndSaysSo) {
  const Ended ended = run("env NCCL_PROFILER_PLUGIN=" NCCL_PLUGIN " " NCCL_HOST " 5 1");
  EXPECT_TRUE(ended.by_itself(1));
  EXPECT_THAT(ended.err, HasSubstr("nccl_host: init"));
  EXPECT_EQ(ended.recorder_lines(), 1);
  EXPECT_THAT(ended.err, HasSubstr("NCCL is not recorded: this process has no Paceline recorder"));
}

}  // namespace
}  // namespace paceline::test
