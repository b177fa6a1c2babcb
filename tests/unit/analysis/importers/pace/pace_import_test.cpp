// SPDX-License-Identifier: Apache-2.0
// What a .pace file's events become in the model.
#include "analysis/importers/pace/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "profiler/format/error.h"
#include "tests/unit/analysis/imported.h"

namespace paceline::analysis {
namespace {

using format::EventType;
using format::MpiId;
using format::pack_scope;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::import;
using testing::names_of;
using testing::PaceFile;
using testing::track_labelled;

std::string class_text(const Trace& trace, const Track& track, std::size_t slice) {
  const Kind& found = trace.kind_of(track.slices, slice);
  return trace.names[found.domain] + "/" + trace.names[found.category];
}

TEST(PaceImport, PairsPushAndPopAndResolvesNamesDomainsAndCategories) {
  PaceFile file;
  file.domain(1, "paceline.trainer");
  file.category(1, 3, "iteration");
  file.category(1, 4, "forward");
  const auto iteration = file.name("iteration"), forward = file.name("forward of a model with a long name");
  file.add(100, format::EventType::push_payload, pack_scope(iteration, 3, 1));
  file.extension(static_cast<std::uint64_t>(format::PayloadType::unsigned_integer), 12);
  file.push(110, pack_scope(forward, 4, 1));
  file.pop(150, 1);
  file.pop(200, 1);
  const Trace trace = import(file);
  ASSERT_EQ(trace.ranks.size(), 1U);
  const Track& track = trace.ranks[0].tracks.at(0);
  EXPECT_TRUE(track.main);
  EXPECT_EQ(track.label, "main thread");
  EXPECT_THAT(names_of(trace, track), ElementsAre("iteration", "forward of a model with a long name"));
  EXPECT_EQ(class_text(trace, track, 0), "paceline.trainer/iteration");
  EXPECT_EQ(class_text(trace, track, 1), "paceline.trainer/forward");
  EXPECT_THAT(track.slices.start_ns, ElementsAre(100, 110));
  EXPECT_THAT(track.slices.duration_ns, ElementsAre(100, 40));
  EXPECT_THAT(track.slices.depth, ElementsAre(0, 1));
  EXPECT_EQ(track.slices.number(0, trace.names.find("payload")), 12.0);
  EXPECT_EQ(trace.ranks[0].nvtx_events, 2U);
  EXPECT_EQ(trace.ranks[0].end_ns, 200);
}

TEST(PaceImport, ReadsSignedAndFloatingPayloadsOfMarks) {
  PaceFile file;
  const auto accuracy = file.name("accuracy");
  file.add(10, format::EventType::mark_payload, pack_scope(accuracy, 0, 0));
  file.extension(static_cast<std::uint64_t>(format::PayloadType::floating), std::bit_cast<std::uint64_t>(0.925));
  file.add(20, format::EventType::mark_payload, pack_scope(accuracy, 0, 0));
  file.extension(static_cast<std::uint64_t>(format::PayloadType::signed_integer), static_cast<std::uint64_t>(-3));
  const Trace trace = import(file);
  const Track& track = trace.ranks[0].tracks[0];
  EXPECT_THAT(track.marks.start_ns, ElementsAre(10, 20));
  EXPECT_EQ(track.marks.number(0, trace.names.find("payload")), 0.925);
  EXPECT_EQ(track.marks.number(1, trace.names.find("payload")), -3.0);
}

TEST(PaceImport, APopWithoutAPushIsLeftOut) {
  PaceFile file;
  const auto work = file.name("work");
  file.pop(5);
  file.push(10, pack_scope(work, 0, 0));
  file.pop(20);
  const Trace trace = import(file);
  EXPECT_THAT(trace.ranks[0].tracks[0].slices.start_ns, ElementsAre(10));
}

TEST(PaceImport, EachDomainPopsItsOwnRanges) {
  PaceFile file;
  file.domain(1, "one");
  file.domain(2, "two");
  const auto a = file.name("a"), b = file.name("b"), c = file.name("c");
  file.push(10, pack_scope(a, 0, 1));
  file.push(20, pack_scope(b, 0, 2));
  file.pop(30, 1);  // ends a, though b is the latest
  file.push(35, pack_scope(c, 0, 1));
  file.pop(38, 1);
  file.pop(40, 2);
  const Trace trace = import(file);
  ASSERT_EQ(trace.ranks[0].tracks.size(), 2U);  // a and b cross
  EXPECT_THAT(names_of(trace, trace.ranks[0].tracks[0]), ElementsAre("a", "c"));
  EXPECT_THAT(trace.ranks[0].tracks[0].slices.duration_ns, ElementsAre(20, 3));
  EXPECT_THAT(names_of(trace, trace.ranks[0].tracks[1]), ElementsAre("b"));
  EXPECT_THAT(trace.ranks[0].tracks[1].slices.duration_ns, ElementsAre(20));
}

TEST(PaceImport, WhatAKilledProcessLeftOpenEndsWithItsLastEvent) {
  PaceFile file;
  const auto work = file.name("work");
  file.push(10, pack_scope(work, 0, 0));
  file.mpi_begin(20, MpiId::Barrier);
  file.use_thread(7);
  file.add(90, format::EventType::mark, pack_scope(work, 0, 0));
  const Trace trace = import(file);
  const Track& track = trace.ranks[0].tracks[0];
  EXPECT_THAT(names_of(trace, track), ElementsAre("work", "MPI_Barrier"));
  EXPECT_THAT(track.slices.duration_ns, ElementsAre(80, 70));
  EXPECT_EQ(track.slices.number(0, trace.names.find("unfinished")), 1.0);
  EXPECT_EQ(track.slices.number(1, trace.names.find("unfinished")), 1.0);
}

TEST(PaceImport, CallsThatAToolMakesOnItsOwnBehalfAreNoCallsOfTheProgram) {
  PaceFile file;
  file.mpi_begin(20, MpiId::Allreduce);
  file.mpi_end(30, MpiId::Allreduce);
  constexpr std::uint64_t by_tool = 1 << 16;
  file.add(40, format::EventType::mpi_begin, static_cast<std::uint64_t>(MpiId::Allreduce) | by_tool);
  file.mpi_end(50, MpiId::Allreduce);
  const Trace trace = import(file);
  const Track& track = trace.ranks[0].tracks[0];
  EXPECT_THAT(names_of(trace, track), ElementsAre("MPI_Allreduce", "PMPI_Allreduce"));
  EXPECT_EQ(class_text(trace, track, 0), "mpi/collective");
  EXPECT_EQ(class_text(trace, track, 1), "mpi/tool");
}

TEST(PaceImport, MpiCallsNestInTheirThreadWithTheirArguments) {
  PaceFile file;
  file.communicator(5, 2, 0xabcdef, 0, "MPI_COMM_WORLD");
  const auto step = file.name("step");
  file.push(10, pack_scope(step, 0, 0));
  file.mpi_collective(20, MpiId::Allreduce, -1, 4096, 5, 17);
  file.mpi_end(30, MpiId::Allreduce);
  file.mpi_collective(31, MpiId::Bcast, 1, 64, 5, 18);
  file.mpi_end(33, MpiId::Bcast);
  file.mpi_peer(40, MpiId::Send, 99, 512, 5, 1);
  file.mpi_end(45, MpiId::Send);
  file.mpi_peer(46, MpiId::Recv, -1, 512, 5, -2);
  file.mpi_end(47, MpiId::Recv);
  file.pop(50);
  const Trace trace = import(file);
  const Track& track = trace.ranks[0].tracks[0];
  EXPECT_THAT(names_of(trace, track), ElementsAre("step", "MPI_Allreduce", "MPI_Bcast", "MPI_Send", "MPI_Recv"));
  EXPECT_THAT(track.slices.depth, ElementsAre(0, 1, 1, 1, 1));
  EXPECT_EQ(class_text(trace, track, 1), "mpi/collective");
  EXPECT_EQ(class_text(trace, track, 3), "mpi/point-to-point");
  const auto number = [&](std::uint32_t slice, const char* key) {
    return track.slices.number(slice, trace.names.find(key));
  };
  EXPECT_EQ(number(1, "bytes"), 4096.0);
  EXPECT_EQ(number(1, "sequence"), 17.0);
  EXPECT_EQ(number(1, "members"), 2.0);
  EXPECT_EQ(number(1, "root"), std::nullopt);
  EXPECT_EQ(number(2, "root"), 1.0);
  EXPECT_EQ(number(3, "peer"), 1.0);
  EXPECT_EQ(number(3, "tag"), 99.0);
  EXPECT_EQ(number(4, "peer"), -2.0);
  EXPECT_EQ(number(4, "tag"), -1.0);
  EXPECT_EQ(trace.names[track.slices.text(1, trace.names.find("communicator"))], "MPI_COMM_WORLD");
  EXPECT_EQ(trace.ranks[0].mpi_events, 4U);
}

TEST(PaceImport, RequestsTieThePostingCallToTheOneThatCompletesIt) {
  PaceFile file;
  file.communicator(5, 2, 0xabcdef, 0, "MPI_COMM_WORLD");
  file.mpi_collective(10, MpiId::Iallreduce, -1, 64, 5, 0);
  file.add(11, EventType::mpi_posted, 71);
  file.mpi_end(12, MpiId::Iallreduce);
  file.mpi_begin(20, MpiId::Waitall);
  file.add(21, EventType::mpi_completed, 70);
  file.add(21, EventType::mpi_completed, 71);
  file.mpi_end(30, MpiId::Waitall);
  file.add(31, EventType::mpi_completed, 72);  // outside of any call: damage
  const Trace trace = import(file);
  const Track& track = trace.ranks[0].tracks[0];
  const NameId request = trace.names.find("request");
  std::vector<std::pair<std::uint32_t, double>> told;
  for (std::uint32_t i = 0; i < track.slices.size(); ++i) {
    track.slices.each_argument(i, [&](const Argument& argument) {
      if (argument.key == request) told.emplace_back(i, argument.number());
    });
  }
  EXPECT_THAT(told, ElementsAre(std::pair(0U, 71.0), std::pair(1U, 70.0), std::pair(1U, 71.0)));
}

TEST(PaceImport, CallsOnFilesAndWindowsSayWhichAndHowMuch) {
  PaceFile file;
  const std::uint64_t path = file.name("/data/checkpoint");
  file.add(1, EventType::mpi_file, 9 | path << 32);
  file.extension(0x1111, 5);
  file.add(2, EventType::mpi_window, 4 | std::uint64_t{5} << 32);
  file.extension(0x2222, 256);
  const auto on_object = [&](std::uint64_t ticks, EventType type, MpiId function, std::uint64_t object,
                             std::uint64_t bytes, std::uint64_t low) {
    file.add(ticks, type, static_cast<std::uint64_t>(function) | object << 16);
    file.extension(bytes, low);
    file.mpi_end(ticks + 5, function);
  };
  on_object(10, EventType::mpi_begin_file, MpiId::File_write_at_all, 9, 4096, 8192);
  on_object(20, EventType::mpi_begin_file, MpiId::File_read, 9, 64, ~std::uint64_t{0});
  on_object(30, EventType::mpi_begin_window, MpiId::Put, 3, 16, 4);
  on_object(40, EventType::mpi_begin_window, MpiId::Win_fence, 0xffffffff, 0, 4);
  const Trace trace = import(file);
  const Track& track = trace.ranks[0].tracks[0];
  EXPECT_THAT(names_of(trace, track),
              ElementsAre("MPI_File_write_at_all", "MPI_File_read", "MPI_Put", "MPI_Win_fence"));
  const auto number = [&](std::uint32_t slice, const char* key) {
    return track.slices.number(slice, trace.names.find(key));
  };
  EXPECT_EQ(number(0, "bytes"), 4096.0);
  EXPECT_EQ(number(0, "offset"), 8192.0);
  EXPECT_EQ(number(1, "offset"), std::nullopt);
  EXPECT_EQ(trace.names[track.slices.text(1, trace.names.find("file"))], "/data/checkpoint");
  EXPECT_EQ(number(2, "peer"), 3.0);
  EXPECT_EQ(number(2, "window"), 4.0);
  EXPECT_EQ(number(3, "peer"), std::nullopt);
  EXPECT_EQ(number(3, "bytes"), std::nullopt);
  EXPECT_EQ(trace.ranks[0].mpi_events, 4U);
}

TEST(PaceImport, CommunicatorsAreToldApartByIdentityNotByName) {
  PaceFile a(0, 4), b(1, 4), c(2, 4);
  a.communicator(1, 2, 111, 0, "row");
  b.communicator(9, 2, 111, 1, "row");  // the same one under another local number
  c.communicator(1, 2, 222, 0, "row");  // another of the same name
  for (PaceFile* file : {&a, &b, &c}) {
    file->mpi_collective(10, MpiId::Barrier, -1, 0, file == &b ? 9 : 1, 0);
    file->mpi_end(20, MpiId::Barrier);
  }
  const Trace trace = import(a, b, c);
  std::vector<NameId> texts;
  for (const Rank& rank : trace.ranks) {
    texts.push_back(rank.tracks[0].slices.text(0, trace.names.find("communicator")));
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0], texts[2]);
}

TEST(PaceImport, SaysHowGoodUtcIsWhereNothingElseAlignsHosts) {
  PaceFile here(0, 2), there(1, 2);
  there.file.host = "other";
  there.file.header.start_utc_ns += 5000;
  for (PaceFile* file : {&here, &there}) file->push(100, pack_scope(file->name("range"), 0, 0));
  Trace trace = import(here, there);
  EXPECT_EQ(trace.ranks[1].clock_source, "utc");
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_THAT(trace.notes[0],
              ::testing::AllOf(HasSubstr("other and node"), HasSubstr("no time service keeps the clock of")));

  here.file.utc_error_us = 400;
  there.file.utc_error_us = 2100;
  trace = import(here, there);
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_THAT(trace.notes[0], HasSubstr("good to 2.50 ms"));
  EXPECT_EQ(trace.ranks[0].clock_error_ns, 1000);
  EXPECT_EQ(trace.ranks[1].clock_error_ns, 2.5e6);
  EXPECT_EQ(trace.ranks[1].tracks[0].slices.start_ns[0] - trace.ranks[0].tracks[0].slices.start_ns[0], 5000);
}

TEST(PaceImport, StartEndRangesThatNestStayOnTheirThread) {
  PaceFile file;
  const auto outer = file.name("outer"), inner = file.name("inner"), push = file.name("push");
  file.start(10, pack_scope(outer, 0, 0), 1);
  file.push(20, pack_scope(push, 0, 0));
  file.start(25, pack_scope(inner, 0, 0), 2);
  file.end(28, 2);
  file.pop(30);
  file.end(40, 1);
  const Trace trace = import(file);
  ASSERT_EQ(trace.ranks[0].tracks.size(), 1U);
  const Track& track = trace.ranks[0].tracks[0];
  EXPECT_THAT(names_of(trace, track), ElementsAre("outer", "push", "inner"));
  EXPECT_THAT(track.slices.depth, ElementsAre(0, 1, 2));
}

TEST(PaceImport, StartEndRangesThatCrossPushedOnesMoveAndThePushedOnesStay) {
  PaceFile file;
  const auto range = file.name("range"), push = file.name("push"), tail = file.name("tail");
  file.start(10, pack_scope(range, 0, 0), 1);  // ends inside the push that began inside it
  file.push(20, pack_scope(push, 0, 0));
  file.end(30, 1);
  file.start(35, pack_scope(tail, 0, 0), 2);  // ends after the push that it began in
  file.pop(40);
  file.end(50, 2);
  const Trace trace = import(file);
  ASSERT_EQ(trace.ranks[0].tracks.size(), 2U);
  EXPECT_THAT(names_of(trace, trace.ranks[0].tracks[0]), ElementsAre("push"));
  const Track& ranges = track_labelled(trace.ranks[0], "main thread: ranges");
  EXPECT_THAT(names_of(trace, ranges), ElementsAre("range", "tail"));
  EXPECT_THAT(ranges.slices.start_ns, ElementsAre(10, 35));
  EXPECT_THAT(ranges.slices.duration_ns, ElementsAre(20, 15));
  EXPECT_FALSE(ranges.main);
}

TEST(PaceImport, ARangeEndedByAnotherThreadKeepsItsTimes) {
  PaceFile file;
  const auto request = file.name("request");
  file.start(10, pack_scope(request, 0, 0), 42);
  file.use_thread(7);
  file.end(35, 42);
  const Trace trace = import(file);
  const Track& ranges = track_labelled(trace.ranks[0], "main thread: ranges");
  EXPECT_THAT(ranges.slices.start_ns, ElementsAre(10));
  EXPECT_THAT(ranges.slices.duration_ns, ElementsAre(25));
}

TEST(PaceImport, ThreadsHaveTheirNamesEvenIfGivenByAnotherThread) {
  PaceFile file;
  const auto work = file.name("work");
  file.use_thread(7);
  file.push(5, pack_scope(work, 0, 0));
  file.use_thread(8);
  file.pop(5);  // nothing to show
  file.use_thread(100);
  file.thread_name(7, "loader");
  const Trace trace = import(file);
  EXPECT_EQ(trace.ranks[0].tracks.size(), 2U);
  EXPECT_FALSE(track_labelled(trace.ranks[0], "loader").main);
  EXPECT_TRUE(track_labelled(trace.ranks[0], "main thread").main);
}

TEST(PaceImport, RanksWithoutANumberGetTheFreeOnesInOrderOfStart) {
  PaceFile a(-1, -1), b(-1, -1), c(1, 3);
  a.file.header.start_utc_ns += 2000;
  a.file.path = "late.pace", b.file.path = "early.pace", c.file.path = "one.pace";
  const Trace trace = import(a, b, c);
  ASSERT_EQ(trace.ranks.size(), 3U);
  EXPECT_EQ(trace.ranks[0].path, "early.pace");
  EXPECT_EQ(trace.ranks[1].path, "one.pace");
  EXPECT_EQ(trace.ranks[2].path, "late.pace");
  EXPECT_EQ(trace.ranks[2].rank, 2);
  EXPECT_EQ(trace.ranks[2].world_size, 3);  // as many as there are
}

TEST(PaceImport, ARankLearnedWhileRunningCounts) {
  PaceFile file(-1, -1);
  file.setting("rank", "5");
  file.setting("world_size", "8");
  const Trace trace = import(file);
  EXPECT_EQ(trace.ranks[0].rank, 5);
  EXPECT_EQ(trace.ranks[0].world_size, 8);
}

TEST(PaceImport, FilesOfTwoRunsAreRefused) {
  PaceFile a(0, 1), b(0, 1);
  a.file.job = "123.0", b.file.job = "124.0";
  a.file.path = "a.pace", b.file.path = "b.pace";
  try {
    import(a, b);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("a.pace and b.pace are of different runs (jobs 123.0 and 124.0)"));
  }
}

TEST(PaceImport, CountsDropsByCauseAndKeepsDamage) {
  PaceFile file;
  file.file.header.dropped[static_cast<std::size_t>(format::DropCause::no_free_chunk)] = 12;
  file.file.damaged = true;
  file.file.damage = "cut at byte 4096";
  const Trace trace = import(file);
  EXPECT_THAT(trace.ranks[0].dropped, ElementsAre(std::pair<const std::string, std::uint64_t>("no_free_chunk", 12)));
  EXPECT_TRUE(trace.ranks[0].damaged);
  EXPECT_EQ(trace.ranks[0].damage, "cut at byte 4096");
}

TEST(PaceImport, TheRunBeginsWithItsFirstProcess) {
  PaceFile file;
  file.file.header.process_start_utc_ns = file.file.header.start_utc_ns - 30'000'000;
  file.clock_pair(1000, file.file.header.start_utc_ns + 1000, 5'000'000'000, 20);
  const auto work = file.name("work");
  file.push(2000, pack_scope(work, 0, 0));
  file.pop(3000);
  const Trace trace = import(file);
  EXPECT_EQ(trace.ranks[0].start_ns, 0);
  EXPECT_EQ(trace.ranks[0].tracks[0].slices.start_ns[0], 30'002'000);
  EXPECT_EQ(trace.ranks[0].end_ns, 30'003'000);
}

TEST(PaceImport, CutEventsAtTheEndOfATrackAreLeftOut) {
  PaceFile file;
  const auto work = file.name("work");
  file.push(10, pack_scope(work, 0, 0));
  file.pop(20);
  file.add(30, format::EventType::push_payload, pack_scope(work, 0, 0));  // its extension is missing
  const Trace trace = import(file);
  EXPECT_EQ(trace.ranks[0].tracks[0].slices.size(), 1U);
}

std::string arguments_text(const Trace& trace, const Slices& slices, std::size_t slice) {
  std::string text;
  slices.each_argument(slice, [&](const Argument& argument) {
    text += trace.names[argument.key] + "=" +
            (argument.is_text() ? trace.names[argument.text()] : std::to_string(static_cast<int>(argument.number()))) +
            " ";
  });
  return text;
}

TEST(PaceImport, PayloadsStandBesideTheRangesTheyCameWith) {
  constexpr std::uint32_t schema = 1U << 24;
  constexpr std::uint64_t uint64 = 18, handle = 80, message = 1 << 10;
  PaceFile file;
  file.domain(1, "NCCL");
  file.add(0, format::EventType::schema, schema);
  file.extension(1 | 1ULL << 16, 0);
  file.extension(0, 0);
  file.schema_entry(schema, 0, "bytes", uint64, 0, 1);
  file.schema_entry(schema, 1, "", handle, message, 1);
  const std::uint64_t pushed = file.name("pushed"), popped = file.name("popped"), plain = file.name("plain");
  file.payload(10, schema, {4096, pushed});
  file.push(10, pack_scope(0, 0, 1));
  file.push(20, pack_scope(static_cast<std::uint32_t>(plain), 0, 0));
  file.pop(30, 0);
  file.payload(40, 18, {7});
  file.payload(40, schema, {8192, popped});
  file.pop(40, 1);
  file.payload(50, schema, {1, 0});
  file.add(50, format::EventType::mark, pack_scope(static_cast<std::uint32_t>(plain), 0, 1));
  file.payload(60, schema, {2, 0});
  file.start(60, pack_scope(static_cast<std::uint32_t>(plain), 0, 1), 5);
  file.use_thread(999);
  file.payload(70, schema, {3, popped});
  file.end(70, 5);
  const Trace trace = import(file);
  const Track& main = track_labelled(trace.ranks[0], "main thread");
  EXPECT_THAT(names_of(trace, main), ElementsAre("popped", "plain"));
  EXPECT_EQ(arguments_text(trace, main.slices, 0), "bytes=4096 payload=7 bytes=8192 ");
  EXPECT_EQ(arguments_text(trace, main.slices, 1), "");
  EXPECT_EQ(arguments_text(trace, main.marks, 0), "bytes=1 ");
  const Track& ranges = track_labelled(trace.ranks[0], "main thread: ranges");
  EXPECT_THAT(names_of(trace, ranges), ElementsAre("popped"));
  EXPECT_EQ(arguments_text(trace, ranges.slices, 0), "bytes=2 bytes=3 ");
}

TEST(PaceImport, SamplesBecomeTracksOfCounters) {
  PaceFile file;
  file.push(10, 0);
  file.pop(20);
  file.use_thread(999);
  file.counter(3, format::CounterKind::sum, "bytes sent", "bytes", "eth0");
  file.counter(7, format::CounterKind::level, "temperature", "°C", "");
  constexpr std::uint64_t huge = 0xffff'ffff'ffff'fff0;  // a sum passes the end of its 64 bits
  file.sample(100, 3, huge);
  file.sample(100, 7, static_cast<std::uint64_t>(-5));
  file.sample(300, 3, 1000);
  file.sample(200, 3, huge + 8);  // not in order
  file.sample(200, 7, 6);
  file.sample(250, 12, 42);      // its definition is lost
  file.sample(260, 0x10003, 1);  // damage
  file.setting("cpus_allowed", "0-3");
  file.setting("rank", "0");
  const Trace trace = import(file);
  const Rank& rank = trace.ranks[0];
  EXPECT_EQ(rank.counter_events, 6U);
  ASSERT_EQ(rank.tracks.size(), 4U) << "the thread of the samples has no track of its own";
  const Track& sent = track_labelled(rank, "eth0: bytes sent");
  EXPECT_EQ(sent.kind, TrackKind::counter);
  EXPECT_EQ(sent.samples.name, "bytes sent");
  EXPECT_EQ(sent.samples.unit, "bytes");
  EXPECT_EQ(sent.samples.device, "eth0");
  EXPECT_TRUE(sent.samples.is_sum);
  EXPECT_THAT(sent.samples.time_ns, ElementsAre(100, 200, 300));
  EXPECT_THAT(sent.samples.value, ElementsAre(0, 8, 1016)) << "counted from the first";
  const Track& temperature = track_labelled(rank, "temperature");
  EXPECT_FALSE(temperature.samples.is_sum);
  EXPECT_THAT(temperature.samples.value, ElementsAre(-5, 6));
  EXPECT_THAT(track_labelled(rank, "counter 12").samples.value, ElementsAre(42));
  EXPECT_THAT(rank.facts, ElementsAre(std::pair<const std::string, std::string>("cpus_allowed", "0-3")));
  EXPECT_EQ(main_track(rank)->label, "main thread");
}

// Whatever a damaged file's slots hold: no crash, and the model's own promises are kept.
TEST(PaceImport, OfRandomSlotsIsATraceThatNests) {
  std::mt19937_64 random(11);
  const std::uint64_t types[] = {1,  2,  3,  4,  5,  16, 17, 18, 19, 20, 21, 22, 23, 32, 33, 34, 35,  48, 49,
                                 56, 63, 40, 99, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 128, 129};
  for (int round = 0; round < 300; ++round) {
    PaceFile file(round % 3 - 1, -1);
    std::uint64_t ticks = 0;
    for (int i = 0; i < 400; ++i) {
      if (i % 100 == 0) file.use_thread(random() % 3);
      ticks += random() % 50;
      // Small numbers meet each other; large ones are the damage.
      const auto value = [&] {
        return random() % 4 == 0 ? random() : random() % 3 | (random() % 3) << 32 | (random() % 2) << 48;
      };
      file.file.tracks.back().slots.push_back({ticks << 8 | types[random() % std::size(types)], value()});
      if (random() % 8 == 0) file.extension(value(), value());
    }
    const Trace trace = import(file);
    for (const Rank& rank : trace.ranks) {
      for (const Track& track : rank.tracks) {
        std::vector<std::int64_t> open;
        for (std::size_t i = 0; i < track.slices.size(); ++i) {
          ASSERT_GE(track.slices.duration_ns[i], 0);
          ASSERT_LT(track.slices.kind[i], trace.kinds.size());
          track.slices.each_argument(i, [&](const Argument& argument) {
            ASSERT_LT(argument.key, trace.names.size());
            ASSERT_LT(argument.text(), trace.names.size());
          });
          ASSERT_LE(track.slices.start_ns[i == 0 ? 0 : i - 1], track.slices.start_ns[i]);
          while (!open.empty() && open.back() <= track.slices.start_ns[i]) open.pop_back();
          ASSERT_EQ(open.size(), track.slices.depth[i]);
          ASSERT_TRUE(open.empty() || track.slices.end_ns(i) <= open.back());
          open.push_back(track.slices.end_ns(i));
        }
      }
    }
  }
}

TEST(PaceImport, SamplesOfStacksBelongToTheirThreads) {
  PaceFile file;
  const auto train = file.name("train"), script = file.name("train.py"), read = file.name("[read]");
  file.add(50, format::EventType::mark, 0);
  file.use_thread(999);  // the sampler's
  const auto define = [&](std::uint64_t stack, std::uint64_t caller, std::uint64_t function, std::uint64_t of,
                          std::uint64_t line) {
    file.add(60, format::EventType::stack, stack | caller << 32);
    file.extension(function | of << 32, line);
  };
  const auto sample = [&](std::uint64_t ticks, std::uint64_t thread, std::uint64_t stack) {
    file.add(ticks, format::EventType::stack_sample, thread | stack << 32);
    file.extension(10, 0);
  };
  define(1, 0, train, script, 7);
  define(2, 1, read, 0, 0);
  sample(70, 100, 2);
  sample(80, 100, 1);
  sample(80, 4711, 1);
  sample(90, 100, 77);  // its definition was lost
  const Trace trace = import(file);
  const Rank& rank = trace.ranks.at(0);
  ASSERT_EQ(rank.tracks.size(), 2U);
  const StackSamples& main = rank.tracks[0].stacks;
  EXPECT_TRUE(rank.tracks[0].main);
  EXPECT_EQ(main.time_ns.size(), 3U);
  EXPECT_EQ(main.time_ns[1] - main.time_ns[0], 10);
  EXPECT_EQ(main.period_ns, 10);
  EXPECT_EQ(main.stack[2], 0U);
  const Stacks& stacks = trace.stacks;
  EXPECT_EQ(stacks.caller(main.stack[0]), main.stack[1]);
  EXPECT_EQ(trace.names[stacks[stacks.innermost(main.stack[0])].function], "[read]");
  const Frame& frame = stacks[stacks.innermost(main.stack[1])];
  EXPECT_EQ(trace.names[frame.function] + " " + trace.names[frame.file], "train train.py");
  EXPECT_EQ(frame.line, 7U);
  EXPECT_EQ(rank.tracks[1].label, "thread 4711");
  EXPECT_THAT(rank.tracks[1].stacks.stack, ElementsAre(main.stack[1]));
}

}  // namespace
}  // namespace paceline::analysis
