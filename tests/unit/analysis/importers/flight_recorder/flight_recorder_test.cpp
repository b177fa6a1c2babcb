// SPDX-License-Identifier: Apache-2.0
// Dumps of PyTorch's Flight Recorder: what pickles and JSON become, what is refused, and which ranks are at fault.
#include "analysis/importers/flight_recorder/dump.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/communication/collectives.h"
#include "analysis/importers/flight_recorder/verdicts.h"
#include "analysis/importers/reader.h"
#include "analysis/report/build.h"
#include "profiler/format/error.h"
#include "tests/unit/analysis/kineto_file.h"

namespace paceline::analysis {
namespace {

using flight_recorder::Call;
using flight_recorder::Dump;
using testing::ElementsAre;
using testing::HasSubstr;

// Pickles of one dump by all protocols of Python, and its JSON.
Trace read_sample(const std::string& name) {
  const std::vector<TraceFile> files{
      {std::filesystem::path(PACELINE_TEST_DATA) / "fuzz-flight-recorder" / name, "dump_0"}};
  EXPECT_TRUE(flight_recorder_reader.recognises(files[0])) << name;
  return flight_recorder_reader.read(files, {});
}

TEST(FlightRecorder, AllProtocolsOfPickleAndJsonGiveTheSameRank) {
  for (const char* name :
       {"protocol-0", "protocol-1", "protocol-2", "protocol-3", "protocol-4", "protocol-5", "json-0"}) {
    const Trace trace = read_sample(name);
    ASSERT_EQ(trace.ranks.size(), 1U) << name;
    const Rank& rank = trace.ranks[0];
    EXPECT_EQ(rank.world_size, 2);
    EXPECT_EQ(rank.nccl_events, 3U);
    EXPECT_EQ(rank.facts.at("flight_recorder.version"), "2.9");
    EXPECT_EQ(rank.facts.at("nccl.version"), "2.27.3");
    EXPECT_EQ(rank.utc_of_zero_ns, 1758610505592849034);
    const Track* track = track_of(trace, "NCCL tensor (group 5)");
    ASSERT_NE(track, nullptr) << name;
    EXPECT_EQ(track->kind, TrackKind::nccl);
    EXPECT_THAT(names_of(trace, *track), ElementsAre("ncclAllReduce", "ncclSend", "ncclAllGather"));
    EXPECT_THAT(track->slices.start_ns, ElementsAre(66, 5000, 9000));
    EXPECT_EQ(track->slices.end_ns(0), 966);
    const Slices& slices = track->slices;
    EXPECT_EQ(argument_of(trace, slices, 0, "bytes"), "40");
    EXPECT_EQ(argument_of(trace, slices, 0, "state"), "completed");
    EXPECT_EQ(argument_of(trace, slices, 0, "frame"), "loss at train.py:12");
    EXPECT_EQ(argument_of(trace, slices, 0, "sequence"), "7");
    EXPECT_EQ(argument_of(trace, slices, 0, "unfinished"), "");
    EXPECT_EQ(argument_of(trace, slices, 1, "peer"), "1");
    EXPECT_EQ(argument_of(trace, slices, 2, "unfinished"), "1");
    EXPECT_EQ(argument_of(trace, slices, 2, "members"), "2");
  }
}

TEST(FlightRecorder, AnOpcodeThatCouldRunCodeIsRefused) {
  const auto refusal = [](std::string_view bytes) -> std::string {
    flight_recorder::Values values;
    try {
      flight_recorder::decode_pickle(bytes, values);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const std::string_view code : {"cos\nsystem\n.", "]R.", "}b.", "(ios\nsystem\n.", "(]o.", "])\x81.", "]}}\x92.",
                                      "\x8c\x01s\x8c\x01t\x93.", "\x82\x01.", "P1\n.", "]Q."}) {
    EXPECT_THAT(refusal(code), HasSubstr("is refused")) << code;
  }
  EXPECT_THAT(refusal("]"), HasSubstr("ends early"));
  EXPECT_THAT(refusal("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"), HasSubstr("ends early"));
  EXPECT_THAT(refusal("h\x01."), HasSubstr("memo"));
  EXPECT_THAT(refusal("a."), HasSubstr("missing"));
  EXPECT_EQ(refusal("]q\x01h\x01"
                    "a."),
            "")
      << "a list that holds itself is a value";
}

Call call_of(std::int64_t number, bool pends, bool message = false) {
  return {.group = "g",
          .function = message ? "send" : "all_reduce",
          .number = number,
          .is_message = message,
          .state = pends ? "scheduled" : "completed",
          .created_ns = 1000 + number};
}

Dump dump_of(int rank, std::vector<Call> calls, std::optional<std::int64_t> completed = {}) {
  Dump dump{.rank = rank};
  dump.groups["g"] = {"g", "tensor", {0, 1, 2}};
  for (const Call& call : calls) dump.groups["g"].has_messages |= call.is_message;
  dump.calls = std::move(calls);
  if (completed) dump.completed["g"] = *completed;
  return dump;
}

std::vector<std::string> faults_of(const std::vector<Dump>& dumps) {
  std::vector<std::string> texts;
  for (const auto& fault : find_faults(dumps)) texts.push_back(fault_text(fault));
  return texts;
}

TEST(FlightRecorder, ARankThatNeverEnteredIsAtFault) {
  EXPECT_THAT(faults_of({dump_of(0, {call_of(5, true), call_of(6, true)}), dump_of(1, {call_of(4, false)}),
                         dump_of(2, {call_of(5, true)})}),
              ElementsAre("rank 1 never entered all_reduce #5 of tensor (group g), in which ranks 0 and 2 wait",
                          "rank 2 never entered all_reduce #6 of tensor (group g), in which rank 0 waits"));
}

TEST(FlightRecorder, ARankThatPendsInWhatAPeerCompletedIsAtFault) {
  EXPECT_THAT(
      faults_of({dump_of(0, {call_of(6, true)}, 5), dump_of(1, {call_of(5, true), call_of(6, true)}),
                 dump_of(2, {call_of(6, true)})}),
      ElementsAre("rank 1 still pends in all_reduce #5 of tensor (group g), which ranks 0 and 2 have completed"));
}

TEST(FlightRecorder, NobodyIsAtFaultWhileAllPendOrMessagesPend) {
  EXPECT_THAT(
      faults_of({dump_of(0, {call_of(5, true)}), dump_of(1, {call_of(5, true)}), dump_of(2, {call_of(5, true)})}),
      ElementsAre());
  EXPECT_THAT(faults_of({dump_of(0, {call_of(9, true, true)}), dump_of(1, {}), dump_of(2, {})}), ElementsAre());
  EXPECT_THAT(faults_of({dump_of(0, {call_of(5, true)})}), ElementsAre()) << "ranks without a dump are not judged";
}

// Rank 0's dump is of the moment between the end of a call and its retirement.
TEST(FlightRecorder, NobodyIsAtFaultWhereAllThatPendsWasCompletedByAPeer) {
  const std::vector<Dump> retiring = {dump_of(0, {call_of(5, true)}), dump_of(1, {call_of(5, false)}),
                                      dump_of(2, {}, 5)};
  EXPECT_THAT(faults_of(retiring), ElementsAre());
  EXPECT_THAT(verdicts_of(retiring, {}), ElementsAre("ALL_GOOD"));
  const Dump waits = dump_of(1, {call_of(5, false), call_of(6, true)});
  const Dump receives = dump_of(1, {call_of(5, false), call_of(900, true, true)});
  for (const Dump& other : {waits, receives}) {
    EXPECT_THAT(faults_of({retiring[0], other, dump_of(2, {call_of(5, false)})}),
                testing::Contains(HasSubstr("rank 0 still pends")));
  }
}

TEST(FlightRecorder, TheStatusOfAGroupWithMessagesIsNotUsed) {
  EXPECT_THAT(faults_of({dump_of(0, {call_of(700, true, true)}, 700), dump_of(1, {call_of(5, true)}),
                         dump_of(2, {call_of(5, true)})}),
              ElementsAre(HasSubstr("rank 0 never entered all_reduce #5")));
}

TEST(FlightRecorder, VerdictsHaveTheNamesOfTorchcomms) {
  const auto verdicts = [](const std::vector<Dump>& dumps) { return verdicts_of(dumps, find_faults(dumps)); };
  const Dump pending = dump_of(0, {call_of(5, true)}), done = dump_of(1, {call_of(5, false)}),
             ahead = dump_of(1, {call_of(5, false), call_of(6, true)});
  EXPECT_THAT(verdicts({dump_of(0, {call_of(5, false)}), done, dump_of(2, {})}), ElementsAre("ALL_GOOD"));
  EXPECT_THAT(verdicts({pending, dump_of(1, {call_of(4, false)}), dump_of(2, {call_of(5, true)})}),
              ElementsAre("JOB_STUCK_IN_NCCL_RANK_NOT_JOIN"));
  EXPECT_THAT(verdicts({pending, ahead}), ElementsAre("JOB_STUCK_IN_NCCL_BASED_ON_PT", "JOB_COMM_DUMP_MISSING"));
  EXPECT_THAT(verdicts({pending, dump_of(1, {call_of(5, true)}), dump_of(2, {call_of(5, true)})}),
              ElementsAre("JOB_STUCK_IN_NCCL_UNKNOWN_BAD_RANKS"));
  Call other = call_of(5, false);
  other.function = "all_gather";
  EXPECT_THAT(verdicts({done, dump_of(0, {other}), dump_of(2, {})}),
              ElementsAre("JOB_CONTAINS_COLL_METADATA_MISMATCH"));
  Call half = call_of(5, false), full = call_of(5, false);
  half.datatype = "Half";
  EXPECT_THAT(verdicts({dump_of(0, {half}), dump_of(1, {full}), dump_of(2, {})}), ElementsAre("ALL_GOOD"))
      << "a call without a type of data";
  full.datatype = "Float";
  EXPECT_THAT(verdicts({dump_of(0, {half}), dump_of(1, {full}), dump_of(2, {})}),
              ElementsAre("JOB_CONTAINS_COLL_METADATA_MISMATCH"));
}

// As PyTorch 2.9 writes them: no state but "scheduled", no times but the first, and no members under the group's name.
Trace read_gloo(std::size_t calls_of_rank_1, bool all_retired = true) {
  const KinetoFiles folder;
  std::vector<TraceFile> files;
  for (int rank = 0; rank < 2; ++rank) {
    std::string entries;
    for (std::size_t i = 0; i < (rank == 0 ? 2 : calls_of_rank_1); ++i) {
      entries += fmt::format(
          R"({}{{"record_id": {}, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": {}, "p2p_seq_id": 0,
              "profiling_name": "gloo:all_reduce", "time_created_ns": {}, "input_sizes": [[4]], "input_dtypes": ["Float"],
              "output_sizes": [[4]], "output_dtypes": ["Float"], "state": "scheduled", "time_discovered_started_ns": 0,
              "time_discovered_completed_ns": 0, "retired": {}, "is_p2p": false}})",
          i > 0 ? "," : "", i, i + 1, 1758610505592849034 + 1000 * i,
          i == 0 || (calls_of_rank_1 == 2 && (all_retired || rank == 1)));
    }
    const std::filesystem::path path = folder.directory / fmt::format("dump_{}", rank);
    std::ofstream(path)
        << R"({"version": "2.10", "comm_lib_version": "", "pg_config": {"": {"name": "", "desc": "", "ranks": "[0, 1]"}},
                               "entries": [)" +
               entries + "]}";
    files.push_back({path, path.filename().string()});
  }
  return flight_recorder_reader.read(files, {});
}

TEST(FlightRecorder, GlooHasCompletedWhatItRetired) {
  const Trace trace = read_gloo(2);
  EXPECT_EQ(trace.ranks[0].facts.at("flight_recorder.verdict"), "ALL_GOOD");
  EXPECT_EQ(trace.ranks[0].nccl_events, 0U);
  const Track* track = track_of(trace, "gloo default_pg (group 0)");
  ASSERT_NE(track, nullptr);
  EXPECT_EQ(track->kind, TrackKind::thread);
  EXPECT_THAT(names_of(trace, *track), ElementsAre("gloo:all_reduce", "gloo:all_reduce"));
  EXPECT_EQ(argument_of(trace, track->slices, 1, "unfinished"), "");
  const Collectives matched = match_collectives(trace);
  ASSERT_EQ(matched.matched.size(), 2U);
  EXPECT_FALSE(matched.matched[0].timed) << "no dump has its end";
}

TEST(FlightRecorder, ADumpOfGlooJustBeforeItsLastCallRetiresAccusesNobody) {
  const Trace trace = read_gloo(2, false);
  EXPECT_THAT(trace.notes, ElementsAre());
  EXPECT_EQ(trace.ranks[0].facts.at("flight_recorder.verdict"), "ALL_GOOD");
  EXPECT_THAT(build_report({analyse_run(trace, "job")}).verdict.state, testing::Not(HasSubstr("hangs")));
}

TEST(FlightRecorder, ARankThatNeverEnteredACollectiveOfGlooIsAtFault) {
  for (const std::size_t calls : {0U, 1U}) {
    const Trace trace = read_gloo(calls);
    EXPECT_THAT(trace.notes,
                ElementsAre("Rank 1 is at fault: rank 1 never entered all_reduce #2 of default_pg (group 0), in which "
                            "rank 0 waits"));
  }
}

TEST(FlightRecorder, TheVerdictNamesTheRanksAtFault) {
  const KinetoFiles folder;
  std::vector<TraceFile> files;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string entry =
        R"({"record_id": 1, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": 3, "p2p_seq_id": 0,
            "profiling_name": "nccl:all_reduce", "time_created_ns": 1758610505592849034, "state": "scheduled"})";
    const std::filesystem::path path = folder.directory / fmt::format("dump_{}", rank);
    std::ofstream(path)
        << R"({"version": "2.9", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
                               "entries": [)" +
               (rank == 0 ? entry : "") + "]}";
    files.push_back({path, path.filename().string()});
  }
  const Trace trace = flight_recorder_reader.read(files, {});
  ASSERT_EQ(trace.ranks.size(), 2U);
  EXPECT_EQ(trace.ranks[1].facts.at("fault"),
            "rank 1 never entered all_reduce #3 of default_pg (group 0), in which rank 0 waits");
  EXPECT_THAT(trace.notes, ElementsAre(HasSubstr("Rank 1 is at fault")));
  EXPECT_EQ(trace.ranks[0].facts.at("flight_recorder.verdict"), "JOB_STUCK_IN_NCCL_RANK_NOT_JOIN");
  const Report report = build_report({analyse_run(trace, "job")});
  EXPECT_THAT(report.verdict.state, HasSubstr("The job hangs because of rank 1: rank 1 never entered all_reduce #3"));
  EXPECT_THAT(report.verdict.change, HasSubstr("First find out what rank 1 did instead"));
}

}  // namespace
}  // namespace paceline::analysis
