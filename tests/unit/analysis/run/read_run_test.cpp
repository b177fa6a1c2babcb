// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/read_run.h"

#include <gmock/gmock.h>

#include "analysis/load/load.h"
#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "analysis/run/summary_bytes.h"
#include "analysis/trace/builder.h"
#include "profiler/format/error.h"
#include "tests/unit/analysis/rank_file.h"

namespace paceline::analysis {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

void without_progress(const std::function<void(const Progress&)>& work) { work({}); }

class ReadRunOf4Ranks : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() /
                 (std::string("paceline-read-run-") + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                  "-" + std::to_string(getpid()));
    TraceBuilder run;
    for (int r = 0; r < 4; ++r) {
      RankBuilder& rank = run.add_rank(r, 4);
      rank.info().host = "node7";
      TrackBuilder& main = rank.add_main_thread();
      for (std::int64_t step = 0; step < 60; ++step) {
        const std::int64_t at = 1'000'000 + step * 10'000'000;
        main.push(at, "iteration", "paceline.trainer", "iteration");
        main.argument("payload", static_cast<double>(step));
        main.push(at + 1000, "forward", "paceline.trainer", "forward");
        main.pop(at + 3'000'000 + (step * 7919 + r * 104'729) % 10'000);
        main.push(at + 5'000'000 + (r == 2 ? 900'000 : 0) + (step * 31 + r * 17) % 1000, "MPI_Allreduce", "mpi",
                  "collective");
        main.argument("bytes", 4096);
        main.pop(at + 7'000'000);
        main.pop(at + 9'000'000);
      }
    }
    write_run(run.finish(), directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string json_of(RunAnalysis run) const {
    std::vector<RunAnalysis> runs;
    runs.push_back(std::move(run));
    return render_json(build_report(std::move(runs), {}, {}));
  }
  std::optional<ReadRun> read(const RunReading& reading) const {
    bool failed = false;
    return read_run(directory_.string(), reading, without_progress, failed);
  }

  fs::path directory_;
};

// The process `number` of several, of which the others sent these bytes.
class OneOfSeveral : public ReadingProcesses {
 public:
  OneOfSeveral(std::size_t number, std::vector<std::string> others) : number_(number), others_(std::move(others)) {}
  std::size_t number() const override { return number_; }
  std::size_t count() const override { return 3; }
  std::vector<std::string> gather(const std::string& bytes) override {
    sent = bytes;
    if (number_ > 0) return {};
    std::vector<std::string> all{bytes};
    all.insert(all.end(), others_.begin(), others_.end());
    return all;
  }
  bool broadcast(bool value) override { return value; }

  std::string sent;

 private:
  std::size_t number_;
  std::vector<std::string> others_;
};

TEST_F(ReadRunOf4Ranks, SummariesAreTheSameAfterTheWayThroughBytes) {
  std::vector<RankSummary> summaries = summarise(load_run(directory_));
  std::vector<std::string> notes{"a note", ""};
  const std::string bytes = bytes_of(notes, summaries);
  SharedSummaries copies = summaries_from(bytes);
  EXPECT_EQ(copies.notes, notes);
  EXPECT_EQ(bytes_of(copies.notes, copies.summaries), bytes);
  EXPECT_EQ(json_of(analyse_run(std::move(copies.summaries), "run")),
            json_of(analyse_run(std::move(summaries), "run")));
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{100}, bytes.size() - 1}) {
    EXPECT_THROW(summaries_from(std::string_view(bytes).substr(0, length)), Error) << length;
  }
  for (const std::size_t place : {0, 8, 60}) {  // the length and the text of the layout
    std::string of_another_build = bytes;
    of_another_build[place] ^= 1;
    EXPECT_THROW(summaries_from(of_another_build), Error) << place;
  }
}

TEST_F(ReadRunOf4Ranks, ARunThatIsReadRankByRankHasTheFiguresOfTheWholeButTheCriticalPath) {
  const std::optional<ReadRun> whole = read({}), by_rank = read({.most_slots = 1, .processes = nullptr});
  ASSERT_TRUE(whole && by_rank);
  EXPECT_TRUE(whole->run.critical_path);
  EXPECT_FALSE(by_rank->run.critical_path || by_rank->run.what_if);
  ASSERT_THAT(by_rank->notes, SizeIs(1));
  EXPECT_THAT(by_rank->notes.front(), HasSubstr("rank by rank"));
  ASSERT_THAT(by_rank->run.lateness.late, SizeIs(1));
  EXPECT_EQ(by_rank->run.lateness.late.front().rank, 2U);
  EXPECT_EQ(by_rank->run.lateness.late.front().behind_ns, whole->run.lateness.late.front().behind_ns);
  EXPECT_EQ(by_rank->run.iterations.seconds, whole->run.iterations.seconds);
  EXPECT_EQ(by_rank->run.per_rank[3].phase_ns, whole->run.per_rank[3].phase_ns);
  EXPECT_EQ(by_rank->run.span_ns, whole->run.span_ns);
}

TEST_F(ReadRunOf4Ranks, SeveralProcessesGiveTheReportOfOne) {
  OneOfSeveral second(1, {}), third(2, {});
  EXPECT_FALSE(read({.most_slots = 1, .processes = &second}));
  EXPECT_FALSE(read({.most_slots = 1, .processes = &third}));
  OneOfSeveral first(0, {second.sent, third.sent});
  std::optional<ReadRun> shared = read({.most_slots = 1, .processes = &first});
  std::optional<ReadRun> alone = read({.most_slots = 1, .processes = nullptr});
  ASSERT_TRUE(shared && alone);
  EXPECT_EQ(json_of(std::move(shared->run)), json_of(std::move(alone->run)));
  EXPECT_EQ(shared->notes, alone->notes);
}

TEST_F(ReadRunOf4Ranks, TheFailureOfAnotherProcessEndsTheReport) {
  OneOfSeveral first(0, {"Srest", "Enode8: no memory"});
  bool failed = false;
  try {
    read_run(directory_.string(), {.most_slots = 1, .processes = &first}, without_progress, failed);
    FAIL() << "no failure";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "node8: no memory");
  }
  OneOfSeveral second(1, {});
  EXPECT_FALSE(
      read_run((directory_ / "absent").string(), {.most_slots = 1, .processes = &second}, without_progress, failed));
  EXPECT_EQ(second.sent[0], 'E');
}

}  // namespace
}  // namespace paceline::analysis
