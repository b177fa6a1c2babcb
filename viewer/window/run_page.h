// One run on screen: overview, timeline, legend, and below them the breakdown and the details.
#pragma once

#include <QSplitter>
#include <QWidget>
#include <memory>

#include "viewer/panels/breakdown_panel.h"
#include "viewer/panels/details_panel.h"
#include "viewer/panels/search.h"
#include "viewer/session/run.h"
#include "viewer/timeline/timeline_widget.h"

namespace paceline::viewer {

class RunPage : public QWidget {
  Q_OBJECT

 public:
  explicit RunPage(std::shared_ptr<const Run> run, QWidget* parent = nullptr);

  const Run& run() const { return *run_; }
  TimelineWidget& timeline() { return *timeline_; }
  SearchBar& search() { return *search_; }
  void show_panels(bool shown) { panels_->setVisible(shown); }

  // What is in view, and how exactly the ranks' clocks agree: for the status bar.
  QString status() const;

  // Selects the first slice of this name that begins in the view, else the first in the run; false where none has it.
  bool select_name(const QString& name);

 Q_SIGNALS:
  void status_changed();

 private:
  QString heading() const;

  std::shared_ptr<const Run> run_;
  TimelineWidget* timeline_;
  BreakdownPanel* breakdown_;
  DetailsPanel* details_;
  SearchBar* search_;
  QWidget* panels_;
};

}  // namespace paceline::viewer
