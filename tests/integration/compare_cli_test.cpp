// SPDX-License-Identifier: Apache-2.0
// `paceline compare` on .pace files made by hand.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>

#include "profiler/format/writer.h"
#include "tests/integration/command.h"

namespace paceline {
namespace {

using format::EventType;
using nlohmann::json;

class CompareCommand : public CommandTest {
 protected:
  // One rank, 200 iterations: forward 20 ms, then a layer of this many ms with noise of 2 %.
  void write_run(const std::string& name, double layer_ms, unsigned seed, const std::string& named = "conv3") const {
    fs::create_directories(directory_ / name);
    format::HeaderFacts facts;
    facts.file_id = seed;
    facts.pid = 100;
    facts.ticks_per_second = 1e9;
    facts.rank = 0;
    facts.world_size = 1;
    facts.host = "alice";
    facts.boot_id = "boot";
    facts.job = "7";
    format::TraceWriter writer(facts);
    const std::uint64_t iteration = writer.scope("iteration", "test", "iteration");
    const std::uint64_t forward = writer.scope("forward", "test"), layer = writer.scope(named, "test");
    std::mt19937_64 random(seed);
    std::normal_distribution<double> noise(1, 0.02);
    std::uint64_t now = 1000;
    const auto range = [&](std::uint64_t scope, double ms) {
      writer.add(0, now, EventType::push, scope);
      now += static_cast<std::uint64_t>(1e6 * ms * noise(random));
      writer.add(0, now, EventType::pop, scope >> 48);
    };
    for (int i = 0; i < 200; ++i) {
      writer.add(0, now, EventType::push, iteration);
      range(forward, 20);
      range(layer, layer_ms);
      writer.add(0, now, EventType::pop, iteration >> 48);
    }
    writer.write(directory_ / name / "rank0.pace");
  }
};

TEST_F(CompareCommand, NamesTheLayerThatBecameSlower) {
  write_run("base", 10, 1);
  write_run("new", 12, 2);
  const Outcome text = paceline("compare base new");
  ASSERT_EQ(text.status, 0) << text.errors;
  EXPECT_THAT(text.output, ::testing::StartsWith("new is slower in this pair of runs: a step takes "));
  EXPECT_THAT(text.output, ::testing::HasSubstr("test: conv3 (+2.0"));
  const json found = json::parse(paceline("compare --format json base new").output);
  EXPECT_EQ(found["schema"], "paceline.compare/1");
  EXPECT_EQ(found["quantities"][0]["type"], "step");
  EXPECT_NEAR(found["quantities"][0]["ratio"].get<double>(), 32.0 / 30, 0.01);
  EXPECT_THAT(paceline("compare --format md base new").output,
              ::testing::HasSubstr("| range | test: conv3 | slower |"));
}

// Kernels of C++ templates have such names.
TEST_F(CompareCommand, ShortensNamesSoThatLinesHaveAtMost120Characters) {
  const std::string kernel(300, 'k');
  write_run("base", 10, 1, kernel + "_end");
  write_run("new", 12, 2, kernel + "_end");
  write_run("other", 12, 2);
  for (const char* runs : {"base new", "base other"}) {
    const std::string text = paceline(std::string("compare ") + runs).output;
    EXPECT_THAT(text, ::testing::HasSubstr("_end"));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const auto characters = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
      EXPECT_LE(characters, 120) << line;
    }
  }
  EXPECT_THAT(paceline("compare base new").output, ::testing::HasSubstr("  range  kkk"))
      << "the domain gives way first";
}

TEST_F(CompareCommand, FailAboveEndsWithOneOnlyIfTheStepIsSlowerByMore) {
  write_run("base", 10, 1);
  write_run("same", 10, 2);
  write_run("slow", 14, 3);
  EXPECT_EQ(paceline("compare --fail-above 5% base same").status, 0);
  EXPECT_EQ(paceline("compare --fail-above 5 base slow").status, 1);
  EXPECT_EQ(paceline("compare --fail-above 20% base slow").status, 0);
  EXPECT_EQ(paceline("compare --fail-above 5% slow base").status, 0);
}

// Python's parser of XML reads the report.
TEST_F(CompareCommand, WritesATestReportForCi) {
  constexpr const char* read = R"(python3 -c '
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1] + "/report.xml").getroot()[0]
case = suite[0]
text = case.find("system-out").text.split(":")[0]
print(suite.get("failures"), suite.get("skipped"), case.get("name"), [part.tag for part in case], text, end="")' )";
  write_run("base", 10, 1);
  write_run("<slow> & \x01", 14, 3);
  const auto written = [&](const std::string& options, int status) {
    EXPECT_EQ(paceline("compare --format junit -o report.xml base '<slow> & \x01' " + options).status, status);
    EXPECT_EQ(std::system((read + directory_.string() + " >" + (directory_ / "read").string()).c_str()), 0);
    return text_of(directory_ / "read");
  };
  const std::string slower = " <slow> & \uFFFD is slower in this pair of runs";
  EXPECT_EQ(written("--fail-above 5", 1), "1 0 step time ['failure', 'system-out']" + slower);
  EXPECT_EQ(written("--fail-above 20", 0), "0 0 step time ['system-out']" + slower);
  EXPECT_EQ(written("", 0), "0 0 step time ['system-out']" + slower);
}

TEST_F(CompareCommand, ComparesRepeatedRuns) {
  for (unsigned i = 0; i < 3; ++i) {
    write_run("base" + std::to_string(i), 10, i + 1);
    write_run("new" + std::to_string(i), 14, i + 11);
  }
  const json found = json::parse(paceline("compare base0 base1 base2 --format json --new new0 new1 new2").output);
  EXPECT_TRUE(found["between_runs"].get<bool>());
  EXPECT_EQ(found["quantities"][0]["verdict"], "slower");
  EXPECT_EQ(found["base"].size(), 3U);
  EXPECT_EQ(found["new"].size(), 3U);
}

TEST_F(CompareCommand, RefusesWrongUsage) {
  write_run("base", 10, 1);
  expect_refused("compare base", 2, "expected two runs");
  expect_refused("compare base base --fail-above x", 2, "expected a percentage such as 5%");
  expect_refused("compare base nowhere", 1, "nowhere: no such file or directory");
  expect_refused("compare -o /dev/full base base", 1, "/dev/full");
}

}  // namespace
}  // namespace paceline
