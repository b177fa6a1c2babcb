// SPDX-License-Identifier: Apache-2.0
// `paceline info` and `paceline export` as a user meets them: what they print, and what they say to bad input.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <nlohmann/json.hpp>
#include <random>

#include "profiler/format/mpi_functions.h"
#include "profiler/format/writer.h"
#include "tests/integration/command.h"
#include "tests/rounds.h"

namespace paceline {
namespace {

using format::EventType;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class PacelineCommand : public CommandTest {
 protected:
  // A rank that made `iterations` iterations of 1 ms with an allreduce each, then ended or was killed. Noise makes the
  // allreduces' ends, and with them the file, incompressible.
  void write_rank(int rank, int iterations, format::Ending ending = format::Ending::closed, const char* job = "7",
                  bool noise = false) const {
    format::HeaderFacts facts;
    facts.file_id = 40 + static_cast<std::uint64_t>(rank);
    facts.pid = 100 + static_cast<std::uint32_t>(rank);
    facts.ticks_per_second = 1e9;
    facts.start_ticks = 5'000'000;
    facts.start_utc_ns = 1'700'000'000'000'000'000;
    facts.rank = rank;
    facts.world_size = 2;
    facts.host = "node";
    facts.boot_id = "boot";
    facts.job = job;
    format::TraceWriter writer(facts);
    const auto iteration = writer.scope("iteration", "paceline.trainer", "iteration");
    const auto allreduce = static_cast<std::uint64_t>(format::MpiId::Allreduce);
    std::mt19937 random(1);
    for (int i = 0; i < iterations; ++i) {
      const std::uint64_t t = 1'000'000 * static_cast<std::uint64_t>(i);
      writer.add(0, t, EventType::push, iteration);
      writer.add(0, t + 600'000, EventType::mpi_begin_coll, allreduce | std::uint64_t{0xffffffff} << 16,
                 {{4096, std::uint64_t(i) << 32}});
      writer.add(0, t + 700'000 + (noise ? random() % 200'000 : 0), EventType::mpi_end, allreduce);
      writer.add(0, t + 1'000'000, EventType::pop, iteration >> 48);
    }
    writer.write(directory_ / "run" / ("rank" + std::to_string(rank) + ".pace"), ending);
  }
};

TEST_F(PacelineCommand, InfoTellsEachTraceInJson) {
  write_rank(0, 3);
  write_rank(1, 3);
  const Outcome outcome = paceline("info --format json run");
  ASSERT_EQ(outcome.status, 0) << outcome.errors;
  const json document = json::parse(outcome.output);
  EXPECT_EQ(document["schema"], "paceline.info/1");
  ASSERT_EQ(document["traces"].size(), 2U);
  const json& trace = document["traces"][1];
  EXPECT_EQ(trace["path"], "run/rank1.pace");
  EXPECT_EQ(trace["format"], "pace");
  EXPECT_EQ(trace["rank"], 1);
  EXPECT_EQ(trace["world_size"], 2);
  EXPECT_EQ(trace["host"], "node");
  EXPECT_EQ(trace["pid"], 101);
  EXPECT_EQ(trace["span_ns"], 3'000'000);
  EXPECT_EQ(trace["dropped"], 0);
  EXPECT_EQ(trace["damaged"], false);
  EXPECT_EQ(trace["events"], (json{{"nvtx", 3}, {"mpi", 3}, {"cuda", 0}, {"nccl", 0}, {"counter", 0}}));
  EXPECT_EQ(trace["clock"]["source"], "tsc");
  EXPECT_EQ(trace["clock"]["error_ns"], 1000.0);
}

TEST_F(PacelineCommand, InfoTellsPeopleRanksAndSpan) {
  write_rank(0, 3);
  write_rank(1, 3);
  const Outcome outcome = paceline("info run");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("run: 2 ranks on 1 host, 0.003 s"));
}

TEST_F(PacelineCommand, ClocksAreAlignedByTheChosenMethod) {
  write_rank(0, 40);
  write_rank(1, 40);
  EXPECT_THAT(paceline("info run").output, HasSubstr("tsc ±"));
  const Outcome info = paceline("info --align collectives run");
  EXPECT_EQ(info.status, 0) << info.errors;
  EXPECT_THAT(info.output, HasSubstr("collectives ±"));
  EXPECT_THAT(info.output, HasSubstr("aligned by collectives"));
  const Outcome report = paceline("report --align recorded run");
  EXPECT_EQ(report.status, 0) << report.errors;
  EXPECT_EQ(paceline("info --align guess run").status, 2);
}

TEST_F(PacelineCommand, CollectivesWithoutAPartnerAreCounted) {
  const std::string step =
      R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":99})";
  const std::string kernel = R"(,{"ph":"X","cat":"kernel","name":"ncclKernel_AllReduce_RING_LL_Sum_float","pid":0,)"
                             R"("tid":7,"dur":9,"args":{"device":0,"stream":7},"ts":)";
  for (const int rank : {0, 1}) {
    std::ofstream(directory_ / ("rank-" + std::to_string(rank) + ".json"))
        << "[" << step << kernel << "10}" << (rank == 1 ? kernel + "30}" : "") << "]";
  }
  const std::string expected = "3 collective calls have no partner on other ranks";
  EXPECT_THAT(paceline("info 'rank-*.json'").output, HasSubstr("\n  " + expected + "\n"));
  EXPECT_THAT(paceline("info --format json 'rank-*.json'").output, HasSubstr("\"" + expected + "\""));
}

TEST_F(PacelineCommand, EveryReaderOfARunMakesRanksOfProcesses) {
  std::ofstream(directory_ / "two.json") << R"([{"ph":"X","name":"work","pid":40,"tid":1,"ts":5,"dur":2},)"
                                         << R"({"ph":"X","name":"work","pid":41,"tid":2,"ts":5,"dur":2}])";
  EXPECT_THAT(paceline("info two.json").output, HasSubstr("as one rank: --processes ranks makes"));
  EXPECT_THAT(paceline("info --processes ranks two.json").output, HasSubstr("two.json: 2 ranks"));
  EXPECT_THAT(paceline("info --processes ranks --align recorded two.json").output, HasSubstr("two.json: 2 ranks"));
  EXPECT_THAT(paceline("report --processes ranks two.json").output, HasSubstr("2 ranks ran"));
  const std::string sql = " --format csv two.json 'SELECT count(DISTINCT rank) AS ranks FROM slices'";
  EXPECT_EQ(paceline("query --processes ranks" + sql).output, "ranks\n2\n");
  EXPECT_EQ(paceline("query --processes one" + sql).output, "ranks\n1\n");
  EXPECT_THAT(paceline("export --processes ranks --to csv two.json").output, HasSubstr("\n1,,"));
  EXPECT_THAT(paceline("compare --processes ranks two.json two.json").errors, Not(HasSubstr("as one rank")));
  EXPECT_THAT(paceline("whatif --processes ranks two.json").errors, HasSubstr("that all ranks finished"));
  EXPECT_THAT(paceline("history --processes ranks two.json").errors, Not(HasSubstr("as one rank")));
  for (const char* wrong : {"--processes some two.json", "--processes"}) {
    const Outcome refused = paceline(std::string("info ") + wrong);
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.errors, HasSubstr("--processes: "));
  }
}

TEST_F(PacelineCommand, AFileCutAnywhereIsReadUpToTheCutAndSaidToBeDamaged) {
  constexpr int iterations = 12'000;
  write_rank(0, iterations, format::Ending::closed, "7", true);
  const fs::path whole = directory_ / "run" / "rank0.pace", cut = directory_ / "cut.pace";
  const auto size = fs::file_size(whole);
  ASSERT_GT(size, 30'000U);
  std::uint64_t before = 0;
  for (std::uintmax_t length = 1000; length < size; length += 1000 * test::stride(8)) {
    fs::copy_file(whole, cut, fs::copy_options::overwrite_existing);
    fs::resize_file(cut, length);
    const Outcome outcome = paceline("info --format json cut.pace");
    if (length < 4096) {  // the header's page is not whole
      EXPECT_EQ(outcome.status, 1) << length;
      continue;
    }
    ASSERT_EQ(outcome.status, 0) << length << ": " << outcome.errors;
    const json trace = json::parse(outcome.output)["traces"][0];
    EXPECT_EQ(trace["damaged"], true) << length;
    EXPECT_FALSE(trace["damage"].get<std::string>().empty());
    const std::uint64_t events = trace["events"]["mpi"];
    EXPECT_GE(events, before) << length;
    EXPECT_LT(events, iterations) << length;
    before = events;
  }
  EXPECT_GT(before, iterations / 2);
}

TEST_F(PacelineCommand, AKilledProcessLeavesAReadableFile) {
  write_rank(0, 100, format::Ending::killed);
  const Outcome outcome = paceline("info --format json run");
  ASSERT_EQ(outcome.status, 0);
  const json trace = json::parse(outcome.output)["traces"][0];
  EXPECT_EQ(trace["events"]["nvtx"], 100);
  EXPECT_EQ(trace["ended"], false);
}

TEST_F(PacelineCommand, AReadableRankIsToldBesideAnUnreadableOneAndTheStatusSaysSo) {
  write_rank(0, 3);
  write_rank(1, 3);
  fs::resize_file(directory_ / "run" / "rank1.pace", 100);
  const Outcome outcome = paceline("info --format json run");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.errors, HasSubstr("rank1.pace"));
  EXPECT_EQ(json::parse(outcome.output)["traces"].size(), 1U);
}

TEST_F(PacelineCommand, ExportWritesCsvAndChromeToAFileOrToStandardOutput) {
  write_rank(0, 3);
  const Outcome csv = paceline("export --to csv run");
  EXPECT_EQ(csv.status, 0);
  EXPECT_TRUE(csv.output.starts_with("rank,host,pid,track,kind,name,category,start_ns,duration_ns,depth,args\n"));
  EXPECT_EQ(std::count(csv.output.begin(), csv.output.end(), '\n'), 8);  // header, process, 6 slices
  EXPECT_THAT(csv.output, HasSubstr("0,node,100,main thread,slice,MPI_Allreduce,collective,1600000,100000,1,"));
  ASSERT_EQ(paceline("export --to chrome -o out.json run/rank0.pace").status, 0);
  std::ifstream file(directory_ / "out.json");
  EXPECT_EQ(json::parse(file)["traceEvents"].size(), 10U);  // 4 names and orders, 6 slices
}

TEST_F(PacelineCommand, AnExportThatCannotBeWrittenFailsAndLeavesNothing) {
  write_rank(0, 3);
  expect_refused("export --to csv -o missing/out.csv run", 1,
                 "missing/out.csv: cannot be written: No such file or directory");
  expect_refused("export --to csv run > /dev/full", 1, "No space left on device");
}

TEST_F(PacelineCommand, EveryFormatIsExported) {
  write_rank(0, 3);
  write_rank(1, 3);
  for (const char* format : {"chrome", "perfetto", "csv", "arrow", "sqlite", "otf2", "chakra"}) {
    const Outcome outcome = paceline(std::string("export --to ") + format + " -o out." + format + " run");
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    EXPECT_TRUE(fs::exists(directory_ / (std::string("out.") + format))) << format;
  }
  EXPECT_TRUE(text_of(directory_ / "out.arrow").starts_with("ARROW1"));
  EXPECT_TRUE(fs::exists(directory_ / "out.otf2" / "traces.otf2"));
  EXPECT_TRUE(fs::exists(directory_ / "out.chakra" / "rank.1.et"));
  expect_refused("export --to otf2 -o out.otf2 run", 1, "out.otf2: exists and is not a regular file: give a new name");
  expect_refused("export --to otf2 -o out.csv run", 1, "out.csv: exists, and the export is a directory");
  expect_refused("export --to sqlite -o /dev/full run", 1, "/dev/full: exists and is not a regular file");
  EXPECT_TRUE(text_of(directory_ / "out.sqlite").starts_with("SQLite format 3"));
  EXPECT_EQ(paceline("export --to sqlite -o out.sqlite --ranks 1 run").status, 0);  // takes the file's place
  expect_refused("export --to otf2 run", 2, "otf2 cannot be written to standard output; give a name");
  expect_refused("export --to otf2 -o missing/out run", 1, "missing/out: cannot be written: No such file or directory");
  EXPECT_FALSE(fs::exists(directory_ / "missing"));
}

TEST_F(PacelineCommand, AnExportIsCompressedIfItsNameEndsWithGz) {
  write_rank(0, 300);
  ASSERT_EQ(paceline("export --to chrome -o out.json run").status, 0);
  ASSERT_EQ(paceline("export --to chrome -o out.json.gz run").status, 0);
  EXPECT_LT(fs::file_size(directory_ / "out.json.gz"), fs::file_size(directory_ / "out.json") / 5);
  const std::string folder = directory_.string();
  EXPECT_EQ(std::system(("gzip -dc " + folder + "/out.json.gz | cmp -s - " + folder + "/out.json").c_str()), 0);
}

// Iterations of 1 ms, each with an allreduce in its last 400 µs. The process began 1 ms before the first one.
TEST_F(PacelineCommand, APartOfARunIsExported) {
  write_rank(0, 5);
  write_rank(1, 5);
  const auto lines = [&](const std::string& options) {
    const Outcome outcome = paceline("export --to csv " + options + " run");
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    return std::count(outcome.output.begin(), outcome.output.end(), '\n');
  };
  const auto all = lines("");
  EXPECT_EQ(all, 1 + 2 * (1 + 10));  // header, and of each rank the process and two slices in each iteration
  EXPECT_EQ(lines("--ranks 1"), 1 + 11);
  EXPECT_EQ(lines("--ranks 0-7"), all);
  EXPECT_EQ(lines("--iterations 1:2"), 1 + 2 * (1 + 4));
  EXPECT_EQ(lines("--iterations 3: --ranks 0"), 1 + 1 + 4);
  EXPECT_EQ(lines("--from 0 --until 1min"), all);
}

TEST_F(PacelineCommand, ASelectionThatIsWrongIsRefused) {
  write_rank(0, 3);
  expect_refused("export --to csv --ranks 0-x run", 2, "'0-x' is not a list of ranks such as 0,2,5-9");
  expect_refused("export --to csv --iterations 2:1 run", 2, "2:1 ends before it begins");
  expect_refused("export --to csv --from 1h run", 2, "'1h' is not a time such as 1.5s, 200ms or 3us");
  expect_refused("export --to csv --iterations 1 --from 1s run", 2, "cannot be combined");
  expect_refused("export --to csv --to chrome run", 2, "two formats are given");
  expect_refused("export --to 3s run", 2, "--to with a format is required");
  expect_refused("export --to csv --ranks 7 run", 1, "the run has no rank 7");
  expect_refused("export --to csv --iterations 8 run", 1, "the chosen ranks have no iteration 8; they have 0 to 2");
  expect_refused("export --to csv --from 2s --until 1s run", 1, "--until 1s is not after --from 2s");
  const Outcome until = paceline("export --to csv --until 1500us run"),
                to = paceline("export --to csv --to 1500us run");
  EXPECT_EQ(until.status, 0);
  EXPECT_EQ(to.output, until.output);  // --to with a time is --until
  EXPECT_THAT(until.output, HasSubstr("clipped"));
}

TEST_F(PacelineCommand, AnExportThatIsInterruptedLeavesNothing) {
  write_rank(0, 400'000);
  std::ofstream(directory_ / "out.csv") << "before";
  const std::string script =
      "cd '" + directory_.string() +
      "' && { '" PACELINE_PROGRAM
      "' export --to csv -o out.csv run 2>errors & pid=$!; "
      "until ls out.csv.*.part >/dev/null 2>&1; do sleep 0.01; done; kill -TERM $pid; wait $pid; }";
  const int status = std::system(script.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(text_of(directory_ / "errors"), "paceline export: stopped by SIGTERM; nothing was kept of the output\n");
  EXPECT_EQ(text_of(directory_ / "out.csv"), "before");
  const auto is_part = [](const fs::directory_entry& entry) { return entry.path().extension() == ".part"; };
  EXPECT_EQ(std::count_if(fs::directory_iterator(directory_), fs::directory_iterator(), is_part), 0);
}

TEST_F(PacelineCommand, EveryCommandSaysThatStandardOutputIsFull) {
  write_rank(0, 3);
  for (const char* command : {"info run", "info --format json run", "report run", "report --format json run",
                              "export --to csv run", "export --to chrome run", "--version", "info --help"}) {
    expect_refused(std::string(command) + " > /dev/full", 1, "No space left on device");
    expect_refused(std::string(command) + " >&-", 1, "Bad file descriptor");
  }
}

// With a device of the test's own: were it removed, it would be the machine's.
TEST_F(PacelineCommand, ADeviceIsWrittenInPlaceAndNeverRemovedOrReplaced) {
  write_rank(0, 3);
  const fs::path full = directory_ / "full.csv";
  if (mknod(full.c_str(), S_IFCHR | 0666, makedev(1, 7)) != 0) GTEST_SKIP() << "making a device node needs root";
  if (!std::ofstream(full)) GTEST_SKIP() << "devices do not work in this directory";
  for (const char* command : {"export --to csv -o full.csv run", "export --to chrome -o full.csv run",
                              "report --format html -o full.csv run"}) {
    expect_refused(command, 1, "full.csv: ");
    EXPECT_TRUE(fs::is_character_file(full)) << command;
  }
  EXPECT_EQ(paceline("export --to csv -o /dev/null run").status, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(PacelineCommand, AnOutputThatFailsLeavesTheFileBefore) {
  write_rank(0, 3);
  std::ofstream(directory_ / "out.csv") << "before";
  fs::permissions(directory_ / "out.csv", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("out.csv", directory_ / "link.csv");
  const Outcome failed = paceline("export --to csv -o out.csv missing");
  EXPECT_EQ(failed.status, 1);
  EXPECT_EQ(text_of(directory_ / "out.csv"), "before");
  ASSERT_EQ(paceline("export --to csv -o link.csv run").status, 0);
  EXPECT_TRUE(fs::is_symlink(directory_ / "link.csv"));
  EXPECT_TRUE(text_of(directory_ / "out.csv").starts_with("rank,host"));
  EXPECT_EQ(fs::status(directory_ / "out.csv").permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const auto is_part = [](const fs::directory_entry& entry) { return entry.path().extension() == ".part"; };
  EXPECT_EQ(std::count_if(fs::directory_iterator(directory_), fs::directory_iterator(), is_part), 0);
}

TEST_F(PacelineCommand, WhatIsNoRegularFileIsRefusedAtOnce) {
  write_rank(0, 3);
  ASSERT_EQ(mkfifo((directory_ / "fifo").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((directory_ / "run" / "fifo.pace").c_str(), 0600), 0);
  fs::create_directories(directory_ / "run" / "folder.pace");
  for (const char* command : {"info", "report", "export --to csv"}) {
    expect_refused(std::string(command) + " fifo", 1, "is neither a directory nor a regular file");
    expect_refused(std::string(command) + " /dev/zero", 1, "is neither a directory nor a regular file");
    EXPECT_EQ(paceline(std::string(command) + " run").status, 0) << command;  // what lies beside traces is no trace
  }
}

TEST_F(PacelineCommand, ASparseTerabyteIsReadAsFastAsWhatIsInIt) {
  write_rank(0, 3);
  write_rank(1, 3, format::Ending::killed);
  for (const char* name : {"run/rank0.pace", "run/rank1.pace"}) {
    std::error_code error;
    fs::resize_file(directory_ / name, std::uintmax_t{1} << 40, error);
    if (error) GTEST_SKIP() << "no file of a terabyte here: " << error.message();
  }
  const Outcome outcome = paceline("info --format json run");
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  const json info = json::parse(outcome.output);
  for (const json& trace : info["traces"]) {
    EXPECT_EQ(trace["events"]["nvtx"], 3) << trace.value("damage", json());
  }
  std::ofstream(directory_ / "table.csv") << "ranks";
  fs::resize_file(directory_ / "table.csv", std::uintmax_t{1} << 40);
  expect_refused("report table.csv", 1, "is too large for a table of runs");
}

TEST_F(PacelineCommand, BadInputIsOneLineAndStatus1) {
  fs::create_directories(directory_ / "empty");
  std::ofstream(directory_ / "text.pace") << "not a trace at all";
  expect_refused("info missing", 1, "paceline info: missing: no such file or directory");
  expect_refused(
      "export --to csv empty", 1,
      "no traces in empty: record some with paceline record -o empty (a process makes one when it first calls");
  expect_refused("export --to csv text.pace", 1, "text.pace: not a trace file");
  std::ofstream(directory_ / "empty" / "report.nsys-rep") << "of Nsight Systems";
  for (const char* path : {"empty", "empty/report.nsys-rep"}) {
    expect_refused(std::string("info ") + path, 1, "empty/report.nsys-rep: only Nsight Systems can read this file");
  }
  write_rank(0, 3, format::Ending::closed, "7");
  write_rank(1, 3, format::Ending::closed, "8");
  expect_refused("export --to csv run", 1, "are of different runs (jobs 7 and 8)");
}

TEST_F(PacelineCommand, ARunThatIsGivenTwiceIsRefused) {
  write_rank(0, 3);
  write_rank(1, 3);
  EXPECT_EQ(paceline("report run").status, 0);
  expect_refused("report run ./run/", 1, "./run/: is given twice");
}

TEST_F(PacelineCommand, WrongUsageIsOneLineAndStatus2) {
  expect_refused("", 2, "see paceline --help");
  expect_refused("fly", 2, "paceline: there is no command 'fly'; see paceline --help");
  expect_refused("--fly", 2, "paceline: there is no option '--fly'; see paceline --help");
  expect_refused("info", 2, "PATH is required; see paceline info --help");
  expect_refused("info --format xml run", 2, "see paceline info --help");
  expect_refused("info --fly run", 2, "--fly");
  expect_refused("export run", 2, "--to is required; see paceline export --help");
  expect_refused("export --to svg run", 2, "svg");
  expect_refused("record", 2, "see paceline record --help");
}

TEST_F(PacelineCommand, HelpAndVersionAreNoFailures) {
  EXPECT_EQ(paceline("--help").status, 0);
  EXPECT_THAT(paceline("--version").output, ::testing::MatchesRegex("paceline [0-9]+\\.[0-9]+\\.[0-9]+\n"
                                                                    "commit      ([0-9a-f]{10,}([+]changes)?|unknown)\n"
                                                                    "compiler    .+\nprocessor   .+\n"
                                                                    "built with  MPI: .+; CUDA: .+\n"));
  for (const char* command : {"record", "info", "export"}) {
    const Outcome outcome = paceline(std::string(command) + " --help");
    EXPECT_EQ(outcome.status, 0) << command;
    EXPECT_THAT(outcome.output, HasSubstr("Usage:")) << command;
  }
}

}  // namespace
}  // namespace paceline
