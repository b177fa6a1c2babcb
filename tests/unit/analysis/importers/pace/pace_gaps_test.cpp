// SPDX-License-Identifier: Apache-2.0
// What a file does not cover: pauses, flight recorders; and the processes that belong to another one's rank.
#include "analysis/importers/pace/gaps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/importers/pace/import.h"
#include "analysis/phases/iterations.h"
#include "analysis/phases/phases.h"
#include "tests/unit/analysis/imported.h"
#include "tests/unit/analysis/rank_phases.h"

namespace paceline::analysis {
namespace {

using format::MpiId;
using format::pack_scope;
using testing::import;
using testing::PaceFile;

void recording(PaceFile& file, std::uint64_t ticks, std::uint64_t reasons) {
  file.add(ticks, format::EventType::recording, reasons);
}

void trigger(PaceFile& file, std::uint64_t ticks, format::TriggerCause cause, std::uint64_t number,
             std::uint64_t kept_from) {
  file.add(ticks, format::EventType::trigger, static_cast<std::uint64_t>(cause) | number << 8);
  file.extension(kept_from, 0);
}

bool unfinished(const Trace& trace, const Track& track, std::uint32_t slice) {
  return track.slices.number(slice, trace.names.find("unfinished")).has_value();
}

// forward 100–200, pause 150–300 (its pop in the pause), backward 320–400, pause from 500 on, last event at 600.
PaceFile with_pauses() {
  PaceFile file;
  const auto forward = pack_scope(file.name("forward"), 0, 0), backward = pack_scope(file.name("backward"), 0, 0);
  file.push(100, forward);
  file.mpi_begin(140, MpiId::Barrier);
  recording(file, 150, format::by_program);
  file.mpi_end(160, MpiId::Barrier);
  recording(file, 300, 0);
  file.push(320, backward);
  file.pop(400);
  file.pop(410);  // of a range that began in the pause
  recording(file, 500, format::after_duration);
  file.clock_pair(600, 0, 600, 1);
  return file;
}

TEST(PaceGaps, APauseCutsWhatIsOpenAndIsNobodysTime) {
  const Trace trace = import({with_pauses()});
  const Rank& rank = trace.ranks[0];
  ASSERT_EQ(rank.gaps.size(), 2u);
  EXPECT_EQ(rank.gaps[0].start_ns, 150);
  EXPECT_EQ(rank.gaps[0].end_ns, 300);
  EXPECT_EQ(rank.gaps[0].reason, "switched off by the program");
  EXPECT_EQ(rank.gaps[1].start_ns, 500);
  EXPECT_EQ(rank.gaps[1].end_ns, 600);
  EXPECT_EQ(rank.recorded_ns(), 600 - 150 - 100);
  const Track& track = rank.tracks.at(0);
  ASSERT_EQ(track.slices.size(), 2u) << "the call and the range it is in cross: it moves to a track of its own";
  EXPECT_EQ(track.slices.end_ns(0), 150);
  EXPECT_TRUE(unfinished(trace, track, 0));
  EXPECT_EQ(track.slices.end_ns(1), 400);
  EXPECT_FALSE(unfinished(trace, track, 1));
  const RankPhases phases = phases_of(trace, rank);
  EXPECT_EQ(phases.total_ns[static_cast<std::size_t>(Phase::forward)], 50);
  EXPECT_EQ(phases.total_ns[static_cast<std::size_t>(Phase::backward)], 80);
  std::int64_t sum = 0;
  for (const std::int64_t ns : phases.total_ns) sum += ns;
  EXPECT_EQ(sum, rank.recorded_ns());
  for (const PhaseInterval& interval : phases.intervals) {
    EXPECT_TRUE(interval.end_ns <= 150 || interval.start_ns >= 300) << interval.start_ns;
  }
}

TEST(PaceGaps, RecordingThatBeginsOffLeavesOutTheTimeFromTheStartOfTheProcess) {
  PaceFile file;
  file.file.header.process_start_utc_ns = file.file.header.start_utc_ns - 50;
  recording(file, 0, format::outside_iterations | format::before_delay);
  recording(file, 400, 0);
  file.push(410, pack_scope(file.name("iteration"), 0, 0));
  file.pop(500);
  const Trace trace = import({file});
  const Rank& rank = trace.ranks[0];
  ASSERT_EQ(rank.gaps.size(), 1u);
  EXPECT_EQ(rank.gaps[0].start_ns, rank.start_ns);
  EXPECT_EQ(rank.utc_of_zero_ns, file.file.header.process_start_utc_ns);
  EXPECT_EQ(rank.gaps[0].reason, "before the end of --delay, outside --iterations");
  EXPECT_EQ(rank.recorded_ns(), 100);
  const auto iterations = iterations_of(trace, rank, phases_of(trace, rank));
  ASSERT_EQ(iterations.size(), 1u);
  EXPECT_TRUE(iterations[0].finished);
}

TEST(PaceGaps, AFlightRecorderKeepsWhatWasAskedForAndTheEnd) {
  PaceFile file;
  const auto step = pack_scope(file.name("step"), 0, 0);
  file.push(100, step);  // dropped neighbours: 100 lies in a chunk that was kept by chance
  trigger(file, 300, format::TriggerCause::slow_iteration, 7, 200);
  file.push(210, step);
  file.pop(250);
  file.push(290, step);  // its pop was dropped
  file.push(510, step);
  file.pop(550);
  file.clock_pair(600, 0, 600, 1);
  file.file.header.kept_from = 500;
  const Trace trace = import({file});
  const Rank& rank = trace.ranks[0];
  ASSERT_EQ(rank.gaps.size(), 2u);
  EXPECT_EQ(rank.gaps[0].end_ns - rank.start_ns, 200);
  EXPECT_EQ(rank.gaps[1].start_ns, 300);
  EXPECT_EQ(rank.gaps[1].end_ns, 500);
  ASSERT_EQ(rank.triggers.size(), 1u);
  EXPECT_EQ(rank.triggers[0].cause, "slow iteration 7");
  EXPECT_EQ(rank.triggers[0].time_ns, 300);
  const Track& track = rank.tracks.at(0);
  bool found_cut = false, found_last = false;
  for (std::uint32_t i = 0; i < track.slices.size(); ++i) {
    if (track.slices.start_ns[i] == 290) found_cut = track.slices.end_ns(i) == 300 && unfinished(trace, track, i);
    if (track.slices.start_ns[i] == 510) found_last = track.slices.end_ns(i) == 550 && !unfinished(trace, track, i);
  }
  EXPECT_TRUE(found_cut);
  EXPECT_TRUE(found_last);
}

TEST(PaceGaps, AChildsThreadsAreItsParentsRanks) {
  PaceFile parent(3, 4), child(3, 4), other(2, 4);
  parent.push(100, pack_scope(parent.name("mine"), 0, 0));
  parent.pop(200);
  child.file.header.pid = 4711;
  child.file.parent = std::to_string(parent.file.header.pid);
  child.use_thread(4711);
  child.push(150, pack_scope(child.name("theirs"), 0, 0));
  child.pop(190);
  other.push(100, pack_scope(other.name("other"), 0, 0));
  other.pop(300);
  const Trace trace = import({child, parent, other});
  ASSERT_EQ(trace.ranks.size(), 2u);
  EXPECT_TRUE(trace.notes.empty());
  const Rank& rank = trace.ranks[1];
  EXPECT_EQ(rank.rank, 3);
  EXPECT_EQ(rank.pid, parent.file.header.pid);
  ASSERT_EQ(rank.tracks.size(), 2u);
  EXPECT_TRUE(rank.tracks[0].main);
  EXPECT_FALSE(rank.tracks[1].main);
  EXPECT_EQ(rank.tracks[1].label, "process 4711: main thread");
  EXPECT_EQ(trace.name_of(rank.tracks[1].slices, 0), "theirs");
}

TEST(PaceGaps, LostStretchesBelongToTheirTracks) {
  PaceFile file;
  const auto forward = pack_scope(file.name("forward"), 0, 0);
  file.push(100, forward);
  file.pop(400);
  file.use_thread(4712);
  file.push(100, forward);
  file.pop(200);
  file.file.lost = {{0, 100, 150, 250, 7, 0, false},   // of the main thread
                    {5, 4713, 120, 130, 3, 0, false},  // of a thread of which nothing else is there
                    {0, 0, 500, 600, 2, 3, true}};     // of any
  file.file.header.dropped[0] = 10;
  file.file.header.dropped[3] = 2;
  const Trace trace = import({file});
  const Rank& rank = trace.ranks[0];
  EXPECT_EQ(rank.end_ns - rank.start_ns, 600) << "the process was there when the last event was lost";
  ASSERT_EQ(rank.tracks.size(), 3u);
  const Track& main = rank.tracks[0];
  EXPECT_TRUE(main.main);
  ASSERT_EQ(main.lost.size(), 1u);
  EXPECT_EQ(main.lost[0].start_ns, 150);
  EXPECT_EQ(main.lost[0].end_ns, 250);
  EXPECT_EQ(main.lost[0].events, 7u);
  EXPECT_EQ(main.lost[0].cause, "no_free_chunk");
  EXPECT_TRUE(rank.tracks[1].lost.empty());
  EXPECT_EQ(rank.tracks[2].label, "thread 4713");
  ASSERT_EQ(rank.tracks[2].lost.size(), 1u);
  EXPECT_EQ(rank.tracks[2].lost[0].events, 3u);
  ASSERT_EQ(rank.lost.size(), 1u);
  EXPECT_EQ(rank.lost[0].cause, "disk");
  // A range that the recorder kept has both of its ends.
  ASSERT_EQ(main.slices.size(), 1u);
  EXPECT_EQ(main.slices.end_ns(0), 400);
  EXPECT_FALSE(unfinished(trace, main, 0));
}

TEST(PaceGaps, ADamagedBlockCutsTheRangesThatAreOpenAroundIt) {
  PaceFile file;
  const auto forward = pack_scope(file.name("forward"), 0, 0);
  file.push(100, forward);
  file.push(300, forward);
  file.pop(400);
  file.file.lost = {{0, 100, 150, 250, 0, format::lost_by_damage, false}};
  file.file.damaged = true;
  const Trace trace = import({file});
  const Track& main = trace.ranks[0].tracks.at(0);
  ASSERT_EQ(main.slices.size(), 2u);
  EXPECT_EQ(main.slices.end_ns(0), 150);
  EXPECT_TRUE(unfinished(trace, main, 0));
  EXPECT_EQ(main.slices.end_ns(1), 400);
  ASSERT_EQ(main.lost.size(), 1u);
  EXPECT_EQ(main.lost[0].cause, "damage");
}

TEST(PaceGaps, WaitsForTheRecorderAreAddedUp) {
  PaceFile file;
  file.domain(4096, "paceline");
  const auto wait = pack_scope(file.name("recorder wait"), 0, 4096), forward = pack_scope(file.name("forward"), 0, 0);
  file.push(100, forward);
  for (const std::uint64_t at : {200u, 300u}) {
    file.push(at, wait);
    file.add(at + 40, format::EventType::pop, 4096);
  }
  file.pop(400);
  EXPECT_EQ(import({file}).ranks[0].recorder_wait_ns, 80);
}

}  // namespace
}  // namespace paceline::analysis
