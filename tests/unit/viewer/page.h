// SPDX-License-Identifier: Apache-2.0
// A page with a small run in a window on the offscreen screen, for tests of panels and of the window.
#pragma once

#include <gtest/gtest.h>

#include <QTest>
#include <memory>
#include <utility>

#include "tests/unit/viewer/simulated_run.h"
#include "viewer/window/window.h"

namespace paceline::viewer {

// Rank 2 of 4 is slow, and iteration 5 takes twice as long.
inline std::shared_ptr<const Run> four_ranks() {
  static const auto run = index_run(
      "four",
      simulate({.ranks = 4, .iterations = 8, .layers = false, .slow_rank = 2, .slowness = 1.5, .slow_iteration = 5}));
  return run;
}

// Whether a panel is in front. Its children may cover all of it.
inline bool is_seen(QWidget* panel) {
  bool seen = !panel->visibleRegion().isEmpty();
  for (QWidget* child : panel->findChildren<QWidget*>()) seen = seen || !child->visibleRegion().isEmpty();
  return seen;
}

class Page : public testing::Test {
 protected:
  explicit Page(std::shared_ptr<const viewer::Run> run = four_ranks(), QSize size = {1400, 900})
      : page(window.show_run(std::move(run))) {
    window.resize(size);
    window.show();
    finish();
  }
  void finish() {
    QTest::qWait(0);
    page->document().background().finish();
    QTest::qWait(0);
  }
  ViewState& state() { return page->state(); }
  // Brings a panel to the front and waits for its figures.
  template <class Panel>
  Panel* open(const QString& title) {
    Q_EMIT state().commands.panel_wanted(title);
    finish();
    auto* dock = page->findChild<QDockWidget*>(title);
    return dock == nullptr ? nullptr : dynamic_cast<Panel*>(dock->widget());
  }
  SliceRef first_named(const char* name, std::size_t rank) const {
    const viewer::Run& run = page->run();
    const auto id = run.trace.names.find(name);
    const auto& slices = run.trace.ranks[rank].tracks[0].slices;
    for (std::uint32_t i = 0; i < slices.size(); ++i) {
      if (run.trace.kind_of(slices, i).name == id) return {.rank = rank, .track = 0, .slice = i};
    }
    throw std::runtime_error(name);
  }

  Window window;
  RunPage* page;
};

}  // namespace paceline::viewer
