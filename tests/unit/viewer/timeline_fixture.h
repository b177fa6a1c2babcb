// SPDX-License-Identifier: Apache-2.0
// A timeline on a simulated run, and the moves of a user.
#pragma once

#include <gtest/gtest.h>

#include <QTest>
#include <QWheelEvent>
#include <stdexcept>
#include <string>

#include "tests/unit/viewer/simulated_run.h"
#include "viewer/timeline/timeline_widget.h"

namespace paceline::viewer {

inline constexpr int header = header_width, ruler = ruler_height;

class TimelineTest : public testing::Test {
 protected:
  explicit TimelineTest(const SimulatedRun& what = {.ranks = 2, .iterations = 10, .epochs = 1, .layers = true})
      : TimelineTest(index_run("simulated", simulate(what))) {}
  explicit TimelineTest(std::shared_ptr<const viewer::Run> opened)
      : run(std::move(opened)), document(run), state(*run), timeline(document, state) {
    timeline.resize(1400, 500);
    timeline.show();
    QCoreApplication::processEvents();
  }

  void turn_wheel(QPoint at, int steps, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QWheelEvent event(at, timeline.viewport()->mapToGlobal(QPointF(at)), {}, {0, 120 * steps}, Qt::NoButton, modifiers,
                      Qt::NoScrollPhase, false);
    QCoreApplication::sendEvent(timeline.viewport(), &event);
  }
  void drag(QPoint from, QPoint to, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QTest::mousePress(timeline.viewport(), Qt::LeftButton, modifiers, from);
    for (const int share : {1, 2, 3, 4}) {
      QMouseEvent move(QEvent::MouseMove, QPointF(from + (to - from) * share / 4),
                       timeline.viewport()->mapToGlobal(QPointF(to)), Qt::NoButton, Qt::LeftButton, modifiers);
      QCoreApplication::sendEvent(timeline.viewport(), &move);
    }
    QTest::mouseRelease(timeline.viewport(), Qt::LeftButton, modifiers, to);
  }
  void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) { QTest::keyClick(&timeline, key, modifiers); }

  SliceRef first_named(const char* name, std::size_t rank = 0) const {
    const auto id = run->trace.names.find(name);
    for (std::size_t track = 0; track < run->trace.ranks[rank].tracks.size(); ++track) {
      const auto& slices = run->trace.ranks[rank].tracks[track].slices;
      for (std::uint32_t i = 0; i < slices.size(); ++i) {
        if (run->trace.kind_of(slices, i).name == id) return {rank, track, i, false};
      }
    }
    throw std::runtime_error(std::string("no slice ") + name);
  }
  std::string name_of(const SliceRef& ref) const { return run->trace.name_of(slices_of(*run, ref), ref.slice); }
  // The middle of a slice on screen, which has to be in view.
  QPoint middle_of(const SliceRef& ref) const {
    const auto& slices = slices_of(*run, ref);
    const double time = (double(slices.start_ns[ref.slice]) + double(slices.end_ns(ref.slice))) / 2;
    const PlacedRow* placed = timeline.rows().row_of(ref);
    const auto [top, bottom] = *placed->row->place_of(ref, timeline.rows().level_height());
    return {header + static_cast<int>(state.time.axis().x_of(time)),
            ruler - timeline.scroll_y() + placed->y + (top + bottom) / 2};
  }

  std::shared_ptr<const viewer::Run> run;
  Document document;
  ViewState state;
  TimelineWidget timeline;
};

}  // namespace paceline::viewer
