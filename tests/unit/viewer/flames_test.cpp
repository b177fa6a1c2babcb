// SPDX-License-Identifier: Apache-2.0
// The flame graph of samples of stacks, and of the difference between two sets of them.
#include <QToolButton>
#include <algorithm>

#include "analysis/trace/builder.h"
#include "tests/unit/viewer/page.h"
#include "viewer/panels/flame_graph.h"

namespace paceline::viewer {
namespace {

constexpr std::int64_t sample_ms = 1'000'000;

// Two ranks of 4 iterations of 100 ms, with a sample every 10 ms below main(): rank 0 computes all the time. Rank 1
// loads for 80 ms of iteration 2, and for 20 ms of the others.
std::shared_ptr<const viewer::Run> sampled_run() {
  static const auto run = [] {
    analysis::TraceBuilder builder;
    for (int r = 0; r < 2; ++r) {
      analysis::RankBuilder& rank = builder.add_rank(r, 2);
      rank.info().start_ns = 0;
      rank.info().end_ns = 400 * sample_ms;
      analysis::TrackBuilder& main = rank.add_main_thread();
      main.set_sample_period(10 * sample_ms);
      const auto stack = [&](analysis::StackId caller, const char* function, std::uint32_t line) {
        return rank.stacks().stack(
            caller, rank.stacks().frame({rank.names().intern(function), rank.names().intern("/src/train.py"), line}));
      };
      for (int iteration = 0; iteration < 4; ++iteration) {
        const std::int64_t begin = iteration * 100 * sample_ms;
        main.add_slice(begin, begin + 100 * sample_ms, "iteration", "paceline.trainer", "iteration");
        const int loading = r == 0 ? 0 : iteration == 2 ? 8 : 2;
        for (int sample = 0; sample < 10; ++sample) {
          const auto line = static_cast<std::uint32_t>(sample);  // another line of the same function
          const auto outer = stack(0, "main", 1 + line);
          const auto inner =
              sample < loading ? stack(stack(outer, "load", 20), "[read]", 0) : stack(outer, "compute", 30 + line);
          main.add_stack_sample(begin + sample * 10 * sample_ms + sample_ms, inner);
        }
      }
    }
    return index_run("sampled", builder.finish());
  }();
  return run;
}

class Flames : public Page {
 protected:
  explicit Flames(std::shared_ptr<const viewer::Run> run = sampled_run()) : Page(std::move(run)) {
    graph = open<FlameGraph>("Flame graph");
  }
  std::uint32_t named(const char* name) const {
    const auto id = page->run().trace.names.find(name);
    const auto found = std::ranges::find(graph->nodes(), id, &FlameNode::name);
    if (id == 0 || found == graph->nodes().end()) throw std::runtime_error(name);
    return std::uint32_t(found - graph->nodes().begin());
  }
  void show(FlameGraph::Show what) {
    graph->show_what(what);
    finish();
  }
  FlameChart& chart() { return graph->chart(); }
  int width_of(const char* name) { return chart().box_of(named(name)).value_or(QRect()).width(); }

  FlameGraph* graph;
};

TEST_F(Flames, AreThoseOfSamplesWhereThereAreAny) {
  ASSERT_EQ(chart().tree().of, FlameTree::Of::samples);
  const FlameNode &outer = graph->nodes()[named("main")], &load = graph->nodes()[named("load")];
  EXPECT_EQ(graph->nodes()[0].count, 80u);
  EXPECT_EQ(std::ranges::count(graph->nodes(), outer.name, &FlameNode::name), 1) << "lines do not divide a function";
  EXPECT_EQ(outer.total_ns, 800 * sample_ms);
  EXPECT_EQ(outer.self_ns, 0);
  EXPECT_EQ(load.total_ns, 140 * sample_ms);
  EXPECT_EQ(load.parent, named("main"));
  EXPECT_EQ(graph->nodes()[named("[read]")].self_ns, 140 * sample_ms);
  EXPECT_NEAR(width_of("load"), 0.175 * chart().width(), 1);
  EXPECT_EQ(width_of("main"), chart().width());
  EXPECT_GT(chart().box_of(named("load"))->top(), chart().box_of(named("main"))->top()) << "the outermost comes first";
}

TEST_F(Flames, FollowTheSelection) {
  state().selection.select_range(TimeRange{200e6, 300e6}, {1});
  finish();
  EXPECT_EQ(graph->nodes()[0].count, 10u);
  EXPECT_NEAR(width_of("load"), 0.8 * chart().width(), 1);
  EXPECT_TRUE(graph->status().contains("10 samples in the selected 100.0 ms of 1 rank"))
      << graph->status().toStdString();
}

TEST_F(Flames, AClickEnlargesAndAnotherOneGoesBack) {
  QTest::mouseClick(&chart(), Qt::LeftButton, {}, chart().box_of(named("load"))->center());
  EXPECT_EQ(chart().top(), named("load"));
  EXPECT_EQ(width_of("load"), chart().width());
  EXPECT_EQ(width_of("[read]"), chart().width());
  QTest::mouseClick(&chart(), Qt::LeftButton, {}, chart().box_of(named("load"))->center());
  EXPECT_EQ(chart().top(), named("main"));
  QTest::keyClick(&chart(), Qt::Key_Backspace);
  EXPECT_EQ(chart().top(), 0u);
}

TEST_F(Flames, HighlightsNamesAndAddsThemUpOnce) {
  auto* find = graph->findChild<QLineEdit*>();
  const auto shown = [&](const char* name) {
    const QRect box = *chart().box_of(named(name));
    return chart().grab().toImage().pixel(box.right() - 3, box.top() + 2);
  };
  const QRgb load = shown("load"), compute = shown("compute");
  find->setText("LOAD");
  EXPECT_EQ(shown("load"), load);
  EXPECT_NE(shown("compute"), compute) << "paler";
  EXPECT_TRUE(graph->status().startsWith("17.5 % in \"LOAD\"")) << graph->status().toStdString();
  find->setText("a");  // main, load and [read], which lie inside each other
  EXPECT_TRUE(graph->status().startsWith("100.0 % in")) << graph->status().toStdString();
}

TEST_F(Flames, OfTwoRanksAreRedWhereTheFirstHasMore) {
  show(FlameGraph::Show::ranks);
  const auto boxes = graph->findChildren<QSpinBox*>();
  ASSERT_EQ(boxes.size(), 2);
  boxes[0]->setValue(1);
  finish();
  const FlameTree& tree = chart().tree();
  ASSERT_EQ(tree.of, FlameTree::Of::difference);
  EXPECT_EQ(boxes[1]->text(), "against the other ranks");
  const std::uint32_t load = named("load"), compute = named("compute");
  EXPECT_DOUBLE_EQ(tree.share(load), 0.35);
  EXPECT_DOUBLE_EQ(tree.other_share(load), 0);
  EXPECT_DOUBLE_EQ(tree.share(compute), 0.65);
  EXPECT_DOUBLE_EQ(tree.other_share(compute), 1);
  EXPECT_NEAR(width_of("load"), 0.175 * chart().width(), 1) << "the mean of both shares";
  const auto colour = [&](std::uint32_t node) { return QColor(chart().colour_of(node, Theme::light())); };
  EXPECT_GT(colour(load).red(), colour(load).blue() + 50);
  EXPECT_GT(colour(compute).blue(), colour(compute).red() + 50);
  EXPECT_EQ(colour(named("main")).rgb(), Theme::light().container) << "no difference";
  EXPECT_TRUE(chart().text_of(load).contains("35.0 % of rank 1") && chart().text_of(load).contains("35.0 points more"))
      << chart().text_of(load).toStdString();
  boxes[0]->setValue(0);
  boxes[1]->setValue(1);
  finish();
  EXPECT_DOUBLE_EQ(chart().tree().difference(named("load")), -0.35);
  EXPECT_TRUE(graph->status().contains("rank 0") && graph->status().contains("rank 1"));
}

TEST_F(Flames, OfTwoIterationsCompareThem) {
  show(FlameGraph::Show::iterations);
  const auto boxes = graph->findChildren<QSpinBox*>();
  boxes[0]->setValue(2);
  finish();
  const FlameTree& tree = chart().tree();
  EXPECT_DOUBLE_EQ(tree.share(named("load")), 0.4) << "8 of the 20 samples of both ranks";
  EXPECT_DOUBLE_EQ(tree.other_share(named("load")), 0.1);
  boxes[1]->setValue(3);
  state().selection.select_range(TimeRange{0, 1e6}, {1});
  finish();
  EXPECT_DOUBLE_EQ(chart().tree().share(named("load")), 0.8) << "of the selected rank, at any time";
  EXPECT_DOUBLE_EQ(chart().tree().other_share(named("load")), 0.2);
}

TEST_F(Flames, OfNothingSayWhatIsMissing) {
  state().selection.select_range(TimeRange{0, 1000});
  finish();
  EXPECT_TRUE(graph->status().startsWith("No samples in the selected")) << graph->status().toStdString();
  show(FlameGraph::Show::ranks);
  EXPECT_TRUE(graph->status().startsWith("No samples of rank")) << graph->status().toStdString();
}

class UnsampledFlames : public Flames {
 protected:
  UnsampledFlames() : Flames(four_ranks()) {}
};

TEST_F(UnsampledFlames, SayHowToRecordSamples) {
  EXPECT_EQ(chart().tree().of, FlameTree::Of::ranges);
  show(FlameGraph::Show::samples);
  EXPECT_TRUE(graph->status().contains("paceline record --sample 100")) << graph->status().toStdString();
  EXPECT_FALSE(chart().box_of(0));
}

// Rank 2 of 4 is slow, for which a third of its samples have another function, and iteration 5 takes twice as long.
std::shared_ptr<const viewer::Run> slow_run(bool sampled) {
  analysis::Trace trace = simulate({.ranks = 4,
                                    .iterations = 40,
                                    .layers = false,
                                    .slow_rank = 2,
                                    .slowness = 1.5,
                                    .slow_iteration = 5,
                                    .switch_ns = 500'000});
  const auto stack_of = [&](const char* function) {
    const auto file = trace.names.intern("/src/train.py");
    return trace.stacks.stack(0, trace.stacks.frame({trace.names.intern(function), file, 1}));
  };
  const auto work = stack_of("work"), augment = stack_of("augment");
  for (analysis::Rank& rank : trace.ranks) {
    analysis::StackSamples& samples = rank.tracks[0].stacks;
    samples.period_ns = sample_ms;
    for (std::int64_t time = 0; sampled && time < rank.end_ns; time += sample_ms) {
      const bool slow = rank.rank == 2 && time / sample_ms % 3 == 0;
      samples.time_ns.push_back(time), samples.stack.push_back(slow ? augment : work);
    }
  }
  return index_run("slow", std::move(trace));
}

class FlamesOfFindings : public Page {
 protected:
  explicit FlamesOfFindings(std::shared_ptr<const viewer::Run> run = slow_run(true)) : Page(std::move(run)) {}
  void click_finding(const QString& text) {
    for (auto* button : page->findChildren<QToolButton*>()) {
      if (!button->accessibleName().startsWith(text)) continue;
      button->click();
      return finish();
    }
    FAIL() << text.toStdString();
  }
  FlameGraph* graph() { return page->findChild<FlameGraph*>(); }
};

TEST_F(FlamesOfFindings, AFindingAboutARankComparesItWithTheOthers) {
  state().arrangement.set_all_collapsed(true);
  const TimeRange before = state().time.axis().visible();
  click_finding("Rank 2 arrived last");
  EXPECT_TRUE(state().arrangement.pinned(2));
  EXPECT_FALSE(state().arrangement.collapsed(2)) << "its rows are seen";
  EXPECT_NE(state().time.axis().visible(), before);
  EXPECT_TRUE(is_seen(graph()));
  EXPECT_EQ(graph()->chart().tree().one, "rank 2");
  EXPECT_EQ(graph()->chart().tree().other, "the other ranks");
  EXPECT_EQ(graph()->findChild<QLineEdit*>()->text(), "augment") << "the function that the report names";
}

TEST_F(FlamesOfFindings, AFindingAboutAnIterationComparesItWithTheOthers) {
  click_finding("Iteration 5 is slow");
  ASSERT_TRUE(state().selection.range());
  EXPECT_TRUE(is_seen(graph()));
  EXPECT_EQ(graph()->chart().tree().one, "iteration 5");
  EXPECT_GT(graph()->nodes()[0].total_ns, 0);
}

class FindingsWithoutSamples : public FlamesOfFindings {
 protected:
  FindingsWithoutSamples() : FlamesOfFindings(slow_run(false)) {}
};

TEST_F(FindingsWithoutSamples, LeaveThePanelInFront) {
  click_finding("Rank 2 arrived last");
  EXPECT_TRUE(state().arrangement.pinned(2));
  EXPECT_FALSE(is_seen(graph()));
}

}  // namespace
}  // namespace paceline::viewer
