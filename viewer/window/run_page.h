// SPDX-License-Identifier: Apache-2.0
// One run on screen: the timeline with the panels around it.
#pragma once

#include <functional>
#include <memory>

#include "viewer/session/document.h"
#include "viewer/session/tab_page.h"
#include "viewer/session/view_state.h"
#include "viewer/window/panel_docks.h"

namespace paceline::viewer {

class RunPage : public TabPage {
  Q_OBJECT

 public:
  explicit RunPage(std::shared_ptr<const Run> opened);
  ~RunPage() override;

  Document& document() { return document_; }
  ViewState& state() override { return state_; }
  const Run& run() const { return document_.run(); }

  // Takes over the view that was saved beside the trace, if there is one. Throws Error if the file is damaged.
  void restore_view();
  // Saves the view beside the trace. Throws Error.
  void save_view();
  // Saves it where it was saved before, and `everywhere` else among the user's settings. Ignores that the file cannot
  // be written.
  void keep_view(bool everywhere = false);

  // Writes the selected time and ranks, or everything, as a trace, in a worker thread. `filter` is one of
  // trace_filters(). Background::failed reports why it could not be written.
  void export_trace(const QString& filter, const QString& file);

  QString title() const override { return run().title(); }
  // The view, and how exactly the ranks' clocks agree.
  QString status() const override;

  // Selects the first slice of this name that begins in the range, else the first in the run. Searches beside the UI
  // thread, and then calls `done` with whether there is one.
  void select_name(const QString& name, TimeRange range, std::function<void(bool)> done);

 Q_SIGNALS:
  void saved(const QString& file);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  QString heading() const;

  Document document_;
  ViewState state_;
  Task selecting_, exporting_;
  PanelDocks* docks_;
  bool room_for_panels_ = true;
};

}  // namespace paceline::viewer
