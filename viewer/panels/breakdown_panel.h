// Where each rank's time went: one row a rank, one column a phase, for the whole run or the selected stretch of it.
#pragma once

#include <QLabel>
#include <QTableWidget>
#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "viewer/session/run.h"
#include "viewer/session/time_axis.h"

namespace paceline::viewer {

class BreakdownPanel : public QWidget {
  Q_OBJECT

 public:
  explicit BreakdownPanel(std::shared_ptr<const Run> run, QWidget* parent = nullptr);

  void show_range(std::optional<TimeRange> range);  // none: the whole run
  const QTableWidget& table() const { return *table_; }
  QString title() const { return title_->text(); }

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void fill();

  std::shared_ptr<const Run> run_;
  std::vector<analysis::Phase> phases_;
  std::optional<TimeRange> range_;
  QLabel* title_;
  QTableWidget* table_;
};

}  // namespace paceline::viewer
