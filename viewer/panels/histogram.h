// SPDX-License-Identifier: Apache-2.0
// How long the slices of one name took: a histogram over a logarithmic axis, with the median and the percentiles. The
// name is that of the selected slice. A click on a bar goes to the longest slice in it.
#pragma once

#include <optional>
#include <vector>

#include "analysis/statistics/duration_sketch.h"
#include "viewer/panels/lazy_panel.h"

namespace paceline::viewer {

// Sixteen bars for each power of two, from the shortest duration to the longest.
struct Durations {
  struct Bar {
    std::uint64_t count = 0;
    std::int64_t longest_ns = -1;
    SliceRef longest;
  };
  analysis::DurationSketch sketch;
  int first = 0;  // the number of the first bar
  std::vector<Bar> bars;

  static int bar_of(std::int64_t ns);  // the number of the bar that a duration is in
  static double begin_of(int bar);     // the shortest duration in it, in ns
  double place_of(double ns) const;    // from 0 at the left edge of the first bar to bars.size()
};
// Those of the slices of this name that begin in the part. Cost: linear in the slices of the part.
Durations durations_in(const Run& run, analysis::NameId name, const Part& part, const Ticket& ticket);

class Histogram : public LazyPanel {
  Q_OBJECT

 public:
  Histogram(Document& document, Selection& selection);

  const Durations& durations() const { return durations_; }
  QString status() const { return status_; }
  QRect bar(std::size_t i) const;

 protected:
  void refresh() override;
  QString tip_at(const QPoint& position) const override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  std::optional<std::size_t> at(const QPoint& position) const;
  QString text_of(std::size_t bar) const;
  void set_cursor(std::size_t bar);
  void go_to(std::size_t bar);

  Durations durations_;
  QString status_;
  std::optional<std::size_t> cursor_;  // of the keyboard
};

}  // namespace paceline::viewer
