// SPDX-License-Identifier: Apache-2.0
// Traces that nobody would record: the window shows them, or one line explains why not.
#include <gtest/gtest.h>

#include <QFile>
#include <QTemporaryDir>
#include <limits>
#include <string>

#include "analysis/trace/builder.h"
#include "profiler/format/error.h"
#include "profiler/format/writer.h"
#include "tests/hostile_files.h"
#include "tests/unit/viewer/user.h"
#include "viewer/panels/panel.h"

namespace paceline::viewer {
namespace {

// Opens every panel, and looks at the run from far and from near.
void look_at(std::shared_ptr<const Run> run) {
  User user(std::move(run));
  user.state().arrangement.set_all_collapsed(false);
  for (const PanelKind& kind : panel_kinds()) {
    if (kind.place != PanelKind::Place::tab) continue;
    Q_EMIT user.state().commands.panel_wanted(kind.title);
    user.finish();
    user.window.grab();
  }
  user.press("End");
  user.press("Ctrl+E");
  for (const char* key : {"F", "Down", "Down", "Down", "Right", "Z", "Return", "R", "S", "S", "PgDown", "Home"}) {
    user.press(key);
    user.timeline->viewport()->grab();
  }
  const TimeRange view = user.view(), whole = user.state().time.axis().whole();
  EXPECT_GE(view.begin_ns, whole.begin_ns);
  EXPECT_LE(view.end_ns, whole.end_ns);
}

class HostileFile : public testing::Test {
 protected:
  QString write(const QByteArray& bytes, const char* name = "trace") {
    const QString path = directory.path() + "/" + name;
    QFile file(path);
    EXPECT_TRUE(file.open(QIODevice::WriteOnly));
    file.write(bytes);
    return path;
  }
  // 1 if the run can be opened and drawn, 0 if one line explains why not.
  int opens(const QByteArray& bytes, const char* name) { return opens_file(write(bytes, name), name); }
  int opens_file(const QString& path, const std::string& name) {
    std::shared_ptr<const viewer::Run> run;
    try {
      run = open_run(path);
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message, "");
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      EXPECT_NE(message.find(name), std::string::npos) << message;
      return 0;
    }
    Document document(run);
    ViewState state(*run);
    TimelineWidget timeline(document, state);
    timeline.resize(600, 200);
    timeline.grab();
    document.background().finish();
    timeline.grab();
    return 1;
  }

  QTemporaryDir directory;
};

// A rank with nested ranges, an argument and a mark.
QByteArray small_pace_file(const QString& path) {
  format::TraceWriter writer({.pid = 7,
                              .ticks_per_second = 1e9,
                              .start_utc_ns = 1'700'000'000'000'000'000,
                              .process_start_utc_ns = 1'700'000'000'000'000'000,
                              .rank = 0,
                              .world_size = 1,
                              .host = "node1",
                              .boot_id = "boot",
                              .command = {},
                              .environment = {}});
  const auto domain = writer.domain("paceline.trainer");
  for (std::uint64_t i = 0; i < 3; ++i) {
    writer.add(0, i * 1'000'000, format::EventType::push, writer.scope("iteration", "paceline.trainer", "iteration"));
    writer.add(0, i * 1'000'000 + 1000, format::EventType::push,
               writer.scope("forward", "paceline.trainer", "forward"));
    writer.add(0, i * 1'000'000 + 400'000, format::EventType::pop, domain);
    writer.add(0, i * 1'000'000 + 900'000, format::EventType::pop, domain);
  }
  writer.write(path.toStdString());
  QFile file(path);
  EXPECT_TRUE(file.open(QIODevice::ReadOnly));
  return file.readAll();
}

TEST_F(HostileFile, DamagedAnywhereOpensOrFailsInOneLine) {
  const QByteArray whole = small_pace_file(directory.path() + "/whole.pace");
  ASSERT_GT(whole.size(), 100);
  ASSERT_LT(whole.size(), 20'000);
  int opened = 0;
  for (qsizetype at = 0; at < whole.size(); at += 1 + whole.size() / 250) {
    QByteArray damaged = whole;
    damaged[at] = static_cast<char>(~damaged[at]);
    opened += opens(damaged, "rank0.pace");
    ASSERT_FALSE(HasFailure()) << "byte " << at << " of " << whole.size();
  }
  EXPECT_GT(opened, 0) << "damage in the events leaves the rest";
}

TEST_F(HostileFile, CutAnywhereOpensOrFailsInOneLine) {
  const QByteArray whole = small_pace_file(directory.path() + "/whole.pace");
  for (qsizetype length = 0; length < whole.size(); length += 1 + whole.size() / 100) {
    opens(whole.left(length), "rank0.pace");
    ASSERT_FALSE(HasFailure()) << length << " bytes of " << whole.size();
  }
}

TEST_F(HostileFile, OfEveryKindOpensOrFailsInOneLine) {
  for (const auto& [path, damaged] : HostileFiles().write(directory.path().toStdString())) {
    SCOPED_TRACE(path.string());
    const int opened = opens_file(QString::fromStdString(path.string()), path.filename().string());
    EXPECT_TRUE(opened == 1 || damaged);
  }
}

TEST_F(HostileFile, OfAnOtf2ArchiveIsShownInEveryPanel) {
  HostileFiles files;
  files.nesting = 1'000;
  look_at(open_run(QString::fromStdString(files.write_archive(directory.path().toStdString() + "/archive").string())));
}

TEST_F(HostileFile, WithStrangeTimesIsShown) {
  // Microseconds, as PyTorch writes them: nothing, a negative and a huge duration, a start before zero, the same twice.
  const QByteArray trace = R"({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "ordinary", "pid": 1, "tid": 1, "ts": 100, "dur": 50},
    {"ph": "X", "cat": "cpu_op", "name": "nothing", "pid": 1, "tid": 1, "ts": 120, "dur": 0},
    {"ph": "X", "cat": "cpu_op", "name": "backwards", "pid": 1, "tid": 1, "ts": 130, "dur": -20},
    {"ph": "X", "cat": "cpu_op", "name": "huge", "pid": 1, "tid": 2, "ts": 140, "dur": 1e13},
    {"ph": "X", "cat": "cpu_op", "name": "huge", "pid": 1, "tid": 2, "ts": 140, "dur": 1e13},
    {"ph": "X", "cat": "cpu_op", "name": "early", "pid": 1, "tid": 3, "ts": -1000000, "dur": 5},
    {"ph": "X", "cat": "kernel", "name": "", "pid": 0, "tid": 7, "ts": 150, "dur": 1, "args": {"stream": 7}}]})";
  std::shared_ptr<const viewer::Run> run;
  ASSERT_NO_THROW(run = open_run(write(trace, "trace.json")));
  EXPECT_GE(run->slices, 4u);
  look_at(run);
}

TEST(HostileRun, OfOneInstantIsShown) {
  analysis::TraceBuilder builder;
  analysis::TrackBuilder& main = builder.add_rank(0).add_main_thread();
  for (int i = 0; i < 100; ++i) main.add_slice(5, 5, "instant", "d", "c");
  look_at(index_run("instant", builder.finish()));
}

TEST(HostileRun, OfThreeCenturiesIsShown) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
  analysis::TraceBuilder builder;
  for (int number = 0; number < 2; ++number) {
    analysis::TrackBuilder& main = builder.add_rank(number, 2).add_main_thread();
    main.add_slice(-most, most, "all", "d", "c");
    main.add_slice(0, 1, "one nanosecond", "d", "c");
  }
  look_at(index_run("centuries", builder.finish()));
}

TEST(HostileRun, WithDeepNestingIsShown) {
  constexpr int depth = 10'000;
  analysis::TraceBuilder builder;
  analysis::TrackBuilder& main = builder.add_rank(0).add_main_thread();
  for (int level = 0; level < depth; ++level) main.push(level, "level", "d", "c");
  for (int level = depth; level-- > 0;) main.pop(3 * depth - level);
  const auto run = index_run("deep", builder.finish());
  EXPECT_EQ(run->trace.ranks[0].tracks[0].depths, unsigned{depth});
  look_at(run);
}

TEST(HostileRun, WithThousandsOfTracksIsShown) {
  analysis::TraceBuilder builder;
  analysis::RankBuilder& rank = builder.add_rank(0);
  rank.add_main_thread().add_slice(0, 1'000'000, "main");
  for (int track = 0; track < 5000; ++track) {
    rank.add_track(analysis::TrackKind::stream, "stream " + std::to_string(track)).add_slice(0, 1000, "kernel");
  }
  look_at(index_run("tracks", builder.finish()));
}

TEST(HostileRun, WithStrangeNamesIsShown) {
  analysis::TraceBuilder builder;
  analysis::TrackBuilder& main = builder.add_rank(0).add_main_thread();
  const std::string names[] = {"",
                               std::string(100'000, 'x'),
                               "<b>&amp;\"'",
                               "\n\t\x01\x7f",
                               "\xff\xfe not UTF-8",
                               "\u202e right to left",
                               "شبكة عصبية",
                               "%1 %2 %s"};
  std::int64_t start = 0;
  for (const std::string& name : names) main.add_slice(start, start + 1'000'000, name, name, name), start += 1'000'000;
  for (int i = 0; i < 20'000; ++i) main.add_slice(start + i * 10, start + i * 10 + 5, "name " + std::to_string(i));
  look_at(index_run("<names> & %1", builder.finish()));
}

}  // namespace
}  // namespace paceline::viewer
