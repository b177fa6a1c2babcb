// SPDX-License-Identifier: Apache-2.0
// What is known about the selected slice: its fields, its arguments, the slices that belong to it, and how long the
// other slices of its name took on each rank. Without a selection: what the run is.
#pragma once

#include <QTextBrowser>
#include <optional>
#include <vector>

#include "viewer/session/document.h"
#include "viewer/session/selection.h"

namespace paceline::viewer {

class DetailsPanel : public QTextBrowser {
  Q_OBJECT

 public:
  DetailsPanel(Document& document, Selection& selection);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  // What takes a scan of all slices, and is computed beside the UI thread.
  struct Scan {
    struct OfRank {
      std::size_t rank = 0;
      analysis::DurationStatistics durations;
    };
    std::vector<OfRank> ranks;  // those that have slices of the name
    // By a number that both have, as "call": for a call the work that it started, for that the call.
    std::vector<SliceRef> partners;  // at most a few
  };
  static Scan scan(const Run& run, const SliceRef& ref, const Ticket& ticket);

  void start();  // for a new selection
  void fill();
  QString run_text() const;
  QString slice_text(const SliceRef& ref) const;
  QString statistics_text(const SliceRef& ref) const;

  const Run& run() const { return document_.run(); }

  Document& document_;
  Selection& selection_;
  Task task_;
  std::optional<Scan> scan_;  // of the selected slice; empty while it is computed
};

}  // namespace paceline::viewer
