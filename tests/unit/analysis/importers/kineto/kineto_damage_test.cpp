// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/importers/kineto/file_reader.h"
#include "analysis/importers/kineto/kineto_rank.h"
#include "analysis/trace/builder.h"
#include "profiler/format/error.h"
#include "tests/rounds.h"
#include "tests/unit/analysis/kineto_file.h"

namespace paceline::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KinetoDamage : public ::testing::Test {
 protected:
  // Three events, the second of which is given. Returns the names that came out.
  std::vector<std::string> names_around(const std::string& second, std::uint64_t damaged) const {
    const Trace trace = files.read({kineto_file(first + "," + second + "," + third)});
    const Rank& rank = trace.ranks.at(0);
    EXPECT_EQ(rank.dropped.contains("damage") ? rank.dropped.at("damage") : 0, damaged) << second;
    EXPECT_EQ(rank.damaged, damaged > 0);
    return names_of(trace, rank.tracks.at(0));
  }
  const KinetoFiles files;
  const std::string first = operator_event("first", "1", "1"), third = operator_event("third", "3000", "1");
};

TEST_F(KinetoDamage, UnescapedQuotesInANameAreKept) {
  EXPECT_THAT(names_around(operator_event("say \"hi\" twice", "10", "1"), 0),
              ElementsAre("first", "say \"hi\" twice", "third"));
  EXPECT_THAT(names_around(operator_event("one \" quote", "10", "1"), 0),
              ElementsAre("first", "one \" quote", "third"));
}

// Each of these events seems to go on to the end of the file. A reader that reads that far for each one of them would
// need half a minute.
TEST_F(KinetoDamage, EventsWithoutEndsTakeLinearTime) {
  std::string events;
  constexpr std::size_t count = 20'000 / test::stride(10);
  for (std::size_t i = 0; i < count; ++i) events += R"(, {"ph": "X", "name": "no end", "ts": )";
  const Trace trace = files.read({kineto_file(first + events + ", " + third)});
  EXPECT_EQ(trace.ranks.at(0).dropped.at("damage"), std::uint64_t{count});
  EXPECT_THAT(names_of(trace, trace.ranks[0].tracks.at(0)), ElementsAre("first", "third"));
}

TEST_F(KinetoDamage, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_THAT(names_around(operator_event("bad \xff\xfe", "10", "1"), 0),
              ElementsAre("first", "bad \xef\xbf\xbd\xef\xbf\xbd", "third"));
}

TEST_F(KinetoDamage, ControlCharactersInANameAreKept) {
  EXPECT_THAT(names_around(operator_event("two\nlines", "10", "1"), 0), ElementsAre("first", "two\nlines", "third"));
}

TEST_F(KinetoDamage, IntegersBeyond64BitsAreRealNumbers) {
  const Trace trace =
      files.read({kineto_file(operator_event("a", "1", "1", R"(, "args": {"big": 123456789012345678901234567890,
      "unsigned": 18446744073709551615, "not a number": NaN})"))});
  const Slices& slices = trace.ranks[0].tracks[0].slices;
  EXPECT_EQ(argument_of(trace, slices, 0, "big"), "1.23456789012346e+29");
  EXPECT_EQ(argument_of(trace, slices, 0, "unsigned"), "18446744073709551615");
  EXPECT_EQ(argument_of(trace, slices, 0, "not a number"), "NaN");
}

TEST_F(KinetoDamage, AnEventWithoutAUsableTimeIsCountedAndLeftOut) {
  for (const char* dur : {"NaN", "18446744073709551615", "1e300", "true", "[1]"}) {
    EXPECT_THAT(names_around(operator_event("second", "10", dur), 1), ElementsAre("first", "third"));
  }
  for (const char* ts : {"NaN", "-1e30", "null", "\"\"", "99999999999999999999999999"}) {
    EXPECT_THAT(names_around(operator_event("second", ts, "1"), 1), ElementsAre("first", "third"));
  }
  EXPECT_THAT(names_around(R"({"ph":"X","name":"second"})", 1), ElementsAre("first", "third"));
  EXPECT_THAT(names_around("{}", 1), ElementsAre("first", "third"));
}

TEST_F(KinetoDamage, AnEventWithANegativeDurationIsKeptAndNoted) {
  EXPECT_THAT(names_around(operator_event("second", "10", "-5"), 0), ElementsAre("first", "second", "third"));
  const Trace trace = files.read({kineto_file(operator_event("only", "10", "-5"))});
  EXPECT_FALSE(trace.ranks.at(0).damaged);
  EXPECT_EQ(trace.ranks[0].tracks[0].slices.duration_ns[0], 0);
  ASSERT_EQ(trace.notes.size(), 1U);
  EXPECT_THAT(trace.notes[0], testing::HasSubstr("1 events have a negative duration"));
}

TEST_F(KinetoDamage, AnEventWithoutADurationHasNone) {
  EXPECT_THAT(names_around(R"({"ph":"X","cat":"cpu_op","name":"second","pid":7,"tid":7,"ts":10})", 0),
              ElementsAre("first", "second", "third"));
}

TEST_F(KinetoDamage, BrokenPunctuationLosesOnlyItsEvent) {
  const std::string whole = operator_event("second", "10", "1", R"(, "args": {"Input Dims": [[2, 3], [4]]})");
  EXPECT_THAT(names_around(whole, 0), ElementsAre("first", "second", "third"));
  for (const char* lost : {"[2", "\"ts\"", ": 10", "\"name\": ", "]]", "{\"Input", "\"args\": {"}) {
    std::string text = whole;
    text.erase(text.find(lost), 1);
    const auto names = names_around(text, 1);
    EXPECT_EQ(names.front(), "first") << text;
    EXPECT_EQ(names.back(), "third") << text;
  }
  EXPECT_THAT(names_around("garbage } ] : \"", 1), ElementsAre("first", "third"));
  EXPECT_THAT(names_around("5, \"text\", [1, 2]", 1), ElementsAre("first", "third"));
}

TEST_F(KinetoDamage, AMillionNestedListsAreSkippedWithoutRecursion) {
  const std::string deep = R"(, "args": {"deep": )" + std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}";
  EXPECT_THAT(names_around(operator_event("second", "10", "1", deep), 0), ElementsAre("first", "second", "third"));
  const std::string open = R"(, "args": {"deep": )" + std::string(1'000'000, '[') + "}";
  EXPECT_THAT(names_around(operator_event("second", "10", "1", open), 1), ElementsAre("first", "third"));
}

TEST_F(KinetoDamage, AFileCutAtAnyByteKeepsTheEventsBefore) {
  const std::string text = kineto_file(
      first + ",\n " + operator_event("a \\\"b\\\"", "10", "1.5", R"(, "args": {"x": [1, {"y": "z"}]})") + "," + third,
      R"("distributedInfo": {"rank": 0, "world_size": 1})");
  const std::size_t events = text.find("[{") + 1, second = text.find(",\n") + 1;
  for (std::size_t size = 0; size < text.size(); ++size) {
    try {
      const Trace trace = files.read({text.substr(0, size)});
      ASSERT_GE(size, events);
      const std::size_t count = trace.ranks[0].tracks.empty() ? 0 : trace.ranks[0].tracks[0].slices.size();
      EXPECT_EQ(count >= 1, size >= second - 1) << size;
      EXPECT_EQ(trace.ranks[0].ended, size >= text.size() - 1) << size;
    } catch (const Error& error) {
      EXPECT_LT(size, events) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("run/0.json: has no array of trace events"));
    }
  }
}

TEST_F(KinetoDamage, AFileThatCannotBeReadIsNotedWhileAnotherOneCan) {
  const Trace trace = files.read({"{\"traceEvents\": 5}", kineto_file(first)});
  ASSERT_EQ(trace.ranks.size(), 1U);
  EXPECT_THAT(trace.notes, ElementsAre(HasSubstr("run/0.json: has no array of trace events")));
}

TEST_F(KinetoDamage, UnknownKindsOfEventsAreNoted) {
  const Trace trace =
      files.read({kineto_file(first + R"(,{"ph":"N","name":"object","pid":1,"tid":1,"ts":5,"id":"0x1"})")});
  EXPECT_THAT(trace.notes, ElementsAre(HasSubstr("1 events were left out")));
}

// The same events in pieces of any size, cut at good places and at bad ones, are the same model.
TEST_F(KinetoDamage, PiecesMayBeCutAnywhere) {
  std::string events;
  for (int i = 0; i < 60; ++i) {
    const std::string ts = std::to_string(10 * i);
    events +=
        operator_event(
            "op " + std::to_string(i % 7), ts, "5",
            R"(, "args": {"decoy": [{"ph": "X"}, {"ph": "X", "name": "not an event"}, {"ph": "X"}], "text": "}, {\"ph\": 1"})") +
        ",";
    if (i == 30) events += "{\"ph\": \"X\", \"name\": \"dam\"aged\", \"ts\": 1,, },";
  }
  const std::string text = kineto_file(events + third);
  const auto path = files.directory / "pieces.json";
  std::ofstream(path, std::ios::binary) << text;
  for (const std::size_t piece : {1U, 7U, 64U, 100U, 1000U, 5000U, 1U << 20}) {
    for (const std::size_t threads : {1U, 3U}) {
      TraceBuilder run;
      RankBuilder& builder = run.add_rank(0);
      kineto::KinetoRank rank(builder);
      ProgressCounter progress({}, 0);
      const auto summary = kineto::read_file({path, "pieces.json"}, rank, threads, progress, piece);
      rank.finish(summary.header);
      EXPECT_TRUE(summary.closed);
      EXPECT_EQ(rank.damaged(), 1U) << piece << " bytes, " << threads << " threads";
      const Trace trace = run.finish();
      EXPECT_EQ(trace.ranks[0].tracks.at(0).slices.size(), 61U) << piece << " bytes, " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace paceline::analysis
