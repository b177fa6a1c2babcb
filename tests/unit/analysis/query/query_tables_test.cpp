// SPDX-License-Identifier: Apache-2.0
// The tables of `paceline query`: what they contain, how errors read, and that nothing can be changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "analysis/query/track_index.h"
#include "analysis/run/run_analysis.h"
#include "analysis/trace/builder.h"
#include "analysis/trace/slice_id.h"
#include "profiler/format/error.h"
#include "tests/unit/analysis/query_example.h"
#include "tests/unit/analysis/query_rows.h"

namespace paceline::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string error_of(const std::string& sql) {
  static const Trace trace = query_example();
  QueryRunner runner(trace);
  try {
    rows_of(runner, sql);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<QueryRow> example_rows(const std::string& sql) {
  static const Trace trace = query_example();
  return rows_of(trace, sql);
}

TEST(QueryTables, IdsOfSlicesHoldTrackAndPosition) {
  const Trace trace = query_example();
  QueryRunner runner(trace);
  // Track 7 is rank 1's third one: each rank has 5.
  EXPECT_EQ(trace.ranks[1].tracks.size(), 5U);
  const auto rows =
      rows_of(runner, fmt::format("SELECT id, track, rank, name FROM slices WHERE id = {}", slice_id(7, 2)));
  EXPECT_THAT(
      rows, ElementsAre(QueryRow{std::to_string((std::int64_t{7} << 32) + 2), "7", "1", "'ncclDevKernel_AllReduce'"}));
  EXPECT_THAT(rows_of(runner, "SELECT count(*), count(DISTINCT id), min(id >> 32 = track) FROM slices"),
              ElementsAre(QueryRow{"234", "234", "1"}));
  for (const char* id : {"99999999999999", "-1", "4611686018427387904", "9223372036854775807", "7.5", "NULL", "'x'"}) {
    EXPECT_THAT(rows_of(runner, fmt::format("SELECT id FROM slices WHERE id = {}", id)), IsEmpty()) << id;
  }
}

TEST(QueryTables, MarksHaveIdsOfTheirOwn) {
  EXPECT_THAT(example_rows("SELECT id, rank, time_ns, name, domain FROM marks WHERE rank = 0 ORDER BY id DESC LIMIT 2"),
              ElementsAre(QueryRow{"-1", "0", "90000000", "'step done'", "'train'"},
                          QueryRow{"-2", "0", "190000000", "'step done'", "'train'"}));
}

TEST(QueryTables, PlaceOfAnIdIsItsInverse) {
  constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  for (const std::uint32_t position : {0U, 1U, most}) {
    for (const TrackNumber track : {0U, 5U, most >> 1}) {
      const EventPlace slice = place_of(slice_id(track, position)), mark = place_of(mark_id(track, position));
      EXPECT_EQ(slice.track, track);
      EXPECT_EQ(slice.position, position);
      EXPECT_FALSE(slice.is_mark);
      EXPECT_EQ(mark.track, track);
      EXPECT_EQ(mark.position, position);
      EXPECT_TRUE(mark.is_mark);
    }
  }
}

TEST(QueryTables, IntegersAboveTheLargestOfSqliteAreText) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.add_slice(0, 10, "f");
  main.argument("small", std::int64_t{9'007'199'254'740'993});
  main.argument("negative", std::int64_t{-5});
  main.argument("large", std::uint64_t{18'446'744'073'709'551'615U});
  main.argument("real", 0.5);
  main.text_argument("text", "it's");
  const Trace trace = run.finish();
  EXPECT_THAT(rows_of(trace, "SELECT key, value FROM arguments"),
              ElementsAre(QueryRow{"'small'", "9007199254740993"}, QueryRow{"'negative'", "-5"},
                          QueryRow{"'large'", "'18446744073709551615'"}, QueryRow{"'real'", "5.000000000000e-01"},
                          QueryRow{"'text'", "'it's'"}));
  EXPECT_THAT(rows_of(trace, "SELECT argument(id, 'negative'), argument(id, 'none'), argument(7, 'x') FROM slices"),
              ElementsAre(QueryRow{"-5", "NULL", "NULL"}));
}

TEST(QueryTables, CollectivesHaveTheWaitsOfTheReport) {
  const Trace trace = query_example();
  const RunAnalysis run = analyse_run(trace, "run");
  const auto rows = rows_of(trace, "SELECT rank, sum(wait_ns) FROM collectives GROUP BY rank");
  ASSERT_EQ(rows.size(), 3U);
  for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(rows[r][1], std::to_string(run.waits[r].waited_ns));
  EXPECT_THAT(rows_of(trace,
                      "SELECT rank, arrival, wait_ns, transfer_ns, last_rank, sequence, members, bytes, "
                      "communicator FROM collectives WHERE collective = 3 ORDER BY arrival"),
              ElementsAre(QueryRow{"1", "0", "12000000", "6000000", "0", "3", "3", "4000000", "'MPI_COMM_WORLD'"},
                          QueryRow{"2", "1", "8000000", "6000000", "0", "3", "3", "4000000", "'MPI_COMM_WORLD'"},
                          QueryRow{"0", "2", "0", "6000000", "0", "3", "3", "4000000", "'MPI_COMM_WORLD'"}));
  EXPECT_THAT(rows_of(trace,
                      "SELECT count(*) FROM collectives AS c JOIN slices AS s ON s.id = c.slice "
                      "WHERE s.name = c.operation AND s.start_ns = c.start_ns AND s.rank = c.rank"),
              ElementsAre(QueryRow{"12"}));
}

TEST(QueryTables, MessagesJoinTheirCalls) {
  EXPECT_THAT(example_rows("SELECT s.name, r.name, count(*) FROM messages AS m JOIN slices AS s ON s.id = m.send_slice "
                           "JOIN slices AS r ON r.id = m.receive_slice WHERE s.rank = m.sender AND r.rank = m.receiver "
                           "GROUP BY s.name, r.name"),
              ElementsAre(QueryRow{"'MPI_Isend'", "'MPI_Irecv'", "12"}));
  EXPECT_THAT(example_rows("SELECT tag, bytes, send_start_ns, send_end_ns, receive_start_ns, receive_end_ns FROM "
                           "messages WHERE sender = 2 LIMIT 1"),
              ElementsAre(QueryRow{"7", "3000", "72000000", "76000000", "70000000", "76000000"}));
}

TEST(QueryTables, PhasesAddUpToTheRecordedTime) {
  const Trace trace = query_example();
  EXPECT_THAT(rows_of(trace,
                      "SELECT rank, sum(duration_ns) - (SELECT recorded_ns FROM ranks AS r WHERE r.rank = p.rank) "
                      "FROM phases AS p GROUP BY rank"),
              ElementsAre(QueryRow{"0", "0"}, QueryRow{"1", "0"}, QueryRow{"2", "0"}));
  const RunAnalysis run = analyse_run(trace, "run");
  for (const auto& row : rows_of(trace, "SELECT rank, phase, duration_ns FROM phases")) {
    const auto& rank = run.per_rank[static_cast<std::size_t>(std::stoi(row[0]))];
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
      if (row[1] != fmt::format("'{}'", phase_name(static_cast<Phase>(phase)))) continue;
      EXPECT_EQ(row[2], std::to_string(rank.phase_ns[phase])) << row[0] << row[1];
    }
  }
}

TEST(QueryTables, KindsKnowTheirSlices) {
  EXPECT_THAT(
      example_rows("SELECT k.name, k.phase, k.count, k.duration_ns FROM kinds AS k WHERE k.domain = 'train' AND "
                   "k.count > 0 EXCEPT SELECT name, phase(kind), count(*), sum(duration_ns) FROM slices GROUP BY "
                   "kind"),
      IsEmpty());
  EXPECT_THAT(example_rows("SELECT count, duration_ns FROM kinds WHERE name = 'gemm'"),
              ElementsAre(QueryRow{"12", "180000000"}));
}

TEST(QueryTables, CountersHaveRatesOfSums) {
  EXPECT_THAT(
      example_rows("SELECT time_ns, value, rate, unit, device FROM counters WHERE rank = 1 AND name = 'bytes sent' "
                   "AND time_ns BETWEEN 70e6 AND 80e6"),
      ElementsAre(QueryRow{"70000000", "0.000000000000e+00", "5.000000000000e+08", "'bytes'", "'eth0'"},
                  QueryRow{"80000000", "5.000000000000e+06", "0.000000000000e+00", "'bytes'", "'eth0'"}));
  EXPECT_THAT(example_rows("SELECT count(*), count(rate) FROM counters WHERE name = 'power'"),
              ElementsAre(QueryRow{"27", "0"}));
}

TEST(QueryTables, ThreadStatesAreStretches) {
  TraceBuilder run;
  RankBuilder& rank = run.add_rank(3);
  TrackBuilder& main = rank.add_main_thread();
  main.add_slice(0, 100, "a");
  main.add_states({{10, 20, 50, 60}, {0, 10, 10, 10}, {0, 0, 0, 10}, true});
  // Threads that recorded nothing themselves are there if they did something.
  rank.add_track(TrackKind::thread, "helper", 7).add_states({{0, 100}, {0, 30}, {0, 20}, false});
  rank.add_track(TrackKind::thread, "sleeper", 8).add_states({{0, 100}, {0, 0}, {0, 0}, true});
  const Trace trace = run.finish();
  EXPECT_THAT(
      rows_of(trace, "SELECT rank, thread, start_ns, duration_ns, state, exact FROM thread_states"),
      ElementsAre(QueryRow{"3", "1", "10", "10", "'running'", "1"}, QueryRow{"3", "1", "20", "30", "'blocked'", "1"},
                  QueryRow{"3", "1", "50", "10", "'waiting'", "1"}, QueryRow{"3", "7", "0", "20", "'waiting'", "0"},
                  QueryRow{"3", "7", "20", "30", "'running'", "0"}, QueryRow{"3", "7", "50", "50", "'blocked'", "0"}));
  EXPECT_EQ(trace.ranks[0].tracks.size(), 2U);
}

TEST(QueryTables, AggregatesAreExact) {
  const std::string numbers = "WITH n(x, y) AS (VALUES (4, 1.5), (1, 2.5), (3, NULL), (2, 10)) SELECT ";
  EXPECT_THAT(example_rows(numbers + "median(x), percentile(x, 0), percentile(x, 100), percentile(x, 25), median(y), "
                                     "median(NULL), stddev(NULL) FROM n"),
              ElementsAre(QueryRow{"2.500000000000e+00", "1", "4", "1.750000000000e+00", "2.500000000000e+00", "NULL",
                                   "NULL"}));
  EXPECT_THAT(example_rows(numbers + "stddev(x * x) FROM n"), ElementsAre(QueryRow{"6.557438524302e+00"}));  // √43
  EXPECT_THAT(
      example_rows("SELECT median(9223372036854775807), stddev(1), duration_text(12300000), duration_text(NULL)"),
      ElementsAre(QueryRow{"9223372036854775807", "NULL", "'12.3 ms'", "NULL"}));
  EXPECT_THAT(error_of("SELECT percentile(1, 101)"), HasSubstr("from 0 to 100"));
}

TEST(QueryTables, NothingCanBeChanged) {
  for (const char* sql : {"CREATE TABLE t(x)", "CREATE TEMP TABLE t(x)", "CREATE VIEW v AS SELECT 1",
                          "DELETE FROM slices", "INSERT INTO slices(id) VALUES(1)", "UPDATE slices SET id = 1",
                          "ATTACH 'x.db' AS x", "DROP TABLE slices", "PRAGMA user_version = 1", "BEGIN",
                          "VACUUM INTO 'x.db'", "CREATE VIRTUAL TABLE t USING slices", "SELECT load_extension('x')"}) {
    EXPECT_THAT(error_of(sql), testing::AnyOf(HasSubstr("traces are only read"), HasSubstr("may not be modified"),
                                              HasSubstr("not authorized"), HasSubstr("no such function")))
        << sql;
  }
}

TEST(QueryErrors, NameThePlaceAndTheNearestNames) {
  EXPECT_EQ(error_of("SELECT durationns FROM slices"),
            "line 1, column 8: no such column: durationns; near is duration_ns (of slices, kinds, phases, iterations, "
            "collectives and thread_states)");
  EXPECT_EQ(error_of("SELECT 1\nFROM slice"), "line 2, column 6: no such table: slice; near is slices");
  EXPECT_THAT(error_of("SELECT * FROM zebras"), HasSubstr("no such table: zebras; the tables are slices, marks, "));
  EXPECT_EQ(error_of("SELECT medan(1)"), "line 1, column 8: no such function: medan; near is median");
  EXPECT_THAT(error_of("SELECT 'ä', FROM slices"), HasSubstr("line 1, column 13: near \"FROM\": syntax error"));
  EXPECT_THAT(error_of("SELECT rank FROM slices WHERE name = \"gemm\" AND nope = 1"),
              HasSubstr("line 1, column 38: no such column: gemm; "));
  EXPECT_THAT(error_of("SELECT \"gemm\""), HasSubstr("text is written in single quotes"));
}

TEST(QueryErrors, OneStatementAtATime) {
  EXPECT_EQ(error_of("SELECT 1;\n SELECT 2"),
            "line 2, column 2: a second statement begins: give one statement at a time");
  EXPECT_EQ(error_of("SELECT 1; -- done\n;"), "no error");
  EXPECT_THAT(error_of(" ;\n"), HasSubstr("the SQL is empty"));
  EXPECT_THAT(error_of("-- nothing"), HasSubstr("only a comment"));
}

TEST(QueryRunner, AnInterruptionEndsAStatement) {
  const Trace trace = query_example();
  QueryRunner runner(trace);
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    runner.interrupt();
  });
  try {
    rows_of(runner, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
    FAIL() << "the statement came to an end";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "interrupted");
  }
  EXPECT_TRUE(runner.was_interrupted());
}

TEST(QueryRunner, ConditionsAndOrdersAreEvaluatedByTheTables) {
  const auto plan = [](const std::string& sql) {
    std::string text;
    for (const QueryRow& row : example_rows("EXPLAIN QUERY PLAN " + sql)) text += row.back() + "\n";
    return text;
  };
  using ::testing::Not;
  for (const char* sql : {
           "SELECT * FROM slices ORDER BY start_ns",
           "SELECT * FROM slices ORDER BY id",
           "SELECT kind, count(*) FROM slices GROUP BY kind",
           "SELECT rank, name, count(*) FROM slices GROUP BY rank, name",
       }) {
    EXPECT_THAT(plan(sql), Not(HasSubstr("TEMP B-TREE"))) << sql;
  }
  EXPECT_THAT(plan("SELECT * FROM slices ORDER BY duration_ns"), HasSubstr("TEMP B-TREE"));
  // The small table is outside, the slices are found by id or by rank.
  EXPECT_THAT(plan("SELECT * FROM slices AS s JOIN collectives AS c ON s.id = c.slice"), HasSubstr("SCAN c"));
}

TEST(TrackIndex, FindsTheNextSliceThatEndsLateEnough) {
  TraceBuilder run;
  TrackBuilder& main = run.add_rank(0).add_main_thread();
  main.add_slice(0, 1'000'000, "whole");
  for (std::int64_t at = 10; at < 100'000; at += 10) main.add_slice(at, at + 5, "part");
  const Trace trace = run.finish();
  const Slices& slices = trace.ranks[0].tracks[0].slices;
  TrackIndex index(slices);
  EXPECT_EQ(index.next_ending(0, 900'000), 0U);
  EXPECT_EQ(index.next_ending(1, 900'000), slices.size());
  for (const std::int64_t end : {1, 15, 16, 40'003, 40'005, 40'006, 99'995}) {
    std::size_t expected = 1;
    while (slices.end_ns(expected) < end) ++expected;
    EXPECT_EQ(index.next_ending(1, end), expected) << end;
  }
  EXPECT_EQ(index.next_ending(slices.size(), 0), slices.size());
}

// Two ranks whose names have other numbers, and each has a stack that the other one has as well.
Trace sampled_run() {
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    if (r == 1) rank.names().intern("a name that rank 0 does not have");
    TrackBuilder& main = rank.add_main_thread();
    main.add_slice(0, 100, "iteration", "", "iteration");
    const auto frame = [&](const char* function, const char* file, std::uint32_t line) {
      return rank.stacks().frame({rank.names().intern(function), rank.names().intern(file), line});
    };
    const StackId train = rank.stacks().stack(0, frame("train", "train.py", 3));
    const StackId read = rank.stacks().stack(train, frame("[read]", r == 0 ? "pipe" : "socket", 0));
    main.add_stack_sample(10, train);
    main.add_stack_sample(20, read);
    main.add_stack_sample(150, 0);
    main.set_sample_period(10);
  }
  return run.finish();
}

TEST(QueryTables, SamplesHaveFunctionsAndSystemCalls) {
  const Trace trace = sampled_run();
  EXPECT_THAT(
      rows_of(trace,
              "SELECT rank, time_ns, function, call, call_file FROM samples WHERE time_ns < 100 "
              "ORDER BY rank, time_ns"),
      ElementsAre(QueryRow{"0", "10", "'train'", "NULL", "NULL"}, QueryRow{"0", "20", "'train'", "'read'", "'pipe'"},
                  QueryRow{"1", "10", "'train'", "NULL", "NULL"},
                  QueryRow{"1", "20", "'train'", "'read'", "'socket'"}));
  EXPECT_THAT(rows_of(trace, "SELECT count(*), sum(stack = 0), max(period_ns) FROM samples"),
              ElementsAre(QueryRow{"6", "2", "10"}));
  // `train` is one stack of both ranks.
  EXPECT_THAT(
      rows_of(trace,
              "SELECT f.depth, f.function, f.file, f.line, count(*) FROM samples JOIN frames AS f "
              "USING (stack) GROUP BY f.stack, f.depth ORDER BY f.stack, f.depth"),
      ElementsAre(QueryRow{"0", "'train'", "'train.py'", "3", "2"}, QueryRow{"0", "'train'", "'train.py'", "3", "1"},
                  QueryRow{"1", "'[read]'", "'pipe'", "NULL", "1"}, QueryRow{"0", "'train'", "'train.py'", "3", "1"},
                  QueryRow{"1", "'[read]'", "'socket'", "NULL", "1"}));
}

}  // namespace
}  // namespace paceline::analysis
