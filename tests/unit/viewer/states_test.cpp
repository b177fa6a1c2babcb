// SPDX-License-Identifier: Apache-2.0
// The strips of the states of threads, and the ticks of samples above them.
#include <gtest/gtest.h>

#include <QApplication>
#include <QTest>
#include <algorithm>

#include "analysis/trace/builder.h"
#include "tests/unit/viewer/simulated_run.h"
#include "viewer/drawing/colour_vision.h"
#include "viewer/drawing/state_strip.h"
#include "viewer/panels/legend.h"
#include "viewer/session/view_file.h"
#include "viewer/timeline/timeline_widget.h"

namespace paceline::viewer {
namespace {

using analysis::ThreadState;
using analysis::ThreadStates;

constexpr std::int64_t ms = 1'000'000;
constexpr int columns = 900;  // of 900 ms

// Three states of 300 ms each.
ThreadStates thirds() {
  return {.time_ns = {0, 300 * ms, 600 * ms, 900 * ms},
          .running_ns = {0, 300 * ms, 300 * ms, 300 * ms},
          .waiting_ns = {0, 0, 300 * ms, 300 * ms},
          .exact = true};
}

// A main thread with these states, and a thread without slices that ran all the time.
std::shared_ptr<const viewer::Run> run_with(const ThreadStates& states, bool sampled = false) {
  analysis::TraceBuilder builder;
  analysis::RankBuilder& rank = builder.add_rank(0);
  rank.info().start_ns = 0;
  rank.info().end_ns = 900 * ms;
  analysis::TrackBuilder& main = rank.add_main_thread();
  main.add_slice(0, 900 * ms, "step");
  main.add_states(states);
  if (sampled) {
    const auto frame = [&](const char* function, const char* file, std::uint32_t line) {
      return rank.stacks().frame({rank.names().intern(function), rank.names().intern(file), line});
    };
    const auto outer = rank.stacks().stack(0, frame("train", "/src/train.py", 7));
    main.add_stack_sample(100 * ms, rank.stacks().stack(outer, frame("load", "/src/data.py", 41)));
    main.add_stack_sample(700 * ms, rank.stacks().stack(outer, frame("[read]", "/data/a.bin", 0)));
  }
  analysis::TrackBuilder& helper = rank.add_track(analysis::TrackKind::thread, "thread 7");
  helper.add_states({.time_ns = {0, 900 * ms}, .running_ns = {0, 900 * ms}, .waiting_ns = {0, 0}, .exact = true});
  return index_run("states", builder.finish());
}

class States : public testing::Test {
 protected:
  void show(const ThreadStates& states, bool sampled = false) {
    TearDown();
    run = run_with(states, sampled);
    document = std::make_unique<Document>(run);
    state = std::make_unique<ViewState>(*run);
    timeline = std::make_unique<TimelineWidget>(*document, *state);
    timeline->resize(header_width + columns, 300);
    timeline->show();
    QCoreApplication::processEvents();
    state->time.set_width(columns);
    state->time.show_all();
  }
  void TearDown() override { timeline.reset(), state.reset(), document.reset(); }
  // The n-th strip.
  const PlacedRow& strip(std::size_t n = 0) const {
    for (const PlacedRow& placed : timeline->rows().rows()) {
      if (placed.row->is_states() && n-- == 0) return placed;
    }
    throw std::runtime_error("no strip");
  }
  std::size_t strips() const {
    return std::size_t(std::ranges::count_if(timeline->rows().rows(),
                                             [](const PlacedRow& placed) { return placed.row->is_states(); }));
  }
  QImage picture(const Theme& theme = Theme::light()) const {
    TimelinePainter painter(*document, theme, QFont());
    QImage image(QSize(header_width + columns, 300), QImage::Format_RGB32);
    QPainter to(&image);
    painter.paint(to, image.size(), *state, timeline->rows(), 0, std::nullopt);
    return image;
  }
  // The colours of a column of the first strip, from its lower edge up.
  std::vector<QRgb> column(const QImage& image, int x) const {
    std::vector<QRgb> colours;
    for (int y = strip().end_y - 1; y >= strip().y; --y) {
      colours.push_back(image.pixel(header_width + x, ruler_height + y) | 0xff000000);
    }
    return colours;
  }
  QString tip(int x, std::size_t n = 0) const {
    return timeline->tooltip_at({header_width + x, ruler_height + strip(n).end_y - 3});
  }

  std::shared_ptr<const viewer::Run> run;
  std::unique_ptr<Document> document;
  std::unique_ptr<ViewState> state;
  std::unique_ptr<TimelineWidget> timeline;
};

TEST_F(States, HaveTheirColoursAtTheirTimes) {
  show(thirds());
  for (const Theme& theme : {Theme::light(), Theme::night()}) {
    const QImage image = picture(theme);
    const auto all = [&](int x, ThreadState of) {
      return std::ranges::all_of(column(image, x), [&](QRgb one) { return one == state_colour(of, theme); });
    };
    EXPECT_TRUE(all(1, ThreadState::running) && all(298, ThreadState::running));
    EXPECT_TRUE(all(301, ThreadState::waiting) && all(598, ThreadState::waiting));
    EXPECT_TRUE(all(601, ThreadState::blocked) && all(898, ThreadState::blocked));
  }
  EXPECT_TRUE(tip(450).contains("waiting for a CPU")) << tip(450).toStdString();
  EXPECT_TRUE(tip(450).contains("300.0 ms"));
}

TEST_F(States, AreExactAtTheClosestZoom) {
  show(thirds());
  state->time.show_part({300e6 - 100, 300e6 + 100});  // 200 ns in 900 columns
  const QImage image = picture();
  EXPECT_EQ(column(image, 440).front(), state_colour(ThreadState::running, Theme::light()));
  EXPECT_EQ(column(image, 460).front(), state_colour(ThreadState::waiting, Theme::light()));
}

// Of 150,000 entries in 900 columns, not all are read.
TEST_F(States, OfManySwitchesAreSharesOfEachColumn) {
  for (const std::int64_t turns : {22'500, 75'000}) {
    const std::int64_t waited = 900 * ms / turns / 4, ran = 3 * waited;
    ThreadStates states{.time_ns = {0}, .running_ns = {0}, .waiting_ns = {0}, .exact = true};
    for (std::int64_t i = 0; i < turns; ++i) {
      const std::int64_t begin = i * (waited + ran), running = i * ran, waiting = i * waited;
      states.time_ns.insert(states.time_ns.end(), {begin + waited, begin + waited + ran});
      states.running_ns.insert(states.running_ns.end(), {running, running + ran});
      states.waiting_ns.insert(states.waiting_ns.end(), {waiting + waited, waiting + waited});
    }
    show(states);
    const QImage image = picture();
    for (const int x : {5, 450, 890}) {
      const std::vector<QRgb> colours = column(image, x);
      ASSERT_EQ(colours.size(), 8u);
      EXPECT_EQ(std::ranges::count(colours, state_colour(ThreadState::waiting, Theme::light())), 2) << x;
      EXPECT_EQ(std::ranges::count(colours, state_colour(ThreadState::running, Theme::light())), 6) << x;
    }
    EXPECT_TRUE(tip(450).contains("25.0 %") && tip(450).contains("75.0 %")) << tip(450).toStdString();
  }
}

TEST_F(States, OfSumsAreShares) {
  show({.time_ns = {0, 900 * ms}, .running_ns = {0, 450 * ms}, .waiting_ns = {0, 225 * ms}, .exact = false});
  const QImage image = picture();
  for (const int x : {5, 890}) {
    const std::vector<QRgb> colours = column(image, x);
    EXPECT_EQ(std::ranges::count(colours, state_colour(ThreadState::waiting, Theme::light())), 2);
    EXPECT_EQ(std::ranges::count(colours, state_colour(ThreadState::running, Theme::light())), 4);
    EXPECT_EQ(std::ranges::count(colours, state_colour(ThreadState::blocked, Theme::light())), 2);
  }
  EXPECT_TRUE(tip(450).contains("50.0 %")) << tip(450).toStdString();
  EXPECT_EQ(strip().row->range_at(450e6), std::nullopt) << "the place of a state is not known";
}

TEST_F(States, EndWhereTheThreadEnds) {
  ThreadStates early = thirds();
  for (auto* column : {&early.time_ns, &early.running_ns, &early.waiting_ns}) column->pop_back();
  show(early);
  const QImage image = picture();
  EXPECT_EQ(column(image, 710).front(), Theme::light().background);
  EXPECT_EQ(tip(710), "");
}

TEST_F(States, AreHiddenByAKeyAndInASavedView) {
  show(thirds());
  EXPECT_EQ(strips(), 2u) << "the thread without slices has one as well: this run has no counters";
  QTest::keyClick(timeline.get(), Qt::Key_T);
  EXPECT_EQ(strips(), 0u);
  const QByteArray saved = view_to_json(*state, {});
  QTest::keyClick(timeline.get(), Qt::Key_T);
  EXPECT_EQ(strips(), 2u);
  view_from_json(saved, "view", *state);
  EXPECT_EQ(strips(), 0u);
}

TEST_F(States, LeadToTheirEnds) {
  show(thirds());
  const auto range = strip().row->range_at(450e6);
  ASSERT_TRUE(range);
  EXPECT_EQ(*range, (TimeRange{225e6, 675e6}));
  const auto edge = strip().row->edge_near({.time_ns = 301e6, .ns_per_pixel = 1e6, .end_ns = 900e6}, 5e6);
  ASSERT_TRUE(edge);
  EXPECT_EQ(*edge, 300e6);
}

TEST_F(States, HaveTicksWhereStacksWereSampled) {
  show(thirds(), true);
  const QImage image = picture();
  const auto tick = [&](int x) {
    return (image.pixel(header_width + x, ruler_height + strip().y) | 0xff000000) == Theme::light().faint_text;
  };
  EXPECT_TRUE(tick(100) && tick(700));
  for (int x = 0; x < columns; ++x) EXPECT_EQ(tick(x), x == 100 || x == 700) << x;
  const QString first = tip(100), second = tip(701);
  EXPECT_TRUE(first.contains("load (data.py:41)") && first.contains("train (train.py:7)")) << first.toStdString();
  EXPECT_LT(first.indexOf("load"), first.indexOf("train")) << "the innermost function first";
  EXPECT_TRUE(second.contains("[read] (/data/a.bin)") && second.contains("blocked")) << second.toStdString();
  EXPECT_FALSE(tip(400).contains("train.py"));
}

TEST(StatesInTheLegend, HaveAllTheirNamesInANarrowWindow) {
  const auto run = index_run("states", simulate({.iterations = 3, .switch_ns = 1'000'000}));
  Document document(run);
  ViewState state(*run);
  Legend legend(document, state);
  const auto picture = [&](int width) {
    legend.resize(width, legend.heightForWidth(width));
    return legend.grab().toImage();
  };
  const auto has_all = [](const QImage& image) {
    const Theme theme = Theme::of(QApplication::palette());
    return std::ranges::all_of(state_order, [&](ThreadState of) {
      for (int y = 0; y < image.height(); ++y) {
        for (int x = 0; x < image.width(); ++x) {
          if ((image.pixel(x, y) | 0xff000000) == state_colour(of, theme)) return true;
        }
      }
      return false;
    });
  };
  EXPECT_LT(legend.heightForWidth(1900), legend.heightForWidth(500));
  EXPECT_TRUE(has_all(picture(1900)) && has_all(picture(800)) && has_all(picture(500)));
  state.arrangement.set_states_shown(false);
  EXPECT_FALSE(has_all(picture(1900)));
}

TEST(StateColours, CanBeToldApartByEverybody) {
  for (const Theme& theme : {Theme::light(), Theme::night()}) {
    const QRgb running = state_colour(ThreadState::running, theme), waiting = state_colour(ThreadState::waiting, theme),
               blocked = state_colour(ThreadState::blocked, theme);
    EXPECT_GE(contrast(running, blocked), 2.5);
    EXPECT_GE(contrast(waiting, blocked), 3);
    EXPECT_GE(contrast(running, waiting), 2);
    EXPECT_GE(contrast(waiting, theme.background), 3);
    for (const auto& [a, b] : {std::pair(running, waiting), {running, blocked}, {waiting, blocked}}) {
      EXPECT_GE(distance_for_all(a, b), 0.15);
    }
  }
}

}  // namespace
}  // namespace paceline::viewer
