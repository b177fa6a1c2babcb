// SPDX-License-Identifier: Apache-2.0
// Report, JSON, `paceline watch`, the viewer and `paceline query` give the same iterations, waits and slow ranks of a
// run, because they read them from the same place.
#include <gmock/gmock.h>

#include <filesystem>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "analysis/query/query.h"
#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "analysis/report/section.h"
#include "analysis/statistics/statistics.h"
#include "analysis/watch/live_job.h"
#include "profiler/format/mpi_functions.h"
#include "profiler/format/writer.h"
#include "tests/unit/analysis/query_rows.h"
#include "viewer/session/insight.h"
#include "viewer/session/run.h"

namespace paceline::viewer {
namespace {

namespace fs = std::filesystem;
using analysis::Json;
using format::EventType;

// One job: steps of some 10 ms with blocking allreduces.
struct Described {
  const char* name;
  int ranks = 2, steps = 40, allreduces = 1;
  int late_rank = -1;
  std::uint64_t late_ns = 0;
  int slow_step = -1;          // takes twice as long on all ranks
  bool numbered = true;        // else iterations are counted
  int killed_rank = -1;        // ends inside its last step, without the end of it
  int short_rank = -1;         // makes one step less than the others
  std::uint64_t noise = 1000;  // ns
};

void PrintTo(const Described& job, std::ostream* out) { *out << job.name; }

void write_rank(const Described& job, int rank, const fs::path& path) {
  constexpr auto allreduce = static_cast<std::uint64_t>(format::MpiId::Allreduce);
  constexpr std::uint64_t ms = 1'000'000;
  format::HeaderFacts facts;
  facts.file_id = 70 + static_cast<std::uint64_t>(rank);
  facts.pid = 100 + static_cast<std::uint32_t>(rank);
  facts.ticks_per_second = 1e9;
  facts.start_ticks = 5'000'000;
  facts.start_utc_ns = 1'700'000'000'000'000'000;
  facts.rank = rank;
  facts.world_size = job.ranks;
  facts.host = "node7";
  facts.boot_id = "boot";
  facts.job = "7";
  format::TraceWriter writer(facts);
  writer.thread(0, facts.pid, "main thread");
  writer.add(0, 10, EventType::communicator, 1 | static_cast<std::uint64_t>(job.ranks) << 32,
             {{4711, static_cast<std::uint64_t>(rank) | std::uint64_t{writer.name("MPI_COMM_WORLD")} << 32}});
  std::mt19937_64 random(static_cast<unsigned>(rank) + 1);
  std::uint64_t begin = ms, sequence = 0;
  const int steps = job.steps - (rank == job.short_rank ? 1 : 0);
  for (int step = 0; step < steps; ++step) {
    if (job.numbered) {
      writer.add(0, begin, EventType::push_payload, writer.scope("iteration"),
                 {{static_cast<std::uint64_t>(format::PayloadType::signed_integer), static_cast<std::uint64_t>(step)}});
    } else {
      writer.add(0, begin, EventType::push, writer.scope("iteration"));
    }
    const std::uint64_t longer = step == job.slow_step ? 2 : 1;
    std::uint64_t at = begin + 1000;
    writer.add(0, at, EventType::push, writer.scope("backward"));
    at += longer * 4 * ms + random() % job.noise;
    if (rank == job.late_rank) at += job.late_ns;
    writer.add(0, at, EventType::pop, 0);
    for (int i = 0; i < job.allreduces; ++i) {
      writer.add(0, at + 1000, EventType::mpi_begin_coll, allreduce | std::uint64_t{0xffffffff} << 16,
                 {{1024, 1 | sequence++ << 32}});
      at = begin + longer * 8 * ms + static_cast<std::uint64_t>(i) * ms / 2;  // all leave it at one time
      writer.add(0, at, EventType::mpi_end, allreduce);
    }
    if (rank == job.killed_rank && step + 1 == steps) break;
    at += 1000 + random() % 1000;
    writer.add(0, at, EventType::pop, 0);
    begin += longer * 10 * ms;
  }
  writer.write(path, rank == job.killed_rank ? format::Ending::killed : format::Ending::closed);
}

class Agreement : public ::testing::TestWithParam<Described> {
 protected:
  Agreement()
      : directory_(fs::temp_directory_path() / ("paceline-agreement-" + std::to_string(getpid()))),
        job_((fs::remove_all(directory_), fs::create_directories(directory_), write_all(), directory_)) {
    run_ = open_run(QString::fromStdString(directory_.string()));
    insight_.emplace(examine(*run_));
    std::vector<analysis::RunAnalysis> runs;
    runs.push_back(analysis::analyse_run(run_->trace, directory_.string()));
    report_ = analysis::build_report(std::move(runs));
    whole_json_ = Json::parse(analysis::render_json(report_));
    json_ = whole_json_["runs"][0];
    job_.poll();
    frame_ = job_.frame();
  }
  ~Agreement() override { fs::remove_all(directory_); }

  void write_all() const {
    for (int rank = 0; rank < GetParam().ranks; ++rank) {
      write_rank(GetParam(), rank, directory_ / ("rank" + std::to_string(rank) + ".pace"));
    }
  }

  std::vector<std::string> query(const std::string& sql) const {
    std::vector<std::string> cells;
    for (const auto& row : analysis::rows_of(run_->trace, sql)) cells.insert(cells.end(), row.begin(), row.end());
    return cells;
  }

  fs::path directory_;
  analysis::LiveJob job_;
  std::shared_ptr<const viewer::Run> run_;
  std::optional<Insight> insight_;
  analysis::Report report_;
  Json whole_json_, json_;
  analysis::WatchFrame frame_;
};

TEST_P(Agreement, OnIterations) {
  std::vector<std::int64_t> numbers, durations;
  for (const RunIteration& one : run_->iterations) {
    if (!one.finished) continue;
    numbers.push_back(one.number);
    durations.push_back(one.duration_ns());
  }
  const Described& job = GetParam();
  const bool cut = job.killed_rank >= 0 || job.short_rank >= 0;
  ASSERT_EQ(numbers.size(), static_cast<std::size_t>(job.steps - (cut ? 1 : 0)));
  EXPECT_EQ(numbers, report_.runs[0].iterations.numbers);
  EXPECT_EQ(json_["iterations"]["count"], numbers.size());
  EXPECT_EQ(json_["iterations"]["median_ns"], analysis::median(durations));
  // While a rank may still run, collectives of the newest iteration may end later.
  EXPECT_EQ(frame_.iterations, numbers.size() - (frame_.ended ? 0 : 1));
  if (frame_.ended && numbers.size() <= analysis::LiveSteps::shown) {
    EXPECT_EQ(frame_.median_ns, json_["iterations"]["median_ns"]);
  }
  EXPECT_EQ(query("SELECT count(*) FROM (SELECT number FROM iterations WHERE finished GROUP BY number "
                  "HAVING count(*) = (SELECT count(DISTINCT rank) FROM iterations))"),
            std::vector{std::to_string(numbers.size())});
}

TEST_P(Agreement, OnWaits) {
  for (std::size_t r = 0; r < run_->ranks.size(); ++r) {
    const auto waited = json_["per_rank"][r]["waits"]["waited_ns"].get<std::int64_t>();
    EXPECT_EQ(waited, insight_->waits[r].waited_ns(0, std::int64_t(run_->end_ns)));
    EXPECT_EQ(query("SELECT sum(wait_ns) FROM collectives WHERE rank = " + std::to_string(r)),
              std::vector{std::to_string(waited)});
    if (frame_.iterations != static_cast<std::uint64_t>(GetParam().steps)) continue;  // not all calls lie in its steps
    if (frame_.iterations > analysis::LiveSteps::shown) continue;
    double steps_ns = 0;
    for (const analysis::Iteration& one : run_->index->iterations(r)) steps_ns += double(one.duration_ns);
    EXPECT_NEAR(frame_.ranks[r].wait_share, double(waited) / steps_ns, 1e-9);
  }
}

TEST_P(Agreement, OnSlowRanks) {
  const Described& job = GetParam();
  std::set<std::size_t> slow, in_report, in_figures, in_json, in_watch, in_viewer;
  for (const auto& late : report_.runs[0].lateness.late) slow.insert(late.rank);
  for (const Json& late : json_["lateness"]["slow_ranks"]) in_figures.insert(late["rank"].get<std::size_t>());
  for (const Json& finding : whole_json_["findings"]) {
    if (finding["kind"] != "slow rank") continue;
    for (const Json& place : finding["places"]) in_json.insert(place["rank"].get<std::size_t>());
  }
  const auto add = [](const std::vector<analysis::Finding>& findings, std::set<std::size_t>& ranks) {
    for (const analysis::Finding& finding : findings) {
      if (finding.kind != "slow rank") continue;
      for (const analysis::FindingPlace& place : finding.places) ranks.insert(*place.rank);
    }
  };
  add(report_.findings, in_report);
  add(frame_.findings, in_watch);
  for (const ShownFinding& finding : insight_->findings) {
    if (finding.text.contains("arrived last")) in_viewer.insert(*finding.rank);
  }
  const bool judged = job.steps >= 40;
  EXPECT_EQ(report_.runs[0].lateness.judged, judged);
  EXPECT_EQ(slow,
            job.late_rank >= 0 && judged ? std::set{static_cast<std::size_t>(job.late_rank)} : std::set<std::size_t>());
  EXPECT_EQ(in_report, slow);
  EXPECT_EQ(in_figures, slow);
  EXPECT_EQ(in_json, slow);
  EXPECT_EQ(in_watch, slow);
  EXPECT_EQ(in_viewer, slow) << "the viewer names nobody whom the report does not name";
}

constexpr std::uint64_t us = 1000;
INSTANTIATE_TEST_SUITE_P(
    Jobs, Agreement,
    ::testing::Values(
        Described{.name = "balanced"}, Described{.name = "four_ranks", .ranks = 4},
        Described{.name = "three_allreduces", .ranks = 3, .allreduces = 3}, Described{.name = "long", .steps = 200},
        Described{.name = "counted", .numbered = false},
        Described{.name = "late", .late_rank = 1, .late_ns = 1000 * us},
        Described{.name = "late_first_rank", .ranks = 3, .late_rank = 0, .late_ns = 2000 * us},
        Described{.name = "late_of_six", .ranks = 6, .steps = 60, .late_rank = 4, .late_ns = 1500 * us},
        Described{
            .name = "late_in_three_allreduces", .ranks = 3, .allreduces = 3, .late_rank = 2, .late_ns = 1000 * us},
        Described{.name = "late_and_long", .steps = 200, .late_rank = 0, .late_ns = 800 * us},
        Described{.name = "late_and_counted", .late_rank = 1, .late_ns = 1000 * us, .numbered = false},
        Described{.name = "too_short", .ranks = 3, .steps = 6, .late_rank = 1, .late_ns = 3000 * us},
        Described{.name = "much_too_short", .steps = 3, .late_rank = 0, .late_ns = 3000 * us},
        Described{.name = "slow_step", .slow_step = 20},
        Described{.name = "slow_first_step", .ranks = 3, .slow_step = 0},
        Described{.name = "killed", .ranks = 3, .killed_rank = 1},
        Described{.name = "killed_and_late", .ranks = 3, .late_rank = 2, .late_ns = 1000 * us, .killed_rank = 2},
        Described{.name = "one_step_less", .ranks = 3, .short_rank = 1},
        Described{.name = "noisy", .ranks = 4, .noise = 400'000},
        Described{.name = "late_and_noisy",
                  .ranks = 4,
                  .steps = 150,
                  .late_rank = 3,
                  .late_ns = 1500 * us,
                  .noise = 400'000}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace paceline::viewer
