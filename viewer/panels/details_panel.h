// Everything known about the chosen slice: its fields, its arguments, and how others of its name fare on each rank.
#pragma once

#include <QTextBrowser>
#include <memory>
#include <optional>

#include "viewer/session/run.h"

namespace paceline::viewer {

class DetailsPanel : public QTextBrowser {
  Q_OBJECT

 public:
  explicit DetailsPanel(std::shared_ptr<const Run> run, QWidget* parent = nullptr);

  void show_slice(std::optional<SliceRef> slice);  // none: what the run is

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void fill();
  QString run_text() const;
  QString slice_text(const SliceRef& ref) const;
  QString statistics_text(const analysis::Rank& chosen, analysis::NameId name) const;

  std::shared_ptr<const Run> run_;
  std::optional<SliceRef> slice_;
};

}  // namespace paceline::viewer
