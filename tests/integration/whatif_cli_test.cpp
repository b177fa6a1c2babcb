// SPDX-License-Identifier: Apache-2.0
// `paceline whatif` on .pace files made by hand.
#include <nlohmann/json.hpp>
#include <string>

#include "profiler/format/mpi_functions.h"
#include "profiler/format/writer.h"
#include "tests/integration/command.h"

namespace paceline {
namespace {

using format::EventType;
using nlohmann::json;

constexpr std::uint64_t allreduce = static_cast<std::uint64_t>(format::MpiId::Allreduce);

class WhatifCommand : public CommandTest {
 protected:
  // Two ranks, 40 iterations: forward 20 ms on rank 0 and 50 ms on rank 1, then an allreduce of 1 MB whose transfer
  // takes 30 ms, and one of 8 bytes that takes 2 ms. A step takes 82 ms.
  void write_run(const std::string& name, int ranks = 2) const {
    fs::create_directories(directory_ / name);
    for (int rank = 0; rank < ranks; ++rank) {
      format::HeaderFacts facts;
      facts.file_id = 7 + static_cast<std::uint64_t>(rank);
      facts.pid = 100 + static_cast<std::uint32_t>(rank);
      facts.ticks_per_second = 1e9;
      facts.rank = rank;
      facts.world_size = ranks;
      facts.host = "alice";
      facts.boot_id = "boot";
      facts.job = "7";
      format::TraceWriter writer(facts);
      const std::uint64_t iteration = writer.scope("iteration", "test", "iteration");
      const std::uint64_t forward = writer.scope("forward", "test");
      std::uint64_t now = 1000, sequence = 0;
      const auto add = [&](std::uint64_t end_ms, std::uint64_t bytes) {
        writer.add(0, now, EventType::mpi_begin_coll, allreduce | std::uint64_t{0xffffffff} << 16,
                   {{bytes, sequence++ << 32}});
        now += end_ms * 1'000'000;
        writer.add(0, now, EventType::mpi_end, allreduce);
      };
      for (int i = 0; i < 40; ++i) {
        writer.add(0, now, EventType::push, iteration);
        writer.add(0, now, EventType::push, forward);
        now += (rank == 0 ? 20 : 50) * std::uint64_t{1'000'000};
        writer.add(0, now, EventType::pop, forward >> 48);
        if (ranks > 1) {
          add(rank == 0 ? 60 : 30, 1'000'000);
          add(2, 8);
        }
        writer.add(0, now, EventType::pop, iteration >> 48);
      }
      writer.write(directory_ / name / ("rank" + std::to_string(rank) + ".pace"));
    }
  }

  double step_ms(const std::string& options) const {
    const Outcome outcome = paceline("whatif run --format json " + options);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    const json found = json::parse(outcome.output);
    EXPECT_NEAR(found["step_s"].get<double>(), 0.082, 1e-6);
    EXPECT_NEAR(found["replayed_s"].get<double>(), 0.082, 1e-6);
    return 1e3 * found["predictions"][0]["step_s"].get<double>();
  }
};

TEST_F(WhatifCommand, PredictsEachChangeAndTheirCombination) {
  write_run("run");
  EXPECT_NEAR(step_ms("--fp16"), 82 - 14, 0.01);
  EXPECT_NEAR(step_ms("--bandwidth 0.5 --latency 3"), 82 + 28 + 4 + 4, 0.01);
  EXPECT_NEAR(step_ms("--relieve 1"), 82 - 30, 0.01);
  EXPECT_NEAR(step_ms("--relieve 1 --fp16 --batch 2"), 82 - 30 - 14 + 0.92 * 20, 0.01);
  EXPECT_NEAR(step_ms("--faster 'forw*=2.5'"), 82 - 30, 0.01);
  EXPECT_NEAR(step_ms("--double-buffering"), 82 - 30, 0.01);
}

TEST_F(WhatifCommand, WithoutAChangeItRanksAllThatApply) {
  write_run("run");
  const Outcome text = paceline("whatif run");
  ASSERT_EQ(text.status, 0) << text.errors;
  EXPECT_THAT(text.output, ::testing::StartsWith(
                               "A step of run takes 82.0 ms (mean of 36 iterations after warm-up; median 82.0 ms)."));
  EXPECT_THAT(text.output, ::testing::HasSubstr("rank 1 no slower than the others"));
  EXPECT_THAT(text.output, ::testing::HasSubstr("no contention for cores"));
  EXPECT_THAT(text.output, ::testing::HasSubstr("double buffering (check the accuracy)"));
  const json found = json::parse(paceline("whatif run --format json").output);
  EXPECT_EQ(found["schema"], "paceline.whatif/1");
  EXPECT_EQ(json::parse(paceline("report run --format json").output)["runs"][0]["what_if"]["predictions"],
            found["predictions"])
      << "the report ends with the same list";
}

TEST_F(WhatifCommand, TheReportHasTheCriticalPath) {
  write_run("run");
  const json report = json::parse(paceline("report run --format json").output);
  const json& path = report["runs"][0]["critical_path"];
  EXPECT_EQ(path["wall_ns"], 40 * 82'000'000LL);
  EXPECT_EQ(path["phases_ns"]["forward"], 40 * 50'000'000LL);
  EXPECT_EQ(path["phases_ns"]["communication"], 40 * 32'000'000LL);
  EXPECT_EQ(path["iterations"][7]["phases_ns"], json({{"forward", 50'000'000LL}, {"communication", 32'000'000LL}}));
  EXPECT_EQ(path["iterations"][7]["work_ns"], json({0, 50'000'000LL}));
  EXPECT_EQ(report["runs"][0]["per_rank"][1]["critical_path"]["phases_ns"]["forward"], 40 * 50'000'000LL);
  EXPECT_EQ(report["runs"][0]["per_rank"][0]["critical_path"]["slack_ns"]["forward"], 30'000'000LL);
}

TEST_F(WhatifCommand, BadInputGivesOneClearLine) {
  write_run("run");
  write_run("single", 1);
  const auto refused = [&](const std::string& arguments, int status, const std::string& part) {
    const Outcome outcome = paceline("whatif " + arguments);
    EXPECT_EQ(outcome.status, status) << arguments;
    EXPECT_THAT(outcome.errors, ::testing::HasSubstr(part)) << arguments;
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
  };
  refused("run --bucket-mb 4", 1, "add --overlap");
  refused("run --relieve 9", 1, "the run has no such rank");
  refused("run --faster conv", 2, "expected NAME=FACTOR");
  refused("run --latency 0", 2, "--latency");
  refused("run --overlap --double-buffering", 2, "excludes");
  refused("run --algorithm star", 2, "star");
  refused("single --fp16", 1, "record the job on at least 2 ranks");
  refused("missing", 1, "missing");
}

}  // namespace
}  // namespace paceline
